//! Which pages may read an answer. A preflight cannot name its app, so it is answered for an origin that any app
//! allows; the real request is checked against its own app once the handler has found it. Credentials are never
//! allowed across origins: callers send tokens, not cookies.

use axum::extract::Request;
use http::{HeaderMap, HeaderValue, Method, header};
use kernel::AppId;

use crate::Scope;

/// The origins that apps allow; answered from memory, since every browser request asks.
pub trait Origins: Send + Sync + 'static {
    fn any_app_allows(&self, origin: &str) -> bool;
    fn app_allows(&self, app: AppId, origin: &str) -> bool;
}

/// Longer lists of requested headers are not echoed: no client of ours sends so many.
const MAX_ECHO: usize = 1024;

pub(crate) fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        && request.headers().contains_key(header::ORIGIN)
}

pub(crate) fn requested_method(request: &Request) -> Option<Method> {
    request
        .headers()
        .get(header::ACCESS_CONTROL_REQUEST_METHOD)
        .and_then(|name| Method::from_bytes(name.as_bytes()).ok())
}

/// What the answer depends on, kept while the request itself goes to the handler.
pub(crate) struct CorsRequest {
    origin: Option<HeaderValue>,
    preflight: Option<Preflight>,
}

struct Preflight {
    method: Option<HeaderValue>,
    headers: Option<HeaderValue>,
}

impl CorsRequest {
    pub(crate) fn by(request: &Request) -> Self {
        let headers = request.headers();
        let preflight = is_preflight(request).then(|| Preflight {
            method: headers.get(header::ACCESS_CONTROL_REQUEST_METHOD).cloned(),
            headers: headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).filter(|h| h.len() <= MAX_ECHO).cloned(),
        });
        Self { origin: headers.get(header::ORIGIN).cloned(), preflight }
    }

    /// Writes the CORS headers of an answer, of an error as of a success.
    pub(crate) fn answer(self, origins: &dyn Origins, scope: &Scope, headers: &mut HeaderMap) {
        let any_origin = scope.route().is_some_and(|route| route.any_origin);
        if !any_origin {
            headers.append(header::VARY, HeaderValue::from_static("origin"));
        }
        let Some(origin) = self.origin else { return };
        let allowed = if any_origin {
            HeaderValue::from_static("*")
        } else if self.preflight.is_some() && may_ask(origins, &origin)
            || self.preflight.is_none() && may_read(origins, scope, &origin)
        {
            origin
        } else {
            return;
        };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        match self.preflight {
            Some(preflight) => preflight.answer(headers),
            None => {
                headers.insert(
                    header::ACCESS_CONTROL_EXPOSE_HEADERS,
                    HeaderValue::from_static("x-request-id, retry-after, etag"),
                );
            }
        }
    }
}

impl Preflight {
    fn answer(self, headers: &mut HeaderMap) {
        headers.append(
            header::VARY,
            HeaderValue::from_static("access-control-request-method, access-control-request-headers"),
        );
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        if let Some(method) = self.method {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, method);
        }
        if let Some(names) = self.headers {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
        }
    }
}

fn may_ask(origins: &dyn Origins, origin: &HeaderValue) -> bool {
    origin.to_str().is_ok_and(|origin| origins.any_app_allows(origin))
}

/// Without a known app (a public route, or a failure before the caller was found) the rule of the preflight holds.
fn may_read(origins: &dyn Origins, scope: &Scope, origin: &HeaderValue) -> bool {
    match scope.app() {
        Some(app) => origin.to_str().is_ok_and(|origin| origins.app_allows(app, origin)),
        None => may_ask(origins, origin),
    }
}
