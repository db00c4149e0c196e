//! With the feature `otel`, request spans reach a collector. A binary of its own, since logging is the process's.
#![cfg(feature = "otel")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{Arc, mpsc},
    time::Duration,
};

use axum::body::Body;
use kernel::{AppId, Clock, Entropy, IdSource};
use tower::ServiceExt;
use web::{
    Conventions, Empty, Origins, RateLimits, Result, Routes, Settings,
    logging::{Logging, init},
};

struct NoOrigins;

impl Origins for NoOrigins {
    fn any_app_allows(&self, _: &str) -> bool {
        false
    }

    fn app_allows(&self, _: AppId, _: &str) -> bool {
        false
    }
}

async fn fast() -> Result<Empty> {
    Ok(Empty)
}

/// Answers one export and hands over what it held.
fn collector() -> (String, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let (send, received) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        while !String::from_utf8_lossy(&seen).contains("/fast") {
            let read = stream.read(&mut buffer).unwrap();
            assert_ne!(read, 0, "the export ended early: {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&buffer[..read]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        send.send(seen).unwrap();
    });
    (endpoint, received)
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_reach_the_collector() {
    let (endpoint, received) = collector();
    let guard = init(&Logging { otlp_endpoint: Some(endpoint), ..Logging::default() }).unwrap();
    let clock = Clock::system();
    let ids = IdSource::new(clock.clone(), Entropy::seeded_for_tests(1));
    let router = Routes::new("Fast").get("/fast", fast, "Answers").into_router(());
    let limits = Arc::new(RateLimits::new(clock));
    let app = Conventions::new(Settings::default(), ids, limits, Arc::new(NoOrigins)).wrap(router);
    app.oneshot(http::Request::get("/fast?secret=1").body(Body::empty()).unwrap()).await.unwrap();
    tokio::task::spawn_blocking(move || drop(guard)).await.unwrap();
    let export =
        tokio::task::spawn_blocking(move || received.recv_timeout(Duration::from_secs(20)).unwrap()).await.unwrap();
    let text = String::from_utf8_lossy(&export);
    assert!(text.contains("tenantry") && !text.contains("secret"), "{text}");
}
