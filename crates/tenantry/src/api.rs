//! How commands reach the installation: at the address they are given, with the operator key; through the socket that the
//! server of an embedded store keeps in its folder; else by opening the store and calling the same API in process.
//!
//! The operator key is never sent to an address that was only found, and whoever can open the store or its socket needs
//! none.

use std::{path::Path, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Request, header::CONTENT_TYPE},
};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use kernel::Secret;
use serde_json::Value;
use service::Service;
use store::FolderLocked;
use tokio::{io::AsyncReadExt as _, net::UnixStream};
use tower::ServiceExt as _;
use web::AtHand;

use crate::{
    config::{self, Config},
    startup,
};

/// The operator API.
pub enum Api {
    /// At the address that was given.
    Remote { client: reqwest::Client, base: String, key: Secret<String> },
    /// Through the socket beside the database.
    Socket(reqwest::Client),
    /// There is no server here: in this process.
    Local(Box<Service>),
}

/// Backups and archives take their time; nothing here takes longer.
const TIMEOUT: Duration = Duration::from_hours(6);

impl Api {
    pub async fn open(config: &Config, url: Option<&str>) -> Result<Self, String> {
        if let Some(url) = url {
            return Self::remote(config, url);
        }
        if let Some(socket) = startup::socket(config)
            && UnixStream::connect(&socket).await.is_ok()
        {
            return Ok(Self::Socket(finish(client().unix_socket(socket))?));
        }
        match startup::open(config).await {
            Ok(service) => Ok(Self::Local(Box::new(service))),
            Err(error) if FolderLocked::is_cause_of(&error) => Err(format!(
                "A server uses {} but does not respond. It may be starting or stopping; try again in a moment.",
                config.database
            )),
            Err(error) => Err(startup::explain(&error)),
        }
    }

    fn remote(config: &Config, url: &str) -> Result<Self, String> {
        let parsed = reqwest::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let parsed = parsed.ok_or_else(|| format!("{url} is not an http or https address of a server."))?;
        let loopback = parsed.host_str().is_some_and(config::is_loopback);
        if parsed.scheme() == "http" && !loopback {
            eprintln!("Warning: the operator key goes to {url} without encryption.");
        }
        let key = match &config.operator_key {
            Some(key) => key.clone(),
            None => read_operator_key(&config.data_dir)?,
        };
        Ok(Self::Remote { client: finish(client())?, base: url.trim_end_matches('/').to_owned(), key })
    }

