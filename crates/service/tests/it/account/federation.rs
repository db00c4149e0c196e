//! `/account/federation/connection`.

use serde_json::{Value, json};
use testkit::{Caller, TestApp, on_both_engines};

on_both_engines!(
    a_connection_is_answered_whole_without_its_key,
    what_is_left_out_has_defaults,
    every_wrong_field_is_named,
    signed_requests_need_an_algorithm_and_a_key,
    a_partial_change_keeps_the_rest_and_the_rules,
    deleting_needs_its_privilege_and_an_unused_connection,
    another_apps_connections_are_not_found,
    the_key_is_sealed_at_rest_and_gone_with_the_app,
    metadata_fills_in_a_connection,
    a_domain_belongs_to_one_connection,
);

const CONNECTIONS: &str = "/account/federation/connection";

// Made for these tests with OpenSSL.
pub(crate) const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMIIBgzCCASmgAwIBAgIUNS5mKekgeQ1CZ5ywj6YtrasRCLYwCgYIKoZIzj0EAwIw\nFjEUMBIGA1UEAwwLaWRwLmV4YW1wbGUwIBcNMjYxMTE1MTE1MjM5WhgPMjEyNjEw\nMjIxMTUyMzlaMBYxFDASBgNVBAMMC2lkcC5leGFtcGxlMFkwEwYHKoZIzj0CAQYI\nKoZIzj0DAQcDQgAE4ULYB/r7OjUSYH8dmjczearH9gkdVbLaxjlrVxo404BqYbPw\noH6FkX61DzUif0SaIr6jNynD7k+OYfuDdwJENKNTMFEwHQYDVR0OBBYEFMfVGmrA\nMVSBYcWPz1zVZ8ovCwxUMB8GA1UdIwQYMBaAFMfVGmrAMVSBYcWPz1zVZ8ovCwxU\nMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgCWHdQwUjsi+CAvf5\nHZReZLp+ItycQrsNKCYpm+vjXrgCIQCbuAkXd4gqcshsDZBMbl/fl2WUGa9FrN6A\ntNOxtpp6GA==\n-----END CERTIFICATE-----\n";
pub(crate) const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgwSVbZWaOd5bpyEOG\nnx2jyxdAwic0cm4gvCKM7Z4QN3ChRANCAAThQtgH+vs6NRJgfx2aNzN5qsf2CR1V\nstrGOWtXGjjTgGphs/CgfoWRfrUPNSJ/RJoivqM3KcPuT45h+4N3AkQ0\n-----END PRIVATE KEY-----\n";

fn minimal() -> Value {
    json!({ "name": "Acme", "loginUrl": "https://idp.example/sso", "certificate": CERTIFICATE })
}

fn signing() -> Value {
    let mut body = minimal();
    body["signedRequest"] = true.into();
    body["signedRequestAlgorithm"] = "sha512".into();
    body["privateKey"] = KEY.into();
    body
}

fn path(connection: &Value) -> String {
    format!("{CONNECTIONS}/{}", connection["id"].as_str().expect("a connection has an id"))
}

async fn new(key: &Caller, body: Value) -> Value {
    key.post(CONNECTIONS, body).await.expect(201).json()
}

