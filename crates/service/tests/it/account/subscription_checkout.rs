//! `/account/subscription/checkout`, the sandbox's page, and what follows from a payment.

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use testkit::{
    Answer, Caller, TestApp, Workspace,
    billing::{DAY, change_plan, enable_provider, events, plan, state},
    facts::told,
    on_both_engines,
};

on_both_engines!(
    without_a_provider_the_plan_is_assigned,
    a_checkout_leads_to_a_page_that_takes_test_cards,
    a_session_is_confirmed_by_its_own_workspace_once_it_is_paid,
    of_two_checkouts_one_is_paid,
    renewals_are_paid_by_the_clock,
    a_new_period_is_paid_for_before_it_counts,
    a_period_that_has_begun_is_paid_for_before_it_is_canceled,
    a_card_that_does_not_pay_begins_no_new_period,
    a_failed_renewal_is_tried_again_then_gated_then_canceled,
    a_free_plan_waits_for_the_end_of_the_paid_period,
    canceling_again_drops_the_free_plan_that_waits,
    taxes_are_added_by_country,
    keys_begin_checkouts_too,
    usage_is_handed_to_the_provider,
);

const CHECKOUT: &str = "/account/subscription/checkout";
const PAYS: &str = "4242 4242 4242 4242";
const DECLINED: &str = "4000 0000 0000 0002";
const FAILS_LATER: &str = "4000 0000 0000 0341";

async fn sandbox(app: &TestApp) -> Workspace {
    enable_provider(app, "sandbox_test").await;
    app.workspace("acme").await
}

async fn begin(user: &Caller) -> Answer {
    let body = json!({
        "planKey": "pro", "successUrl": "https://shop.example/done?s={CHECKOUT_SESSION_ID}",
        "cancelUrl": "https://shop.example/back",
    });
    user.post(CHECKOUT, body).await.expect(201)
}

fn path(checkout: &Answer) -> String {
    checkout.text("/checkoutUrl").replace("http://tenantry.test", "")
}

async fn submit(app: &TestApp, path: &str, form: &str) -> Answer {
    let form = form.replace(' ', "+");
    app.anon().header("content-type", "application/x-www-form-urlencoded").send(Method::POST, path, form).await
}

async fn pay(app: &TestApp, checkout: &Answer, card: &str) -> Answer {
    submit(app, &path(checkout), &format!("cardNumber={card}&expiry=12/40&cvc=123")).await
}

async fn paid(app: &TestApp, card: &str) -> Workspace {
    let workspace = sandbox(app).await;
    let checkout = begin(&workspace.owner()).await;
    pay(app, &checkout, card).await.expect(303);
    workspace
}

async fn without_a_provider_the_plan_is_assigned(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    let nulls = json!({ "sessionId": null, "publicKey": null, "checkoutUrl": null });
    assert_eq!(begin(&user).await.json(), nulls);
    assert_eq!(state(&user).await, json!({ "plan": { "slug": "pro", "name": "Pro" }, "status": "active" }));
    user.post(CHECKOUT, json!({ "planKey": "nonesuch" })).await.refuses(&["planKey"]);
    user.post(CHECKOUT, json!({ "planKey": "pro", "successUrl": "/done" })).await.refuses(&["successUrl"]);
    let yearly = json!({ "currency": "EUR", "recurrenceInterval": "year" });
    user.post(CHECKOUT, json!({ "planKey": "pro", "priceOffer": yearly })).await.refuses(&["priceOffer"]);
    enable_provider(&app, "sandbox_test").await;
    let free = app.workspace("other").await.owner();
    assert_eq!(free.post(CHECKOUT, json!({ "planKey": "free" })).await.expect(201).json(), nulls);
    enable_provider(&app, "sk_live_x").await;
    free.post(CHECKOUT, json!({ "planKey": "pro" })).await.error(502, "PROVIDER_FAILED");
}

