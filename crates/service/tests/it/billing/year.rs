//! A year of many subscriptions on the test clock: everything at its own moment, and no step for nothing. Two hundred of them here;
//! a thousand take half a minute on SQLite, with five times as many of each kind.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use http::Method;
use kernel::Timestamp;
use serde_json::{Value, json};
use store::args;
use testkit::{
    TestApp,
    billing::{DAY, enable_provider},
    on_both_engines,
};

on_both_engines!(a_year_of_many_subscriptions, a_workspace_is_told_of_before_it_has_a_history);

const COHORTS: usize = 10;
/// Of each cohort: trials that run out, free plans that stay and that are canceled, cards that pay, and cards that fail later.
const TRIALS: usize = 6;
const STAYING: usize = 8;
const CANCELED: usize = 2;
const PAYING: usize = 3;
const FAILING: usize = 1;
/// How late something may be: the clock runs on while a whole cohort is served.
const LATE: Duration = Duration::from_hours(1);

async fn buy(app: &TestApp, name: &str, card: &str) {
    let user = app.workspace(name).await.owner();
    let begun = user.post("/account/subscription/checkout", json!({ "planKey": "pro" })).await.expect(201);
    let path = begun.text("/checkoutUrl").replace("http://tenantry.test", "");
    let form = format!("cardNumber={card}&expiry=12/40&cvc=123");
    let caller = app.anon().header("content-type", "application/x-www-form-urlencoded");
    assert!(matches!(caller.send(Method::POST, &path, form).await.status(), 200 | 303));
}

async fn take_free(app: &TestApp, name: &str, is_canceled: bool) {
    let user = app.workspace(name).await.owner();
    user.post("/account/subscription/select", json!({ "planKey": "free" })).await.expect(201);
    if is_canceled {
        user.post("/billing/cancel", json!({})).await.expect(201);
    }
}

async fn begin_one(app: &TestApp, cohort: usize, number: usize) {
    let name = format!("w{cohort}-{number}");
    const LAST: [usize; 4] =
        [TRIALS, TRIALS + STAYING, TRIALS + STAYING + CANCELED, TRIALS + STAYING + CANCELED + PAYING];
    match LAST.iter().position(|last| number < *last) {
        Some(0) => {
            let user = app.workspace(&name).await.owner();
            user.post("/billing/trial/start", json!({})).await.expect(201);
        }
        Some(1) => take_free(app, &name, false).await,
        Some(2) => take_free(app, &name, true).await,
        Some(_) => buy(app, &name, "4242424242424242").await,
        None => buy(app, &name, "4000000000000341").await,
    }
}

async fn begin(app: &TestApp, cohort: usize) {
    let all: Vec<usize> = (0..TRIALS + STAYING + CANCELED + PAYING + FAILING).collect();
    for some in all.chunks(8) {
        join_all(some.iter().map(|number| begin_one(app, cohort, *number))).await;
    }
}

/// Kinds, data and times of what was told.
async fn told(app: &TestApp) -> Vec<(String, Value, Timestamp)> {
    let query = "SELECT kind, payload, created_at FROM outbox WHERE tenant_id IS NOT NULL ORDER BY id";
    let read = app.service().core().db.read(move |tx| tx.all::<(String, String, Timestamp)>(query, &args![]));
    let facts = read.await.expect("the outbox can be read").into_iter();
    facts.map(|(kind, data, at)| (kind, data.parse().expect("JSON"), at)).collect()
}

/// Rows of the history: the workspace, when, and what became of its subscription.
async fn changes(app: &TestApp) -> Vec<(String, Timestamp, String)> {
    let query = "SELECT tenant_id, at, to_status FROM subscription_changes ORDER BY id";
    app.service().core().db.read(move |tx| tx.all(query, &args![])).await.expect("the history can be read")
}

async fn a_workspace_is_told_of_before_it_has_a_history(app: TestApp) {
    app.workspace("acme").await;
    assert!(told(&app).await.iter().any(|(kind, ..)| kind == "tenant.created"));
    assert!(changes(&app).await.len() <= 1);
}