    pub async fn get(&self, path: &str) -> Result<Value, String> {
        self.call("GET", path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.call("POST", path, Some(body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.call("PUT", path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value, String> {
        self.call("DELETE", path, None).await
    }

    /// Saves the answer's body into a file, piece by piece: it may be larger than memory.
    pub async fn download(&self, path: &str, body: Option<&Value>, target: &Path) -> Result<(), String> {
        let mut answer = self.send("POST", path, Content::json(body)).await?;
        // For the owner's eyes only: it holds everybody's data.
        let mut file = tokio::fs::File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(target)
            .await
            .map_err(|error| format!("Cannot write {}: {error}", target.display()))?;
        let written = answer.copy_to(&mut file).await;
        if written.is_err() {
            let _ = tokio::fs::remove_file(target).await;
        }
        written
    }

    /// Sends a file as a body, piece by piece.
    pub async fn upload(&self, path: &str, file: &Upload<'_>) -> Result<Value, String> {
        self.send("POST", path, file.content().await?).await?.json().await
    }

    /// A part of an export.
    pub async fn part(&self, path: &str) -> Result<ExportPart, String> {
        let answer = self.send("GET", path, Content::json(None)).await?;
        let number = |name: &str| answer.header(name).and_then(|text| text.parse().ok());
        let (events, total, next) =
            (number("x-part-events").unwrap_or(0), number("x-total-events"), answer.header("x-next-cursor"));
        Ok(ExportPart { bytes: answer.bytes().await?, events, total, next })
    }

    /// A stream of server-sent events.
    pub async fn watch(&self, path: &str) -> Result<EventStream, String> {
        let answer = self.send("GET", path, Content::json(None)).await?;
        Ok(EventStream { answer, unread: Vec::new() })
    }

    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        self.send(method, path, Content::json(body)).await?.json().await
    }

    async fn send(&self, method: &str, path: &str, content: Content) -> Result<ApiAnswer, String> {
        let Content { headers, body } = content;
        let remote = |client: &reqwest::Client, base: &str| {
            let request = client.request(parsed(method)?, format!("{base}{path}")).headers(headers.clone());
            Ok::<_, String>(request)
        };
        let answer = match self {
            Self::Remote { client, base, key } => {
                ApiAnswer::of(remote(client, base)?.bearer_auth(key.expose()), body).await?
            }
            Self::Socket(client) => ApiAnswer::of(remote(client, "http://localhost")?, body).await?,
            Self::Local(service) => {
                let request = Request::builder().method(method).uri(path).extension(AtHand);
                let body = body.map_or(Body::empty(), Body::new);
                let mut request = request.body(body).map_err(|error| error.to_string())?;
                request.headers_mut().extend(headers);
                let response = service.app().oneshot(request).await.unwrap_or_else(|never| match never {});
                ApiAnswer::Local(response)
            }
        };
        answer.check().await
    }

    /// Whether nobody does what is left to the background: a store that one process holds is open in this one.
    pub fn is_without_server(&self) -> bool {
        matches!(self, Self::Local(service) if service.core().db.is_single_node())
    }

    /// Ends the store's threads cleanly when it was opened here.
    pub async fn close(self) {
        if let Self::Local(service) = self {
            service.close().await;
        }
    }
}

/// A part of an export of events.
pub struct ExportPart {
    pub bytes: Vec<u8>,
    pub events: u64,
    /// About how many events all parts have; only the first part tells.
    pub total: Option<u64>,
    /// The cursor of the next part.
    pub next: Option<String>,
}

/// Server-sent events as they come.
pub struct EventStream {
    answer: ApiAnswer,
    unread: Vec<u8>,
}

impl EventStream {
    /// The data of the next event. The end of the stream is an error: nobody ends one on purpose.
    pub async fn next(&mut self) -> Result<String, String> {
        loop {
            while let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.unread.drain(..end + 2).collect();
                let block = String::from_utf8_lossy(&block);
                if let Some(data) = block.lines().find_map(|line| line.strip_prefix("data: ")) {
                    return Ok(data.to_owned());
                }
            }
            match self.answer.piece().await? {
                Some(piece) => self.unread.extend_from_slice(&piece),
                None => return Err("The server has ended the stream. Run the command again.".into()),
            }
        }
    }
}

enum ApiAnswer {
    Remote(reqwest::Response),
    Local(axum::response::Response),
}

impl ApiAnswer {
    async fn of(request: reqwest::RequestBuilder, body: Option<Pieces>) -> Result<Self, String> {
        let request = match body {
            Some(body) => request.body(reqwest::Body::wrap(body)),
            None => request,
        };
        request.send().await.map(Self::Remote).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("The server does not respond: {error}{cause}")
        })
    }

    fn status(&self) -> u16 {
        match self {
            Self::Remote(response) => response.status().as_u16(),
            Self::Local(response) => response.status().as_u16(),
        }
    }

    fn header(&self, name: &str) -> Option<String> {
        let headers = match self {
            Self::Remote(response) => response.headers(),
            Self::Local(response) => response.headers(),
        };
        headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    }

    /// A failed call reads as the API's own message, with the fields that were wrong.
    async fn check(self) -> Result<Self, String> {
        let status = self.status();
        if (200..300).contains(&status) {
            return Ok(self);
        }
        let body: Value = serde_json::from_slice(&self.bytes().await?).unwrap_or_default();
        let mut message = body["message"].as_str().unwrap_or("no explanation was given").to_owned();
        for detail in body["details"].as_array().into_iter().flatten() {
            let (field, problem) = (detail["field"].as_str(), detail["message"].as_str());
            message += &format!("\n  - {} {}", field.unwrap_or_default(), problem.unwrap_or_default());
        }
        Err(format!("{message} ({status})"))
    }

    async fn json(self) -> Result<Value, String> {
        serde_json::from_slice(&self.bytes().await?).map_err(|error| format!("The response is not JSON: {error}"))
    }

    async fn bytes(self) -> Result<Vec<u8>, String> {
        match self {
            Self::Remote(response) => response.bytes().await.map(|bytes| bytes.to_vec()).map_err(broken),
            Self::Local(response) => {
                let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.map_err(broken)?;
                Ok(bytes.to_vec())
            }
        }
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, String> {
        match self {
            Self::Remote(response) => response.chunk().await.map_err(broken),
            Self::Local(response) => next_piece(response.body_mut()).await,
        }
    }

    async fn copy_to(&mut self, file: &mut tokio::fs::File) -> Result<(), String> {
        use tokio::io::AsyncWriteExt as _;
        while let Some(piece) = self.piece().await? {
            file.write_all(&piece).await.map_err(broken)?;
        }
        file.sync_all().await.map_err(broken)
    }
}

/// A file that is sent.
pub struct Upload<'a> {
    pub file: &'a Path,
    pub content_type: &'static str,
    /// A header that must not show in any log.
    pub secret: Option<(&'static str, &'a str)>,
    /// Told how many bytes have left.
    pub watcher: Option<Watcher>,
}

pub type Watcher = Arc<dyn Fn(u64) + Send + Sync>;

impl Upload<'_> {
    async fn content(&self) -> Result<Content, String> {
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(self.content_type))]);
        if let Some((name, value)) = self.secret {
            let mut value = HeaderValue::from_str(value).map_err(|_| format!("{name} cannot be sent in a header."))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let cannot = |error: std::io::Error| format!("Cannot read {}: {error}", self.file.display());
        let file = tokio::fs::File::open(self.file).await.map_err(cannot)?;
        Ok(Content { headers, body: Some(body_of(file, self.watcher.clone())) })
    }
}

