//! A year of many subscriptions on the test clock: everything at its own moment, and no step for nothing.

use http::Method;
use kernel::Timestamp;
use serde_json::{Value, json};
use store::args;
use testkit::{
    TestApp,
    billing::{DAY, enable_provider},
    on_both_engines, on_one_engine,
};

on_one_engine!(a_year_of_many_subscriptions);
on_both_engines!(a_workspace_is_told_of_before_it_has_a_history);

const COHORTS: usize = 10;
/// Of each cohort: trials that run out, free plans that are canceled, cards that pay, and cards that fail later.
const TRIALS: usize = 12;
const CANCELED: usize = 4;
const PAYING: usize = 3;
const FAILING: usize = 1;

async fn buy(app: &TestApp, name: &str, card: &str) {
    let user = app.workspace(name).await.owner();
    let begun = user.post("/account/subscription/checkout", json!({ "planKey": "pro" })).await.expect(201);
    let path = begun.text("/checkoutUrl").replace("http://tenantry.test", "");
    let form = format!("cardNumber={card}&expiry=12/40&cvc=123");
    let caller = app.anon().header("content-type", "application/x-www-form-urlencoded");
    assert!(matches!(caller.send(Method::POST, &path, form).await.status(), 200 | 303));
}

async fn begin(app: &TestApp, cohort: usize) {
    for number in 0..TRIALS {
        let user = app.workspace(&format!("t{cohort}-{number}")).await.owner();
        user.post("/billing/trial/start", json!({})).await.expect(201);
    }
    for number in 0..CANCELED {
        let user = app.workspace(&format!("c{cohort}-{number}")).await.owner();
        user.post("/account/subscription/select", json!({ "planKey": "free" })).await.expect(201);
        user.post("/billing/cancel", json!({})).await.expect(201);
    }
    for number in 0..PAYING {
        buy(app, &format!("p{cohort}-{number}"), "4242424242424242").await;
    }
    for number in 0..FAILING {
        buy(app, &format!("f{cohort}-{number}"), "4000000000000341").await;
    }
}

/// Kinds, data and times of what was told.
async fn told(app: &TestApp) -> Vec<(String, Value, Timestamp)> {
    let query = "SELECT kind, payload, created_at FROM outbox WHERE tenant_id IS NOT NULL ORDER BY id";
    let read = app.service().core().db.read(move |tx| tx.all::<(String, String, Timestamp)>(query, &args![]));
    let facts = read.await.expect("the outbox can be read").into_iter();
    facts.map(|(kind, data, at)| (kind, data.parse().expect("JSON"), at)).collect()
}

/// Rows of the history.
async fn changes(app: &TestApp) -> usize {
    let query = "SELECT count(*) FROM subscription_changes";
    let read = app.service().core().db.read(move |tx| tx.one::<(i64,)>(query, &args![]));
    usize::try_from(read.await.expect("the history can be read").0).expect("a count")
}

async fn a_workspace_is_told_of_before_it_has_a_history(app: TestApp) {
    app.workspace("acme").await;
    assert!(told(&app).await.iter().any(|(kind, ..)| kind == "tenant.created"));
    assert!(changes(&app).await <= 1);
}

async fn a_year_of_many_subscriptions(app: TestApp) {
    enable_provider(&app, "sandbox_year").await;
    for cohort in 0..COHORTS {
        begin(&app, cohort).await;
        app.advance(DAY).await;
    }
    let (service, begun) = (app.service(), app.now());
    let clock = service.core().test_clock.clone().expect("a test clock");
    let (mut steps, before) = (0, (told(&app).await.len(), changes(&app).await));
    while let Some(due) = service.next_due().await.expect("can be asked").filter(|due| *due < begun.plus(360 * DAY)) {
        // The clock runs on while work is done.
        let soon = clock.now().plus(std::time::Duration::from_millis(200));
        clock.advance_to(due.max(soon)).await.expect("it moves");
        steps += 1;
    }
    let all = told(&app).await;
    let of = |kind: &str| all.iter().filter(move |(told, ..)| told == kind).collect::<Vec<_>>();
    let ended = of("subscription.trial_ended");
    assert_eq!(ended.len(), COHORTS * TRIALS);
    for (_, data, at) in &ended {
        let ends_at: Timestamp = data["endsAt"].as_str().and_then(|at| at.parse().ok()).expect("a time");
        assert!(*at >= ends_at && at.since(ends_at) < DAY / 24, "a trial ends at its moment");
    }
    // The first payment, and one at the end of each month that began within the year.
    let paid = of("payment.succeeded").len();
    let months = paid - COHORTS * (PAYING + FAILING);
    assert!((COHORTS * PAYING * 11..=COHORTS * PAYING * 12).contains(&months), "{months} renewals");
    assert_eq!(of("subscription.past_due").len(), COHORTS * FAILING);
    assert_eq!(of("payment.failed").len(), COHORTS * FAILING * 4);
    // Canceled when it was asked for, or thirty days after the first failure.
    assert_eq!(of("subscription.canceled").len(), COHORTS * (CANCELED + FAILING));
    let transitions = (all.len() - before.0).max(changes(&app).await - before.1);
    assert!(steps <= transitions, "{steps} steps for {transitions} transitions");
    println!("{steps} steps for {transitions} transitions");
}
