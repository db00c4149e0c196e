//! Every route with every wrong caller. Walks the route table, so that a route without a row here fails the run.

use std::collections::BTreeSet;

use http::Method;
use kernel::KeyId;
use serde_json::Value;
use testkit::{Answer, Caller, TestApp, on_both_engines};
use web::{Access, RouteEntry};

on_both_engines!(nobody_gets_further_than_they_may);

/// For everybody, and meant to be.
const PUBLIC: &[&str] = &[
    "GET /",
    "GET /account",
    "GET /tick",
    "GET /healthz",
    "GET /readyz",
    "GET /docs",
    "GET /docs/style.css",
    "GET /openapi.json",
    "GET /cloud-views/flags/evaluate/{app_id}/{flag_key}",
    "POST /cloud-views/flags/evaluate/{app_id}/{flag_key}",
    "POST /cloud-views/flags/bulkEvaluate/{app_id}",
    "POST /ofrep/v1/evaluate/flags",
    "POST /ofrep/v1/evaluate/flags/{key}",
    "POST /cloud-views/ofrep/{app_id}/ofrep/v1/evaluate/flags",
    "POST /cloud-views/ofrep/{app_id}/ofrep/v1/evaluate/flags/{key}",
];

/// Every other route, with a body that its rightful caller could send.
const GUARDED: &[(&str, &str)] = &[
    ("GET /metrics", ""),
    ("GET /admin/apps", ""),
    ("POST /admin/apps", r#"{ "name": "Shop", "domain": "shop.example" }"#),
    ("GET /admin/apps/{app_id}", ""),
    ("GET /admin/apps/{app_id}/keys", ""),
    ("POST /admin/apps/{app_id}/keys", r#"{ "name": "k" }"#),
    ("DELETE /admin/apps/{app_id}/keys/{key_id}", ""),
    ("GET /account/app", ""),
    ("GET /admin/signing-keys", ""),
    ("POST /admin/signing-keys/rotate", "{}"),
    ("POST /admin/backup", ""),
    ("GET /admin/doctor", ""),
    ("GET /admin/test-clock", ""),
    ("POST /admin/test-clock", r#"{ "advanceSeconds": 1 }"#),
    ("GET /admin/apps/{app_id}/flags", ""),
    ("POST /admin/apps/{app_id}/flags", r#"{ "key": "k" }"#),
    ("GET /admin/apps/{app_id}/flags/{flag_id}", ""),
    ("PUT /admin/apps/{app_id}/flags/{flag_id}", "{}"),
    ("DELETE /admin/apps/{app_id}/flags/{flag_id}", ""),
    ("GET /admin/apps/{app_id}/flags/{flag_id}/versions", ""),
    ("POST /admin/apps/{app_id}/flags/{flag_id}/rollback", r#"{ "version": 1 }"#),
    ("POST /admin/apps/{app_id}/flags/{flag_id}/explain", "{}"),
    ("GET /admin/apps/{app_id}/flag-groups", ""),
    ("POST /admin/apps/{app_id}/flag-groups", r#"{ "key": "g", "name": "G" }"#),
    ("GET /admin/apps/{app_id}/flag-groups/{group_id}", ""),
    ("PUT /admin/apps/{app_id}/flag-groups/{group_id}", "{}"),
    ("DELETE /admin/apps/{app_id}/flag-groups/{group_id}", ""),
    ("GET /admin/apps/{app_id}/flag-groups/{group_id}/versions", ""),
    ("POST /admin/apps/{app_id}/flag-groups/{group_id}/rollback", r#"{ "version": 1 }"#),
    ("POST /flags/eval-events", r#"{ "events": [] }"#),
    ("POST /flags/discover", r#"{ "keys": [] }"#),
    ("POST /flags/call-sites", r#"{ "sites": [] }"#),
    ("DELETE /admin/apps/{app_id}", ""),
];

/// A route's path with something in the place of its parameters.
pub(crate) fn path(app: &TestApp, route: &str) -> String {
    let filled = route
        .replace("{app_id}", &app.app_id().to_string())
        .replace("{key_id}", &KeyId::from_u128(7).to_string())
        .replace("{flag_id}", &flags::model::FlagId::from_u128(7).to_string())
        .replace("{group_id}", &flags::model::GroupId::from_u128(7).to_string())
        .replace("{flag_key}", "some-flag")
        .replace("{key}", "some-flag");
    assert!(!filled.contains('{'), "{filled} has a parameter that this test does not know");
    filled
}

/// Somebody who is refused, and how.
struct Refused {
    who: &'static str,
    caller: Caller,
    status: u16,
    code: &'static str,
}

fn refused(who: &'static str, caller: Caller, status: u16, code: &'static str) -> Refused {
    Refused { who, caller, status, code }
}

/// Those without any standing, by what they send.
struct Strangers {
    revoked: Caller,
    orphaned: Caller,
}

impl Strangers {
    async fn of(app: &TestApp) -> Self {
        let (revoked, orphaned) = (app.key_with(&["APP_READ", "APP_WRITE"]).await, app.other_app().await);
        let key = format!("/admin/apps/{}/keys/{}", revoked.app_id(), revoked.key_id());
        app.operator().delete(&key).await.expect(200);
        app.operator().delete(&format!("/admin/apps/{}", orphaned.app_id())).await.expect(200);
        Self { revoked, orphaned }
    }
}

/// Who must not get through to a route with this access.
async fn wrong_callers(app: &TestApp, strangers: &Strangers, access: Access) -> Vec<Refused> {
    let (anon, none, bad) = (app.anon(), "UNAUTHENTICATED", "INVALID_CREDENTIAL");
    match access {
        Access::Public => Vec::new(),
        Access::Operator => vec![
            refused("nobody", anon.clone(), 401, none),
            refused("an app's key", app.key(), 401, none),
            refused("a wrong operator key", anon.with_operator_key("op_wrong"), 401, bad),
            refused("an empty operator key", anon.header("authorization", "Bearer "), 401, bad),
            refused("another scheme", anon.header("authorization", "Basic b3A6b3A="), 401, none),
            refused(
                "an app's key as operator key",
                anon.with_operator_key(&app.key().header_sent("x-api-key")),
                401,
                bad,
            ),
        ],
        Access::Key { privilege } | Access::KeyWithTenant { privilege } | Access::KeyOrUser { privilege } => {
            let unknown = format!("tnt_{}", "x".repeat(43));
            let mut wrong = vec![
                refused("nobody", anon.clone(), 401, none),
                refused("an empty key", anon.header("x-api-key", ""), 401, bad),
                refused("garbage", anon.header("x-api-key", "garbage"), 401, bad),
                refused("garbage like a token", anon.header("x-api-key", "a.b.c"), 401, bad),
                refused("an unknown key", anon.header("x-api-key", &unknown), 401, bad),
                refused("a revoked key", strangers.revoked.clone(), 401, bad),
                refused("the key of a deleted app", strangers.orphaned.clone(), 401, bad),
                refused("the operator's key as app key", anon.header("x-api-key", testkit::OPERATOR_KEY), 401, bad),
            ];
            if !matches!(access, Access::KeyOrUser { .. }) {
                wrong.push(refused("the operator", app.operator(), 401, none));
            }
            if privilege.is_some() {
                let without = app.key_with(&["AUTHENTICATED"]).await;
                wrong.push(refused("a key without the privilege", without, 403, "MISSING_PRIVILEGE"));
            }
            wrong
        }
        Access::User | Access::Bearer => vec![
            refused("nobody", anon.clone(), 401, none),
            refused("an app's key", app.key(), 401, none),
            refused("garbage", anon.with_operator_key("garbage"), 401, bad),
            refused("the operator", app.operator(), 401, bad),
        ],
    }
}

async fn ask(caller: &Caller, app: &TestApp, route: &RouteEntry, body: &str) -> Answer {
    let body: Option<Value> = (!body.is_empty()).then(|| body.parse().expect("the row's body is JSON"));
    caller.call(route.method.clone(), &path(app, route.path), body).await
}

async fn nobody_gets_further_than_they_may(app: TestApp) {
    let table = service::route_table();
    let name = |route: &RouteEntry| format!("{} {}", route.method, route.path);
    let known: BTreeSet<String> =
        PUBLIC.iter().copied().chain(GUARDED.iter().map(|(name, _)| *name)).map(str::to_owned).collect();
    assert_eq!(table.iter().map(name).collect::<BTreeSet<_>>(), known, "the rows here and the routes differ");
    assert_eq!(known.len(), PUBLIC.len() + GUARDED.len(), "a route stands here twice");

    let strangers = Strangers::of(&app).await;
    for route in &table {
        let name = name(route);
        let row = GUARDED.iter().find(|(guarded, _)| *guarded == name);
        assert_eq!(route.access == Access::Public, row.is_none(), "{name} is {}", route.access);
        let body = row.map_or("", |(_, body)| *body);
        for wrong in wrong_callers(&app, &strangers, route.access).await {
            let answer = ask(&wrong.caller, &app, route, body).await;
            assert_eq!(answer.status(), wrong.status, "{name} as {}: {answer:?}", wrong.who);
            answer.error(wrong.status, wrong.code);
        }
    }
    // Nothing above changed anything, and the right callers get through; deletions come last.
    let rows = GUARDED.iter().map(|(name, body)| (*name, *body));
    for (name, body) in PUBLIC.iter().map(|name| (*name, "")).chain(rows) {
        let route =
            table.iter().find(|route| format!("{} {}", route.method, route.path) == name).expect("in the table");
        let caller = match route.access {
            Access::Public => app.anon(),
            Access::Operator => app.operator(),
            _ => app.key(),
        };
        let answer = ask(&caller, &app, route, body).await;
        let nothing_there =
            ["{key_id}", "{flag_id}", "{group_id}", "{key}"].iter().any(|made_up| name.contains(made_up));
        // Public, but the app has to be named by a header.
        let nameless = name.contains(" /ofrep/") && answer.status() == 400;
        let fine = answer.status() < 400 || answer.status() == 404 && nothing_there || nameless;
        assert!(fine, "{name}: {answer:?}");
    }
    let gone = app.key().call(Method::GET, "/account/app", None).await;
    gone.error(401, "INVALID_CREDENTIAL");
}