async fn a_checkout_leads_to_a_page_that_takes_test_cards(app: TestApp) {
    let workspace = sandbox(&app).await;
    let checkout = begin(&workspace.owner()).await;
    let shown = app.anon().get(&path(&checkout)).await.expect(200);
    for part in ["cardNumber", "expiry", "cvc", "29 EUR"] {
        assert!(shown.body().contains(part), "{part} in {}", shown.body());
    }
    assert!(!shown.body().contains("country"));
    for (form, words) in [
        (format!("cardNumber={DECLINED}&expiry=12/40&cvc=123"), "declined"),
        ("cardNumber=4111 1111 1111 1111&expiry=12/40&cvc=123".to_owned(), "declined"),
        (format!("cardNumber={PAYS}&expiry=12/20&cvc=123"), "future"),
        (format!("cardNumber={PAYS}&expiry=13/40&cvc=123"), "future"),
        (format!("cardNumber={PAYS}&expiry=12/40&cvc=12"), "three digits"),
        ("cardNumber=&expiry=&cvc=".to_owned(), "number of a card"),
    ] {
        let refused = submit(&app, &path(&checkout), &form).await.expect(400);
        assert!(refused.body().contains(words), "{words} in {}", refused.body());
    }
    workspace.owner().get("/billing/state").await.error(404, "NOT_FOUND");
    let location = pay(&app, &checkout, PAYS).await.expect(303);
    let done = format!("https://shop.example/done?s={}", checkout.text("/sessionId"));
    assert_eq!(location.header("location"), Some(done.as_str()));
    assert_eq!(state(&workspace.owner()).await["status"], "active");
    assert_eq!(events(&app).await, ["subscription.created", "payment.succeeded"]);
    let (_, data) = told(&app, "payment.succeeded").await.remove(0);
    assert_eq!((&data["amount"], &data["currency"]), (&json!(29), &json!("EUR")));
    let status = workspace.owner().get("/account/subscription/status").await.expect(200);
    assert_eq!((status.at("/paymentsEnabled"), status.at("/shouldSetupPayments")), (json!(true), json!(false)));
    app.anon().get("/cloud-views/sandbox/checkout/cs_sandbox_x").await.expect(404);
}

async fn a_session_is_confirmed_by_its_own_workspace_once_it_is_paid(app: TestApp) {
    let workspace = sandbox(&app).await;
    let checkout = begin(&workspace.owner()).await;
    let (confirm, id) = ("/account/payprovider/confirm-checkout", checkout.text("/sessionId"));
    let body = json!({ "sessionId": id });
    workspace.owner().post(confirm, body.clone()).await.error(409, "CHECKOUT_UNPAID");
    app.workspace("other").await.owner().post(confirm, body.clone()).await.error(403, "FORBIDDEN");
    workspace.owner().post(confirm, json!({ "sessionId": "cs_unknown" })).await.error(404, "NOT_FOUND");
    pay(&app, &checkout, PAYS).await.expect(303);
    let confirmed = workspace.owner().post(confirm, body).await.expect(200);
    assert_eq!(confirmed.json(), json!({ "status": "active", "planKey": "pro" }));
    let metadata = app.anon().get(&format!("/account/payprovider/checkoutSession/{id}/metadata")).await.expect(200);
    let done = format!("https://shop.example/done?s={id}");
    assert_eq!(metadata.json(), json!({ "sessionId": id, "planKey": "pro", "redirectUri": done }));
    app.anon().get("/account/payprovider/checkoutSession/nonesuch/metadata").await.error(404, "NOT_FOUND");
}

async fn of_two_checkouts_one_is_paid(app: TestApp) {
    let workspace = sandbox(&app).await;
    let (one, two) = (begin(&workspace.owner()).await, begin(&workspace.owner()).await);
    let posts = [&one, &two, &one, &two, &one, &two, &one, &two];
    let race = join_all(posts.map(|checkout| pay(&app, checkout, PAYS))).await;
    let seen = |place: usize| (race[place].status(), race[place].header("location"));
    assert!((0..race.len()).all(|place| seen(place) == seen(place % 2)), "however often one clicks: {race:?}");
    let mut statuses = [race[0].status(), race[1].status()];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 400]);
    assert_eq!(events(&app).await, ["subscription.created", "payment.succeeded"]);
    workspace.owner().post(CHECKOUT, json!({ "planKey": "pro" })).await.error(409, "SUBSCRIPTION_RUNNING");
}

