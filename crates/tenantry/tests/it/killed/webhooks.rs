//! Servers that are killed or cut off while they deliver, to a receiver that fails, breaks off and recovers.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, extract::State, http::StatusCode};
use serde_json::{Value, json};
use store::DatabaseUrl;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::program::{Home, Server, on_both_engines, on_postgres, operator_key};

on_both_engines!(what_committed_arrives_however_often_the_server_is_killed);
on_postgres!(nodes_take_over_from_one_that_dies_and_one_that_is_cut_off);

const KILLS: usize = 10;
const PER_ROUND: usize = 30;
/// Deliveries that are under way to one endpoint.
const IN_FLIGHT: usize = 16;

/// What came, each with the server's incarnation and whether it was acknowledged.
struct Receiver {
    came: Mutex<Vec<(String, String, usize, bool)>>,
    count: watch::Sender<usize>,
    round: AtomicUsize,
}

async fn receive(State(receiver): State<Arc<Receiver>>, body: String) -> StatusCode {
    let event: Value = serde_json::from_str(&body).expect("JSON");
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).expect("text").to_owned();
    let round = receiver.round.load(Ordering::SeqCst);
    let number = receiver.came.lock().expect("nobody panicked").len();
    // Long enough for a kill to come in between.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let acknowledged = round == KILLS || number % 5 != 0;
    receiver.came.lock().expect("nobody panicked").push((text("/id"), text("/data/name"), round, acknowledged));
    receiver.count.send_modify(|count| *count += 1);
    if acknowledged { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

fn serve(home: &Home) -> Server {
    Server::start(home.command(&["serve"]).env("TENANTRY_TEST_CLOCK", "true"))
}

async fn post(server: &Server, path: &str, header: (&str, &str), body: Value) -> u16 {
    let request = server.client.post(server.url(path)).header(header.0, header.1).json(&body);
    request.timeout(Duration::from_secs(90)).send().await.map_or(0, |answer| answer.status().as_u16())
}

/// Makes a workspace; whether the server said so.
async fn made(server: &Server, key: &str, name: &str) -> bool {
    let owner = json!({ "email": format!("{name}@example.com"), "firstName": "A", "lastName": "B" });
    let body = json!({ "name": name, "owner": owner, "muteNotifications": true });
    post(server, "/account/tenant", ("x-api-key", key), body).await == 200
}

/// A receiver, and an installation that sends it what workspaces are made.
struct Hooked {
    receiver: Arc<Receiver>,
    app: String,
    key: String,
    operator: String,
}

impl Hooked {
    async fn prepare(home: &Home) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let (came, count, round) = (Mutex::default(), watch::Sender::new(0), AtomicUsize::new(0));
        let receiver = Arc::new(Receiver { came, count, round });
        let router = Router::new().fallback(receive).with_state(Arc::clone(&receiver));
        tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        let server = serve(home);
        let app = server.printed_value("App id").expect("a first app").to_owned();
        let (key, operator) = (home.first_key(), format!("Bearer {}", operator_key(&home.path("tenantry-data"))));
        let hook = json!({ "url": url, "events": ["tenant.created"] });
        let request = server.client.put(server.url(&format!("/admin/apps/{app}/webhook")));
        let set = request.header("authorization", &operator).json(&hook).send().await.expect("an answer");
        assert_eq!(set.status(), 200);
        server.stop();
        Self { receiver, app, key, operator }
    }

    /// Waits until so many requests came in all.
    async fn wait_for(&self, wanted: usize) {
        let mut count = self.receiver.count.subscribe();
        let some = count.wait_for(|count| *count >= wanted);
        tokio::time::timeout(Duration::from_secs(120), some).await.expect("deliveries arrive").expect("counted");
    }

    /// Lets 40 hours pass. Claims of the dead run out in real time; the clock waits for them, and says so when that takes
    /// too long.
    async fn pass(&self, server: &Server) {
        let later = json!({ "advanceSeconds": 40 * 3_600 });
        while post(server, "/admin/test-clock", ("authorization", &self.operator), later.clone()).await != 200 {}
    }

    /// Names of what was acknowledged.
    fn arrived(&self) -> BTreeSet<String> {
        let came = self.receiver.came.lock().expect("nobody panicked");
        came.iter().filter(|one| one.3).map(|(_, name, ..)| name.clone()).collect()
    }
}

/// The way from a node to its database, which can be cut.
struct Line {
    address: SocketAddr,
    whole: watch::Sender<bool>,
}

