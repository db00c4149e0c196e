//! The one way a route is registered. A registration yields the router's entry, the operation in the OpenAPI document
//! and the row in the route table, so that none of them can be forgotten or differ.
//!
//! ```
//! # use web::{Json, Path, Routes, State};
//! # async fn list(State(names): State<Vec<String>>) -> web::Result<Json<Vec<String>>> { Ok(Json(names)) }
//! # async fn show(Path(name): Path<String>) -> web::Result<Json<String>> { Ok(Json(name)) }
//! let routes = Routes::new("Names").get("/names", list, "List names").get("/names/{name}", show, "Show a name");
//! let router = routes.into_router(vec!["Ada".to_owned()]);
//! ```

use std::{panic::Location, sync::Arc, time::Duration};

use axum::{Router, extract::Request, response::Response};
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use kernel::{Code, Error};

use crate::{
    Handler, LimitClass, Operation, arrival,
    dispatch::{Endpoint, Endpoints, PathService},
    failure::FailureForm,
    metrics::RouteMetrics,
    scim,
};

/// One registered route: what it is called, where it is written, what it takes and what bounds it.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) description: Option<&'static str>,
    pub(crate) file: &'static str,
    pub(crate) operation: Operation,
    pub(crate) hidden: bool,
    pub(crate) failures: FailureForm,
    pub(crate) any_origin: bool,
    pub(crate) always_admitted: bool,
    pub(crate) body_limit: Option<usize>,
    /// Whether the handler reads the body while it arrives.
    pub(crate) streamed: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) limit: Option<LimitClass>,
    pub(crate) metrics: RouteMetrics,
}

/// Binds a handler to the state once, when the router is made, so that requests do not pay for it.
type Bind<S> = Box<dyn FnOnce(S) -> Endpoint + Send>;

