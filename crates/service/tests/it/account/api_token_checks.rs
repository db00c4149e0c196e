//! What a token allows: introspection, forgery, revocation, expiry, last use.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::AppId;
use serde_json::{Value, json};
use store::args;
use tenancy::api_tokens::SecretId;
use testkit::{
    Answer, EngineName, TestApp,
    api_tokens::{app_token, bearer_of, introspect, workspace_token},
    catalog::{role, role_path},
    members::workspace,
    on_both_engines,
};
use vault::{
    Place,
    jwt::{HmacKey, sign_hs256},
};

on_both_engines!(
    an_active_token_is_told_whole_and_anything_else_is_inactive,
    introspection_needs_a_token_to_look_at,
    introspection_is_a_hot_path,
    forged_tokens_are_refused_everywhere,
    a_revoked_token_is_refused_at_once_on_every_node,
    an_expired_token_is_refused_and_stays_listed,
    the_last_use_is_noted_once_a_minute,
    a_use_beside_a_revocation_does_not_bring_the_record_back,
    a_privilege_that_the_app_no_longer_defines_is_not_honoured,
    a_token_ends_with_what_is_taken_from_its_maker_and_with_nothing_else,
    the_tokens_of_a_deleted_app_are_gone,
    the_tokens_of_a_deleted_workspace_are_refused,
);

const INTROSPECT: &str = "/account/api-token/introspect";

