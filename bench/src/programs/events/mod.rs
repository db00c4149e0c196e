//! Takes in events of a realistic mix, folds and packs them, and asks questions before and after: rate, bytes and
//! latency, beside the same question in SQL over the events' JSON.

mod sample;

use std::time::Duration;

use bench::{
    Flags, Result, Threads,
    database::Database,
    process,
    report::{self, Aim, Bound, Table, count, figure},
    subject::{open, post},
};
use clap::Args;
use kernel::Ticker;
use serde_json::{Value, json};
use service::Service;
use store::testing::statement;

use sample::{Dice, MAIN_NAME, Sample};

/// Measures the event log.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    flags: Flags,
    /// How many events.
    #[arg(long, default_value_t = 1_000_000)]
    events: usize,
}

const BATCH: usize = 1_000;
/// Batches on their way at once.
const CALLERS: usize = 8;
/// The median of so many answers counts.
const TIMES: usize = 7;

pub fn start(options: &Options) -> Result<()> {
    bench::block_on(Threads::All, run(options))
}

async fn run(options: &Options) -> Result<()> {
    let mut aims = Vec::new();
    Box::pin(measure("SQLite", None, options.events, &mut aims)).await?;
    if let Some(server) = options.flags.postgres() {
        let database = Database::create(&server).await?;
        let outcome = Box::pin(measure("PostgreSQL", Some(&database.url()?), options.events, &mut aims)).await;
        database.remove().await?;
        outcome?;
    }
    report::print_aims(&aims);
    Ok(())
}

/// A service with events in it.
struct Subject {
    service: Service,
    app: String,
    key: String,
}

async fn measure(engine: &str, database: Option<&str>, events: usize, aims: &mut Vec<Aim>) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let service = open(folder.path(), database, |_| ()).await?;
    let first = service.first_run().await?.ok_or("the store is not new")?;
    let subject = Subject { service, app: first.app.id.to_string(), key: first.api_key.clone() };
    println!("\n{engine}, {} events\n", count(events as f64));

    let taken = subject.take_in(events).await?;
    println!("taken in: {} a second", count(events as f64 / taken.as_secs_f64()));
    let (began, cpu) = (Ticker.now(), process::cpu_time(std::process::id())?);
    subject.service.drain().await?;
    let (folded, spent) = (Ticker.since(began), process::cpu_time(std::process::id())? - cpu);
    println!(
        "folded: {} a second, {} a second of this process's CPU",
        count(events as f64 / folded.as_secs_f64()),
        count(events as f64 / spent.as_secs_f64())
    );
    aims.push(Aim::new(
        format!("{engine}: folded in a second of CPU"),
        events as f64 / spent.as_secs_f64(),
        Bound::AtLeast(60_000.0),
        "",
    ));

    let in_sql = subject.ask_in_sql().await?;
    let before = subject.ask_all().await?;
    let began = Ticker.now();
    subject.pack().await?;
    let packed = Ticker.since(began);
    let (blocks, bytes, in_blocks) = subject.blocks().await?;
    println!(
        "packed: {} of them into {blocks} blocks, {} a second, {} bytes each",
        count(in_blocks),
        count(in_blocks / packed.as_secs_f64()),
        figure(bytes / in_blocks)
    );
    aims.push(Aim::new(format!("{engine}: bytes of a packed event"), bytes / in_blocks, Bound::Below(40.0), ""));
    let after = subject.ask_all().await?;

    let mut table = Table::new(["question", "from rows ms", "from blocks ms"]);
    for ((what, rows), (_, packed)) in before.iter().zip(&after) {
        table.row([(*what).to_owned(), figure(millis(*rows)), figure(millis(*packed))]);
    }
    table.row(["the filtered sum in SQL over JSON".to_owned(), figure(millis(in_sql)), "–".to_owned()]);
    println!("\n{table}");
    for (what, latency) in &after[1..] {
        aims.push(Aim::new(format!("{engine}: {what}"), millis(*latency), Bound::Below(15.0), " ms"));
    }
    let filtered = after[0].1;
    let of_name = sample::share_of_main_name(events);
    let each = filtered.as_secs_f64() * 1e9 / of_name;
    aims.push(Aim::new(format!("{engine}: filtered sum, an event"), each, Bound::Below(60.0), " ns"));
    let ratio = filtered.as_secs_f64() / in_sql.as_secs_f64();
    aims.push(Aim::new(format!("{engine}: filtered sum over SQL on JSON"), ratio, Bound::AtMost(1.0 / 15.0), "x"));
    if database.is_none() {
        let size = std::fs::metadata(folder.path().join("bench.db"))?.len() as f64;
        println!("the database file: {} bytes an event, freed pages included", figure(size / events as f64));
    }
    subject.service.close().await;
    Ok(())
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