async fn renewals_are_paid_by_the_clock(app: TestApp) {
    let workspace = paid(&app, PAYS).await;
    app.advance(DAY * 95).await;
    assert_eq!(told(&app, "payment.succeeded").await.len(), 4);
    assert_eq!(state(&workspace.owner()).await["status"], "active");
    workspace.owner().post("/billing/cancel", json!({})).await.expect(201);
    workspace.owner().post("/billing/reactivate", json!({})).await.expect(201);
    app.advance(DAY * 31).await;
    assert_eq!(told(&app, "payment.succeeded").await.len(), 5);
    workspace.owner().post("/billing/cancel", json!({})).await.expect(201);
    app.advance(DAY * 62).await;
    assert_eq!(state(&workspace.owner()).await["status"], "canceled");
    assert_eq!(told(&app, "payment.succeeded").await.len(), 5);
}

/// Adds a yearly price, and changes to it.
async fn change_to_yearly(app: &TestApp, workspace: &Workspace) -> Answer {
    let plans = app.key().get("/account/payments/plan").await.expect(200).json();
    let pro = plans.as_array().and_then(|plans| plans.iter().find(|plan| plan["key"] == "pro")).expect("a plan");
    let price =
        |amount: u32, interval: &str| json!({ "amount": amount, "currency": "EUR", "recurrenceInterval": interval });
    change_plan(app, pro, json!({ "prices": [price(29, "month"), price(300, "year")] })).await;
    change_to(workspace, "year").await
}

async fn change_to(workspace: &Workspace, interval: &str) -> Answer {
    let offer = json!({ "currency": "EUR", "recurrenceInterval": interval });
    workspace.owner().post("/account/subscription/change", json!({ "planKey": "pro", "priceOffer": offer })).await
}

async fn last_day(workspace: &Workspace) -> String {
    state(&workspace.owner()).await["endsAt"].as_str().expect("a time")[..10].to_owned()
}

async fn amounts_paid(app: &TestApp) -> Vec<Value> {
    told(app, "payment.succeeded").await.into_iter().map(|(_, data)| data["amount"].clone()).collect()
}

async fn a_new_period_is_paid_for_before_it_counts(app: TestApp) {
    let workspace = paid(&app, PAYS).await;
    app.advance(DAY).await;
    change_to_yearly(&app, &workspace).await.expect(201);
    workspace.owner().post("/billing/cancel", json!({})).await.expect(201);
    assert_eq!(amounts_paid(&app).await, [29, 300]);
    // What is about to end is no way around it, and lasts as long as was paid for.
    let ends_on = last_day(&workspace).await;
    change_to(&workspace, "month").await.expect(201);
    assert_ne!(last_day(&workspace).await, ends_on);
    change_to(&workspace, "year").await.expect(201);
    assert_eq!(last_day(&workspace).await, ends_on);
    workspace.owner().post("/billing/reactivate", json!({})).await.expect(201);
    app.advance(DAY * 300).await;
    assert_eq!(amounts_paid(&app).await, [29, 300, 29, 300]);
    app.advance(DAY * 66).await;
    assert_eq!(amounts_paid(&app).await, [29, 300, 29, 300, 300]);
}

async fn a_card_that_does_not_pay_begins_no_new_period(app: TestApp) {
    let workspace = paid(&app, FAILS_LATER).await;
    let before = state(&workspace.owner()).await;
    change_to_yearly(&app, &workspace).await.error(409, "CHECKOUT_UNPAID");
    assert_eq!(state(&workspace.owner()).await, before);
    assert_eq!(amounts_paid(&app).await, [29]);
    app.advance(DAY * 32).await;
    change_to(&workspace, "year").await.error(409, "CHECKOUT_UNPAID");
    assert_eq!(state(&workspace.owner()).await["status"], "past_due");
}

