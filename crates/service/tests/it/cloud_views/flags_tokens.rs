//! Access tokens in an evaluation's context: what the service knows wins over what was sent.

use std::time::Duration;

use kernel::{MemberId, TenantId, UserId};
use serde_json::{Value, json};
use store::args;
use testkit::{TestApp, flags::flag, on_both_engines};

on_both_engines!(
    what_the_service_knows_wins_over_what_was_sent,
    a_new_plan_or_role_counts_at_once,
    a_token_that_is_not_valid_is_ignored_and_said_so,
    a_token_may_be_a_little_old,
    a_login_that_was_ended_is_nobody,
    what_was_proven_before_all_sessions_ended_counts_nowhere,
    every_way_of_asking_takes_a_token,
    billing_is_read_as_it_is_now,
);

/// A signed-in member with a workspace of their own.
struct Member {
    user: UserId,
    tenant: TenantId,
}

impl Member {
    async fn of(app: &TestApp) -> Self {
        let (id, db) = (app.app_id(), app.service().core().db.clone());
        db.write(move |tx| {
            let (user, tenant, now) = (tx.new_id(), tx.new_id(), tx.now());
            let (member, role): (MemberId, MemberId) = (tx.new_id(), tx.new_id());
            tx.exec(
                "INSERT INTO users (id, app_id, email, email_key, first_name, last_name, created_at) \
                 VALUES ($1, $2, 'ada@example.com', 'ada@example.com', 'Ada', 'Lovelace', $3)",
                &args![user, id, now],
            )?;
            tx.exec(
                "INSERT INTO tenants (id, app_id, name, locale, mfa, onboarded, metadata, jit_provisioning, signup_email, \
                 signup_first_name, signup_last_name, plan_key, should_select_plan, should_setup_payments, \
                 payments_enabled, created_at) VALUES ($1, $2, 'Engines', 'fr', FALSE, TRUE, '{\"tier\":{\"level\":3}}', \
                 FALSE, '', '', '', 'pro', FALSE, FALSE, FALSE, $3)",
                &args![tenant, id, now],
            )?;
            tx.exec(
                "INSERT INTO roles (id, app_id, key, name, description, is_default, created_at) \
                 VALUES ($1, $2, 'FLAG_TESTER', 'Tester', '', FALSE, $3)",
                &args![role, id, now],
            )?;
            tx.exec(
                "INSERT INTO members (id, app_id, tenant_id, user_id, role_id, enabled, onboarded, \
                 consents_to_privacy_policy, teams, created_at) VALUES ($1, $2, $3, $4, $5, TRUE, FALSE, FALSE, \
                 '[\"red\",\"blue\"]', $6)",
                &args![member, id, tenant, user, role, now],
            )?;
            Ok(Self { user, tenant })
        })
        .await
        .expect("the member can be stored")
    }

    fn token(&self, app: &TestApp, lasts: i64) -> String {
        self.token_of_login(app, lasts, &app.begin_login(self.user))
    }

    fn token_of_login(&self, app: &TestApp, lasts: i64, login: &str) -> String {
        let service = app.service();
        let now = service.core().db.clock().now().as_seconds();
        let claims = json!({ "iss": &*service.core().tenancy.issuer, "sub": self.user, "aid": app.app_id(),
                             "tid": self.tenant, "scope": "", "iat": now, "exp": now + lasts,
                             "sid": login });
        service.core().signing_keys.sign("at+jwt", &claims).expect("a key signs")
    }
}

fn evaluate(app: &TestApp, key: &str) -> String {
    format!("/cloud-views/flags/evaluate/{}/{key}", app.app_id())
}

async fn flag_when(app: &TestApp, key: &str, attribute: &str, operator: &str, values: Value) {
    let conditions = json!([{ "attribute": attribute, "operator": operator, "values": values }]);
    let rule = json!({ "branches": [{ "conditions": conditions, "returnValue": true }], "otherwiseValue": false });
    flag(app, json!({ "key": key, "state": "on-with-rule", "rule": rule })).await;
}

async fn what_the_service_knows_wins_over_what_was_sent(app: TestApp) {
    let member = Member::of(&app).await;
    let token = member.token(&app, 3600);
    for (attribute, operator, values) in [
        ("user.id", "eq", json!([member.user])),
        ("user.email", "ends_with", json!(["@example.com"])),
        ("user.name", "eq", json!(["Ada Lovelace"])),
        ("user.role", "eq", json!(["FLAG_TESTER"])),
        ("user.teams", "contains", json!(["blue"])),
        ("user.createdAt", "after", json!(["2020-01-01T00:00:00Z"])),
        ("tenant.id", "eq", json!([member.tenant])),
        ("tenant.plan", "eq", json!(["pro"])),
        ("tenant.name", "eq", json!(["Engines"])),
        ("tenant.locale", "eq", json!(["fr"])),
        ("tenant.trial", "eq", json!([false])),
        ("tenant.metadata.tier.level", "gte", json!([3])),
        ("tenant.metadata.beta", "not_exists", json!([])),
        ("tenant.appMetadata.tier", "not_exists", json!([])),
        ("device.key", "eq", json!(["d"])),
    ] {
        flag_when(&app, attribute, attribute, operator, values).await;
        let sent = json!({ "user": { "id": "x", "role": "OWNER", "email": "x@x.io" }, "device": { "key": "d" },
                           "tenant": { "plan": "max", "metadata": { "beta": true }, "metadata.beta": true } });
        for body in [
            json!({ "context": sent, "accessToken": token }),
            json!({ "accessToken": token, "user": sent["user"], "tenant": sent["tenant"], "device": sent["device"] }),
        ] {
            let answer = app.anon().post(&evaluate(&app, attribute), body).await.expect(200);
            assert_eq!(answer.json(), json!({ "value": true, "enabled": true, "variantIndex": 0 }), "{attribute}");
        }
    }
}