async fn a_connection_is_answered_whole_without_its_key(app: TestApp) {
    let key = app.key();
    let mut body = signing();
    body["clientId"] = "acme".into();
    body["requestMethod"] = "POST".into();
    let made = key.post(CONNECTIONS, body).await.expect(201);
    assert!(!made.body().contains("PRIVATE"), "{made:?}");
    let mut shown = made.json();
    assert_eq!(shown["certificate"].take(), CERTIFICATE.trim());
    for address in ["acsUrl", "metadataUrl"] {
        shown[address].take();
    }
    testkit::assert_text!(testkit::redacted(&shown), @r#"
    {
      "acsUrl": null,
      "certificate": null,
      "certificates": [
        {
          "subject": "CN=idp.example",
          "validFrom": "[time]",
          "validUntil": "[time]"
        }
      ],
      "clientId": "acme",
      "createdAt": "[time]",
      "domains": [],
      "entityId": "acme",
      "id": "[connection id]",
      "idpEntityId": null,
      "lastFailure": null,
      "lastSuccessAt": null,
      "loginUrl": "https://idp.example/sso",
      "metadataUrl": null,
      "name": "Acme",
      "requestMethod": "POST",
      "signedRequest": true,
      "signedRequestAlgorithm": "sha512",
      "trustMfa": true,
      "type": "saml"
    }
    "#);
    let details = key.get(&path(&made.json())).await.expect(200);
    assert_eq!(details.json(), made.json());
    assert_eq!(key.get(CONNECTIONS).await.expect(200).json(), json!([made.json()]));
    assert_eq!(key.put(&path(&made.json()), json!({})).await.expect(200).json(), made.json());
    let base = format!("{}/auth/federation/saml/{}", testkit::HERE, made.text("/id"));
    assert_eq!(details.text("/acsUrl"), format!("{base}/acs"));
    assert_eq!(
        (details.text("/metadataUrl"), details.text("/entityId").as_str()),
        (format!("{base}/metadata"), "acme")
    );
    assert_eq!(details.text("/certificates/0/subject"), "CN=idp.example");
    assert_eq!((details.at("/lastSuccessAt"), details.at("/lastFailure")), (Value::Null, Value::Null));
    let second = new(&key, minimal()).await;
    assert_eq!(key.get(CONNECTIONS).await.expect(200).json(), json!([second, made.json()]));
    assert_eq!(key.get(&format!("{CONNECTIONS}?limit=1&offset=1")).await.expect(200).json(), json!([made.json()]));
}

async fn what_is_left_out_has_defaults(app: TestApp) {
    let made = new(&app.key(), minimal()).await;
    for (member, value) in [("type", json!("saml")), ("requestMethod", json!("GET")), ("signedRequest", json!(false))] {
        assert_eq!(made[member], value);
    }
    assert_eq!((&made["clientId"], &made["signedRequestAlgorithm"]), (&Value::Null, &Value::Null));
}

async fn every_wrong_field_is_named(app: TestApp) {
    let key = app.key();
    let with = |member: &str, value: Value| {
        let mut body = minimal();
        body[member] = value;
        body
    };
    for (body, field) in [
        (with("name", json!(" ")), "name"),
        (with("loginUrl", json!("idp.example")), "loginUrl"),
        (with("loginUrl", json!("ftp://idp.example")), "loginUrl"),
        (with("certificate", json!("MIIB")), "certificate"),
        (with("certificate", json!(KEY)), "certificate"),
        (with("type", json!("oauth")), "type"),
        (with("requestMethod", json!("PUT")), "requestMethod"),
        (with("signedRequestAlgorithm", json!("md5")), "signedRequestAlgorithm"),
        (with("privateKey", json!(CERTIFICATE)), "privateKey"),
        (with("signedRequestPrivateKey", json!("x")), "signedRequestPrivateKey"),
        (with("clientId", json!("")), "clientId"),
    ] {
        key.post(CONNECTIONS, body).await.refuses(&[field]);
    }
    key.post(CONNECTIONS, json!({})).await.refuses(&["name", "loginUrl", "certificate"]);
    key.post(CONNECTIONS, json!({ "name": "Acme" })).await.refuses(&["loginUrl", "certificate"]);
    assert_eq!(key.get(CONNECTIONS).await.json(), json!([]));
}

async fn signed_requests_need_an_algorithm_and_a_key(app: TestApp) {
    let key = app.key();
    let mut body = minimal();
    body["signedRequest"] = true.into();
    key.post(CONNECTIONS, body.clone()).await.refuses(&["signedRequestAlgorithm", "privateKey"]);
    body["signedRequestAlgorithm"] = "sha256".into();
    key.post(CONNECTIONS, body.clone()).await.refuses(&["privateKey"]);
    body["signedRequestPrivateKey"] = KEY.into();
    key.post(CONNECTIONS, body).await.expect(201);
}

async fn a_partial_change_keeps_the_rest_and_the_rules(app: TestApp) {
    let key = app.key();
    let plain = new(&key, minimal()).await;
    key.put(&path(&plain), json!({ "signedRequest": true })).await.refuses(&["signedRequestAlgorithm", "privateKey"]);
    let change =
        json!({ "signedRequest": true, "signedRequestAlgorithm": "sha256", "privateKey": KEY, "createdAt": 1 });
    let signed = key.put(&path(&plain), change).await.expect(200).json();
    let mut expected = plain.clone();
    expected["signedRequest"] = true.into();
    expected["signedRequestAlgorithm"] = "sha256".into();
    assert_eq!(signed, expected);
    for (change, field) in [
        (json!({ "privateKey": null }), "privateKey"),
        (json!({ "signedRequestAlgorithm": null }), "signedRequestAlgorithm"),
        (json!({ "name": null }), "name"),
        (json!({ "certificate": "x" }), "certificate"),
        (json!({ "loginUrl": "x" }), "loginUrl"),
    ] {
        key.put(&path(&plain), change).await.refuses(&[field]);
    }
    assert_eq!(key.get(CONNECTIONS).await.json(), json!([expected]));
    let off = json!({ "signedRequest": false, "privateKey": null, "name": "Acme 2", "clientId": "acme" });
    let changed = key.put(&path(&plain), off).await.expect(200);
    assert_eq!((changed.text("/name").as_str(), changed.text("/clientId").as_str()), ("Acme 2", "acme"));
    assert_eq!(key.put(&path(&plain), json!({ "clientId": null })).await.expect(200).at("/clientId"), Value::Null);
}

async fn deleting_needs_its_privilege_and_an_unused_connection(app: TestApp) {
    let key = app.key();
    let connection = new(&key, minimal()).await;
    key.delete(&path(&connection)).await.error(403, "MISSING_PRIVILEGE");
    let tenant = format!("/account/tenant/{}", app.workspace("acme").await.id);
    key.put(&tenant, json!({ "federationConnection": connection["id"] })).await.expect(200);
    let deleter = app.key_with(&["APP_DELETE"]).await;
    deleter.delete(&path(&connection)).await.error(409, "CONNECTION_IN_USE");
    key.put(&tenant, json!({ "federationConnection": null })).await.expect(200);
    assert_eq!(deleter.delete(&path(&connection)).await.expect(200).json(), json!({ "success": true }));
    key.get(&path(&connection)).await.error(404, "NOT_FOUND");
    deleter.delete(&path(&connection)).await.error(404, "NOT_FOUND");
    key.put(&tenant, json!({ "federationConnection": connection["id"] })).await.refuses(&["federationConnection"]);
}

async fn another_apps_connections_are_not_found(app: TestApp) {
    let other = app.other_app().await;
    let (key, foreign) = (app.key(), new(&other, minimal()).await);
    key.get(&path(&foreign)).await.error(404, "NOT_FOUND");
    key.put(&path(&foreign), json!({ "name": "Mine" })).await.error(404, "NOT_FOUND");
    app.key_with(&["APP_DELETE"]).await.delete(&path(&foreign)).await.error(404, "NOT_FOUND");
    assert_eq!(other.get(CONNECTIONS).await.expect(200).json(), json!([foreign]));
}

async fn the_key_is_sealed_at_rest_and_gone_with_the_app(app: TestApp) {
    let other = app.other_app().await;
    new(&other, signing()).await;
    let core = app.service().core().tenancy.clone();
    let stored = async || {
        let id = other.app_id();
        let sql = "SELECT sealed_private_key FROM federation_connections WHERE app_id = $1";
        core.db.get_one::<(Option<String>,)>(sql, &store::args![id]).await.expect("can be read")
    };
    let sealed = stored().await.and_then(|(sealed,)| sealed).expect("a key is stored");
    assert!(sealed.starts_with("s1.") && !sealed.contains("PRIVATE"), "{sealed}");
    let id = other.app_id();
    let connections =
        core.db.read(move |tx| tenancy::federation::list(tx, id, kernel::Page::ALL)).await.expect("can be read");
    let opened = connections[0].private_key(&core.keyring, id).expect("can be opened").expect("there is one");
    assert_eq!(opened.expose(), KEY.trim().as_bytes());
    app.operator().delete(&format!("/admin/apps/{id}")).await.expect(200);
    app.drain().await;
    assert_eq!(stored().await, None);
}

async fn metadata_fills_in_a_connection(app: TestApp) {
    const READ: &str = "/account/federation/metadata";
    let inner = CERTIFICATE.lines().filter(|line| !line.starts_with("---")).collect::<String>();
    let xml = format!(
        "<!-- theirs --><md:EntityDescriptor xmlns:md=\"urn:oasis:names:tc:SAML:2.0:metadata\" \
         xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\" entityID=\"https://idp.example/\"><md:IDPSSODescriptor \
         protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\"><md:KeyDescriptor use=\"signing\"><ds:KeyInfo>\
         <ds:X509Data><ds:X509Certificate>{inner}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>\
         <md:SingleSignOnService Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect\" \
         Location=\"https://idp.example/sso\"/></md:IDPSSODescriptor></md:EntityDescriptor>"
    );
    let read = app.key().post(READ, json!({ "metadataXml": xml })).await.expect(200).json();
    let known = (read["loginUrl"].as_str(), read["requestMethod"].as_str(), read["idpEntityId"].as_str());
    assert_eq!(known, (Some("https://idp.example/sso"), Some("GET"), Some("https://idp.example/")));
    let mut body = read.clone();
    body["name"] = "Acme".into();
    new(&app.key(), body).await;
    for wrong in [
        json!({}),
        json!({ "metadataXml": xml, "metadataUrl": "https://idp.example" }),
        json!({ "metadataXml": "<a/>" }),
    ] {
        app.key().post(READ, wrong).await.refuses(&["metadataXml"]);
    }
    let server = testkit::Receiver::start().await;
    app.key().post(READ, json!({ "metadataUrl": server.url("/metadata") })).await.refuses(&["metadataUrl"]);
    server.answer_next(&[500]);
    app.key().post(READ, json!({ "metadataUrl": server.url("/metadata") })).await.error(502, "PROVIDER_FAILED");
    app.key().post(READ, json!({ "metadataUrl": "http://10.0.0.1/" })).await.refuses(&["metadataUrl"]);
}

async fn a_domain_belongs_to_one_connection(app: TestApp) {
    let key = app.key();
    let with = |domains: Value| {
        let mut body = minimal();
        body["domains"] = domains;
        body
    };
    let made = new(&key, with(json!(["Acme.example", "acme.example", "b.example"]))).await;
    assert_eq!(made["domains"], json!(["acme.example", "b.example"]));
    key.post(CONNECTIONS, with(json!(["b.example"]))).await.error(409, "CONFLICT");
    key.post(CONNECTIONS, with(json!(["-a.example", "a b.example"]))).await.refuses(&["domains[0]", "domains[1]"]);
    key.put(&path(&made), json!({ "domains": ["acme.example"] })).await.expect(200);
    let second = new(&key, with(json!(["b.example"]))).await;
    key.put(&path(&made), json!({ "domains": ["b.example"] })).await.error(409, "CONFLICT");
    app.key_with(&["APP_READ", "APP_WRITE", "APP_DELETE"]).await.delete(&path(&second)).await.expect(200);
    key.put(&path(&made), json!({ "domains": ["b.example"] })).await.expect(200);
    assert_eq!(key.put(&path(&made), json!({ "domains": null })).await.expect(200).at("/domains"), json!([]));
    new(&app.other_app().await, with(json!(["b.example"]))).await;
}
