//! Keys, certificates and secrets that are replaced while people sign in: nobody notices.

use std::{fs, process::Command, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::json;
use tempfile::TempDir;
use testkit::{
    Browser, IdentityProvider, OnPort, SamlRequest, TestApp, hosted::authorize, on_both_engines, tokens::exchange,
};

use super::federation_oidc::{REFUSED, World, callback, connect};

on_both_engines!(
    a_providers_certificate_is_rolled_over_without_a_failed_login,
    our_request_key_is_rolled_over_without_a_refused_request,
    this_installations_signing_key_is_rolled_over_under_a_relying_app,
    a_clients_secret_is_changed_during_a_login,
);

const ISSUER: &str = "https://idp.example/";

async fn change(app: &TestApp, connection: &str, body: serde_json::Value) {
    app.key().put(&format!("/account/federation/connection/{connection}"), body).await.expect(200);
}

/// A browser that was sent to the identity provider, with where it was sent.
async fn begun(app: &TestApp, connection: &str) -> Browser {
    let mut browser = app.browser();
    browser.open(&authorize(app, &[("federation_connection", connection)])).await;
    browser
}

async fn a_providers_certificate_is_rolled_over_without_a_failed_login(app: TestApp) {
    let ada = app.owner("ada@acme.example").await;
    let (old, new) = (IdentityProvider::new(ISSUER), IdentityProvider::new(ISSUER));
    let connection = old.connect(&app, &[ada.tenant]).await;
    let answer = async |idp: &IdentityProvider, mut browser: Browser| {
        let asked = SamlRequest::of(&browser.location);
        browser.post(&asked.acs, &idp.answer(&asked, &ada.email, app.now())).await;
        browser
    };
    let come = async |idp: &IdentityProvider| answer(idp, begun(&app, &connection).await).await;
    assert!(come(&old).await.answer("code").is_some());
    come(&new).await.sees(400, "could not be accepted");
    // Both side by side, in whichever order; whoever is under way meanwhile comes in too.
    let under_way = begun(&app, &connection).await;
    change(&app, &connection, json!({ "certificate": format!("{}{}", old.certificate, new.certificate) })).await;
    assert!(answer(&old, under_way).await.answer("code").is_some());
    assert!(come(&new).await.answer("code").is_some() && come(&old).await.answer("code").is_some());
    let under_way = begun(&app, &connection).await;
    change(&app, &connection, json!({ "certificate": new.certificate })).await;
    assert!(answer(&new, under_way).await.answer("code").is_some());
    come(&old).await.sees(400, "could not be accepted");
}

fn openssl(arguments: &[&str]) -> bool {
    Command::new("openssl").args(arguments).output().expect("openssl runs: see scripts/prepare").status.success()
}

/// A new RSA key in PEM.
fn new_key(folder: &TempDir) -> String {
    let path = folder.path().join("key.pem").to_string_lossy().into_owned();
    assert!(openssl(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", &path]));
    fs::read_to_string(path).expect("a key")
}

/// Whether a provider that once read this metadata verifies the query of a redirect: with any of its signing certificates.
fn verifies(folder: &TempDir, metadata: &str, location: &str) -> bool {
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let query = location.split_once('?').expect("a query").1;
    let (signed, signature) = query.split_once("&Signature=").expect("a signature");
    let pairs: Vec<(String, String)> =
        url::form_urlencoded::parse(format!("s={signature}").as_bytes()).into_owned().collect();
    fs::write(file("query"), signed).expect("written");
    fs::write(file("signature"), BASE64_STANDARD.decode(&pairs[0].1).expect("base64")).expect("written");
    metadata.split("use=\"signing\"").skip(1).any(|described| {
        let base64 = described.split("<ds:X509Certificate>").nth(1).expect("a certificate").split('<').next();
        let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", base64.expect("its end"));
        fs::write(file("certificate.pem"), pem).expect("written");
        let read = ["x509", "-in", &file("certificate.pem"), "-pubkey", "-noout", "-out", &file("public.pem")];
        assert!(openssl(&read), "the certificate is one");
        openssl(&["dgst", "-sha256", "-verify", &file("public.pem"), "-signature", &file("signature"), &file("query")])
    })
}

async fn our_request_key_is_rolled_over_without_a_refused_request(app: TestApp) {
    let (ada, folder) = (app.owner("ada@acme.example").await, tempfile::tempdir().expect("a folder"));
    let (old, new) = (new_key(&folder), new_key(&folder));
    let connection = IdentityProvider::new(ISSUER).connect(&app, &[ada.tenant]).await;
    let metadata = async || {
        let path = format!("/auth/federation/saml/{connection}/metadata");
        app.anon().get(&path).await.expect(200).body().to_owned()
    };
    let sent = async || begun(&app, &connection).await.location;
    let signing = json!({ "signedRequest": true, "signedRequestAlgorithm": "sha256", "privateKey": old });
    change(&app, &connection, signing).await;
    let before = metadata().await;
    assert!(verifies(&folder, &before, &sent().await));
    // The next key is published before it signs, so that providers have the time to read it.
    change(&app, &connection, json!({ "privateKey": format!("{old}{new}") })).await;
    let between = metadata().await;
    assert_eq!(between.matches("use=\"signing\"").count(), 2);
    let request = sent().await;
    assert!(verifies(&folder, &before, &request) && verifies(&folder, &between, &request));
    change(&app, &connection, json!({ "privateKey": format!("{new}{old}") })).await;
    let request = sent().await;
    assert!(verifies(&folder, &between, &request) && !verifies(&folder, &before, &request), "the new key signs");
    change(&app, &connection, json!({ "privateKey": new })).await;
    assert!(verifies(&folder, &between, &sent().await));
    let after = metadata().await;
    assert_eq!(after.matches("use=\"signing\"").count(), 1);
    assert!(verifies(&folder, &after, &sent().await));
}

/// Two apps of one installation: the people of one sign in to the other, which verifies what the installation's key signed.
async fn this_installations_signing_key_is_rolled_over_under_a_relying_app(server: OnPort) {
    let (app, base_url) = (&server.app, &server.base_url);
    let (directory, ada) = (app.other_app().await, app.owner("ada@acme.example").await);
    let body = json!({
        "type": "oidc", "name": "Directory", "issuer": format!("{base_url}/auth"), "clientId": directory.app_id(),
        "clientSecret": "not asked for",
    });
    let connection = app.key().post("/account/federation/connection", body).await.expect(201).text("/id");
    let redirect = format!("{base_url}/auth/federation/oidc/{connection}/callback");
    directory.put("/account/app", json!({ "redirectUris": [redirect] })).await.expect(200);
    let owner = json!({ "email": ada.email, "firstName": "Ada", "lastName": "Lovelace" });
    directory.post("/account/tenant", json!({ "owner": owner, "name": "Directory" })).await.expect(200);
    app.drain().await;
    let password = json!({ "token": app.mailed_token(&ada.email), "password": "amber kettle forest" });
    app.anon().put("/auth/auth/password", password).await.expect(200);
    let used = json!({ "federationConnection": connection });
    app.key().put(&format!("/account/tenant/{}", ada.tenant), used).await.expect(200);
    let come = async || {
        let mut browser = app.browser();
        browser.open(&authorize(app, &[("federation_connection", &connection), ("prompt", "login")])).await;
        let there = browser.location.replace(base_url.as_str(), "");
        browser.open(&there).await.submit("/auth/login", &[("username", &ada.email)]).await;
        browser.submit("/auth/login/password", &[("password", "amber kettle forest")]).await;
        let back = browser.location.replace(base_url.as_str(), "");
        assert!(back.starts_with("/auth/federation/oidc/"), "{back} {}", browser.html());
        browser.open(&back).await;
        let code = browser.answer("code").unwrap_or_else(|| panic!("{} {}", browser.location, browser.html()));
        exchange(app, &code, None).await.expect(200);
    };
    let signer = async || app.operator().get("/admin/signing-keys").await.expect(200).json();
    come().await;
    for _ in 0..2 {
        let next = app.operator().post("/admin/signing-keys/rotate", json!({})).await.expect(200);
        come().await;
        let from: kernel::Timestamp = next.text("/key/activeFrom").parse().expect("a time");
        let grace = Duration::from_micros(u64::try_from(from.as_micros() - app.now().as_micros()).expect("later"));
        // The last moment of the old key, and the first of the new one.
        app.advance(grace.saturating_sub(Duration::from_secs(5))).await;
        come().await;
        app.advance(Duration::from_secs(10)).await;
        come().await;
        assert!(signer().await.as_array().is_some_and(|keys| keys.len() >= 2), "the old one is still published");
    }
}

async fn a_clients_secret_is_changed_during_a_login(world: World) {
    let ada = world.app.owner("ada@acme.example").await;
    let connection = connect(&world, &[ada.tenant]).await;
    let path = format!("/account/federation/connection/{connection}");
    let ways = [&[("federation_connection", connection.as_str())][..], &[("force_federation", "social-one")]];
    for (turn, secret) in ["first: %&+", "second"].into_iter().enumerate() {
        for way in ways {
            // The provider takes the new one only; the login was begun while the service knew the former.
            world.one.takes_secret("what was before");
            let (mut browser, asked) = world.asked(way).await;
            let answer = world.one.answer(&asked, world.claims(&asked, &ada.email));
            let secret = format!("{secret} {turn}");
            world.app.key().put(&path, json!({ "clientSecret": secret })).await.expect(200);
            let social = json!({ "socialOneClientSecret": secret });
            world.app.key().put("/account/app/credentials", social).await.expect(200);
            world.one.takes_secret(&secret);
            browser.open(&callback(&asked, &answer)).await;
            assert!(browser.answer("code").is_some(), "{way:?}: {} {}", browser.location, browser.html());
        }
    }
    world.one.takes_secret("another");
    let (mut browser, asked) = world.asked(ways[0]).await;
    let answer = world.one.answer(&asked, world.claims(&asked, &ada.email));
    browser.open(&callback(&asked, &answer)).await.sees(400, REFUSED);
    assert_eq!(world.failed().await, ["token"]);
}
