//! `GET /account/subscription/portal`, and the sandbox's portal that it leads to.

use http::Method;
use serde_json::json;
use testkit::{
    Answer, TestApp, Workspace,
    billing::{DAY, change_plan, enable_provider, state},
    facts::told,
    on_both_engines,
};

on_both_engines!(
    the_portal_shows_and_changes_what_is_paid,
    the_mail_about_a_failed_payment_leads_to_where_it_is_paid,
    units_beyond_a_metered_limit_are_charged,
    usage_is_sent_an_hour_after_it_changed_and_at_the_end_of_the_period,
    the_checkout_shows_tax_and_total,
);

const PAYS: &str = "4242424242424242";
const FAILS_LATER: &str = "4000000000000341";

async fn submit(app: &TestApp, address: &str, form: &str) -> Answer {
    let path = address.replace("http://tenantry.test", "");
    app.anon()
        .header("content-type", "application/x-www-form-urlencoded")
        .send(Method::POST, &path, form.to_owned())
        .await
}

fn card(number: &str) -> String {
    format!("cardNumber={number}&expiry=12/40&cvc=123")
}

async fn checkout(workspace: &Workspace) -> String {
    let body = json!({ "planKey": "pro" });
    workspace.owner().post("/account/subscription/checkout", body).await.expect(201).text("/checkoutUrl")
}

async fn paid(app: &TestApp, number: &str) -> Workspace {
    enable_provider(app, "sandbox_test").await;
    app.key().put("/account/app", json!({ "uiUrl": "https://shop.example" })).await.expect(200);
    let workspace = app.workspace("acme").await;
    submit(app, &checkout(&workspace).await, &card(number)).await.expect(303);
    workspace
}

async fn portal(workspace: &Workspace) -> String {
    workspace.owner().get("/account/subscription/portal").await.expect(200).text("/portalUrl")
}

async fn the_portal_shows_and_changes_what_is_paid(app: TestApp) {
    let acme = paid(&app, PAYS).await;
    let address = portal(&acme).await;
    assert!(address.starts_with("http://tenantry.test/cloud-views/sandbox/portal/"), "{address}");
    let path = address.replace("http://tenantry.test", "");
    let shown = app.anon().get(&path).await.expect(200);
    for part in ["Pro", "29 EUR / month", "Card ending in 4242", "Next payment on", "Cancel subscription"] {
        assert!(shown.body().contains(part), "{part} in {}", shown.body());
    }
    submit(&app, &address, "action=cancel").await.expect(303);
    assert_eq!(state(&acme.owner()).await["status"], "cancel_at_period_end");
    assert!(app.anon().get(&path).await.expect(200).body().contains("Ends on"));
    submit(&app, &address, "action=reactivate").await.expect(303);
    assert_eq!(state(&acme.owner()).await["status"], "active");
    let declined = submit(&app, &address, &format!("action=card&{}", card("4000000000000002"))).await.expect(400);
    assert!(declined.body().contains("declined"));
    submit(&app, &address, &format!("action=card&{}", card(FAILS_LATER))).await.expect(303);
    assert!(app.anon().get(&path).await.expect(200).body().contains("Card ending in 0341"));
    let key = app.key().get(&format!("/account/tenant/{}/customerPortal", acme.id)).await.expect(200);
    assert!(key.text("/url").contains("/cloud-views/sandbox/portal/"));
    app.anon().get("/cloud-views/sandbox/portal/nonesuch").await.expect(404);
    app.advance(DAY / 12).await;
    app.anon().get(&path).await.expect(404);
}

async fn the_mail_about_a_failed_payment_leads_to_where_it_is_paid(app: TestApp) {
    let acme = paid(&app, FAILS_LATER).await;
    app.advance(DAY * 32).await;
    assert_eq!(state(&acme.owner()).await["status"], "past_due");
    let mails = app.mails();
    let mail = mails.iter().find(|mail| mail.to.contains("owner@acme.example")).expect("the owner is told");
    let start = mail.text.find("http://tenantry.test/cloud-views/sandbox/portal/").expect("a way to pay");
    let address = mail.text[start..].split_whitespace().next().expect("an address");
    let shown = app.anon().get(&address.replace("http://tenantry.test", "")).await.expect(200);
    assert!(shown.body().contains("The last payment failed."));
    submit(&app, address, &format!("action=card&{}", card(PAYS))).await.expect(303);
    assert_eq!(state(&acme.owner()).await["status"], "active");
    assert_eq!(told(&app, "payment.succeeded").await.len(), 2);
    app.advance(DAY * 31).await;
    assert_eq!(told(&app, "payment.succeeded").await.len(), 3);
    assert_eq!(told(&app, "payment.failed").await.len(), 1);
}