/// Routes over the state `S`, under one heading of the documentation.
pub struct Routes<S> {
    tag: &'static str,
    /// The form of the failures of the routes added next. Pages are not in the API reference.
    failures: FailureForm,
    /// What the routes added next may also answer.
    answers: &'static [(u16, &'static str)],
    entries: Vec<(Route, Bind<S>)>,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// `tag` is the heading of these routes in the documentation.
    pub fn new(tag: &'static str) -> Self {
        Self { tag, failures: FailureForm::Json, answers: &[], entries: Vec::new() }
    }

    /// Pages that people look at: failures are pages, too, and the API reference leaves them out.
    pub fn pages(tag: &'static str) -> Self {
        Self { failures: FailureForm::Page, ..Self::new(tag) }
    }

    /// Routes whose failures have SCIM's form.
    pub fn scim(tag: &'static str) -> Self {
        Self { failures: FailureForm::Scim, ..Self::new(tag) }
    }

    /// Further statuses of the routes that follow. What one of them says itself by [`answers`](Self::answers) wins.
    #[must_use]
    pub fn all_answer(self, answers: &'static [(u16, &'static str)]) -> Self {
        Self { answers, ..self }
    }

    #[track_caller]
    pub fn get<M: 'static>(self, path: &'static str, handler: impl Handler<M, S>, summary: &'static str) -> Self {
        self.route(Method::GET, path, handler, summary)
    }

    #[track_caller]
    pub fn post<M: 'static>(self, path: &'static str, handler: impl Handler<M, S>, summary: &'static str) -> Self {
        self.route(Method::POST, path, handler, summary)
    }

    #[track_caller]
    pub fn put<M: 'static>(self, path: &'static str, handler: impl Handler<M, S>, summary: &'static str) -> Self {
        self.route(Method::PUT, path, handler, summary)
    }

    #[track_caller]
    pub fn patch<M: 'static>(self, path: &'static str, handler: impl Handler<M, S>, summary: &'static str) -> Self {
        self.route(Method::PATCH, path, handler, summary)
    }

    #[track_caller]
    pub fn delete<M: 'static>(self, path: &'static str, handler: impl Handler<M, S>, summary: &'static str) -> Self {
        self.route(Method::DELETE, path, handler, summary)
    }

    #[track_caller]
    fn route<M: 'static, H: Handler<M, S>>(
        mut self,
        method: Method,
        path: &'static str,
        handler: H,
        summary: &'static str,
    ) -> Self {
        let mut operation = Operation::default();
        H::describe(&mut operation);
        operation.failures.extend(self.answers.iter().map(|(status, when)| (*status, (*when).to_owned())));
        let route = Route {
            metrics: RouteMetrics::new(&method, path),
            method,
            path,
            tag: self.tag,
            summary,
            description: None,
            file: Location::caller().file(),
            operation,
            hidden: self.failures == FailureForm::Page,
            failures: self.failures,
            any_origin: false,
            always_admitted: false,
            body_limit: None,
            streamed: false,
            timeout: None,
            limit: None,
        };
        self.entries.push((route, Box::new(move |state| bind(handler, state))));
        self
    }

    /// Adds the routes of `other`, which keep their heading.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    /// Routes over a part of a larger state: `tenancy::routes().within(|service: &Service| service.tenancy.clone())`.
    pub fn within<Outer: 'static>(self, part: fn(&Outer) -> S) -> Routes<Outer> {
        let entries = self.entries.into_iter().map(|(route, bind)| {
            let bind: Bind<Outer> = Box::new(move |outer| bind(part(&outer)));
            (route, bind)
        });
        Routes { tag: self.tag, failures: self.failures, answers: self.answers, entries: entries.collect() }
    }

    /// Lets pages of any origin read the last route's answers.
    #[must_use]
    pub fn any_origin(self) -> Self {
        self.last(|route| route.any_origin = true)
    }

    /// How many bytes of body the last route accepts.
    #[must_use]
    pub fn body_limit(self, bytes: usize) -> Self {
        self.last(|route| route.body_limit = Some(bytes))
    }

    /// Hands the body of the last route to its handler while it arrives, as a [`BodyStream`](crate::BodyStream): for what
    /// should never be in memory as a whole. The route's timeout counts the arrival too.
    #[must_use]
    pub fn streamed(self) -> Self {
        self.last(|route| route.streamed = true)
    }

    /// How long the last route may take.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.last(|route| route.timeout = Some(timeout))
    }

    /// Counts calls of the last route per client address against the class's quota.
    #[must_use]
    pub fn limited(self, class: LimitClass) -> Self {
        self.last(|route| {
            route.limit = Some(class);
            route.operation.failure(429, "Too many requests");
        })
    }

    /// Serves the last route even when the node is at its limit: health and metrics must answer then.
    #[must_use]
    pub fn always_admitted(self) -> Self {
        self.last(|route| route.always_admitted = true)
    }

    /// Leaves the last route out of the OpenAPI document; it stays in the route table.
    #[must_use]
    pub fn hidden(self) -> Self {
        self.last(|route| route.hidden = true)
    }

    /// Writes the last route's failures as pages, because a person looks at them.
    #[must_use]
    pub fn page(self) -> Self {
        self.last(|route| route.failures = FailureForm::Page)
    }

    /// A further status that the last route answers.
    #[must_use]
    pub fn answers(self, status: u16, when: &str) -> Self {
        self.last(|route| {
            // What the author says about a status goes before what follows from the types.
            route.operation.failures.insert(status, when.to_owned());
        })
    }

    #[must_use]
    pub fn description(self, text: &'static str) -> Self {
        self.last(|route| route.description = Some(text))
    }

    fn last(mut self, change: impl FnOnce(&mut Route)) -> Self {
        let (route, _) = self.entries.last_mut().expect("a modifier follows the route it modifies");
        change(route);
        self
    }

    pub(crate) fn listed(&self) -> impl Iterator<Item = &Route> {
        self.entries.iter().map(|(route, _)| route)
    }

    /// The router over `state`. Two registrations of one method and path are a mistake in the code and panic here.
    pub fn into_router(self, state: S) -> Router {
        let mut paths: Vec<(&'static str, Endpoints)> = Vec::new();
        for (route, bind) in self.entries {
            let entry = (Arc::new(route), bind(state.clone()));
            match paths.iter_mut().find(|(path, _)| *path == entry.0.path) {
                Some((_, endpoints)) => endpoints.push(entry),
                None => paths.push((entry.0.path, vec![entry])),
            }
        }
        let router = paths
            .into_iter()
            .fold(Router::new(), |router, (path, endpoints)| router.route_service(path, PathService::new(endpoints)));
        router.fallback(async |request: Request| {
            let form = if scim::is_beside(request.uri().path()) { FailureForm::Scim } else { FailureForm::Json };
            let error = Error::new(Code::RouteNotFound, "There is no operation at this path.");
            let mut response = arrival::refuse(request, error).await;
            response.extensions_mut().insert(form);
            response
        })
    }
}

fn bind<M: 'static, S: Send + Sync + 'static>(handler: impl Handler<M, S>, state: S) -> Endpoint {
    let shared = Arc::new((handler, state));
    Arc::new(move |request: Request| -> BoxFuture<'static, Response> {
        let shared = Arc::clone(&shared);
        Box::pin(async move {
            let (handler, state) = &*shared;
            handler.call(request, state).await
        })
    })
}

impl Route {
    /// The status of a successful answer.
    pub(crate) fn success(&self) -> StatusCode {
        self.operation.success.as_ref().map_or(StatusCode::OK, |(status, _)| *status)
    }
}