impl Subject {
    async fn take_in(&self, events: usize) -> Result<Duration> {
        let began = Ticker.now();
        let batches: Vec<usize> = (0..events.div_ceil(BATCH)).collect();
        for some in batches.chunks(CALLERS) {
            let calls = some.iter().map(|number| self.send(*number, events));
            for sent in futures_util::future::join_all(calls).await {
                sent?;
            }
        }
        Ok(Ticker.since(began))
    }

    async fn send(&self, batch: usize, events: usize) -> Result<()> {
        let mut dice = Dice::new(batch);
        let numbers = batch * BATCH..events.min((batch + 1) * BATCH);
        let body: Vec<Value> = numbers.map(|number| Sample::roll(&mut dice, number).json(&self.app)).collect();
        post(&self.service, "/event-log/batch", ("x-api-key", &self.key), &json!(body).to_string(), 201).await?;
        Ok(())
    }

    /// Lets the rows grow old.
    async fn pack(&self) -> Result<()> {
        self.service.core().db.clock().raise_offset(Duration::from_hours(30));
        Ok(self.service.drain().await?)
    }

    async fn blocks(&self) -> Result<(i64, f64, f64)> {
        let sql = statement(
            "SELECT count(*), CAST(sum(length(data)) AS BIGINT), CAST(sum(events) AS BIGINT) FROM event_blocks"
                .to_owned(),
        );
        let (blocks, bytes, events) = self.service.core().db.scan(|tx| tx.one::<(i64, i64, i64)>(sql, &[])).await?;
        Ok((blocks, bytes as f64, events as f64))
    }

    /// The filtered question, as somebody would ask it over a table of events with a JSON column.
    async fn ask_in_sql(&self) -> Result<Duration> {
        let (plan, amount) = match self.service.core().db.is_single_node() {
            true => ("parameters->>'plan'", "CAST(parameters->>'amount' AS REAL)"),
            false => ("CAST(parameters AS jsonb)->>'plan'", "CAST(CAST(parameters AS jsonb)->>'amount' AS float8)"),
        };
        let sql = statement(format!(
            "SELECT count(*), sum({amount}) FROM event_rows WHERE name_id = \
             (SELECT id FROM event_names WHERE name = '{MAIN_NAME}') AND {plan} = 'pro'"
        ));
        let mut spent = Vec::new();
        for _ in 0..3 {
            let began = Ticker.now();
            self.service.core().db.scan(|tx| tx.one::<(i64, f64)>(sql, &[])).await?;
            spent.push(Ticker.since(began));
        }
        spent.sort_unstable();
        Ok(spent[1])
    }

    /// The filtered sum first.
    async fn ask_all(&self) -> Result<Vec<(&'static str, Duration)>> {
        let (from, to) = (sample::FROM, sample::TO);
        let query = |more: Value| {
            let mut query = json!({ "appId": self.app, "eventName": MAIN_NAME, "from": from, "to": to });
            if let (Value::Object(query), Value::Object(more)) = (&mut query, more) {
                query.extend(more);
            }
            query.to_string()
        };
        let filtered = query(json!({ "filters": { "plan": "pro" }, "sumField": "amount" }));
        let whole = query(json!({ "sumField": "amount", "groupBy": "day" }));
        let chart =
            format!("/event-log/charts?appId={}&eventName={MAIN_NAME}&interval=day&from={from}&to={to}", self.app);
        let journey = format!("/event-log/entities/user/{}?appId={}", sample::USER, self.app);
        Ok(vec![
            ("a filtered sum", self.median(|| self.post("/event-log/query", &filtered)).await?),
            ("a query without filters", self.median(|| self.post("/event-log/query", &whole)).await?),
            ("a chart", self.median(|| self.get(&chart)).await?),
            ("a journey", self.median(|| self.get(&journey)).await?),
        ])
    }

    async fn median<F: Future<Output = Result<()>>>(&self, ask: impl Fn() -> F) -> Result<Duration> {
        let mut spent = Vec::new();
        for _ in 0..TIMES {
            let began = Ticker.now();
            ask().await?;
            spent.push(Ticker.since(began));
        }
        spent.sort_unstable();
        Ok(spent[TIMES / 2])
    }

    async fn post(&self, path: &str, body: &str) -> Result<()> {
        post(&self.service, path, ("x-api-key", &self.key), body, 200).await.map(drop)
    }

    async fn get(&self, path: &str) -> Result<()> {
        bench::subject::get(&self.service, path, ("x-api-key", &self.key), 200).await.map(drop)
    }
}
