//! Serves an application over TCP, HTTP/1 and HTTP/2 alike, and stops without losing an answer: on the signal it stops
//! accepting, tells open connections to finish what they have in work, and closes what is left at the deadline.
//!
//! A client has a share of the connections, and each of them has to make progress: in sending, in reading, or at least by
//! asking for something now and then.
//!
//! A Unix socket beside it is for commands on the same machine: who may open it is the operator.

mod progress;

use std::{
    convert::Infallible,
    future::Future,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::MetadataExt as _,
    sync::Arc,
    time::Duration,
};

use axum::{body::Body, extract::Request};
use hyper::{
    body::{Body as _, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use kernel::{Tick, Ticker};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
};

use crate::{
    App, AtHand, metrics,
    shares::{Share, Shares},
};
use progress::{Answers, Unstuck};

/// The bounds of the server's connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a new connection may take to send its first request.
    pub first_request: Duration,
    /// How long a connection may then wait for, or spend on, the head of a further request. Longer than the idle time of
    /// common load balancers, so that they and not we close the connection.
    pub next_request: Duration,
    /// How long a client may take nothing of an answer that it asked for.
    pub stuck: Duration,
    pub max_head: usize,
    pub max_connections: usize,
    /// Of one client address, which IPv6 has a /64 of; trusted proxies apart. 0 means no limit.
    pub max_connections_per_address: usize,
    /// Requests in work at once on one connection of HTTP/2.
    pub max_streams: u32,
    /// How long requests in work may continue after the signal to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            first_request: Duration::from_secs(10),
            next_request: Duration::from_secs(75),
            stuck: Duration::from_secs(30),
            max_head: 32 * 1024,
            max_connections: 10_000,
            max_connections_per_address: 2_048,
            max_streams: 64,
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

/// Where the server is reached.
pub struct Listeners {
    pub network: TcpListener,
    /// Only its owner may open it, which is for whoever made it to see to.
    pub local: Option<UnixListener>,
}

impl From<TcpListener> for Listeners {
    fn from(network: TcpListener) -> Self {
        Self { network, local: None }
    }
}

/// Commands that may speak to the server at once. They have places of their own, so that the operator gets through
/// while strangers hold all others.
const LOCAL_CONNECTIONS: usize = 16;

/// Serves until `shutdown` resolves, then drains. Returns when nothing is in work any more.
pub async fn serve(
    listeners: impl Into<Listeners>,
    app: App,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> Stopped {
    let Listeners { network, local } = listeners.into();
    let local_places = Arc::new(Semaphore::new(LOCAL_CONNECTIONS));
    let mut connections = JoinSet::new();
    connections.spawn(metrics::upkeep());
    let upkeep = connections.len();
    let (stop, stopping) = watch::channel(());
    let places = Arc::new(Semaphore::new(limits.max_connections));
    let shares = Shares::new(limits.max_connections_per_address);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next(), if connections.len() > upkeep => {}
            (stream, peer, place) = next(&network, &places) => {
                let Some(share) = share_of(&shares, peer, &app) else { continue };
                let _ = stream.set_nodelay(true);
                let held = Held { _place: place, _share: share };
                let (caller, app) = (Caller::Client(peer), app.clone());
                connections.spawn(connection(stream, caller, app, limits, stopping.clone(), held));
            }
            (stream, place) = next_local(local.as_ref(), &local_places) => {
                let held = Held { _place: place, _share: None };
                let (caller, app) = (Caller::Operator, app.clone());
                connections.spawn(connection(stream, caller, app, limits, stopping.clone(), held));
            }
        }
    }
    drop((network, local));
    stop.send_replace(());
    let drained = async { while connections.len() > upkeep && connections.join_next().await.is_some() {} };
    let stopped = match tokio::time::timeout(limits.drain, drained).await {
        Ok(()) => Stopped::Drained,
        Err(_) => Stopped::CutOff(connections.len() - upkeep),
    };
    connections.shutdown().await;
    stopped
}

/// A connection's part of what there is.
struct Held {
    _place: OwnedSemaphorePermit,
    _share: Option<Share>,
}

/// Nothing when the client has its share and the connection is refused. A proxy connects for many clients.
fn share_of(shares: &Shares, peer: IpAddr, app: &App) -> Option<Option<Share>> {
    if app.trusts(peer) {
        return Some(None);
    }
    let share = shares.take_one(peer);
    if share.is_none() {
        ::metrics::counter!("tenantry_connections_refused_total").increment(1);
    }
    share.map(Some)
}

