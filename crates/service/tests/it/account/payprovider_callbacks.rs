//! Callbacks of a Stripe-compatible provider in any order, number and place; and the provider of the tests held against the
//! package of the real one.

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{
    EngineName, Fixture as _, OnPort, Workspace,
    billing::state,
    counterparts,
    facts::told,
    on_both_engines, on_one_engine,
    payments::{PaymentProvider, SECRET_KEY, Stage, Trouble, WEBHOOK_SECRET, enable, tell},
};

on_both_engines!(shuffled_and_repeated_they_end_in_the_same_state, several_nodes_act_on_an_event_once);
on_one_engine!(the_providers_own_package_agrees);

/// A fixed order that looks like none.
fn shuffled(mut events: Vec<Value>, mut seed: u64) -> Vec<Value> {
    for place in (1..events.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        events.swap(place, usize::try_from(seed >> 33).expect("it fits") % (place + 1));
    }
    events
}

/// A subscription that is bought, fails, is paid, and is canceled in the portal; what was told of it.
async fn life(stage: &Stage, workspace: &Workspace) -> Vec<Value> {
    let begun = workspace.owner().post("/account/subscription/checkout", json!({ "planKey": "pro" })).await.expect(201);
    let subscription = stage.pay(&begun.text("/sessionId"));
    for attempt in 1..=2 {
        stage.provider.renew(&subscription, false, attempt);
    }
    stage.provider.change(&subscription, &json!({ "status": "unpaid" }));
    stage.provider.renew(&subscription, true, 3);
    stage.provider.change(&subscription, &json!({ "cancel_at_period_end": true }));
    stage.provider.renew(&subscription, false, 1);
    stage.provider.take_events()
}

async fn shuffled_and_repeated_they_end_in_the_same_state(stage: Stage) {
    for seed in 1..=4 {
        let workspace = stage.app.workspace(&format!("w{seed}")).await;
        let events = life(&stage, &workspace).await;
        let all = shuffled([events.clone(), events.clone(), events].concat(), seed);
        for (number, event) in all.iter().enumerate() {
            if number % 5 == 0 {
                stage.provider.trouble([Trouble::Fails; 4]);
            }
            stage.tell(event).await.expect(200);
            if number % 3 == 0 {
                stage.app.drain().await;
            }
        }
        stage.provider.no_trouble();
        stage.app.advance(std::time::Duration::from_hours(3)).await;
        let state = state(&workspace.owner()).await;
        assert_eq!((&state["status"], &state["plan"]["slug"]), (&json!("cancel_at_period_end"), &json!("pro")));
        let of = |data: &Value| data["workspaceId"] == json!(workspace.id);
        let mut kinds: Vec<String> =
            told(&stage.app, "payment.").await.into_iter().filter(|(_, data)| of(data)).map(|(kind, _)| kind).collect();
        kinds.sort();
        let expected = ["payment.failed", "payment.failed", "payment.failed", "payment.succeeded", "payment.succeeded"];
        assert_eq!(kinds, expected, "seed {seed}");
        let created = told(&stage.app, "subscription.created").await;
        assert_eq!(created.iter().filter(|(_, data)| of(data)).count(), 1);
    }
}

async fn several_nodes_act_on_an_event_once(stage: Stage) {
    let nodes = stage.three_nodes().await;
    let events = life(&stage, &stage.acme).await;
    let sent = nodes.iter().flat_map(|node| events.iter().map(move |event| tell(node, event)));
    for answer in join_all(sent).await {
        answer.expect(200);
    }
    testkit::TestApp::drain_all(&nodes).await;
    assert_eq!(state(&stage.acme.owner()).await["status"], "cancel_at_period_end");
    assert_eq!(told(&stage.app, "payment.").await.len(), 5);
    for once in ["subscription.created", "subscription.canceled"] {
        assert_eq!(told(&stage.app, once).await.len(), 1, "{once}");
    }
}

async fn the_providers_own_package_agrees(engine: EngineName) {
    let provider = PaymentProvider::start().await;
    let url = provider.url().to_owned();
    let server = OnPort::start_with(engine, move |options| options.payprovider_url = url).await;
    enable(&server.app).await;
    let more = [
        ("PROVIDER_URL", provider.url().to_owned()),
        ("SECRET_KEY", SECRET_KEY.to_owned()),
        ("WEBHOOK_SECRET", WEBHOOK_SECRET.to_owned()),
    ];
    counterparts::run_with(&server, "payments.mjs", &more).await;
    server.finish().await;
}
