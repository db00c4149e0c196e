//! Servers that are killed while they send events on to a ClickHouse that is killed as well.

use std::{collections::BTreeSet, sync::Mutex, time::Duration};

use futures_util::future::join_all;
use serde_json::json;
use testkit::ClickHouse;
use tokio::sync::Notify;

use crate::program::{Home, Server, on_both_engines, operator_key};

on_both_engines!(every_event_arrives_once_however_often_both_sides_are_killed);

const ROUNDS: usize = 10;
const CALLERS: usize = 3;
/// Events of one call.
const AT_ONCE: usize = 100;
/// One of the two is killed once so many calls of a round were answered.
const CALLS: usize = 12;

struct Round<'a> {
    server: &'a Server,
    app: &'a str,
    key: &'a str,
    number: usize,
    /// `ingestId`s that were acknowledged, of all rounds.
    told: &'a Mutex<BTreeSet<String>>,
    answers: Mutex<usize>,
    enough: Notify,
}

impl Round<'_> {
    /// Sends events until the server is gone or has taken enough of them.
    async fn caller(&self, caller: usize) -> Option<()> {
        for call in 0..CALLS {
            let ids: Vec<String> =
                (0..AT_ONCE).map(|event| format!("{}-{caller}-{call}-{event}", self.number)).collect();
            let events: Vec<_> = ids.iter().map(|id| self.event(id)).collect();
            let request = self.server.client.post(self.server.url("/event-log/batch")).header("x-api-key", self.key);
            let answer = request.json(&events).send().await.ok()?;
            assert_eq!(answer.status(), 201);
            self.told.lock().expect("nobody panicked").extend(ids);
            let mut answers = self.answers.lock().expect("nobody panicked");
            *answers += 1;
            if *answers == CALLS {
                self.enough.notify_one();
            }
        }
        Some(())
    }

    fn event(&self, id: &str) -> serde_json::Value {
        let at = kernel::Clock::system().now().to_string();
        json!({ "appId": self.app, "eventName": "order.placed", "timestamp": at, "ingestId": id,
                "parameters": { "amount": 12.5, "note": "quoted \"text\"\n and a tab\t" } })
    }
}

fn serve(home: &Home) -> Server {
    Server::start(home.command(&["serve"]).env("TENANTRY_TEST_CLOCK", "true"))
}

/// Lets time pass until nothing waits, retries of the sink included.
async fn settle(server: &Server, operator: &str) {
    let url = server.url("/admin/test-clock");
    let ask = || server.client.post(&url).header("authorization", operator).timeout(Duration::from_secs(90));
    while ask().json(&json!({ "advanceSeconds": 3_600 })).send().await.is_ok_and(|answer| answer.status() != 200) {}
}

async fn every_event_arrives_once_however_often_both_sides_are_killed(home: Home) {
    let clickhouse = ClickHouse::start().await;
    let table = home.run(&["events", "sink", "ddl", "--table", "log"]).ok().out;
    clickhouse.query(table.trim_end().trim_end_matches(';')).await;
    let first = serve(&home);
    let app = first.printed_value("App id").expect("a first app").to_owned();
    let (key, operator) = (home.first_key(), format!("Bearer {}", operator_key(&home.path("tenantry-data"))));
    let sink = json!({ "kind": "clickhouse", "url": clickhouse.url(), "table": "log", "events": ["order.*"] });
    let set = first.client.put(first.url(&format!("/admin/apps/{app}/events/sink"))).header("authorization", &operator);
    assert_eq!(set.json(&sink).send().await.expect("an answer").status(), 200);

    let told = Mutex::new(BTreeSet::new());
    let mut server = first;
    for number in 0..ROUNDS {
        let (answers, enough) = (Mutex::new(0), Notify::new());
        let round = Round { server: &server, app: &app, key: &key, number, told: &told, answers, enough };
        let load = join_all((0..CALLERS).map(|caller| round.caller(caller)));
        let kill = async {
            round.enough.notified().await;
            if number % 2 == 0 {
                round.server.kill();
            } else {
                clickhouse.kill_and_restart().await;
            }
        };
        tokio::join!(load, kill);
        if number % 2 == 0 {
            server = serve(&home);
        }
    }
    settle(&server, &operator).await;

    let told = told.into_inner().expect("nobody panicked");
    let arrived = clickhouse.query("SELECT ingest_id FROM log ORDER BY ingest_id").await;
    let distinct: BTreeSet<String> = arrived.iter().cloned().collect();
    assert_eq!(arrived.len(), distinct.len(), "some arrived twice");
    let missing: Vec<&String> = told.difference(&distinct).collect();
    assert!(
        missing.is_empty(),
        "{} were acknowledged and did not arrive, such as {:?}",
        missing.len(),
        missing.first()
    );
    assert!(told.len() > ROUNDS * CALLS * AT_ONCE / 2, "too light to prove anything: {}", told.len());
    let notes = clickhouse.query("SELECT DISTINCT parameters FROM log FORMAT JSONEachRow").await;
    assert_eq!(notes.len(), 1, "{notes:?}");
    println!("{} events over {ROUNDS} kills", told.len());
    server.stop();
}