/// Refused as a key, and inactive in exactly these words.
async fn assert_worthless(app: &TestApp, token: &str) {
    app.anon().header("x-api-key", token).get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    let answer = app.anon().post(INTROSPECT, json!({ "token": token })).await.expect(201);
    assert_eq!(answer.body(), r#"{"active":false}"#, "{token}");
}

async fn an_active_token_is_told_whole_and_anything_else_is_inactive(app: TestApp) {
    let tenant = workspace(&app).await;
    let scoped = workspace_token(&app, tenant, &["TENANT_READ", "TENANT_DELETE"]).await;
    assert_eq!(
        introspect(&app, &scoped.text("/token")).await,
        json!({ "active": true, "sub": scoped.at("/record/id"), "appId": app.app_id(), "tenantId": tenant,
                "type": "api", "privileges": ["TENANT_READ", "TENANT_DELETE"], "exp": null })
    );
    let body = json!({ "name": "x", "privileges": ["APP_READ"], "expireAt": "2999-01-01T00:00:00.500Z" });
    let made = app.key().post("/account/api-token/app", body).await.expect(201);
    let told = introspect(&app, &made.text("/token")).await;
    assert_eq!((&told["tenantId"], &told["exp"]), (&Value::Null, &json!(32_472_144_000_i64)));
    for junk in ["x", "a.b.c", "....", &app.key().header_sent("x-api-key"), &"a".repeat(20_000)] {
        assert_eq!(introspect(&app, junk).await, json!({ "active": false }));
    }
}

async fn introspection_needs_a_token_to_look_at(app: TestApp) {
    for body in [json!({}), json!({ "token": "" }), json!({ "token": 7 }), json!({ "token": null })] {
        app.anon().post(INTROSPECT, body).await.refuses(&["token"]);
    }
    app.anon().send(http::Method::POST, INTROSPECT, "token=x").await.error(415, "UNSUPPORTED_MEDIA_TYPE");
}

async fn introspection_is_a_hot_path(app: TestApp) {
    let token = app_token(&app, &["APP_READ"]).await.text("/token");
    let other = app_token(&app, &["APP_READ"]).await.text("/token");
    introspect(&app, &token).await;
    let db = app.service().core().db.clone();
    let before = db.counters();
    for _ in 0..10 {
        assert_eq!(introspect(&app, &token).await["active"], true);
    }
    let after = db.counters();
    let wanted = if app.site().engine() == EngineName::Sqlite { 0 } else { 10 };
    assert_eq!(after.reads - before.reads, wanted, "{before:?} {after:?}");
    assert_eq!((after.writes, after.commits, after.reruns), (before.writes, before.commits, before.reruns));
    // Nothing is asked about a token whose signature is wrong.
    let (head, _) = token.rsplit_once('.').expect("three parts");
    let (_, signature) = other.rsplit_once('.').expect("three parts");
    introspect(&app, &format!("{head}.{signature}")).await;
    assert_eq!(db.counters().reads, after.reads);
}

/// The app's newest secret, stolen.
async fn secret_of(app: &TestApp, id: AppId) -> (SecretId, HmacKey) {
    let core = app.service().core().clone();
    let row: (SecretId, String) = core
        .db
        .get_one("SELECT id, sealed FROM app_secrets WHERE app_id = $1 ORDER BY id DESC", &args![id])
        .await
        .expect("the store answers")
        .expect("every app has a secret");
    let place = Place { table: "app_secrets", column: "sealed", row: &row.0.to_string(), app: Some(id) };
    let opened = core.keyring.open(&place, &row.1).expect("it opens");
    (row.0, HmacKey::new(opened.expose()).expect("32 bytes"))
}

async fn forged_tokens_are_refused_everywhere(app: TestApp) {
    let made = app_token(&app, &["APP_READ"]).await;
    let token = made.text("/token");
    let (own, key) = secret_of(&app, app.app_id()).await;
    let (foreign, foreign_key) = secret_of(&app, app.other_app().await.app_id()).await;
    let other_app = app.other_app().await.app_id();
    let claims = |changes: Value| {
        let mut claims = json!({ "sub": made.at("/record/id"), "aid": app.app_id(), "tid": null, "type": "api",
                                 "privileges": ["APP_READ", "APP_DELETE"], "iat": 1 });
        for (name, value) in changes.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        claims
    };
    let sign = |key: &HmacKey, kid: SecretId, typ: &str, claims: Value| {
        sign_hs256(key, &kid.to_string(), typ, &claims).expect("it signs")
    };
    // The right secret signs what counts: this only proves that the forgeries below fail for their own reason.
    app.anon().header("x-api-key", &sign(&key, own, "JWT", claims(json!({})))).get("/account/app").await.expect(200);
    let plain = |header: Value, claims: Value| {
        let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.", part(header), part(claims))
    };
    let parts: Vec<&str> = token.split('.').collect();
    let more = BASE64_URL_SAFE_NO_PAD.encode(claims(json!({})).to_string());
    let forged = [
        sign(&foreign_key, foreign, "JWT", claims(json!({}))),
        sign(&foreign_key, foreign, "JWT", claims(json!({ "aid": other_app }))),
        sign(&foreign_key, own, "JWT", claims(json!({}))),
        sign(&key, foreign, "JWT", claims(json!({}))),
        sign(&key, SecretId::from_u128(7), "JWT", claims(json!({}))),
        sign(&key, own, "at+jwt", claims(json!({}))),
        sign(&key, own, "JWT", claims(json!({ "aid": other_app }))),
        sign(&key, own, "JWT", claims(json!({ "type": "session" }))),
        sign(&key, own, "JWT", claims(json!({ "sub": "apitoken_00000000000000000000000007" }))),
        sign(&key, own, "JWT", claims(json!({ "sub": app.app_id() }))),
        plain(json!({ "alg": "none", "typ": "JWT", "kid": own }), claims(json!({}))),
        plain(json!({ "alg": "HS256", "typ": "JWT", "kid": own }), claims(json!({}))),
        format!("{}.{more}.{}", parts[0], parts[2]),
        format!("{}.{}.{}", parts[0], parts[1], BASE64_URL_SAFE_NO_PAD.encode([0; 32])),
        format!("{token}A"),
        format!("{token}.{}", parts[2]),
    ];
    for token in &forged {
        assert_worthless(&app, token).await;
    }
    // What a genuine token claims to hold is not believed either.
    let greedy = app.anon().header("x-api-key", &sign(&key, own, "JWT", claims(json!({}))));
    greedy
        .post("/account/api-token/app", json!({ "name": "x", "privileges": ["APP_READ"] }))
        .await
        .error(403, "MISSING_PRIVILEGE");
}

async fn a_revoked_token_is_refused_at_once_on_every_node(app: TestApp) {
    let node = app.another_node().await;
    let made = app_token(&app, &["APP_READ"]).await;
    for node in [&app, &node] {
        bearer_of(node, &made).get("/account/app").await.expect(200);
        assert_eq!(introspect(node, &made.text("/token")).await["active"], true);
    }
    app.key().delete(&format!("/account/api-token/app/{}", made.text("/record/id"))).await.expect(200);
    for node in [&node, &app] {
        assert_worthless(node, &made.text("/token")).await;
    }
}

async fn an_expired_token_is_refused_and_stays_listed(app: TestApp) {
    let now = app.now();
    let expire_at = now.plus(Duration::from_secs(3600));
    let body = json!({ "name": "x", "privileges": ["APP_READ"], "expireAt": expire_at });
    let made = app.key().post("/account/api-token/app", body).await.expect(201);
    app.advance(Duration::from_secs(3500)).await;
    bearer_of(&app, &made).get("/account/app").await.expect(200);
    app.advance(Duration::from_secs(101)).await;
    assert_worthless(&app, &made.text("/token")).await;
    assert_eq!(app.key().get("/account/api-token/app").await.at("/0/id"), made.at("/record/id"));
}

async fn last_used(app: &TestApp) -> Answer {
    app.drain().await;
    app.key().get("/account/api-token/app").await.expect(200)
}

async fn the_last_use_is_noted_once_a_minute(app: TestApp) {
    let made = app_token(&app, &["APP_READ"]).await;
    let token = bearer_of(&app, &made);
    assert_eq!(last_used(&app).await.at("/0/lastUsedAt"), Value::Null);
    token.get("/account/app").await.expect(200);
    token.get("/account/app").await.expect(200);
    let first = last_used(&app).await.text("/0/lastUsedAt");
    app.advance(Duration::from_secs(50)).await;
    token.get("/account/app").await.expect(200);
    assert_eq!(last_used(&app).await.text("/0/lastUsedAt"), first);
    app.advance(Duration::from_secs(15)).await;
    introspect(&app, &made.text("/token")).await;
    assert!(last_used(&app).await.text("/0/lastUsedAt") > first);
    // What was noted is written when the service stops.
    app.advance(Duration::from_secs(100)).await;
    token.get("/account/app").await.expect(200);
}

async fn a_use_beside_a_revocation_does_not_bring_the_record_back(app: TestApp) {
    let made = app_token(&app, &["APP_READ"]).await;
    bearer_of(&app, &made).get("/account/app").await.expect(200);
    app.key().delete(&format!("/account/api-token/app/{}", made.text("/record/id"))).await.expect(200);
    assert_eq!(last_used(&app).await.json(), json!([]));
}

async fn a_privilege_that_the_app_no_longer_defines_is_not_honoured(app: TestApp) {
    let node = app.another_node().await;
    let mut ids = Vec::new();
    for key in ["EXPORT", "REPORTS"] {
        let made = app.key().post("/account/role/privilege", json!({ "key": key, "description": key })).await;
        ids.push(made.text("/id"));
    }
    let token = app_token(&app, &["EXPORT", "TENANT_READ", "REPORTS"]).await.text("/token");
    assert_eq!(introspect(&app, &token).await["privileges"], json!(["EXPORT", "TENANT_READ", "REPORTS"]));
    app.key().delete(&format!("/account/role/privilege/{}", ids[0])).await.expect(200);
    app.key().put(&format!("/account/role/privilege/{}", ids[1]), json!({ "key": "INSIGHTS" })).await.expect(200);
    for node in [&app, &node] {
        assert_eq!(introspect(node, &token).await["privileges"], json!(["TENANT_READ"]));
    }
}

async fn a_token_ends_with_what_is_taken_from_its_maker_and_with_nothing_else(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "ADMIN").await;
    let body = json!({ "name": "x", "privileges": ["TENANT_DELETE", "USER_WRITE"], "tenantUserId": bob["id"] });
    let token = acme.key().post("/account/api-token/workspace", body).await.expect(201).text("/token");
    let is_active = async || introspect(&app, &token).await["active"] == true;
    let become_one = async |role: &str| {
        acme.key().put(&acme.path_of(&bob), json!({ "role": role })).await.expect(200);
    };
    // More than the role allows was given by somebody who may.
    let admin = role(&app.key(), "ADMIN").await;
    app.key().put(&role_path(&admin), json!({ "description": "Admins", "privileges": most(&admin) })).await.expect(200);
    become_one("OWNER").await;
    assert!(is_active().await);
    become_one("MEMBER").await;
    assert!(!is_active().await);
}

