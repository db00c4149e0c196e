//! Every failure has one shape and tells nothing of the inside.

use http::{Method, StatusCode};

use crate::shop::shop;

#[tokio::test]
async fn unknown_paths_and_wrong_methods() {
    let shop = shop();
    let answer = shop.get("/nowhere").await;
    assert_eq!((answer.status, answer.error().as_str()), (StatusCode::NOT_FOUND, "ROUTE_NOT_FOUND"));

    let answer = shop.call(Method::PATCH, "/items", &[]).await;
    assert_eq!((answer.status, answer.error().as_str()), (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"));
    assert_eq!(answer.header("allow"), Some("GET, HEAD, POST"));
}

#[tokio::test]
async fn a_head_is_a_get_without_its_body() {
    let answer = shop().call(Method::HEAD, "/items", &[]).await;
    assert_eq!((answer.status, answer.body.as_str()), (StatusCode::OK, ""));
}

#[tokio::test]
async fn panics_and_internal_errors_reveal_nothing() {
    let shop = shop();
    for path in ["/panic", "/fail"] {
        let answer = shop.get(path).await;
        assert_eq!((answer.status, answer.error().as_str()), (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"));
        assert!(!answer.body.contains("secret"), "{}", answer.body);
    }
}

#[tokio::test]
async fn validation_names_every_field() {
    let answer = shop().post("/items", r#"{ "name": " ", "count": 309.0 }"#).await;
    assert_eq!((answer.status, answer.error().as_str()), (StatusCode::BAD_REQUEST, "VALIDATION_FAILED"));
    assert_eq!(answer.json()["details"], serde_json::json!([{ "field": "name", "message": "must not be empty" }]));
}

#[tokio::test]
async fn callers_meet_the_usual_statuses() {
    let shop = shop();
    let delete = |headers: &'static [(&str, &str)]| shop.call(Method::DELETE, "/items/1", headers);
    for (headers, status, code) in [
        (&[][..], StatusCode::BAD_REQUEST, "MISSING_HEADER"),
        (&[("x-api-key", "wrong")], StatusCode::UNAUTHORIZED, "INVALID_CREDENTIAL"),
        (&[("x-api-key", "k")], StatusCode::CONFLICT, "CONFLICT"),
    ] {
        let answer = delete(headers).await;
        assert_eq!((answer.status, answer.error().as_str()), (status, code));
    }
}
