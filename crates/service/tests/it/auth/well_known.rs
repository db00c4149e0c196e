//! `/auth/.well-known/…`: what others verify tokens with.

use serde_json::{Value, json};
use testkit::{TestApp, on_both_engines, tokens::part};

on_both_engines!(
    the_discovery_document_leads_to_everything,
    the_key_set_is_cached_and_open_to_all,
    every_token_has_its_key
);

async fn the_discovery_document_leads_to_everything(app: TestApp) {
    let anywhere = app.anon().header("origin", "https://stranger.example");
    let document = anywhere.get("/auth/.well-known/openid-configuration").await.expect(200);
    assert_eq!(document.header("access-control-allow-origin"), Some("*"));
    let issuer = "http://tenantry.test/auth";
    for (member, value) in [
        ("issuer", json!(issuer)),
        ("authorization_endpoint", json!(format!("{issuer}/authorize"))),
        ("token_endpoint", json!(format!("{issuer}/token"))),
        ("userinfo_endpoint", json!(format!("{issuer}/userinfo"))),
        ("revocation_endpoint", json!(format!("{issuer}/revoke"))),
        ("introspection_endpoint", json!(format!("{issuer}/introspect"))),
        ("grant_types_supported", json!(["authorization_code", "refresh_token"])),
        ("response_modes_supported", json!(["query"])),
        ("subject_types_supported", json!(["public"])),
        ("jwks_uri", json!(format!("{issuer}/.well-known/jwks.json"))),
        ("response_types_supported", json!(["code"])),
        ("id_token_signing_alg_values_supported", json!(["PS256"])),
        ("token_endpoint_auth_methods_supported", json!(["none"])),
        ("code_challenge_methods_supported", json!(["S256"])),
        ("authorization_response_iss_parameter_supported", json!(true)),
        ("scopes_supported", json!(["openid", "profile", "email", "address", "phone", "onboarding", "tenant"])),
    ] {
        assert_eq!(document.at(&format!("/{member}")), value, "{member}");
    }
    for claim in ["sub", "name", "tenant_logo", "tenant_onboarded", "multi_tenant", "auth_time", "nonce"] {
        assert!(document.at("/claims_supported").as_array().expect("a list").contains(&json!(claim)), "{claim}");
    }
    let elsewhere = app.anon().get("/.well-known/openid-configuration").await.expect(307);
    assert_eq!(elsewhere.header("location"), Some("http://tenantry.test/auth/.well-known/openid-configuration"));
}

async fn the_key_set_is_cached_and_open_to_all(app: TestApp) {
    let path = "/auth/.well-known/jwks.json";
    let anywhere = app.anon().header("origin", "https://stranger.example");
    let keys = anywhere.get(path).await.expect(200);
    assert_eq!(keys.header("cache-control"), Some("public, max-age=300"));
    assert_eq!(keys.header("access-control-allow-origin"), Some("*"));
    let key = keys.at("/keys/0");
    assert_eq!((&key["kty"], &key["use"], &key["alg"]), (&json!("RSA"), &json!("sig"), &json!("PS256")));
    let etag = keys.header("etag").expect("an ETag").to_owned();
    for known in [etag.clone(), format!("W/{etag}"), format!("\"other\", {etag}")] {
        let answer = app.anon().header("if-none-match", &known).get(path).await.expect(304);
        assert!(answer.bytes().is_empty());
        assert_eq!(answer.header("etag"), Some(etag.as_str()));
    }
    app.anon().header("if-none-match", "\"other\"").get(path).await.expect(200);
}

async fn every_token_has_its_key(app: TestApp) {
    app.operator().post("/admin/signing-keys/rotate", json!({})).await.expect(200);
    let keys = app.anon().get("/auth/.well-known/jwks.json").await.expect(200).at("/keys");
    let kids: Vec<&Value> = keys.as_array().expect("keys").iter().map(|key| &key["kid"]).collect();
    assert_eq!(kids.len(), 2, "the next key is published before it signs");
    let tokens = app.owner("ada@example.com").await.sign_in().await;
    for token in [tokens.access, tokens.id, tokens.refresh] {
        assert!(kids.contains(&&part(&token, 0)["kid"]));
    }
}
