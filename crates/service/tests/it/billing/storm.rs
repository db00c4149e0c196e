//! Sixteen callers on three nodes, with a payment provider that tells of its own affairs at the same time: nothing is lost,
//! counted twice or told twice, and in the end the service knows what the provider knows.

use std::sync::Mutex;

use futures_util::future::join_all;
use serde_json::{Value, json};
use store::EngineName;
use testkit::{
    TestApp,
    billing::{change_plan, plan, state},
    facts::told,
    on_both_engines,
    payments::{Stage, tell},
};

on_both_engines!(everything_adds_up_with_a_provider_too);

const CALLERS: usize = 16;
const ROUNDS: usize = 6;

struct Storm {
    stage: Stage,
    nodes: [TestApp; 3],
    /// The plan that is edited all the time.
    pro: Value,
    /// At the provider.
    subscription: String,
    /// What the provider told, to be told again.
    events: Mutex<Vec<Value>>,
}

impl Storm {
    /// One trial, whoever asks for it, which is then paid for.
    async fn brew(stage: Stage) -> Self {
        let nodes = stage.three_nodes().await;
        let start = |number: usize| {
            let user = nodes[number % 3].user(&stage.acme.owner);
            async move { user.post("/billing/trial/start", json!({})).await.expect(201).text("/id") }
        };
        let mut ids = join_all((0..CALLERS).map(start)).await;
        ids.dedup();
        assert_eq!(ids.len(), 1);
        plan(&stage.app, "max", Some(99.0), None).await;
        let plans = stage.app.key().get(testkit::catalog::PLANS).await.expect(200).json();
        let pro =
            plans.as_array().and_then(|all| all.iter().find(|plan| plan["key"] == "pro")).expect("a plan").clone();
        change_plan(&stage.app, &pro, quotas(10)).await;
        let subscription = stage.paid().await;
        Self { stage, nodes, pro, subscription, events: Mutex::default() }
    }

    fn node(&self, number: usize) -> &TestApp {
        &self.nodes[number % 3]
    }

    /// A change that may come to nothing because of what somebody else did a moment ago, but to nothing else.
    async fn try_to(&self, number: usize, path: &str, body: Value) {
        let answer = self.node(number).user(&self.stage.acme.owner).post(path, body).await;
        if answer.status() != 201 {
            answer.error(502, "PROVIDER_FAILED");
        }
    }

    /// Something happens at the provider, which tells two nodes of it at once.
    async fn happen(&self, number: usize, round: usize) {
        let provider = &self.stage.provider;
        match (number + round) % 3 {
            0 => provider.renew(&self.subscription, round.is_multiple_of(2), 1),
            1 => provider.change(&self.subscription, &json!({ "cancel_at_period_end": round.is_multiple_of(2) })),
            _ => provider.change(&self.subscription, &json!({ "status": "past_due" })),
        }
        let events = provider.take_events();
        let sent = [number, number + 1]
            .into_iter()
            .flat_map(|node| events.iter().rev().map(move |event| tell(self.node(node), event)));
        for answer in join_all(sent).await {
            answer.expect(200);
        }
        self.events.lock().expect("nobody panicked").extend(events);
    }

    /// What one caller counted: the values that were new, without those that were taken back.
    async fn work(&self, number: usize) -> i64 {
        let key = self.node(number).key().in_workspace(self.stage.acme.id);
        let mut counted = 0;
        for round in 0..ROUNDS {
            // Two callers share each idempotency key.
            let event = json!({ "metric": "calls", "value": 1, "idempotencyKey": format!("{round}-{}", number / 2) });
            let stored = key.post("/usage/ingest", event).await.expect(201);
            counted += i64::from(stored.at("/deduped") == false);
            match number % 8 {
                0 => self.try_to(number, "/billing/cancel", json!({})).await,
                1 => self.try_to(number, "/billing/reactivate", json!({})).await,
                2 => {
                    let to = if round % 2 == 0 { "max" } else { "pro" };
                    self.try_to(number, "/account/subscription/change", json!({ "planKey": to })).await;
                }
                3 => self.try_to(number, "/account/subscription/select", json!({ "planKey": "free" })).await,
                4 => drop(change_plan(self.node(number), &self.pro, quotas(10 + round)).await),
                5 => {
                    let extra = key.post("/usage/ingest", json!({ "metric": "calls", "value": 5 })).await.expect(201);
                    key.delete(&format!("/usage/events/{}", extra.text("/eventId"))).await.expect(200);
                }
                6 => self.happen(number, round).await,
                _ => self.node(number).drain().await,
            }
        }
        counted
    }