async fn a_new_plan_or_role_counts_at_once(app: TestApp) {
    let member = Member::of(&app).await;
    let body = json!({ "accessToken": member.token(&app, 3600) });
    flag_when(&app, "free", "tenant.plan", "eq", json!(["free"])).await;
    flag_when(&app, "none", "tenant.plan", "not_exists", json!([])).await;
    let change = async |plan: Option<&'static str>| {
        let tenant = member.tenant;
        let set = app
            .service()
            .core()
            .db
            .write(move |tx| tx.exec("UPDATE tenants SET plan_key = $2 WHERE id = $1", &args![tenant, plan]));
        set.await.expect("the plan can be changed");
    };
    let of = async |key: &str| app.anon().post(&evaluate(&app, key), body.clone()).await.expect(200).at("/value");
    assert_eq!((of("free").await, of("none").await), (json!(false), json!(false)));
    change(Some("free")).await;
    assert_eq!((of("free").await, of("none").await), (json!(true), json!(false)));
    change(None).await;
    assert_eq!((of("free").await, of("none").await), (json!(false), json!(true)));
}

async fn a_token_that_is_not_valid_is_ignored_and_said_so(app: TestApp) {
    let member = Member::of(&app).await;
    flag_when(&app, "k", "tenant.plan", "eq", json!(["sent"])).await;
    let token = member.token(&app, 3600);
    let other_app = app.other_app().await.app_id();
    let forged = format!("{}AAAA", &token[..token.len() - 4]);
    let sent = |token: &str| json!({ "context": { "tenant": { "plan": "sent" } }, "accessToken": token });
    let ignored = json!({ "value": true, "enabled": true, "variantIndex": 0, "errorCode": "INVALID_TOKEN" });
    for token in ["", "junk", "a.b.c", &forged] {
        assert_eq!(app.anon().post(&evaluate(&app, "k"), sent(token)).await.expect(200).json(), ignored, "{token}");
    }
    let there = format!("/cloud-views/flags/evaluate/{other_app}/k");
    assert_eq!(app.anon().post(&there, sent(&token)).await.expect(200).at("/errorCode"), json!("INVALID_TOKEN"));
    assert_eq!(app.anon().post(&evaluate(&app, "k"), sent(&token)).await.expect(200).at("/errorCode"), Value::Null);
    // A member who was shut out is nobody, at once.
    let user = member.user;
    let shut_out = app
        .service()
        .core()
        .db
        .write(move |tx| tx.exec("UPDATE members SET enabled = FALSE WHERE user_id = $1", &args![user]));
    shut_out.await.expect("the member can be changed");
    assert_eq!(app.anon().post(&evaluate(&app, "k"), sent(&token)).await.expect(200).json(), ignored);
}

async fn a_token_may_be_a_little_old(app: TestApp) {
    let member = Member::of(&app).await;
    flag_when(&app, "k", "tenant.plan", "eq", json!(["pro"])).await;
    let body = json!({ "accessToken": member.token(&app, 60) });
    app.drain().await;
    app.advance(Duration::from_secs(60 + 290)).await;
    assert_eq!(app.anon().post(&evaluate(&app, "k"), body.clone()).await.expect(200).at("/value"), json!(true));
    app.advance(Duration::from_secs(20)).await;
    let late = app.anon().post(&evaluate(&app, "k"), body).await.expect(200);
    assert_eq!((late.at("/value"), late.at("/errorCode")), (json!(false), json!("INVALID_TOKEN")));
}

async fn a_login_that_was_ended_is_nobody(app: TestApp) {
    let person = app.owner("ada@example.com").await;
    flag_when(&app, "k", "user.email", "eq", json!(["ada@example.com"])).await;
    let (phone, laptop) = (person.sign_in().await, person.sign_in().await);
    let with = async |token: &str| {
        let answer = app.anon().post(&evaluate(&app, "k"), json!({ "accessToken": token })).await.expect(200);
        (answer.at("/value"), answer.at("/errorCode"))
    };
    let (known, ignored) = ((json!(true), Value::Null), (json!(false), json!("INVALID_TOKEN")));
    assert_eq!((with(&phone.access).await, with(&laptop.access).await), (known.clone(), known.clone()));
    // What proves something else is not an access token.
    assert_eq!((with(&phone.refresh).await, with(&phone.id).await), (ignored.clone(), ignored.clone()));
    app.anon().post("/auth/auth/revoke", json!({ "refreshToken": phone.refresh })).await.expect(200);
    assert_eq!((with(&phone.access).await, with(&laptop.access).await), (ignored, known));
}

