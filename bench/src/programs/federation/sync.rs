//! A directory provisions very many people, looks at all of them and changes each; and what a point read notices of it.

use bench::{
    Result,
    client::{Connection, Request},
    leisure::{read_at_leisure, read_beside},
    load::work_off,
    process,
    report::{self, Aim, Bound, Table, count, figure, times},
    series::{Round, Series, Spread},
};
use kernel::Ticker;
use serde_json::{Value, json};

use super::{Options, server::Server};

/// Readers of the point read; each makes up to a hundred reads a second.
const READERS: usize = 8;
const PAGE: usize = 200;

fn creations(server: &Server, users: usize) -> Vec<Request> {
    let create = |n: usize| {
        let body = json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": format!("u{n}@bench.example"),
            "externalId": format!("00u{n}"), "name": { "givenName": "Ada", "familyName": "Lovelace" }, "active": true,
        });
        Request::post("/scim/v2/Users", &server.directory, &body.to_string())
    };
    (0..users).map(create).collect()
}

fn changes(server: &Server, ids: &[String]) -> Vec<Request> {
    let body = json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [{ "op": "replace", "path": "name.givenName", "value": "Grace" }],
    });
    let change = |id: &String| Request::patch(&format!("/scim/v2/Users/{id}"), &server.directory, &body.to_string());
    ids.iter().map(change).collect()
}

/// Everybody page by page, as directories do: the ids, and what a page took.
async fn list(server: &Server) -> Result<(Vec<String>, Round)> {
    let page =
        |start: usize| Request::get(&format!("/scim/v2/Users?startIndex={start}&count={PAGE}"), &server.directory);
    let (mut ids, mut latencies) = (Vec::new(), Vec::new());
    let mut connection = Connection::open(server.address, page(1)).await?;
    let (cpu_before, started) = (server.cpu()?, Ticker.now());
    loop {
        let began = Ticker.now();
        let told: Value = serde_json::from_slice(connection.ask().await?)?;
        latencies.push(Ticker.since(began));
        let found = told["Resources"].as_array().ok_or("a list without resources")?;
        ids.extend(found.iter().filter_map(|user| user["id"].as_str().map(str::to_owned)));
        if found.is_empty() || ids.len() >= usize::try_from(told["totalResults"].as_u64().unwrap_or(0))? {
            break;
        }
        connection.ask_next(page(ids.len() + 1));
    }
    let (elapsed, used) = (Ticker.since(started), server.cpu()?.saturating_sub(cpu_before));
    Ok((ids, Round::new(latencies.len() as u64, elapsed, used, latencies)))
}

/// What one step of the sync came to.
struct Step {
    call: Series,
    reads: Series,
    users: usize,
    seconds: f64,
    megabytes: f64,
}

impl Step {
    fn of(
        name: &str,
        callers: usize,
        users: usize,
        round: Round,
        calls: usize,
        reads: Round,
        server: &Server,
    ) -> Result<Self> {
        let with = |name: String, callers, round| Series { rounds: vec![round], ..Series::new(name, callers) };
        Ok(Self {
            seconds: calls as f64 / round.per_second,
            call: with(name.to_owned(), callers, round),
            reads: with(format!("GET /account/app beside {name}"), READERS, reads),
            users,
            megabytes: process::resident_megabytes(server.process())?,
        })
    }
}

pub async fn measure(engine: &str, options: &Options, server: &Server, aims: &mut Vec<Aim>) -> Result<Vec<Series>> {
    let (users, callers) = (options.users(), options.connections);
    let read = Request::get("/account/app", &server.key);
    let mut idle = Series::new("GET /account/app, now and then", READERS);
    for _ in 0..options.flags.rounds() {
        idle.rounds.push(read_at_leisure(server.address, &read, READERS, options.flags.turn()).await?);
    }
    let before = process::resident_megabytes(server.process())?;
    let beside = async |stock: Vec<Request>| {
        read_beside(server.address, &read, READERS, work_off(server.address, callers, stock, || server.cpu())).await
    };

    eprintln!("{engine}: {users} users");
    let (reads, round) = beside(creations(server, users)).await?;
    let created = Step::of("POST /scim/v2/Users", callers, users, round, users, reads, server)?;
    let (reads, (ids, round)) = read_beside(server.address, &read, READERS, list(server)).await?;
    let everybody = ids.len();
    let listed = Step::of("GET /scim/v2/Users by 200", 1, everybody, round, everybody.div_ceil(PAGE), reads, server)?;
    let (reads, round) = beside(changes(server, &ids)).await?;
    let patched = Step::of("PATCH /scim/v2/Users/{id}", callers, everybody, round, everybody, reads, server)?;
    let peak = process::peak_resident_megabytes(server.process())?;

    let steps = [created, listed, patched];
    let p99 = |one: &Series| one.spread(|round| round.p99_millis).median;
    let ratio = |one: &Series| p99(one) / p99(&idle).max(f64::MIN_POSITIVE);
    let mut table = Table::new(["step", "users", "seconds", "users per s", "resident MB", "read p99 ms", "over idle"]);
    table.row([
        "before".into(),
        "–".into(),
        "–".into(),
        "–".into(),
        figure(before),
        figure(p99(&idle)),
        "1.00x".into(),
    ]);
    for step in &steps {
        table.row([
            step.call.name.clone(),
            count(step.users as f64),
            figure(step.seconds),
            count(step.users as f64 / step.seconds),
            figure(step.megabytes),
            figure(p99(&step.reads)),
            format!("{:.2}x", ratio(&step.reads)),
        ]);
    }
    println!("\n{engine}: a directory's sync; at most {} MB were resident\n\n{table}", figure(peak));
    let mut all = vec![idle.clone()];
    all.extend(steps.iter().flat_map(|step| [step.call.clone(), step.reads.clone()]));
    let compared: Vec<_> = all
        .iter()
        .map(|one| {
            vec![if one.name.starts_with("GET /account") { times(Spread::of([ratio(one)])) } else { "–".into() }]
        })
        .collect();
    println!("{}", report::table(&all, None, &compared, "p99 over idle"));
    let worst = steps.iter().map(|step| ratio(&step.reads)).fold(0.0, f64::max);
    let what = format!("{engine}: p99 of a point read beside a directory's sync over idle, worst step");
    aims.push(Aim::new(what, worst, Bound::AtMost(3.0), "x"));
    Ok(all)
}