#[track_caller]
fn assert_moment(at: Timestamp, expected: Timestamp, what: &str) {
    assert!(at >= expected && at.since(expected) < LATE, "{what} at {at}, not at {expected}");
}

/// What was told of a kind: when, by the workspace.
fn moments(all: &[(String, Value, Timestamp)], kind: &str) -> BTreeMap<String, Vec<Timestamp>> {
    let mut moments: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
    for (_, data, at) in all.iter().filter(|(told, ..)| told == kind) {
        moments.entry(data["workspaceId"].as_str().expect("a workspace").to_owned()).or_default().push(*at);
    }
    moments
}

/// Steps from one instant at which something is due to the next, through a year.
async fn pass_a_year(app: &TestApp) -> usize {
    let (service, begun) = (app.service(), app.now());
    let clock = service.core().test_clock.clone().expect("a test clock");
    let mut steps = 0;
    while let Some(due) = service.next_due().await.expect("can be asked").filter(|due| *due < begun.plus(360 * DAY)) {
        // The clock runs on while work is done.
        let soon = clock.now().plus(Duration::from_millis(200));
        clock.advance_to(due.max(soon)).await.expect("it moves");
        steps += 1;
    }
    steps
}

async fn a_year_of_many_subscriptions(app: TestApp) {
    enable_provider(&app, "sandbox_year").await;
    for cohort in 0..COHORTS {
        begin(&app, cohort).await;
        app.advance(DAY).await;
    }
    let before = changes(&app).await.len();
    let steps = pass_a_year(&app).await;
    let (all, history) = (told(&app).await, changes(&app).await);

    let ended = all.iter().filter(|(kind, ..)| kind == "subscription.trial_ended").collect::<Vec<_>>();
    assert_eq!(ended.len(), COHORTS * TRIALS);
    for (_, data, at) in &ended {
        let ends_at = data["endsAt"].as_str().and_then(|at| at.parse().ok()).expect("a time");
        assert_moment(*at, ends_at, "a trial ends");
    }
    let (paid, failed) = (moments(&all, "payment.succeeded"), moments(&all, "payment.failed"));
    assert_eq!((paid.len(), failed.len()), (COHORTS * (PAYING + FAILING), COHORTS * FAILING));
    for (workspace, moments) in &paid {
        let renewals = if failed.contains_key(workspace) { 1..=1 } else { 12..=13 };
        assert!(renewals.contains(&moments.len()), "{moments:?}");
        for (month, at) in (0..).zip(moments) {
            assert_moment(*at, moments[0].plus_months(month), "a month is paid");
        }
    }
    let (past_due, canceled) = (moments(&all, "subscription.past_due"), moments(&all, "subscription.canceled"));
    assert_eq!((past_due.len(), canceled.len()), (COHORTS * FAILING, COHORTS * (CANCELED + FAILING)));
    for (workspace, attempts) in &failed {
        let first = paid[workspace][0].plus_months(1);
        assert_eq!((attempts.len(), past_due[workspace].len(), canceled[workspace].len()), (4, 1, 1));
        for (days, at) in [0, 3, 5, 7].into_iter().zip(attempts) {
            assert_moment(*at, first.plus(DAY * days), "payment is tried");
        }
        assert_moment(canceled[workspace][0], first.plus(DAY * 30), "it is given up");
    }
    // What was canceled in time ends with its month.
    for (workspace, asked) in canceled.iter().filter(|(workspace, _)| !failed.contains_key(*workspace)) {
        let of = |(tenant, ..): &&(String, Timestamp, String)| tenant == workspace;
        let (_, begun, _) = history.iter().find(of).expect("a history");
        let (_, ended, status) = history.iter().rfind(of).expect("a history");
        assert_eq!((asked.len(), status.as_str()), (1, "canceled"));
        assert_moment(*ended, begun.plus_months(1), "it ends");
    }
    // A renewal that is paid is no row of the history, and neither is one of the periods of plans that cost nothing.
    let renewals: usize = paid.values().map(Vec::len).sum::<usize>() - paid.len();
    let transitions = history.len() - before + renewals;
    assert!(steps <= transitions, "{steps} steps for {transitions} transitions");
    println!("{steps} steps for {transitions} transitions");
}
