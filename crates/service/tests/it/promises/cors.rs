//! Which pages may read answers, by what the apps themselves allow.

use http::Method;
use serde_json::json;
use testkit::{Answer, Caller, TestApp, on_both_engines};

on_both_engines!(
    the_origins_of_an_app_may_ask_and_read,
    failures_are_readable_too,
    an_origin_goes_with_its_app,
    documents_are_open_to_any_origin,
);

const OWN: &str = "http://localhost:3000";
const OTHER: &str = "https://other.example";
const STRANGER: &str = "https://stranger.example";

fn allowed(answer: &Answer) -> Option<&str> {
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    answer.header("access-control-allow-origin")
}

async fn preflight(caller: &Caller, origin: &str) -> Answer {
    let asking = caller.header("origin", origin).header("access-control-request-method", "GET");
    asking.call(Method::OPTIONS, "/account/app", None).await.expect(204)
}

/// An app with pages at [`OTHER`].
async fn other_app(app: &TestApp) -> Caller {
    let body = json!({ "name": "Other", "domain": "other.example", "uiUrl": format!("{OTHER}/start") });
    let made = app.operator().post("/admin/apps", body).await.expect(201);
    app.anon().with_api_key(made.id("/app/id"), &made.text("/apiKey"))
}

async fn the_origins_of_an_app_may_ask_and_read(app: TestApp) {
    let other = other_app(&app).await;
    for (origin, expected) in [(OWN, Some(OWN)), (OTHER, Some(OTHER)), (STRANGER, None)] {
        assert_eq!(allowed(&preflight(&app.anon(), origin).await), expected);
    }
    for (caller, origin, expected) in [
        (app.key(), OWN, Some(OWN)),
        (app.key(), OTHER, None),
        (app.key(), STRANGER, None),
        (other.clone(), OTHER, Some(OTHER)),
        (other, OWN, None),
    ] {
        let answer = caller.header("origin", origin).get("/account/app").await.expect(200);
        assert_eq!(allowed(&answer), expected, "{origin}");
        assert_eq!(answer.header("vary"), Some("origin"));
    }
}

async fn failures_are_readable_too(app: TestApp) {
    let from_own = app.anon().header("origin", OWN);
    let no_key = from_own.get("/account/app").await.error(401, "UNAUTHENTICATED");
    let no_route = from_own.get("/nowhere").await.error(404, "ROUTE_NOT_FOUND");
    let no_privilege = app.key_with(&["USER_READ"]).await.header("origin", OWN).get("/account/app").await;
    for answer in [no_key, no_route, no_privilege.error(403, "MISSING_PRIVILEGE")] {
        assert_eq!(allowed(&answer), Some(OWN));
    }
    let foreign = app.key_with(&["USER_READ"]).await.header("origin", STRANGER).get("/account/app").await;
    assert_eq!(allowed(&foreign), None);
}

async fn an_origin_goes_with_its_app(app: TestApp) {
    let other = other_app(&app).await;
    app.operator().delete(&format!("/admin/apps/{}", other.app_id())).await.expect(200);
    assert_eq!(allowed(&preflight(&app.anon(), OTHER).await), None);
    app.drain().await;
    assert_eq!(allowed(&preflight(&app.anon(), OTHER).await), None);
    assert_eq!(allowed(&preflight(&app.anon(), OWN).await), Some(OWN));
}

async fn documents_are_open_to_any_origin(app: TestApp) {
    let answer = app.anon().header("origin", STRANGER).get("/openapi.json").await.expect(200);
    assert_eq!(allowed(&answer), Some("*"));
}
