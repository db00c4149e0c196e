//! Which origins may read which answers.

use http::{Method, StatusCode};

use crate::shop::{OTHER_ORIGIN, OWN_ORIGIN, shop};

const STRANGER: &str = "https://stranger.example";

async fn allowed(method: Method, path: &str, headers: &[(&str, &str)]) -> Option<String> {
    let answer = shop().call(method, path, headers).await;
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    answer.header("access-control-allow-origin").map(str::to_owned)
}

#[tokio::test]
async fn a_preflight_is_answered_for_any_apps_origin() {
    for (origin, expected) in [(OWN_ORIGIN, Some(OWN_ORIGIN)), (OTHER_ORIGIN, Some(OTHER_ORIGIN)), (STRANGER, None)] {
        let headers = [("origin", origin), ("access-control-request-method", "POST")];
        assert_eq!(allowed(Method::OPTIONS, "/items", &headers).await.as_deref(), expected, "{origin}");
    }
    let headers = [
        ("origin", OWN_ORIGIN),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "x-api-key, content-type"),
    ];
    let answer = shop().call(Method::OPTIONS, "/v1/items", &headers).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(answer.header("access-control-allow-methods"), Some("POST"));
    assert_eq!(answer.header("access-control-allow-headers"), Some("x-api-key, content-type"));
}

#[tokio::test]
async fn an_options_request_that_is_no_preflight_is_a_wrong_method() {
    let answer = shop().call(Method::OPTIONS, "/items", &[("origin", OWN_ORIGIN)]).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn the_real_request_is_checked_against_its_own_app() {
    for (origin, expected) in [(OWN_ORIGIN, Some(OWN_ORIGIN)), (OTHER_ORIGIN, None), (STRANGER, None)] {
        // The handler answers 409: failures are readable too.
        let headers = [("origin", origin), ("x-api-key", "k")];
        assert_eq!(allowed(Method::DELETE, "/items/1", &headers).await.as_deref(), expected, "{origin}");
    }
}

#[tokio::test]
async fn a_failure_before_the_app_is_known_is_readable_by_any_apps_origin() {
    for (origin, expected) in [(OTHER_ORIGIN, Some(OTHER_ORIGIN)), (STRANGER, None)] {
        let headers = [("origin", origin), ("x-api-key", "wrong")];
        assert_eq!(allowed(Method::DELETE, "/items/1", &headers).await.as_deref(), expected, "{origin}");
    }
}

#[tokio::test]
async fn open_routes_allow_any_origin_and_others_vary_by_it() {
    assert_eq!(allowed(Method::GET, "/public", &[("origin", STRANGER)]).await.as_deref(), Some("*"));
    let preflight = [("origin", STRANGER), ("access-control-request-method", "GET")];
    assert_eq!(allowed(Method::OPTIONS, "/public", &preflight).await.as_deref(), Some("*"));
    assert_eq!(shop().get("/public").await.header("vary"), None);
    assert_eq!(shop().get("/items").await.header("vary"), Some("origin"));
    assert_eq!(allowed(Method::GET, "/items", &[]).await, None);
}