async fn metered(app: &TestApp) {
    let pro = app.key().get("/account/payments/plan").await.expect(200).at("/1");
    assert_eq!(pro["key"], "pro");
    let quota = json!({ "metric": "calls", "limit": 10, "policy": "metered", "unitAmount": 0.5 });
    change_plan(app, &pro, json!({ "quotas": [quota] })).await;
}

async fn units_beyond_a_metered_limit_are_charged(app: TestApp) {
    metered(&app).await;
    let acme = paid(&app, PAYS).await;
    acme.key().post("/usage/ingest", json!({ "metric": "calls", "value": 13 })).await.expect(201);
    app.advance(DAY * 32).await;
    let amounts = |paid: Vec<(_, serde_json::Value)>| -> Vec<_> {
        paid.into_iter().map(|(_, data): (String, _)| data["amount"].clone()).collect()
    };
    assert_eq!(amounts(told(&app, "payment.succeeded").await), [json!(29), json!(30.5)]);
    // A failed bill stays what it was.
    acme.key().post("/usage/ingest", json!({ "metric": "calls", "value": 11 })).await.expect(201);
    let address = portal(&acme).await;
    submit(&app, &address, &format!("action=card&{}", card(FAILS_LATER))).await.expect(303);
    app.advance(DAY * 31).await;
    acme.key().post("/usage/ingest", json!({ "metric": "calls", "value": 50 })).await.expect(201);
    app.advance(DAY * 2).await;
    assert_eq!(amounts(told(&app, "payment.failed").await), [json!(29.5), json!(29.5)]);
    let address = portal(&acme).await;
    submit(&app, &address, &format!("action=card&{}", card(PAYS))).await.expect(303);
    assert_eq!(amounts(told(&app, "payment.succeeded").await)[2..], [json!(29.5)]);
    // The last period's usage is charged when it ends.
    submit(&app, &address, "action=cancel").await.expect(303);
    app.advance(DAY * 31).await;
    assert_eq!(state(&acme.owner()).await["status"], "canceled");
    assert_eq!(amounts(told(&app, "payment.succeeded").await)[3..], [json!(20)]);
}

async fn usage_is_sent_an_hour_after_it_changed_and_at_the_end_of_the_period(app: TestApp) {
    metered(&app).await;
    let acme = paid(&app, PAYS).await;
    let synced = async || {
        let usage = acme.owner().get(&format!("/usage/{}", acme.id)).await.expect(200);
        usage.at("/metrics/0/lastSyncedAt")
    };
    acme.key().post("/usage/ingest", json!({ "metric": "calls" })).await.expect(201);
    app.advance(DAY / 48).await;
    acme.key().post("/usage/ingest", json!({ "metric": "calls" })).await.expect(201);
    assert!(synced().await.is_null());
    app.advance(DAY / 48).await;
    let first = synced().await;
    assert!(first.is_string());
    app.advance(DAY).await;
    assert_eq!(synced().await, first);
    acme.key().put("/usage/gauge/calls", json!({ "value": 3 })).await.expect(200);
    app.advance(DAY / 24).await;
    assert_ne!(synced().await, first);
    let event = acme.key().post("/usage/ingest", json!({ "metric": "calls" })).await.expect(201).text("/eventId");
    app.advance(DAY / 24).await;
    let before = synced().await;
    acme.key().delete(&format!("/usage/events/{event}")).await.expect(200);
    app.advance(DAY / 24).await;
    assert_ne!(synced().await, before);
    // Nothing is left to send once nobody is paid.
    acme.key().post("/usage/ingest", json!({ "metric": "calls" })).await.expect(201);
    let free = json!({ "planKey": "free" });
    app.key().post(&format!("/account/tenant/{}/paymentDetails", acme.id), free).await.expect(200);
    app.advance(DAY).await;
}

async fn the_checkout_shows_tax_and_total(app: TestApp) {
    let tax = json!({ "countryCode": "DE", "name": "VAT", "percentage": 19 });
    app.key().post("/account/payments/tax", tax).await.expect(200);
    enable_provider(&app, "sandbox_test").await;
    let acme = app.workspace("acme").await;
    let address = checkout(&acme).await;
    let path = address.replace("http://tenantry.test", "");
    let shown = app.anon().get(&path).await.expect(200);
    assert!(shown.body().contains("Price: 29 EUR / month") && shown.body().contains("Without tax: 29 EUR"));
    let total = submit(&app, &address, "totalFor=de").await.expect(200);
    assert!(total.body().contains("VAT (19 %): 5.51 EUR") && total.body().contains("Total: 34.51 EUR"));
    let elsewhere = submit(&app, &address, "totalFor=FR").await.expect(200);
    assert!(elsewhere.body().contains("Tax: 0 EUR") && elsewhere.body().contains("Total: 29 EUR"));
    acme.owner().get("/billing/state").await.error(404, "NOT_FOUND");
}
