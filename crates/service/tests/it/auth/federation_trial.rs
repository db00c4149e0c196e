//! `/account/federation/connection/{connection_id}/test`: what a provider says and what would become of it, and nothing else.

use serde_json::json;
use testkit::{
    Browser, HERE, IdentityProvider, OpenIdProvider, OpenIdRequest, SamlRequest, TestApp, facts::told,
    hosted::authorize, on_both_engines,
};

on_both_engines!(
    a_trial_shows_what_would_happen_and_changes_nothing,
    a_trial_says_what_was_refused,
    a_trial_that_was_canceled_at_the_provider_says_so,
    a_trial_opens_nothing_else,
    a_trial_needs_its_connection,
);

async fn trial(app: &TestApp, connection: &str) -> String {
    let path = format!("/account/federation/connection/{connection}/test");
    let url = app.key().post(&path, json!({})).await.expect(200).text("/url");
    url.strip_prefix(HERE).expect("an address of the service").to_owned()
}

async fn tried(app: &TestApp, idp: &IdentityProvider, connection: &str, email: &str) -> Browser {
    let mut browser = app.browser();
    browser.open(&trial(app, connection).await).await;
    let asked = SamlRequest::of(&browser.location);
    assert!(asked.xml.contains("ForceAuthn=\"true\""), "{}", asked.xml);
    browser.post(&asked.acs, &idp.answer(&asked, email, app.now())).await;
    browser
}

async fn a_trial_shows_what_would_happen_and_changes_nothing(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new("https://idp.example/"));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let members = app.key().header("x-tenant-id", &ada.tenant.to_string());
    let before = members.get("/account/tenant/user").await.expect(200).json();
    let state = app.key().get(&format!("/account/federation/connection/{connection}")).await.expect(200).json();
    tried(&app, &idp, &connection, "ada@acme.example").await.sees(200, "signs in as OWNER");
    let mut browser = tried(&app, &idp, &connection, "bob@acme.example").await;
    browser.sees(200, "joins as MEMBER");
    browser.sees(200, "Email: bob@acme.example");
    assert_eq!(members.get("/account/tenant/user").await.expect(200).json(), before);
    let after = app.key().get(&format!("/account/federation/connection/{connection}")).await.expect(200).json();
    assert_eq!(after, state);
    app.drain().await;
    assert!(told(&app, "login.succeeded").await.is_empty());
    // Nobody is signed in.
    let mut again = browser.clone();
    again.open(&authorize(&app, &[("federation_connection", &connection), ("prompt", "none")])).await;
    assert_eq!(again.answer("error").as_deref(), Some("login_required"));
    let off = json!({ "jitProvisioning": false });
    app.key().put(&format!("/account/tenant/{}", ada.tenant), off).await.expect(200);
    tried(&app, &idp, &connection, "bob@acme.example").await.sees(200, "Refused: You are not a member");
}

async fn a_trial_says_what_was_refused(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new("https://idp.example/"));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let stranger = IdentityProvider::new("https://idp.example/");
    tried(&app, &stranger, &connection, "ada@acme.example").await.sees(400, "Step: signature");
    app.drain().await;
    assert!(told(&app, "login.failed").await.is_empty());
}

async fn a_trial_that_was_canceled_at_the_provider_says_so(app: TestApp) {
    let provider = OpenIdProvider::start().await;
    let body = json!({
        "type": "oidc", "name": "Directory", "issuer": provider.issuer, "clientId": "corp", "clientSecret": "s",
    });
    let connection = app.key().post("/account/federation/connection", body).await.expect(201).text("/id");
    for (answer, cause) in [("&error=access_denied", "access_denied"), ("", "there is no code")] {
        let mut browser = app.browser();
        browser.open(&trial(&app, &connection).await).await;
        let asked = OpenIdRequest::of(&browser.location);
        let back = asked.get("redirect_uri").strip_prefix(HERE).expect("an address of the service").to_owned();
        browser.open(&format!("{back}?state={}{answer}", asked.get("state"))).await;
        browser.sees(400, "Connection test").sees(400, "Step: answer").sees(400, cause);
    }
    app.drain().await;
    assert!(told(&app, "login.failed").await.is_empty());
}

async fn a_trial_opens_nothing_else(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new("https://idp.example/"));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let sealed = trial(&app, &connection).await.split_once("?r=").expect("a request").1.to_owned();
    for page in ["/auth/login", "/auth/federation/social-one/login"] {
        let mut browser = app.browser();
        browser.open(&format!("{page}?r={sealed}")).await;
        browser.sees(400, "is not valid");
    }
    let other = idp.connect(&app, &[ada.tenant]).await;
    let mut browser = app.browser();
    browser.open(&format!("/auth/federation/saml/{other}/login?r={sealed}")).await;
    browser.sees(404, "");
}

async fn a_trial_needs_its_connection(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new("https://idp.example/"));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let path = format!("/account/federation/connection/{connection}/test");
    app.other_app().await.post(&path, json!({})).await.error(404, "NOT_FOUND");
}