/// The ids of a role's privileges, without one that the token lacks.
fn most(role: &Value) -> Vec<Value> {
    let all = role["privileges"].as_array().into_iter().flatten();
    all.filter(|one| one["key"] != "APP_READ").map(|one| one["id"].clone()).collect()
}

async fn the_tokens_of_a_deleted_app_are_gone(app: TestApp) {
    let node = app.another_node().await;
    let made = app_token(&app, &["APP_READ"]).await;
    bearer_of(&node, &made).get("/account/app").await.expect(200);
    app.operator().delete(&format!("/admin/apps/{}", app.app_id())).await.expect(200);
    for node in [&node, &app] {
        assert_worthless(node, &made.text("/token")).await;
    }
    app.drain().await;
    let db = app.service().core().db.clone();
    let left: Option<(i64,)> = db
        .get_one("SELECT (SELECT count(*) FROM api_tokens) + (SELECT count(*) FROM app_secrets)", &args![])
        .await
        .expect("the store answers");
    assert_eq!(left, Some((0,)));
}

async fn the_tokens_of_a_deleted_workspace_are_refused(app: TestApp) {
    let (tenant, other) = (workspace(&app).await, workspace(&app).await);
    let (made, kept) =
        (workspace_token(&app, tenant, &["TENANT_READ"]).await, workspace_token(&app, other, &["TENANT_READ"]).await);
    assert_eq!(introspect(&app, &made.text("/token")).await["active"], true);
    let (core, id) = (app.service().core().clone(), app.app_id());
    let tokens = core.tenancy.api_tokens.clone();
    let revoked = core.db.write(move |tx| tenancy::api_tokens::revoke_of_workspace(tx, &tokens, id, tenant));
    revoked.await.expect("it goes");
    assert_worthless(&app, &made.text("/token")).await;
    assert_eq!(introspect(&app, &kept.text("/token")).await["active"], true);
}