/// The login's row is younger than the end of all sessions, but not what the person proved.
async fn what_was_proven_before_all_sessions_ended_counts_nowhere(app: TestApp) {
    let member = Member::of(&app).await;
    flag_when(&app, "k", "user.email", "eq", json!(["ada@example.com"])).await;
    let (service, user) = (app.service(), member.user);
    let proven_at = service.core().db.clock().now();
    app.advance(Duration::from_secs(60)).await;
    let owner = service.core().tenancy.apps.get(app.app_id()).expect("the first app");
    let login = service.core().db.write(move |tx| {
        tenancy::people::end_sessions(tx, owner.id, user)?;
        tenancy::logins::start(tx, &owner, user, false, proven_at, None, tenancy::logins::Reach::EVERYTHING)
    });
    app.advance(Duration::from_secs(60)).await;
    let token = member.token_of_login(&app, 3600, &login.await.expect("a login").id.to_string());
    let answer = app.anon().post(&evaluate(&app, "k"), json!({ "accessToken": token })).await.expect(200);
    assert_eq!((answer.at("/value"), answer.at("/errorCode")), (json!(false), json!("INVALID_TOKEN")));
    app.anon()
        .header("authorization", &format!("Bearer {token}"))
        .get("/auth/userinfo")
        .await
        .error(401, "INVALID_CREDENTIAL");
    app.drain().await;
}

async fn every_way_of_asking_takes_a_token(app: TestApp) {
    let member = Member::of(&app).await;
    let token = member.token(&app, 3600);
    let conditions = json!([{ "attribute": "tenant.plan", "operator": "eq", "values": ["pro"] }]);
    let rule = json!({ "branches": [{ "conditions": conditions, "returnValue": true }], "otherwiseValue": false });
    let path = flag(&app, json!({ "key": "k", "state": "on-with-rule", "rule": rule })).await;
    let claimed = json!({ "tenant": { "plan": "free" } });
    let body = json!({ "context": claimed, "accessToken": token });

    let bulk = format!("/cloud-views/flags/bulkEvaluate/{}", app.app_id());
    let all = app.anon().post(&bulk, body.clone()).await.expect(200).json();
    let evaluation = json!({ "value": true, "enabled": true, "variantIndex": 0 });
    assert_eq!(all, json!({ "flags": [{ "flag": "k", "evaluation": evaluation }] }));
    let explained = app.operator().post(&format!("{path}/explain"), body).await.expect(200);
    assert_eq!(explained.at("/branches/0/conditions/0/seen"), json!("pro"));
    assert_eq!(explained.at("/rollout/identity"), json!(member.user));
    let context = json!({ "context": { "tenant.plan": "free", "accessToken": token } });
    let protocol = app.key().post("/ofrep/v1/evaluate/flags/k", context).await.expect(200);
    assert_eq!(protocol.at("/value"), json!(true));
}

async fn billing_is_read_as_it_is_now(app: TestApp) {
    let team = testkit::billing::plan(&app, "team", None, None).await;
    let quotas = json!([{ "metric": "api.calls", "limit": 4, "policy": "hard", "entitlement": "api" }]);
    testkit::billing::change_plan(&app, &team, json!({ "entitlements": { "api": true }, "quotas": quotas })).await;
    let acme = app.workspace("acme").await;
    let token = acme.owner().header_sent("authorization").replace("Bearer ", "");
    let claimed =
        json!({ "entitlements": { "api": true }, "subscription": { "status": "active" }, "usage.api.calls.used": 3 });
    let ask = async |key: &str| {
        let body = json!({ "accessToken": token, "tenant": claimed });
        app.anon().post(&evaluate(&app, key), body).await.expect(200).at("/value")
    };
    for (key, attribute, operator, values) in [
        ("api", "tenant.entitlements.api", "eq", json!([true])),
        ("active", "tenant.subscription.status", "eq", json!(["active"])),
        ("trial", "tenant.subscription.trial", "eq", json!([false])),
        ("gate", "tenant.subscription.gateEngaged", "eq", json!([false])),
        ("some", "tenant.usage.api.calls.used", "gte", json!([3])),
        ("limit", "tenant.usage.api.calls.limit", "eq", json!([4])),
        ("most", "tenant.usage.api.calls.pct", "gte", json!([75])),
    ] {
        flag_when(&app, key, attribute, operator, values).await;
        assert_eq!(ask(key).await, false, "{key}");
    }
    acme.owner().post("/account/subscription/select", json!({ "planKey": "team" })).await.expect(201);
    acme.key().post("/usage/ingest", json!({ "metric": "api.calls", "value": 3 })).await.expect(201);
    for key in ["api", "active", "trial", "gate", "some", "limit", "most"] {
        assert_eq!(ask(key).await, true, "{key}");
    }
    acme.key().post("/usage/ingest", json!({ "metric": "api.calls" })).await.expect(201);
    assert_eq!(ask("api").await, false);
}
