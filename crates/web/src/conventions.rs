//! What every route shares, as one layer around the router: request id, `/v1`, the scope, security headers, CORS, the
//! body of failures, metrics and the log line. It adds one allocation per request and no boxed future of its own.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::HttpBody, extract::Request, response::Response};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header, uri::PathAndQuery};
use kernel::{AppId, Clock, Code, Error, IdSource, Result, Ticker};
use tower::Service;
use tracing::{Instrument, Span, field::Empty};

use crate::{
    LimitClass, Origins, Pace, RateLimits, Scope, Subject, TrustedProxies, arrival, cors, failure,
    logging::SPAN_TARGET,
    record::RequestRecord,
    routes::Route,
    shares::{Share, Shares},
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID: usize = 128;

kernel::id_kinds! {
    GeneratedRequestId(Incoming) = "req";
}

/// The bounds of this node. The defaults suit a service behind nothing at all.
pub struct Settings {
    /// Whether clients reach this service by https, so that browsers may be told to insist on it.
    pub https: bool,
    pub trusted_proxies: TrustedProxies,
    pub body_limit: usize,
    pub timeout: Duration,
    /// How many requests may be in work at once; beyond that they are turned away instead of queued.
    pub max_in_flight: usize,
    /// How many of one client address, which IPv6 has a /64 of, may arrive or be in work at once. 0 means no limit.
    pub max_in_flight_per_address: usize,
    /// How slowly a body may arrive.
    pub pace: Pace,
}

/// What the bodies of one client's requests may weigh together while they arrive and are in work; one alone may have what
/// its route takes.
const BODIES_PER_ADDRESS: usize = 32 * 1024 * 1024;

impl Default for Settings {
    fn default() -> Self {
        Self {
            https: false,
            trusted_proxies: TrustedProxies::default(),
            body_limit: 1024 * 1024,
            timeout: Duration::from_secs(30),
            max_in_flight: 4096,
            max_in_flight_per_address: 1_024,
            pace: Pace::default(),
        }
    }
}

/// What a request must keep to, known to the router's inside through the scope.
pub(crate) struct Policy {
    pub(crate) body_limit: usize,
    pub(crate) timeout: Duration,
    pub(crate) pace: Pace,
    requests: Shares,
    bodies: Shares,
    max_in_flight: usize,
    in_flight: AtomicUsize,
    in_flight_gauge: metrics::Gauge,
    limits: Arc<RateLimits>,
}

impl Policy {
    fn new(settings: &Settings, limits: Arc<RateLimits>) -> Self {
        let Settings { body_limit, timeout, max_in_flight, max_in_flight_per_address, pace, .. } = *settings;
        Self {
            body_limit,
            timeout,
            pace,
            requests: Shares::new(max_in_flight_per_address),
            bodies: Shares::new(BODIES_PER_ADDRESS),
            max_in_flight,
            in_flight: AtomicUsize::new(0),
            in_flight_gauge: metrics::gauge!("tenantry_requests_in_flight"),
            limits,
        }
    }

    pub(crate) fn detached() -> Arc<Self> {
        Arc::new(Self::new(&Settings::default(), Arc::new(RateLimits::new(Clock::system()))))
    }

    /// An error once the callers of an app have asked too much.
    pub(crate) fn asked_by(&self, app: AppId) -> Result<()> {
        self.limits.check(LimitClass::App, Subject::App(app))
    }

    /// An error once too much of a class was refused to the client.
    pub(crate) fn refused(&self, class: LimitClass, client: IpAddr) -> Result<()> {
        self.limits.check(class, Subject::Address(client))
    }

    /// The request's part of what its client may have, from before its body arrives until it is answered.
    pub(crate) fn share(&self, route: &Route, client: IpAddr) -> Result<RequestShare> {
        let request = self.requests.take_one(client);
        if request.is_none() && !route.always_admitted {
            return Err(arrival::at_once());
        }
        Ok(RequestShare { _request: request, body: self.bodies.of(client) })
    }

    /// A place among the requests in work, given back when it is dropped.
    pub(crate) fn admit(&self, route: &Route, client: IpAddr) -> Result<InFlight<'_>> {
        let place = InFlight::take(self);
        if place.before >= self.max_in_flight && !route.always_admitted {
            return Err(Error::new(Code::Overloaded, "The service is overloaded. Try again in a moment."));
        }
        if let Some(class) = route.limit {
            self.limits.check(class, Subject::Address(client))?;
        }
        Ok(place)
    }
}

pub(crate) struct RequestShare {
    _request: Option<Share>,
    pub(crate) body: Share,
}

pub(crate) struct InFlight<'a> {
    policy: &'a Policy,
    before: usize,
}

impl<'a> InFlight<'a> {
    fn take(policy: &'a Policy) -> Self {
        policy.in_flight_gauge.increment(1);
        Self { before: policy.in_flight.fetch_add(1, Ordering::Relaxed), policy }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.policy.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.policy.in_flight_gauge.decrement(1);
    }
}