    /// Everything that the provider ever told, in an order that looks like none, twice.
    async fn tell_all_again(&self, seed: usize) {
        let mut events = self.events.lock().expect("nobody panicked").clone();
        events.extend(self.stage.provider.take_events());
        let count = events.len();
        // Any number that shares no factor with the count visits every place.
        let stride = (seed..)
            .find(|stride| !(2..=count).any(|by| stride.is_multiple_of(by) && count.is_multiple_of(by)))
            .expect("one");
        for place in 0..2 * count {
            tell(self.node(place), &events[place * stride % count]).await.expect(200);
        }
        TestApp::drain_all(&self.nodes).await;
    }
}

fn quotas(limit: usize) -> Value {
    json!({ "quotas": [{ "metric": "calls", "limit": limit, "policy": "metered" }] })
}

async fn everything_adds_up_with_a_provider_too(stage: Stage) {
    let storm = Storm::brew(stage).await;
    let counted: i64 = join_all((0..CALLERS).map(|number| storm.work(number))).await.into_iter().sum();
    TestApp::drain_all(&storm.nodes).await;
    // What was cut off by somebody else's word, or asked of a provider that was changing, is finished by the jobs.
    storm.stage.app.advance(std::time::Duration::from_mins(10)).await;

    assert_eq!(counted, i64::try_from(CALLERS / 2 * ROUNDS).expect("a small number"), "each key counts once");
    let usage = storm.stage.acme.owner().get(&format!("/usage/{}", storm.stage.acme.id)).await.expect(200).json();
    let calls = usage["metrics"].as_array().and_then(|all| all.iter().find(|one| one["metric"] == "calls"));
    assert_eq!(calls.expect("the metric")["used"], counted);
    storm.facts_are_transitions().await;
    let after = storm.knows_what_the_provider_knows().await;
    for seed in [7, 1_001] {
        storm.tell_all_again(seed).await;
        assert_eq!(storm.knows_what_the_provider_knows().await, after, "told again, in another order");
    }
    storm.facts_are_transitions().await;
    if storm.stage.app.site().engine() == EngineName::Postgres {
        let reruns = storm.nodes.iter().map(|node| node.service().core().db.counters().reruns);
        assert_eq!(reruns.collect::<Vec<_>>(), [0; 3], "deadlocks");
    }
}

impl Storm {
    async fn facts_are_transitions(&self) {
        let Stage { app, acme, .. } = &self.stage;
        let path = format!("/account/tenant/{}/subscription/history", acme.id);
        let history = app.key().get(&path).await.expect(200).json();
        let history = history.as_array().expect("a list");
        let moved = |from: &[&str], to: &[&str]| {
            let is = |change: &&Value| {
                let of =
                    |member: &str, allowed: &[&str]| change[member].as_str().is_some_and(|it| allowed.contains(&it));
                of("from", from) && of("to", to)
            };
            history.iter().filter(is).count()
        };
        let (running, ending) = (["active", "past_due"], ["cancel_at_period_end"]);
        for (kind, transitions) in [
            ("subscription.created", 1),
            ("subscription.trial_started", 1),
            ("subscription.canceled", moved(&running, &ending)),
            ("subscription.reactivated", moved(&ending, &running)),
            ("subscription.past_due", moved(&["active"], &["past_due"])),
            ("subscription.plan_changed", history.iter().filter(|change| change["cause"] == "plan_changed").count()),
            ("quota.exhausted", 1),
        ] {
            assert_eq!(told(app, kind).await.len(), transitions, "{kind}: {history:#?}");
        }
    }

    /// The state of the one subscription, which is the provider's.
    async fn knows_what_the_provider_knows(&self) -> Value {
        let Stage { app, provider, acme } = &self.stage;
        let (here, there) = (state(&acme.owner()).await, provider.object(&self.subscription));
        assert_eq!(provider.count("sub"), 1);
        let ends = here["status"] == "cancel_at_period_end" || here["scheduledChange"].is_object();
        assert_eq!(json!(ends), there["cancel_at_period_end"], "{here} {there}");
        if here["status"] != "cancel_at_period_end" {
            assert_eq!(here["status"], there["status"]);
        }
        let product = provider.object(there["items"]["data"][0]["price"]["product"].as_str().expect("a product"));
        assert_eq!(here["plan"]["name"], product["name"], "{here}");
        let rows = app.service().core().db.read(|tx| tx.one::<(i64,)>("SELECT count(*) FROM subscriptions", &[])).await;
        assert_eq!(rows.expect("it can be counted").0, 1);
        here
    }
}
