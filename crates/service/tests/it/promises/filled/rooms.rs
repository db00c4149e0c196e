//! What fills the tables, room by room.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{
    Caller, OpenIdRequest, Person, SamlRequest, TestApp, Workspace,
    billing::enable_provider,
    files,
    hosted::authorize,
    payments::{self, PaymentProvider, Trouble},
};

use super::{BYTES, LATE, Neighbours, authorization, operator};

async fn posted(caller: &Caller, path: &str, body: Value) -> Value {
    let answer = caller.post(path, body).await;
    assert!(answer.status() < 300, "{path}: {answer:?}");
    answer.json()
}

async fn changed(caller: &Caller, path: &str, body: Value) {
    let answer = caller.put(path, body).await;
    assert!(answer.status() < 300, "{path}: {answer:?}");
}

fn event(app: &TestApp, name: &str, at: &str, parameters: Value) -> Value {
    let mut event = json!({ "appId": app.app_id(), "eventName": name, "timestamp": at });
    event["ingestId"] = json!(format!("{name}-{}", parameters["n"]));
    event["parameters"] = parameters;
    event
}

/// Enough to be packed, a day later, and some that stay rows.
pub(super) async fn log_events(app: &TestApp) {
    let order = |n: i64| {
        let at = format!("2026-03-01T10:{:02}:{:02}Z", n / 60 % 60, n % 60);
        let (user, plan) = (format!("u{}", n % 9), if n % 3 == 0 { "pro" } else { "free" });
        let parameters = json!({ "n": n, "userId": user, "plan": plan, "amount": n, "ok": n % 2 == 0 });
        event(app, "order", &at, parameters)
    };
    let orders: Vec<Value> = (0..400).map(order).collect();
    posted(&app.key(), "/event-log/batch", json!(orders)).await;
    app.drain().await;
    app.advance(Duration::from_hours(25)).await;
    let late = event(app, "paid", "2026-03-02T10:00:00Z", json!({ "n": 1, "userId": "u1", "amount": 2.5 }));
    posted(&app.key(), "/event-log", late).await;
    operator(app).put("events/settings", json!({ "retentionDays": 3650 })).await;
}

pub(super) async fn set_up_app(app: &TestApp) {
    let key = app.key();
    let defined = json!([{ "key": "seats", "type": "number" }, { "key": "team", "type": "string" }]);
    changed(&key, "/account/app/userParameters", defined).await;
    changed(&key, "/account/app", json!({ "apiUrl": "https://api.example", "uiUrl": "https://shop.example" })).await;
    changed(&key, "/communication/email/template/SIGNUP", json!({ "type": "SIGNUP", "content": "Hello" })).await;
    posted(&key, "/admin/brand/css", json!({ "content": "a{color:red}" })).await;
    posted(&key, "/cloud-views/brand/translations", json!({ "Sign in": "Anmelden" })).await;
    posted(&key, "/account/payments/tax", json!({ "countryCode": "DE", "name": "VAT", "percentage": 19 })).await;
    posted(&key, "/account/api-token/app", json!({ "name": "t", "privileges": ["APP_READ"] })).await;
    let refund = posted(&key, "/account/role/privilege", json!({ "key": "REFUND" })).await;
    posted(&key, "/account/role", json!({ "name": "Support", "key": "SUPPORT", "privileges": [refund["id"]] })).await;
    let seldom = json!({ "url": "https://hooks.example", "events": ["tenant.deleted"] });
    operator(app).post("webhook/endpoints", seldom).await;
}

pub(super) async fn set_up_flags(app: &TestApp) {
    let branch = |value: &str| {
        let condition = json!({ "attribute": "tenant.plan", "operator": "in", "values": ["pro", "ä 😀"] });
        json!({ "conditions": [condition], "returnValue": value })
    };
    let rule = json!({ "branches": [branch("B")], "otherwiseValue": "C", "rolloutPct": 12.5, "groupRef": null });
    let flag = json!({
        "key": "new-look", "description": "New \\ 😀", "state": "on-with-rule", "valueType": "string", "offValue": "A",
        "onValue": "B", "rule": rule,
    });
    let made = operator(app).post("flags", flag).await;
    let changed = json!({ "description": "Newer" });
    operator(app).put(&format!("flags/{}", made["id"].as_str().expect("an id")), changed).await;
    operator(app).post("flag-groups", json!({ "key": "beta", "name": "Beta \\ ä 😀" })).await;
    let key = app.key();
    let counted = json!([{ "flagKey": "new-look", "variantIndex": 0, "count": 3 }]);
    posted(&key, "/flags/eval-events", counted).await;
    posted(&key, "/flags/discover", json!([{ "key": "unheard-of", "valueType": "number" }])).await;
    posted(&key, "/flags/call-sites", json!([{ "flagKey": "new-look", "file": "src/nav.ts", "line": 12 }])).await;
}

/// Somebody who is in two workspaces.
pub(super) async fn set_up_workspace(app: &TestApp, acme: &Workspace) -> Value {
    let (key, owner) = (acme.key(), acme.owner());
    let member = acme.add("carl@example.com", "MEMBER").await;
    changed(&key, &acme.path_of(&member), json!({ "parameters": { "seats": 3, "team": "ä" } })).await;
    posted(&owner, "/billing/subscriptions", json!({})).await;
    posted(&key, "/usage/ingest", json!({ "metric": "calls" })).await;
    let granted = json!({ "entitlements": { "export": true } });
    changed(&app.key(), &format!("/account/tenant/{}/overrides", acme.id), granted).await;
    posted(&app.workspace("trying").await.owner(), "/billing/trial/start", json!({})).await;
    let known = app.owner("dora@example.com").await;
    let inviting = acme.token(&["USER_READ", "USER_WRITE"]).await;
    posted(&inviting, "/account/tenant/user", json!({ "username": known.email })).await;
    let digest = json!({ "value": "5f4dcc3b5aa765d61d8327deb882cf99", "algorithm": "MD5" });
    let owner = json!({ "username": "eve@example.com", "password": digest });
    let batch = json!([{ "tenant": { "owner": owner, "name": "Bolt" }, "users": [] }]);
    posted(&app.key(), "/account/import/tenants", batch).await;
    app.workspace("second").await.add("carl@example.com", "MEMBER").await;
    app.drain().await;
    member
}