/// The layer. `Conventions::new(…).wrap(router)` is the application that the server serves.
pub struct Conventions {
    https: bool,
    trusted_proxies: TrustedProxies,
    policy: Arc<Policy>,
    ids: IdSource,
    origins: Arc<dyn Origins>,
}

impl Conventions {
    pub fn new(settings: Settings, ids: IdSource, limits: Arc<RateLimits>, origins: Arc<dyn Origins>) -> Self {
        let policy = Arc::new(Policy::new(&settings, limits));
        Self { https: settings.https, trusted_proxies: settings.trusted_proxies, policy, ids, origins }
    }

    pub fn wrap(self, router: Router) -> App {
        App { router: router.with_state(()), conventions: Arc::new(self) }
    }

    fn scope(&self, peer: IpAddr, headers: &HeaderMap) -> Arc<Scope> {
        let given = headers.get(&REQUEST_ID).filter(|id| acceptable(id)).cloned();
        let request_id = given.unwrap_or_else(|| {
            HeaderValue::try_from(self.ids.next::<Incoming>().to_string()).expect("an id is visible ASCII")
        });
        let client = self.trusted_proxies.client(peer, headers);
        Arc::new(Scope::new(request_id, client, Arc::clone(&self.policy)))
    }

    fn finish(&self, response: &mut Response, scope: &Scope, asked: cors::CorsRequest) {
        failure::write(response, scope);
        let headers = response.headers_mut();
        asked.answer(&*self.origins, scope, headers);
        headers.insert(REQUEST_ID, scope.request_id_header());
        secure(headers, self.https);
    }
}

/// Visible ASCII without spaces, so that it can stand in a log line and a header unharmed.
fn acceptable(id: &HeaderValue) -> bool {
    (1..=MAX_REQUEST_ID).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
}

/// The strictest headers by default; a handler that serves a page or something cacheable has set its own.
fn secure(headers: &mut HeaderMap, https: bool) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if https {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}

/// The answer to HEAD says how long the body would be and leaves it out.
fn without_body(response: &mut Response) {
    let body = std::mem::take(response.body_mut());
    if let Some(length) = body.size_hint().exact() {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
}

/// `/v1/x` is the same operation as `/x`: exactly one prefix is taken off, so `/v1/v1/x` is nothing.
fn without_version(uri: &Uri) -> Option<Uri> {
    let rest = uri.path().strip_prefix("/v1")?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    let path = if rest.is_empty() { "/" } else { rest };
    let path_and_query = match uri.query() {
        Some(query) => PathAndQuery::try_from(format!("{path}?{query}")),
        None => PathAndQuery::try_from(path),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path_and_query.ok()?);
    Uri::from_parts(parts).ok()
}

/// The address of the other end of the connection, for callers that are not the server (tests).
#[derive(Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Put into a request by whoever has opened the store itself, or holds the socket in its folder: they need no operator
/// key. Nothing that arrives over the network can carry it.
#[derive(Clone, Copy)]
pub struct AtHand;

/// The whole application: the router inside its conventions. Cheap to clone.
#[derive(Clone)]
pub struct App {
    router: Router,
    conventions: Arc<Conventions>,
}

impl App {
    /// Whether this is a proxy that speaks for others.
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        self.conventions.trusted_proxies.trusts(peer.to_canonical())
    }

    /// Answers one request of the client at `peer`.
    pub async fn handle(&self, mut request: Request, peer: IpAddr) -> Response {
        let scope = self.conventions.scope(peer, request.headers());
        let record = RequestRecord::begin(Ticker, &request, &scope);
        let asked = cors::CorsRequest::by(&request);
        let head = request.method() == Method::HEAD;
        let span = span(&request, &scope);
        if let Some(uri) = without_version(request.uri()) {
            *request.uri_mut() = uri;
        }
        request.extensions_mut().insert(Arc::clone(&scope));
        let mut response = self.route(request, scope.client()).instrument(span.clone()).await;
        self.conventions.finish(&mut response, &scope, asked);
        if head {
            without_body(&mut response);
        }
        record.end(&response, &span);
        response
    }

    async fn route(&self, request: Request, client: IpAddr) -> Response {
        if let Err(error) = self.conventions.policy.limits.check(LimitClass::General, Subject::Address(client)) {
            return arrival::refuse(request, error).await;
        }
        match self.router.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// For the exporter of spans; costs nothing while there is none.
fn span(request: &Request, scope: &Scope) -> Span {
    tracing::info_span!(
        target: SPAN_TARGET,
        "request",
        otel.name = request.method().as_str(),
        otel.kind = "server",
        http.request.method = request.method().as_str(),
        http.route = Empty,
        http.response.status_code = Empty,
        request_id = scope.request_id(),
    )
}

/// For tests that call the application in process.
impl Service<Request> for App {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let app = self.clone();
        let peer = request.extensions().get().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |Peer(address)| *address);
        Box::pin(async move { Ok(app.handle(request, peer).await) })
    }
}
