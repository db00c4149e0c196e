//! Serves one path: picks the method's endpoint, admits the request within the route's limits, runs the handler under
//! its timeout, and turns a panic into an error. A wrong method is a 405 that names the right ones.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::Limited;
use kernel::{Code, Error, error::panic_text};
use tower::Service;

use crate::{Failure, Scope, cors, routes::Route};

/// A handler bound to its state.
pub(crate) type Endpoint = Arc<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>;

/// What one path serves, by method.
pub(crate) type Endpoints = Vec<(Arc<Route>, Endpoint)>;

#[derive(Clone)]
pub(crate) struct PathService(Arc<Methods>);

struct Methods {
    endpoints: Endpoints,
    allow: HeaderValue,
}

impl PathService {
    pub(crate) fn new(endpoints: Endpoints) -> Self {
        let mut names = Vec::new();
        for (route, _) in &endpoints {
            let name = route.method.as_str();
            assert!(!names.contains(&name), "{name} {} is registered twice", route.path);
            names.push(name);
            if route.method == Method::GET {
                names.push("HEAD");
            }
        }
        let allow = HeaderValue::from_str(&names.join(", ")).expect("method names are header text");
        Self(Arc::new(Methods { endpoints, allow }))
    }
}

impl Methods {
    fn find(&self, method: &Method) -> Option<&(Arc<Route>, Endpoint)> {
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        self.endpoints.iter().find(|(route, _)| route.method == *wanted)
    }

    /// A preflight asks about another method; which origins may use it is decided by the outer layer from the route.
    fn preflight(&self, request: &Request, scope: &Scope) -> Response {
        if let Some((route, _)) = cors::requested_method(request).and_then(|method| self.find(&method)) {
            scope.set_route(route);
        }
        StatusCode::NO_CONTENT.into_response()
    }

    fn not_allowed(&self) -> Response {
        let error = Error::new(Code::MethodNotAllowed, "This path does not support this method; see the Allow header.");
        let mut response = Failure::from(error).into_response();
        response.headers_mut().insert(header::ALLOW, self.allow.clone());
        response
    }

    async fn serve(&self, request: Request) -> Response {
        let scope = Scope::of(request.extensions());
        if cors::is_preflight(&request) {
            return self.preflight(&request, &scope);
        }
        let Some((route, endpoint)) = self.find(request.method()) else { return self.not_allowed() };
        scope.set_route(route);
        run(&scope, route, endpoint, request).await.unwrap_or_else(|error| Failure::from(error).into_response())
    }
}

async fn run(scope: &Scope, route: &Route, endpoint: &Endpoint, request: Request) -> kernel::Result<Response> {
    let policy = scope.policy();
    let _place = policy.admit(route, scope.client())?;
    let request = limit_body(request, route.body_limit.unwrap_or(policy.body_limit))?;
    let answer = AssertUnwindSafe(endpoint(request)).catch_unwind();
    match tokio::time::timeout(route.timeout.unwrap_or(policy.timeout), answer).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(panic)) => Err(Error::internal(format!("a handler panicked: {}", panic_text(&*panic)))),
        Err(_) => Err(Error::new(Code::TimedOut, "The operation timed out.")),
    }
}

/// A body of a known length is judged at once; only one of unknown length has to be counted while it is read.
fn limit_body(request: Request, limit: usize) -> kernel::Result<Request> {
    match request.body().size_hint().exact() {
        Some(length) if length > limit as u64 => Err(body_too_large()),
        Some(_) => Ok(request),
        None => Ok(request.map(|body| Body::new(Limited::new(body, limit)))),
    }
}

pub(crate) fn body_too_large() -> Error {
    Error::new(Code::BodyTooLarge, "The request body is larger than this operation accepts.")
}

impl Service<Request> for PathService {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let methods = Arc::clone(&self.0);
        Box::pin(async move { Ok(methods.serve(request).await) })
    }
}
