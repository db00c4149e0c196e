//! Assertions that are encrypted for this installation, and the change of the key that opens them.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Browser, Cipher, IdentityProvider, SamlRequest, TestApp, hosted::authorize, on_both_engines};

on_both_engines!(
    an_encrypted_assertion_is_opened,
    an_unsigned_response_does_not_carry_cbc,
    a_new_key_takes_over_without_a_failed_login,
    many_who_ask_at_once_see_one_key,
);

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn metadata(app: &TestApp, connection: &str) -> String {
    app.anon().get(&format!("/auth/federation/saml/{connection}/metadata")).await.expect(200).body().to_owned()
}

fn encryption_keys(metadata: &str) -> usize {
    metadata.matches("use=\"encryption\"").count()
}

/// Signs in with an assertion for the n-th key of what the provider knows of the service.
async fn come(
    app: &TestApp,
    idp: &IdentityProvider,
    connection: &str,
    known: &str,
    key: usize,
    cipher: Cipher,
) -> Browser {
    let mut browser = app.browser();
    browser.open(&authorize(app, &[("federation_connection", connection)])).await;
    let asked = SamlRequest::of(&browser.location);
    let answer = idp.encrypted_answer(&asked, "ada@acme.example", app.now(), known, key, cipher);
    browser.post(&asked.acs, &answer).await;
    browser
}

async fn an_encrypted_assertion_is_opened(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new("https://idp.example/"));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let known = metadata(&app, &connection).await;
    assert_eq!(encryption_keys(&known), 1);
    let browser = come(&app, &idp, &connection, &known, 0, Cipher::Gcm).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
}

async fn an_unsigned_response_does_not_carry_cbc(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new("https://idp.example/"));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let known = metadata(&app, &connection).await;
    come(&app, &idp, &connection, &known, 0, Cipher::Cbc).await.sees(400, "could not be accepted");
}

async fn rotate(app: &TestApp) -> Value {
    app.operator().post("/admin/saml-keys/rotate", json!({})).await.expect(200).json()
}

async fn a_new_key_takes_over_without_a_failed_login(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new("https://idp.example/"));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let before = metadata(&app, &connection).await;
    let rotated = rotate(&app).await;
    assert_eq!(rotated["started"], true);
    assert_eq!(rotate(&app).await, json!({ "key": rotated["key"], "started": false }));
    let between = metadata(&app, &connection).await;
    assert_eq!(encryption_keys(&between), 2);
    for (known, key) in [(&before, 0), (&between, 0), (&between, 1)] {
        let browser = come(&app, &idp, &connection, known, key, Cipher::Gcm).await;
        assert!(browser.answer("code").is_some(), "{}", browser.location);
    }
    app.advance(31 * DAY).await;
    let after = metadata(&app, &connection).await;
    assert_eq!(encryption_keys(&after), 1);
    come(&app, &idp, &connection, &before, 0, Cipher::Gcm).await.sees(400, "could not be accepted");
    let browser = come(&app, &idp, &connection, &after, 0, Cipher::Gcm).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
    let listed = app.operator().get("/admin/saml-keys").await.expect(200).json();
    assert_eq!(listed, json!([rotated["key"]]));
}

async fn many_who_ask_at_once_see_one_key(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new("https://idp.example/"));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let seen = futures_util::future::join_all((0..4).map(|_| metadata(&app, &connection))).await;
    assert!(seen.iter().all(|one| *one == seen[0] && encryption_keys(one) == 1));
}
