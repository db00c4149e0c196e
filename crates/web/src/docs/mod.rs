//! The API page at `/docs` and the document behind it at `/openapi.json`. Both are written when somebody first asks
//! for one of them, and kept; the page needs no script and no other host.

mod page;
mod schema;

use std::{future::ready, sync::Arc};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, header};
use kernel::{Error, Result};
use serde_json::Value;
use tokio::{sync::OnceCell, task::spawn_blocking};

use crate::Routes;

const STYLE: &str = include_str!("style.css");
const PAGE_POLICY: &str =
    "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// What changes only with a new release may be kept for a while.
const CACHED: &str = "public, max-age=300";

/// Routes that show what `document` returns. They are hidden: a document does not describe itself.
pub fn docs_routes<S: Clone + Send + Sync + 'static>(
    document: impl Fn() -> Value + Send + Sync + 'static,
) -> Routes<S> {
    let written = Arc::new(Written { document: Box::new(document), files: OnceCell::new() });
    let (page, text) = (Arc::clone(&written), written);
    let style = File::new("text/css; charset=utf-8", STYLE);
    Routes::new("Documentation")
        .get("/docs", move || answer(Arc::clone(&page), |files| &files.page), "This API as a page")
        .hidden()
        .get("/docs/style.css", move || ready(Result::<_>::Ok(style.answer())), "The style of that page")
        .hidden()
        .get(
            "/openapi.json",
            move || answer(Arc::clone(&text), |files| &files.document),
            "This API as an OpenAPI 3.1 document",
        )
        .hidden()
        .any_origin()
}

struct Written {
    document: Box<dyn Fn() -> Value + Send + Sync>,
    files: OnceCell<Files>,
}

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

/// Written on a thread of its own, which keeps nobody else waiting.
async fn answer(written: Arc<Written>, pick: fn(&Files) -> &File) -> Result<Response> {
    let writing = Arc::clone(&written);
    let files = written.files.get_or_try_init(async || {
        spawn_blocking(move || Files::of(&(writing.document)())).await.map_err(Error::internal)
    });
    Ok(pick(files.await?).answer())
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

    fn answer(&self) -> Response {
        let mut response = self.bytes.clone().into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(CACHED));
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
        response
    }
}
