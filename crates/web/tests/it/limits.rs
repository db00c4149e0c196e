//! Bodies, time, work at once and calls per minute are all bounded.

use axum::body::Body;
use bytes::Bytes;
use futures_util::{FutureExt, stream};
use http::{Method, StatusCode};
use kernel::Timestamp;
use web::Settings;

use crate::shop::{request, shop, shop_with};

const JSON: [(&str, &str); 2] = [("content-type", "application/json"), ("x-api-key", "k")];

#[tokio::test]
async fn bodies_are_limited_by_route_and_by_default() {
    let shop = shop();
    let item = |length: usize| format!(r#"{{"name":"{}"}}"#, "x".repeat(length));
    for (path, length, status) in [
        ("/small", 40, StatusCode::CREATED),
        ("/small", 60, StatusCode::PAYLOAD_TOO_LARGE),
        ("/items", 60_000, StatusCode::CREATED),
        ("/items", 1024 * 1024, StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        assert_eq!(shop.post(path, &item(length)).await.status, status, "{path} {length}");
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_is_counted() {
    let chunks = stream::iter((0..10).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(b"          "))));
    let answer = shop().send(request(Method::POST, "/small", &JSON, Body::from_stream(chunks))).await;
    assert_eq!((answer.status, answer.error().as_str()), (StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE"));
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_given_up() {
    let answer = shop().get("/hang").await;
    assert_eq!((answer.status, answer.error().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "TIMED_OUT"));
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn work_at_once_is_limited_but_health_still_answers() {
    let shop = shop_with(Settings { max_in_flight: 1, ..Settings::default() });
    let mut stuck = Box::pin(shop.get("/stuck"));
    assert!(stuck.as_mut().now_or_never().is_none());

    let answer = shop.get("/public").await;
    assert_eq!((answer.status, answer.error().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "OVERLOADED"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(shop.get("/health").await.status, StatusCode::OK);

    drop(stuck);
    assert_eq!(shop.get("/public").await.status, StatusCode::OK);
}

#[tokio::test]
async fn limited_routes_say_when_to_come_back() {
    let shop = shop();
    let login = || shop.call(Method::POST, "/login", &[]);
    assert_eq!((login().await.status, login().await.status), (StatusCode::OK, StatusCode::OK));
    let answer = login().await;
    assert_eq!((answer.status, answer.error().as_str()), (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED"));
    assert_eq!(answer.header("retry-after"), Some("10"));
    shop.clock.advance_to(Timestamp::from_seconds(1_700_000_010));
    assert_eq!(login().await.status, StatusCode::OK);
}