impl Line {
    async fn to(database: &str) -> Self {
        let server = database.split(['@', '/']).find(|part| part.contains("127.0.0.1")).expect("an address").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (address, whole) = (listener.local_addr().expect("an address"), watch::Sender::new(true));
        let watched = whole.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (server, mut whole) = (server.clone(), watched.subscribe());
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(&server).await?;
                    tokio::select! {
                        copied = copy_bidirectional(&mut near, &mut far) => copied.map(|_| ()),
                        _ = whole.wait_for(|whole| !whole) => Ok(()),
                    }
                });
            }
        });
        Self { address, whole }
    }

    /// The same database by this way.
    fn url(&self, database: &str) -> String {
        let server = database.split(['@', '/']).find(|part| part.contains("127.0.0.1")).expect("an address");
        database.replace(server, &self.address.to_string())
    }
}

async fn nodes_take_over_from_one_that_dies_and_one_that_is_cut_off(home: Home) {
    let hooked = Hooked::prepare(&home).await;
    let Some(DatabaseUrl::Postgres(database)) = home.database() else { panic!("PostgreSQL is wanted") };
    let line = Line::to(database.expose()).await;
    let mut by_line = home.command(&["serve"]);
    by_line.env("TENANTRY_TEST_CLOCK", "true").env("TENANTRY_DATABASE_URL", line.url(database.expose()));
    let nodes = [serve(&home), Server::start(&mut by_line), serve(&home)];
    let mut committed = BTreeSet::new();
    for number in 0..60 {
        let name = format!("w{number}");
        assert!(made(&nodes[number % 3], &hooked.key, &name).await);
        committed.insert(name);
    }
    hooked.wait_for(20).await;
    nodes[0].kill();
    line.whole.send_replace(false);
    hooked.receiver.round.store(KILLS, Ordering::SeqCst);
    hooked.pass(&nodes[2]).await;
    assert_eq!(hooked.arrived(), committed);
    line.whole.send_replace(true);
    let header = ("authorization", hooked.operator.as_str());
    while nodes[1].get("/admin/apps", header).await.0 != 200 {}
    let listed = format!("/admin/apps/{}/webhook/deliveries", hooked.app);
    let (_, made) = nodes[2].get(&format!("{listed}?limit=1000"), header).await;
    let made = made.as_array().expect("a list").clone();
    assert_eq!(made.len(), committed.len(), "one delivery each");
    for one in made {
        let id = one["id"].as_str().expect("an id");
        let (_, delivery) = nodes[2].get(&format!("{listed}/{id}"), header).await;
        let attempts = delivery["attempts"].as_array().expect("a list");
        let numbers: Vec<i64> = attempts.iter().filter_map(|attempt| attempt["attempt"].as_i64()).collect();
        assert_eq!(numbers, (1..=numbers.len() as i64).collect::<Vec<_>>(), "without a gap");
        assert_eq!(delivery["status"], "delivered");
    }
}

async fn what_committed_arrives_however_often_the_server_is_killed(home: Home) {
    let hooked = Hooked::prepare(&home).await;
    let (receiver, key) = (&hooked.receiver, &hooked.key);
    let mut committed = BTreeSet::new();
    for round in 0..KILLS {
        receiver.round.store(round, Ordering::SeqCst);
        let server = serve(&home);
        let before = *receiver.count.borrow();
        for number in 0..PER_ROUND {
            let name = format!("w{round}-{number}");
            if made(&server, key, &name).await {
                committed.insert(name);
            }
        }
        // Some have arrived and others are on their way.
        hooked.wait_for(before + PER_ROUND / 2).await;
        server.kill();
    }
    receiver.round.store(KILLS, Ordering::SeqCst);
    let server = serve(&home);
    hooked.pass(&server).await;
    server.stop();

    let (arrived, came) = (hooked.arrived(), receiver.came.lock().expect("nobody panicked").clone());
    let lost: Vec<&String> = committed.difference(&arrived).collect();
    assert!(lost.is_empty(), "committed and never delivered: {lost:?}");
    let mut rounds: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
    for (id, _, round, _) in came.iter().filter(|one| one.3) {
        rounds.entry(id).or_default().push(*round);
    }
    let twice: usize = rounds.values().map(|rounds| rounds.len() - 1).sum();
    assert!(twice <= KILLS * IN_FLIGHT, "{twice} were acknowledged more than once");
    for (id, rounds) in &rounds {
        let distinct: BTreeSet<&usize> = rounds.iter().collect();
        assert_eq!(distinct.len(), rounds.len(), "{id} was acknowledged twice without a kill in between");
    }
    println!("{} events over {KILLS} kills, all delivered; {twice} twice", committed.len());
}