async fn a_failed_renewal_is_tried_again_then_gated_then_canceled(app: TestApp) {
    let workspace = paid(&app, FAILS_LATER).await;
    app.advance(DAY * 32).await;
    assert_eq!(state(&workspace.owner()).await["status"], "past_due");
    let told_so_far = ["subscription.created", "payment.succeeded", "subscription.past_due", "payment.failed"];
    assert_eq!(events(&app).await, told_so_far);
    let (_, failed) = told(&app, "payment.failed").await.remove(0);
    assert_eq!((&failed["attempt"], &failed["cardLast4"]), (&json!(1), &json!("0341")));
    assert!(app.mails().iter().any(|mail| mail.to.contains("owner@acme.example")), "the owner is told");
    let status = workspace.owner().get("/account/subscription/status").await.expect(200);
    assert_eq!(status.at("/paymentFailed"), true);
    app.advance(DAY * 8).await;
    assert_eq!(told(&app, "payment.failed").await.len(), 4);
    app.advance(DAY * 6).await;
    assert_eq!(state(&workspace.owner()).await["gateEngaged"], true);
    app.advance(DAY * 17).await;
    assert_eq!(state(&workspace.owner()).await["status"], "canceled");
    assert_eq!(events(&app).await.last().map(String::as_str), Some("subscription.canceled"));
}

async fn a_free_plan_waits_for_the_end_of_the_paid_period(app: TestApp) {
    let workspace = paid(&app, PAYS).await;
    workspace.owner().post("/account/subscription/select", json!({ "planKey": "free" })).await.expect(201);
    let waiting = state(&workspace.owner()).await;
    assert_eq!((&waiting["status"], &waiting["scheduledChange"]["plan"]), (&json!("active"), &json!("free")));
    workspace.owner().post("/billing/reactivate", json!({})).await.expect(201);
    assert_eq!(state(&workspace.owner()).await["scheduledChange"], Value::Null);
    workspace.owner().post("/account/subscription/change", json!({ "planKey": "free" })).await.expect(201);
    app.advance(DAY * 32).await;
    assert_eq!(
        state(&workspace.owner()).await,
        json!({ "plan": { "slug": "free", "name": "Free" }, "status": "active" })
    );
    assert_eq!(events(&app).await, ["subscription.created", "payment.succeeded", "subscription.plan_changed"]);
}

async fn canceling_again_drops_the_free_plan_that_waits(app: TestApp) {
    let workspace = paid(&app, PAYS).await;
    let canceled = workspace.owner().post("/billing/cancel", json!({})).await.expect(201).json();
    workspace.owner().post("/account/subscription/select", json!({ "planKey": "free" })).await.expect(201);
    let waiting = state(&workspace.owner()).await;
    assert_eq!(
        (&waiting["status"], &waiting["scheduledChange"]["plan"]),
        (&json!("cancel_at_period_end"), &json!("free"))
    );
    assert_eq!(workspace.owner().post("/billing/cancel", json!({})).await.expect(201).json(), canceled);
    assert_eq!(state(&workspace.owner()).await["scheduledChange"], Value::Null);
    app.advance(DAY * 32).await;
    assert_eq!(state(&workspace.owner()).await["status"], "canceled");
    assert_eq!(events(&app).await, ["subscription.created", "payment.succeeded", "subscription.canceled"]);
}

async fn taxes_are_added_by_country(app: TestApp) {
    let tax = json!({ "countryCode": "DE", "name": "VAT", "percentage": 19 });
    app.key().post("/account/payments/tax", tax).await.expect(200);
    let workspace = sandbox(&app).await;
    let checkout = begin(&workspace.owner()).await;
    assert!(app.anon().get(&path(&checkout)).await.expect(200).body().contains("country"));
    pay(&app, &checkout, PAYS).await.expect(400);
    submit(&app, &path(&checkout), &format!("cardNumber={PAYS}&expiry=12/40&cvc=123&country=de")).await.expect(303);
    let (_, data) = told(&app, "payment.succeeded").await.remove(0);
    assert_eq!((&data["amount"], &data["taxAmount"]), (&json!(34.51), &json!(5.51)));
}

