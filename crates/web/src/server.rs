//! Serves an application over TCP, HTTP/1 and HTTP/2 alike, and stops without losing an answer: on the signal it stops
//! accepting, tells open connections to finish what they have in work, and closes what is left at the deadline.

use std::{
    convert::Infallible,
    future::Future,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, extract::Request};
use hyper::{
    body::{Body as _, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto,
        graceful::{GracefulShutdown, Watcher},
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

use crate::{App, metrics};

/// The bounds of the server's connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a new connection may take to send its first request.
    pub first_request: Duration,
    /// How long a connection may then wait for, or spend on, the head of a further request. Longer than the idle time of
    /// common load balancers, so that they and not we close the connection.
    pub next_request: Duration,
    pub max_head: usize,
    pub max_connections: usize,
    /// How long requests in work may go on after the signal to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            first_request: Duration::from_secs(10),
            next_request: Duration::from_secs(75),
            max_head: 32 * 1024,
            max_connections: 10_000,
            drain: Duration::from_secs(25),
        }
    }
}

/// How the server stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Everything in work was answered.
    Drained,
    /// The deadline passed with this many connections still open.
    CutOff(usize),
}

/// Serves until `shutdown` resolves, then drains. Returns when nothing is in work any more.
pub async fn serve(listener: TcpListener, app: App, limits: Limits, shutdown: impl Future<Output = ()>) -> Stopped {
    let mut connections = JoinSet::new();
    connections.spawn(metrics::upkeep());
    let upkeep = connections.len();
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.max_connections));
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next(), if connections.len() > upkeep => {}
            (stream, peer, place) = next(&listener, &places) => {
                connections.spawn(connection(stream, peer, app.clone(), limits, graceful.watcher(), place));
            }
        }
    }
    drop(listener);
    let stopped = match tokio::time::timeout(limits.drain, graceful.shutdown()).await {
        Ok(()) => Stopped::Drained,
        Err(_) => Stopped::CutOff(limits.max_connections - places.available_permits()),
    };
    connections.shutdown().await;
    stopped
}

/// The next connection, once there is a place for it.
async fn next(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, place),
            // Out of descriptors, mostly: others have to close first, and trying again at once would only burn time.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    app: App,
    limits: Limits,
    watcher: Watcher,
    _place: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let spoke = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request: hyper::Request<Incoming>| {
        spoke.store(true, Ordering::Relaxed);
        let app = app.clone();
        async move { Ok::<_, Infallible>(app.handle(with_axum_body(request), peer.ip()).await) }
    });
    let builder = builder(limits);
    let served = watcher.watch(builder.serve_connection(TokioIo::new(stream), service));
    let mut served = std::pin::pin!(served);
    // hyper's own timer starts only once the protocol is known, so a silent connection needs this one.
    tokio::select! {
        _ = &mut served => return,
        () = tokio::time::sleep(limits.first_request) => {}
    }
    if spoke.load(Ordering::Relaxed) {
        // An error here is the client's: it reset the connection or spoke no HTTP.
        let _ = served.await;
    }
}

/// A request without a body gets a body that costs no allocation.
fn with_axum_body(request: hyper::Request<Incoming>) -> Request {
    request.map(|body| if body.is_end_stream() { Body::empty() } else { Body::new(body) })
}

fn builder(limits: Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.next_request)
        .max_buf_size(limits.max_head.max(8 * 1024));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.max_head).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}
