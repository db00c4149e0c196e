//! What holds for every route.

use http::Method;
use serde_json::json;
use testkit::{EngineName, TestApp, on_both_engines, on_one_engine};
use web::{Access, LimitClass, Quota, RateLimits};

on_both_engines!(
    v1_is_the_same_operation_on_every_route,
    what_is_no_text_for_the_database_is_refused,
    no_member_of_a_body_is_read_as_json_in_json,
    a_body_is_nested_within_bounds,
);
on_one_engine!(
    nothing_is_served_beside_the_routes,
    a_body_must_be_json_and_not_too_large,
    a_request_has_an_id,
    answers_carry_security_headers,
    head_is_get_without_a_body,
    too_many_wrong_credentials_are_slowed_down,
    the_callers_of_an_app_share_a_limit,
);

/// Answers that differ from one call to the next.
const VARYING: [&str; 2] = ["/metrics", "/admin/doctor"];

/// Answers that go on until somebody hangs up.
pub(super) const ENDLESS: [&str; 2] = ["/admin/apps/{app_id}/webhook/stream", "/admin/apps/{app_id}/events/tail"];

async fn v1_is_the_same_operation_on_every_route(app: TestApp) {
    for route in service::route_table().into_iter().filter(|route| !ENDLESS.contains(&route.path)) {
        let path = testkit::routes::path(&app, route.path);
        let caller = match route.access {
            Access::Public => app.anon(),
            Access::Operator => app.operator(),
            _ => app.key(),
        };
        // Nobody for what changes something: that it is the same refusal says that it is the same operation.
        let caller = if route.method == Method::GET { caller } else { app.anon() };
        let (plain, versioned) = (
            caller.call(route.method.clone(), &path, None).await,
            caller.call(route.method.clone(), &format!("/v1{path}"), None).await,
        );
        assert_eq!(versioned.status(), plain.status(), "{} {path}", route.method);
        assert_eq!(versioned.header("content-type"), plain.header("content-type"), "{} {path}", route.method);
        if plain
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/html") || kind == "application/x-ndjson")
        {
            continue;
        }
        let steady = route.access != Access::Public && !VARYING.contains(&route.path);
        if plain.status() == 401 || plain.status() == 200 && steady {
            let same = |answer: &testkit::Answer| testkit::redacted(&answer.json());
            assert_eq!(same(&versioned), same(&plain), "{} {path}", route.method);
        }
    }
    app.anon().get("/v1").await.expect(200);
    app.anon().get("/v1/v1/tick").await.error(404, "ROUTE_NOT_FOUND");
    app.anon().get("/v1x/tick").await.error(404, "ROUTE_NOT_FOUND");
    let made =
        app.operator().post("/v1/admin/apps", json!({ "name": "Shop", "domain": "shop.example" })).await.expect(201);
    app.operator().delete(&format!("/v1/admin/apps/{}", made.text("/app/id"))).await.expect(200);
}

/// serde_json can be built so that a member of this name stands for the JSON in its text, past every check of the body.
async fn no_member_of_a_body_is_read_as_json_in_json(app: TestApp) {
    let acme = app.workspace("acme").await;
    for text in ["[[1]]".to_owned(), "\"a\\u0000b\"".to_owned(), format!("{}{}", "[".repeat(100), "]".repeat(100))] {
        for name in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
            let sent = json!({ "a": { name: text }, "b": [{ name: text }] });
            let body = json!({ "metadata": sent });
            let answer = app.key().put(&format!("/account/tenant/{}", acme.id), body).await.expect(200);
            assert_eq!(answer.at("/metadata"), sent);
            let event = json!({
                "appId": app.app_id(), "eventName": "seen", "timestamp": "2026-01-01T00:00:00Z", "parameters": sent,
            });
            app.key().header("prefer", "wait").post("/event-log", event).await.expect(201);
        }
    }
}