async fn keys_begin_checkouts_too(app: TestApp) {
    let workspace = sandbox(&app).await;
    app.key().put("/account/app/credentials", json!({ "payproviderPublicKey": "pk_1" })).await.expect(200);
    let of_tenant = format!("/account/tenant/{}/checkoutId", workspace.id);
    app.key().call(Method::POST, &of_tenant, None).await.refuses(&["planKey"]);
    app.key().post(&of_tenant, json!({ "planKey": "free" })).await.refuses(&["planKey"]);
    app.key().post(&of_tenant, json!({ "planKey": "nonsense" })).await.refuses(&["planKey"]);
    let made = app.key().post(&of_tenant, json!({ "planKey": "pro" })).await.expect(200);
    assert!(made.text("/id").starts_with("cs_"));
    assert_eq!(made.text("/publicKey"), "pk_1");
    let details = format!("/account/tenant/{}/paymentDetails", workspace.id);
    let monthly = json!({ "currency": "USD", "recurrenceInterval": "month" });
    app.key().post(&details, json!({ "planKey": "pro", "priceOffer": monthly })).await.expect(200);
    app.key().call(Method::POST, &of_tenant, None).await.expect(200);
    let by_header = workspace.key().post("/account/app/checkoutId", json!({ "planKey": "pro" })).await.expect(200);
    assert!(by_header.text("/id").starts_with("cs_"));
    let other = app.other_app().await;
    for body in [json!({ "planKey": "pro" }), json!({ "planKey": "free" }), json!({})] {
        other.post(&of_tenant, body).await.error(404, "NOT_FOUND");
    }
}

async fn usage_is_handed_to_the_provider(app: TestApp) {
    let pro = app.key().get("/account/payments/plan").await.expect(200).at("/1");
    change_plan(&app, &pro, json!({ "quotas": [{ "metric": "calls", "limit": 1, "policy": "metered" }] })).await;
    plan(&app, "other", None, None).await;
    let workspace = paid(&app, PAYS).await;
    workspace.key().post("/usage/ingest", json!({ "metric": "calls", "value": 3 })).await.expect(201);
    let sync = format!("/usage/sync/{}", workspace.id);
    let synced = workspace.owner().post(&sync, json!({})).await.expect(200);
    assert_eq!(synced.json(), json!({ "syncedMetrics": 1, "failed": [] }));
    let usage = workspace.owner().get(&format!("/usage/{}", workspace.id)).await.expect(200);
    assert_eq!((usage.at("/metrics/0/lastSyncStatus"), usage.at("/metrics/0/used")), (json!("ok"), json!(3)));
}

/// The clock has moved on, and the job that charges has not run yet.
async fn a_period_that_has_begun_is_paid_for_before_it_is_canceled(app: TestApp) {
    let workspace = paid(&app, PAYS).await;
    let clock = app.service().core().db.clock().clone();
    let bought = clock.now();
    clock.advance_to(bought.plus_months(1).plus(DAY / 24));
    let canceled = workspace.owner().post("/billing/cancel", json!({})).await.expect(201);
    let ends_at: kernel::Timestamp = canceled.text("/endsAt").parse().expect("a time");
    assert!(bought.plus_months(2).since(ends_at) < DAY / 24, "it lasts until the end of the second period: {ends_at}");
    assert_eq!(told(&app, "payment.succeeded").await.len(), 2, "which was paid for");
    app.advance(DAY * 40).await;
    assert_eq!(told(&app, "payment.succeeded").await.len(), 2);
    assert_eq!(state(&workspace.owner()).await["status"], "canceled");
}
