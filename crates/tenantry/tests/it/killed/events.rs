//! Servers that are killed while they take in, fold and pack events.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::program::{Home, Server, on_both_engines, operator_key};

on_both_engines!(acknowledged_events_are_there_once_however_often_the_server_is_killed);

const ROUNDS: usize = 10;
const CALLERS: usize = 3;
/// Events of one call.
const AT_ONCE: usize = 100;
/// The server is killed once so many calls of a round were answered.
const CALLS: usize = 12;

struct Round<'a> {
    server: &'a Server,
    app: &'a str,
    key: &'a str,
    operator: &'a str,
    number: usize,
    /// `ingestId`s that were acknowledged, of all rounds.
    told: &'a Mutex<BTreeSet<String>>,
    answers: AtomicUsize,
    enough: Notify,
}

impl Round<'_> {
    /// Sends events until the server is gone.
    async fn send(&self, caller: usize) -> Option<()> {
        for call in 0.. {
            let ids: Vec<String> =
                (0..AT_ONCE).map(|event| format!("{}-{caller}-{call}-{event}", self.number)).collect();
            let events: Vec<Value> = ids.iter().map(|id| self.event(id)).collect();
            let request = self.server.client.post(self.server.url("/event-log/batch")).header("x-api-key", self.key);
            let answer = request.json(&events).send().await.ok()?;
            assert_eq!(answer.status(), 201);
            self.told.lock().expect("nobody panicked").extend(ids);
            if self.answers.fetch_add(1, Ordering::Relaxed) + 1 == CALLS {
                self.enough.notify_one();
            }
        }
        Some(())
    }

    /// All in one month, so that they are packed as soon as there are enough.
    fn event(&self, id: &str) -> Value {
        json!({ "appId": self.app, "eventName": "order", "timestamp": "2026-03-01T10:00:00Z", "ingestId": id,
                "parameters": { "userId": id, "amount": 1 } })
    }

    /// Lets days pass, in each of which there is something to pack.
    async fn pass_days(&self) {
        while advance(self.server, self.operator).await == Some(200) {}
    }
}

async fn advance(server: &Server, operator: &str) -> Option<u16> {
    let request = server.client.post(server.url("/admin/test-clock")).header("authorization", operator);
    let answer = request.timeout(Duration::from_secs(90)).json(&json!({ "advanceSeconds": 90_000 })).send().await;
    Some(answer.ok()?.status().as_u16())
}

fn serve(home: &Home) -> Server {
    Server::start(home.command(&["serve"]).env("TENANTRY_TEST_CLOCK", "true"))
}

async fn acknowledged_events_are_there_once_however_often_the_server_is_killed(home: Home) {
    let mut server = serve(&home);
    let app = server.printed_value("App id").expect("a first app").to_owned();
    let (key, operator) = (home.first_key(), format!("Bearer {}", operator_key(&home.path("tenantry-data"))));
    let told = Mutex::new(BTreeSet::new());
    for number in 0..ROUNDS {
        let (answers, enough) = (AtomicUsize::new(0), Notify::new());
        let round =
            Round { server: &server, app: &app, key: &key, operator: &operator, number, told: &told, answers, enough };
        let load = join_all((0..CALLERS).map(|caller| round.send(caller)));
        let kill = async {
            round.enough.notified().await;
            round.server.kill();
        };
        tokio::join!(load, kill, round.pass_days());
        server = serve(&home);
    }
    while advance(&server, &operator).await != Some(200) {}

    let told = told.into_inner().expect("nobody panicked");
    let stored = exported(&server, &app, &operator).await;
    let distinct: BTreeSet<&String> = stored.iter().collect();
    assert_eq!(stored.len(), distinct.len(), "some are there twice");
    let missing = told.iter().filter(|id| !distinct.contains(id)).count();
    assert_eq!(missing, 0, "acknowledged events are missing");
    assert!(told.len() >= ROUNDS * CALLS * AT_ONCE, "too light to prove anything: {}", told.len());
    let packed = stored.len();
    let whole = json!({ "appId": app, "eventName": "order", "from": "2026-03-01T00:00:00Z", "to": "2026-03-31T00:00:00Z", "sumField": "amount" });
    let mut filtered = whole.clone();
    filtered["filters"] = json!({ "amount": 1 });
    for question in [whole, filtered] {
        let request = server.client.post(server.url("/event-log/query")).header("x-api-key", &key);
        let answer: Value = request.json(&question).send().await.expect("an answer").json().await.expect("JSON");
        assert_eq!(answer, json!({ "totalCount": packed, "totalSum": packed }), "buckets equal the events");
    }
    println!("{} events acknowledged, {packed} stored, over {ROUNDS} kills", told.len());
    server.stop();
}

/// The `ingestId`s of all orders.
async fn exported(server: &Server, app: &str, operator: &str) -> Vec<String> {
    let (mut cursor, mut ids) = (String::new(), Vec::new());
    loop {
        let url = server.url(&format!("/admin/apps/{app}/events/export?format=jsonl{cursor}"));
        let answer = server.client.get(url).header("authorization", operator).send().await.expect("an answer");
        let next = answer.headers().get("x-next-cursor").map(|next| next.to_str().expect("text").to_owned());
        for line in answer.text().await.expect("a body").lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            if line["eventName"] == "order" {
                ids.push(line["ingestId"].as_str().expect("an id").to_owned());
            }
        }
        match next {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}