async fn a_body_is_nested_within_bounds(app: TestApp) {
    let acme = app.workspace("acme").await;
    let path = format!("/account/tenant/{}", acme.id);
    let nested = |levels: usize| {
        let (open, close) = (r#"{"a":"#.repeat(levels / 2), "}".repeat(levels / 2));
        let list = levels - levels / 2;
        format!(r#"{{"metadata":{open}{}{}{close}}}"#, "[".repeat(list), "]".repeat(list))
    };
    let put = async |body: String| {
        let json = app.key().header("content-type", "application/json");
        json.send(Method::PUT, &path, body).await
    };
    put(nested(63)).await.expect(200);
    let refused = put(nested(64)).await.error(400, "MALFORMED_JSON");
    assert!(refused.text("/message").contains("nested deeper than 64 levels"), "{refused:?}");
    put(nested(200_000)).await.error(400, "MALFORMED_JSON");
}

async fn what_is_no_text_for_the_database_is_refused(app: TestApp) {
    app.operator().post("/admin/apps", json!({ "name": "a\0b", "domain": "shop.example" })).await.refuses(&["name"]);
    app.operator().get("/admin/apps/a%00b").await.error(404, "NOT_FOUND");
    app.operator().get("/admin/apps/%ff").await.error(404, "NOT_FOUND");
    let raw = app.operator().header("content-type", "application/json");
    let lone = raw.send(Method::POST, "/admin/apps", r#"{"name":"\ud800","domain":"shop.example"}"#).await;
    assert_eq!(lone.status(), 400, "{lone:?}");
    let not_utf8 = raw.send(Method::POST, "/admin/apps", b"{\"name\":\"\xff\"}".to_vec()).await;
    assert_eq!(not_utf8.status(), 400, "{not_utf8:?}");
    app.key().header("x-api-key", "a.b").get("/account/app").await.error(401, "INVALID_CREDENTIAL");
}

async fn nothing_is_served_beside_the_routes(app: TestApp) {
    for path in ["/nowhere", "/admin", "/admin/", "/admin/apps/", "//", "/healthz/x", "/ADMIN/apps"] {
        app.operator().get(path).await.error(404, "ROUTE_NOT_FOUND");
    }
    let wrong = app.operator().put("/admin/apps", json!({})).await.error(405, "METHOD_NOT_ALLOWED");
    assert_eq!(wrong.header("allow"), Some("GET, HEAD, POST"));
}

async fn a_body_must_be_json_and_not_too_large(app: TestApp) {
    let post = async |kind: &str, body: String| {
        app.operator().header("content-type", kind).send(Method::POST, "/admin/apps", body).await
    };
    let good = json!({ "name": "Shop", "domain": "shop.example" }).to_string();
    post("text/plain", good.clone()).await.error(415, "UNSUPPORTED_MEDIA_TYPE");
    app.operator().send(Method::POST, "/admin/apps", good.clone()).await.error(415, "UNSUPPORTED_MEDIA_TYPE");
    for broken in ["", "{", "{\"name\": \"Shop\",}", "[1", "nul"] {
        post("application/json", broken.to_owned()).await.error(400, "MALFORMED_JSON");
    }
    for other in ["[]", "7", "null", "\"x\""] {
        assert_eq!(post("application/json", other.to_owned()).await.status(), 400);
    }
    let large = json!({ "name": "x".repeat(1024 * 1024), "domain": "shop.example" }).to_string();
    post("application/json", large).await.error(413, "BODY_TOO_LARGE");
    post("application/json; charset=utf-8", good).await.expect(201);
}

async fn a_request_has_an_id(app: TestApp) {
    let own = app.anon().header("x-request-id", "my-id-1").get("/account/app").await.error(401, "UNAUTHENTICATED");
    assert_eq!(own.header("x-request-id"), Some("my-id-1"));
    for unfit in ["has space", &"x".repeat(200)] {
        let given = app.anon().header("x-request-id", unfit).get("/healthz").await.expect(200);
        assert!(given.header("x-request-id").is_some_and(|id| id.starts_with("req_")));
    }
}

async fn answers_carry_security_headers(app: TestApp) {
    for answer in
        [app.anon().get("/healthz").await, app.anon().get("/account/app").await, app.anon().get("/docs").await]
    {
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("x-frame-options"), Some("DENY"));
        assert!(
            answer.header("content-security-policy").is_some_and(|policy| policy.contains("frame-ancestors 'none'"))
        );
        assert_eq!(answer.header("strict-transport-security"), None);
    }
    assert_eq!(app.key().get("/account/app").await.header("cache-control"), Some("no-store"));
}

async fn head_is_get_without_a_body(app: TestApp) {
    let head = app.key().call(Method::HEAD, "/account/app", None).await.expect(200);
    let get = app.key().get("/account/app").await.expect(200);
    assert_eq!((head.bytes().len(), head.header("content-length")), (0, Some(get.bytes().len().to_string().as_str())));
    app.anon().call(Method::HEAD, "/account/app", None).await.expect(401);
}

async fn the_callers_of_an_app_share_a_limit(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| {
        let limits = RateLimits::new(options.clock.clone());
        options.rate_limits = limits.with(LimitClass::App, Quota { per_minute: 6, burst: 8 });
    })
    .await;
    let other = app.other_app().await;
    let ada = app.owner("ada@example.com").await.signed_in().await;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(app.key().get("/account/app").await.status());
        statuses.push(ada.get("/auth/userinfo").await.status());
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    app.key().get("/account/app").await.error(429, "RATE_LIMITED");
    // Neither are other apps limited, nor those who only know the app's name.
    other.get("/account/app").await.expect(200);
    app.anon().post(&format!("/cloud-views/flags/bulkEvaluate/{}", app.app_id()), json!({})).await.expect(200);
    app.advance(std::time::Duration::from_secs(60)).await;
    app.key().get("/account/app").await.expect(200);
}

async fn too_many_wrong_credentials_are_slowed_down(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| {
        let limits = RateLimits::new(options.clock.clone());
        options.rate_limits = limits.with(LimitClass::Key, Quota { per_minute: 6, burst: 2 });
    })
    .await;
    let guess = app.anon().with_operator_key("guess");
    for _ in 0..2 {
        guess.get("/admin/apps").await.error(401, "INVALID_CREDENTIAL");
    }
    let limited = guess.get("/admin/apps").await.error(429, "RATE_LIMITED");
    assert!(
        limited.header("retry-after").and_then(|text| text.parse::<u64>().ok()).is_some_and(|s| (1..=10).contains(&s))
    );
    app.key().header("x-api-key", "tnt_guess").get("/account/app").await.error(429, "RATE_LIMITED");
    // Who knows the key is never slowed down.
    app.operator().get("/admin/apps").await.expect(200);
    app.advance(std::time::Duration::from_secs(60)).await;
    guess.get("/admin/apps").await.error(401, "INVALID_CREDENTIAL");
}