/// The next connection, once there is a place for it.
async fn next(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, IpAddr, OwnedSemaphorePermit) {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer.ip(), place),
            // Out of descriptors, mostly: others have to close first, and trying again at once would only burn time.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// The same for the local socket; without one there is never a next.
async fn next_local(listener: Option<&UnixListener>, places: &Arc<Semaphore>) -> (UnixStream, OwnedSemaphorePermit) {
    let Some(listener) = listener else { return std::future::pending().await };
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) if is_owner(listener, &stream) => return (stream, place),
            Ok(_) => tracing::warn!("another user of this machine was turned away from the local socket"),
            Err(error) => {
                tracing::warn!(%error, "a command could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Whether the other end is the user whose socket it is, or root. The socket's mode says so too, but only from the moment
/// on at which it was set.
fn is_owner(listener: &UnixListener, stream: &UnixStream) -> bool {
    let owner = listener.local_addr().ok().and_then(|address| Some(address.as_pathname()?.metadata().ok()?.uid()));
    stream.peer_cred().is_ok_and(|peer| peer.uid() == 0 || Some(peer.uid()) == owner)
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy)]
enum Caller {
    Client(IpAddr),
    Operator,
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    caller: Caller,
    app: App,
    limits: Limits,
    mut stopping: watch::Receiver<()>,
    _held: Held,
) {
    let answers = Answers::new();
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (app, answers) = (app.clone(), Arc::clone(&answers));
        let in_work = answers.begin();
        let mut request = with_axum_body(request);
        let peer = match caller {
            Caller::Client(address) => address,
            Caller::Operator => {
                request.extensions_mut().insert(AtHand);
                IpAddr::V4(Ipv4Addr::LOCALHOST)
            }
        };
        // On the heap, because hyper keeps room for it as long as the connection lasts, and streams last for hours.
        Box::pin(async move {
            let answer = app.handle(request, peer).await;
            Ok::<_, Infallible>(answer.map(|body| answers.watch(body, in_work)))
        })
    });
    let builder = builder(limits);
    let served = builder.serve_connection(TokioIo::new(Unstuck::new(stream, limits.stuck)), service);
    let mut served = std::pin::pin!(served);
    let mut pulse = Pulse::new(limits);
    let mut ending = false;
    loop {
        tokio::select! {
            // An error here is the client's: it reset the connection, does not read, or does not speak HTTP.
            _ = &mut served => return,
            _ = stopping.changed(), if !ending => {
                ending = true;
                served.as_mut().graceful_shutdown();
            }
            () = pulse.next() => match pulse.judge(&answers) {
                Verdict::Alive => {}
                Verdict::Idle if !ending => {
                    ending = true;
                    served.as_mut().graceful_shutdown();
                }
                Verdict::Idle => {}
                Verdict::Dead => return,
            }
        }
    }
}

/// Looks now and then whether a connection still makes progress. hyper's own timer starts only once the protocol is known,
/// and knows nothing of idle connections of HTTP/2.
struct Pulse {
    limits: Limits,
    requests: u64,
    /// When something was last in work, or the connection began.
    active_at: Tick,
}

enum Verdict {
    Alive,
    Idle,
    Dead,
}

impl Pulse {
    fn new(limits: Limits) -> Self {
        Self { limits, requests: 0, active_at: Ticker.now() }
    }

    async fn next(&self) {
        tokio::time::sleep(self.limits.first_request.min(self.limits.stuck) / 2).await;
    }

    fn judge(&mut self, answers: &Answers) -> Verdict {
        let (requests, in_work) = answers.seen();
        if answers.are_stuck(self.limits.stuck) {
            return Verdict::Dead;
        }
        if in_work || requests != self.requests {
            (self.requests, self.active_at) = (requests, Ticker.now());
            return Verdict::Alive;
        }
        let idle = Ticker.since(self.active_at);
        match () {
            () if requests == 0 && idle >= self.limits.first_request => Verdict::Dead,
            () if idle >= 2 * self.limits.next_request => Verdict::Dead,
            () if idle >= self.limits.next_request => Verdict::Idle,
            () => Verdict::Alive,
        }
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
        .max_concurrent_streams(limits.max_streams)
        .max_send_buf_size(64 * 1024)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}