type Pieces = BoxBody<Bytes, std::io::Error>;

/// What a call sends.
struct Content {
    headers: HeaderMap,
    body: Option<Pieces>,
}

impl Content {
    fn json(body: Option<&Value>) -> Self {
        let Some(body) = body else { return Self { headers: HeaderMap::new(), body: None } };
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed();
        Self { headers, body: Some(body) }
    }
}

/// The content of a file, of which a piece is in memory.
fn body_of(file: tokio::fs::File, watcher: Option<Watcher>) -> Pieces {
    let pieces = futures_util::stream::try_unfold((file, 0_u64), move |(mut file, sent)| {
        let watcher = watcher.clone();
        async move {
            let mut piece = vec![0; 256 * 1024];
            let read = file.read(&mut piece).await?;
            piece.truncate(read);
            let sent = sent + u64::try_from(read).unwrap_or_default();
            if let Some(watcher) = watcher {
                watcher(sent);
            }
            let frame = if read == 0 { None } else { Full::new(Bytes::from(piece)).frame().await };
            Ok(frame.map(|frame| (frame.unwrap_or_else(|never| match never {}), (file, sent))))
        }
    });
    StreamBody::new(pieces).boxed()
}

async fn next_piece(body: &mut Body) -> Result<Option<Bytes>, String> {
    while let Some(frame) = body.frame().await {
        if let Ok(piece) = frame.map_err(broken)?.into_data() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

fn broken(error: impl std::fmt::Display) -> String {
    format!("The response was cut off: {error}")
}

fn parsed(method: &str) -> Result<reqwest::Method, String> {
    method.parse().map_err(|_| format!("{method} is not a method"))
}

/// No proxy, and no redirect that would take the operator key elsewhere.
fn client() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(TIMEOUT)
}

fn finish(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, String> {
    builder.build().map_err(|error| error.to_string())
}

fn read_operator_key(data_dir: &Path) -> Result<Secret<String>, String> {
    let path = data_dir.join("operator.key");
    std::fs::read_to_string(&path).map(|key| Secret::new(key.trim().to_owned())).map_err(|error| {
        format!("Cannot read the operator key from {}: {error}. Set TENANTRY_OPERATOR_KEY instead.", path.display())
    })
}
