//! The API page at `/docs` and the document behind it at `/openapi.json`. Both are written when somebody first asks
//! for one of them, and kept; the page needs no script and no other host.

mod page;
mod schema;

use std::{
    future::{Ready, ready},
    sync::{Arc, LazyLock},
};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, header};
use kernel::Result;
use serde_json::Value;

use crate::Routes;

const STYLE: &str = include_str!("style.css");
const PAGE_POLICY: &str =
    "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// What changes only with a new release may be kept for a while.
const CACHED: &str = "public, max-age=300";

/// Routes that show what `document` returns. They are hidden: a document does not describe itself.
pub fn docs_routes<S: Clone + Send + Sync + 'static>(document: impl FnOnce() -> Value + Send + 'static) -> Routes<S> {
    let written: Arc<Written> = Arc::new(LazyLock::new(Box::new(|| Files::of(&document()))));
    let (page, text) = (written.clone(), written);
    let style = File::new("text/css; charset=utf-8", STYLE);
    Routes::new("Documentation")
        .get("/docs", move || page.page.answer(), "This API as a page")
        .hidden()
        .get("/docs/style.css", move || style.answer(), "The style of that page")
        .hidden()
        .get("/openapi.json", move || text.document.answer(), "This API as an OpenAPI 3.1 document")
        .hidden()
        .any_origin()
}

type Written = LazyLock<Files, Box<dyn FnOnce() -> Files + Send>>;

struct Files {
    page: File,
    document: File,
}

impl Files {
    fn of(document: &Value) -> Self {
        Self {
            page: File::new("text/html; charset=utf-8", page::render(document)),
            document: File::new("application/json", format!("{document:#}\n")),
        }
    }
}

/// A file kept in memory.
#[derive(Clone)]
struct File {
    media_type: &'static str,
    bytes: Bytes,
}

impl File {
    fn new(media_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        Self { media_type, bytes: bytes.into() }
    }

    fn answer(&self) -> Ready<Result<Response>> {
        let mut response = self.bytes.clone().into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(CACHED));
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
        ready(Ok(response))
    }
}
