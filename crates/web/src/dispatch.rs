//! Serves one path: picks the method's endpoint, reads the body, admits the request within the route's limits, runs the
//! handler under its timeout, and turns a panic into an error. A wrong method is a 405 that names the right ones.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::HttpBody,
    extract::Request,
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderValue, Method, StatusCode, Version, header};
use kernel::{Code, Error, error::panic_text};
use tower::Service;

use crate::{Failure, Scope, arrival, cors, failure::FailureForm, routes::Route};

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

    async fn not_allowed(&self, request: Request) -> Response {
        let error = Error::new(Code::MethodNotAllowed, "This path does not support this method; see the Allow header.");
        let mut response = arrival::refuse(request, error).await;
        response.headers_mut().insert(header::ALLOW, self.allow.clone());
        if let Some((route, _)) = self.endpoints.first().filter(|(route, _)| route.failures == FailureForm::Scim) {
            response.extensions_mut().insert(route.failures);
        }
        response
    }

    async fn serve(&self, request: Request) -> Response {
        let scope = Scope::of(request.extensions());
        if cors::is_preflight(&request) {
            return self.preflight(&request, &scope);
        }
        let Some((route, endpoint)) = self.find(request.method()) else { return self.not_allowed(request).await };
        scope.set_route(route);
        run(&scope, route, endpoint, request).await
    }
}

async fn run(scope: &Scope, route: &Route, endpoint: &Endpoint, request: Request) -> Response {
    let (policy, client) = (scope.policy(), scope.client());
    let limit = route.body_limit.unwrap_or(policy.body_limit);
    if request.body().size_hint().lower() > limit as u64 {
        return arrival::refuse(request, arrival::too_large()).await;
    }
    let mut share = match policy.share(route, client) {
        Ok(share) => share,
        Err(error) => return arrival::refuse(request, error).await,
    };
    let is_http1 = request.version() < Version::HTTP_2;
    if route.streamed {
        let request = request.map(|body| arrival::streamed(body, limit, policy.pace));
        let answered = match policy.admit(route, client) {
            Ok(_place) => answer(route.timeout.unwrap_or(policy.timeout), endpoint, request).await,
            Err(error) => Err(error),
        };
        let mut response = answered.unwrap_or_else(|error| Failure::from(error).into_response());
        // What was refused may still be arriving.
        if is_http1 && response.status().is_client_error() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        return response;
    }
    let request = match arrival::whole(request, limit, policy.pace, &mut share.body).await {
        Ok(request) => request,
        Err(error) => {
            let mut response = Failure::from(error).into_response();
            // The rest of it may still come.
            if is_http1 {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            return response;
        }
    };
    let answered = match policy.admit(route, client) {
        Ok(_place) => answer(route.timeout.unwrap_or(policy.timeout), endpoint, request).await,
        Err(error) => Err(error),
    };
    answered.unwrap_or_else(|error| Failure::from(error).into_response())
}

async fn answer(timeout: Duration, endpoint: &Endpoint, request: Request) -> kernel::Result<Response> {
    let answer = AssertUnwindSafe(endpoint(request)).catch_unwind();
    match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(panic)) => Err(Error::internal(format!("a handler panicked: {}", panic_text(&*panic)))),
        Err(_) => Err(Error::new(Code::TimedOut, "The operation timed out.")),
    }
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