/// A subscription, and a visit to where it is managed.
pub(super) async fn buy_in_the_sandbox(app: &TestApp) {
    enable_provider(app, "sandbox_test").await;
    let owner = app.workspace("paying").await.owner();
    let begun = posted(&owner, "/account/subscription/checkout", json!({ "planKey": "pro" })).await;
    let page = begun["checkoutUrl"].as_str().expect("an address").replace("http://tenantry.test", "");
    let paying = app.anon().header("content-type", "application/x-www-form-urlencoded");
    paying.send(Method::POST, &page, "cardNumber=4242424242424242&expiry=12/40&cvc=123&country=DE").await.expect(303);
    app.drain().await;
    owner.get("/account/subscription/portal").await.expect(200);
}

/// A subscription that is paid elsewhere, and what was told of it.
pub(super) async fn buy_from_the_provider(app: &TestApp, provider: &PaymentProvider) -> Workspace {
    payments::enable(app).await;
    app.drain().await;
    let elsewhere = app.workspace("elsewhere").await;
    let owner = elsewhere.owner();
    let asked = json!({ "planKey": "pro", "successUrl": "https://shop.example/done" });
    let begun = posted(&owner, "/account/subscription/checkout", asked).await;
    let session = begun["sessionId"].as_str().expect("a session");
    provider.set_time(app.now().as_seconds());
    provider.pay(session);
    posted(&owner, "/account/payprovider/confirm-checkout", json!({ "sessionId": session })).await;
    for event in provider.take_events() {
        payments::tell(app, &event).await.expect(200);
    }
    app.drain().await;
    elsewhere
}

/// Somebody who comes through their workspace's provider, and somebody known who comes through one of the app.
pub(super) async fn come_through_providers(app: &TestApp, around: &Neighbours, ada: &Person) -> (Person, String) {
    let grace = app.owner("grace@acme.example").await;
    let connection = around.staff.connect(app, &[grace.tenant]).await;
    let domains = json!({ "domains": ["acme.example"] });
    changed(&app.key(), &format!("/account/federation/connection/{connection}"), domains).await;
    come_by_saml(app, around, &connection, &grace.email).await;
    let clients = json!({ "socialOneClientId": "one", "socialOneClientSecret": "s1" });
    changed(&app.key(), "/account/app/credentials", clients).await;
    changed(&app.key(), "/account/app", json!({ "socialOneSsoEnabled": true })).await;
    let mut browser = app.browser();
    browser.open(&authorize(app, &[("force_federation", "social-one")])).await;
    let asked = OpenIdRequest::of(&browser.location);
    let claims = asked.claims(&around.social.issuer, &ada.email, app.now().as_seconds());
    let answer = around.social.answer(&asked, claims);
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&answer).finish();
    browser.open(&format!("{}?{query}", asked.get("redirect_uri"))).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
    (grace, connection)
}

/// The app's code for somebody whom their workspace's provider knows.
pub(super) async fn come_by_saml(app: &TestApp, around: &Neighbours, connection: &str, email: &str) -> String {
    let mut browser = app.browser();
    browser.open(&authorize(app, &[("federation_connection", connection)])).await;
    let asked = SamlRequest::of(&browser.location);
    browser.post(&asked.acs, &around.staff.answer(&asked, email, app.now())).await;
    browser.answer("code").unwrap_or_else(|| panic!("no code: {}", browser.location))
}

/// A directory that has provisioned somebody; its token.
pub(super) async fn provision(acme: &Workspace) -> String {
    let directory = acme.directory().await;
    let ivy = directory.provision("ivy@example.com").await;
    directory.group("Staff", &[&ivy]).await;
    authorization(&directory)
}

/// The address of a public file.
pub(super) async fn upload(app: &TestApp, key: &Caller) -> String {
    let form = files::prepare(key, "a.bin", "application/octet-stream").await;
    files::post(app, &form, BYTES).await.expect(204);
    let finish = json!({ "key": form["key"], "persist": true, "publicFile": true });
    key.post("/account/tenant/upload/finish", finish).await.expect(200).text("")
}

/// What waits for background work: it is done wherever the app is by then.
pub(super) async fn leave_undone(app: &TestApp, acme: &Workspace) {
    let users: Vec<Value> = (0..40).map(|n| json!({ "username": format!("kim{n}@example.com") })).collect();
    let owner = json!({ "username": "kim@example.com" });
    let batch = json!([{ "tenant": { "owner": owner, "name": "Late" }, "users": users }]);
    posted(&app.key(), "/account/import/tenants", batch).await;
    files::prepare(&acme.key(), "later.txt", "text/plain").await;
}

/// What the provider could not be told is told again, from wherever the app is by then.
pub(super) async fn cancel_in_vain(elsewhere: &Workspace, provider: &PaymentProvider) {
    provider.trouble([Trouble::Fails; 3]);
    elsewhere.owner().post("/billing/cancel", json!({})).await.error(502, "PROVIDER_FAILED");
}

/// One that no question has found yet: whoever asks for events takes in those that wait.
pub(super) async fn log_one_more(app: &TestApp) {
    posted(&app.key(), "/event-log", event(app, LATE, "2026-03-02T11:00:00Z", json!({ "n": 2 }))).await;
}
