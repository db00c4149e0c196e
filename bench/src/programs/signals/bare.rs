//! What everything is compared to: the service's HTTP client and the HTTP library's streams, with nothing around them.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use bench::{Result, process, subject::listen};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::StreamBody;
use hyper::{Response, body::Frame, header, service::service_fn};
use hyper_util::rt::TokioIo;
use kernel::Ticker;
use serde_json::json;
use spine::outbound::{BodyLimit, Limits, Method, Outbound, Request, Targets, Url, header::HeaderMap};
use tokio::task::JoinSet;

/// As many as the service has under way to one receiver.
const AT_ONCE: usize = 16;
const LIMITS: Limits =
    Limits { total: Duration::from_secs(10), connect: Duration::from_secs(10), body: BodyLimit::Beginning(65_536) };
/// About as long as an event.
const BODY: &[u8] = &[b'x'; 600];

/// Sends so many requests and tells how long they took and what they cost.
pub async fn send(target: SocketAddr, count: usize) -> Result<()> {
    let (outbound, url) = (Outbound::new(Targets::Any), Url::parse(&format!("http://{target}/hooks"))?);
    let (before, started) = (process::cpu_time(std::process::id())?, Ticker.now());
    let mut tasks = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (outbound, url) = (outbound.clone(), url.clone());
        tasks.spawn(async move {
            for _ in 0..count / AT_ONCE {
                let body = Bytes::from_static(BODY);
                let request = Request { method: Method::POST, url: url.clone(), headers: HeaderMap::new(), body };
                outbound.send(request, &LIMITS).await?;
            }
            Result::<()>::Ok(())
        });
    }
    while let Some(sent) = tasks.join_next().await {
        sent??;
    }
    let (seconds, cpu) = (Ticker.since(started), process::cpu_time(std::process::id())?.saturating_sub(before));
    println!(
        "{}",
        json!({ "seconds": seconds.as_secs_f64(), "cpu": cpu.as_secs_f64(), "sent": count / AT_ONCE * AT_ONCE })
    );
    Ok(())
}

/// Serves streams that begin with a comment and say nothing more.
pub async fn stream() -> Result<()> {
    let listener = listen().await?;
    println!("{}", json!({ "address": listener.local_addr()? }));
    loop {
        let (connection, _) = listener.accept().await?;
        tokio::spawn(async move {
            let answer = service_fn(|_| async {
                let first = stream::once(async { Ok::<_, Infallible>(Frame::data(Bytes::from_static(b":\n\n"))) });
                let body = StreamBody::new(Box::pin(first.chain(stream::pending())));
                Response::builder().header(header::CONTENT_TYPE, "text/event-stream").body(body)
            });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), answer).await;
        });
    }
}
