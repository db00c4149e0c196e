//! What requests may look like: ids, `/v1`, bodies, paths, queries, partial updates.

use axum::body::Body;
use http::{Method, StatusCode};
use kernel::AppId;
use web::Settings;

use crate::shop::{request, shop, shop_with};

#[tokio::test]
async fn a_request_id_is_echoed_when_it_is_harmless() {
    let shop = shop();
    let longest = "x".repeat(128);
    for id in ["abc-123", longest.as_str()] {
        let answer = shop.call(Method::GET, "/who", &[("x-request-id", id)]).await;
        assert_eq!((answer.header("x-request-id"), answer.json()[1].as_str()), (Some(id), Some(id)));
    }
    let too_long = "x".repeat(129);
    for id in ["", "a b", "é", too_long.as_str()] {
        let answer = shop.call(Method::GET, "/who", &[("x-request-id", id)]).await;
        let given = answer.header("x-request-id").unwrap();
        assert!(given.starts_with("req_") && given.len() == 30, "{given}");
    }
}

#[tokio::test]
async fn every_path_answers_under_one_v1() {
    let shop = shop();
    for (path, status) in [
        ("/v1/items?offset=3", StatusCode::OK),
        ("/v1/public", StatusCode::OK),
        ("/v1/v1/public", StatusCode::NOT_FOUND),
        ("/v1x/public", StatusCode::NOT_FOUND),
        ("/v1", StatusCode::NOT_FOUND),
        ("/v2/public", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(shop.get(path).await.status, status, "{path}");
    }
    assert_eq!(shop.get("/v1/items?offset=3").await.json(), serde_json::json!([3, "shop"]));
}

#[tokio::test]
async fn a_body_must_be_json_of_the_right_shape() {
    let shop = shop();
    let send = |media_type: &'static str, body: &'static str| {
        let mut headers = vec![("x-api-key", "k")];
        headers.extend((!media_type.is_empty()).then_some(("content-type", media_type)));
        shop.send(request(Method::POST, "/items", &headers, Body::from(body)))
    };
    for (media_type, body, status, code) in [
        ("text/plain", r#"{"name":"x"}"#, StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE"),
        ("", r#"{"name":"x"}"#, StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE"),
        ("application/json", "{", StatusCode::BAD_REQUEST, "MALFORMED_JSON"),
        ("application/json", "", StatusCode::BAD_REQUEST, "MALFORMED_JSON"),
        ("", "", StatusCode::BAD_REQUEST, "MALFORMED_JSON"),
        ("application/json", r#"{"name":3}"#, StatusCode::BAD_REQUEST, "VALIDATION_FAILED"),
        ("application/json", r#"["x",1,[]]"#, StatusCode::BAD_REQUEST, "VALIDATION_FAILED"),
    ] {
        let answer = send(media_type, body).await;
        assert_eq!((answer.status, answer.error().as_str()), (status, code), "{media_type} {body}");
    }
    let answer = send("application/vnd.x+json; charset=utf-8", r#"{"name":"x","new":1}"#).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(answer.json(), serde_json::json!({ "name": "x", "count": 0, "parts": [] }));
}

#[tokio::test]
async fn a_bad_id_is_an_unknown_id() {
    let shop = shop();
    for path in ["/items/x", "/items/app_%00", "/items/%ff"] {
        let request = request(Method::PUT, path, &[("content-type", "application/json")], Body::from("{}"));
        let answer = shop.send(request).await;
        assert_eq!((answer.status, answer.error().as_str()), (StatusCode::NOT_FOUND, "NOT_FOUND"), "{path}");
    }
}

#[tokio::test]
async fn updates_are_partial() {
    let shop = shop();
    let path = format!("/items/{}", AppId::from_u128(7));
    for (body, label) in [("{}", "\"kept\""), (r#"{"label":null}"#, "null"), (r#"{"label":"new"}"#, "\"new\"")] {
        let request = request(Method::PUT, &path, &[("content-type", "application/json")], Body::from(body));
        assert_eq!(shop.send(request).await.body, label);
    }
}

#[tokio::test]
async fn queries_are_checked() {
    let answer = shop().get("/items?limit=1001").await;
    assert_eq!((answer.status, answer.error().as_str()), (StatusCode::BAD_REQUEST, "VALIDATION_FAILED"));
    assert_eq!(answer.json()["details"][0]["field"], "limit");
}

#[tokio::test]
async fn answers_carry_the_security_headers() {
    let answer = shop_with(Settings { https: true, ..Settings::default() }).get("/items").await;
    let expected = [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
        ("cache-control", "no-store"),
        ("strict-transport-security", "max-age=31536000"),
        ("content-type", "application/json"),
    ];
    for (name, value) in expected {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert_eq!(shop().get("/items").await.header("strict-transport-security"), None);
}
