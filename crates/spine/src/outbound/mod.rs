//! Calls to servers that customers name: receivers of webhooks, identity providers, files to import.
//!
//! Whoever names a target could name one inside the operator's network, so a call reaches only what [`Targets`] allow. The
//! addresses that were checked are those that are connected to; redirects are answers, not instructions; proxies of the
//! environment are not asked; and every call has limits on time and on what it reads.

mod address;
mod failure;

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use kernel::{Tick, Ticker};
pub use reqwest::{Method, StatusCode, header};
use reqwest::{
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};
pub use url::Url;

pub use address::{Targets, is_loopback, is_public};
pub use failure::Failure;
use failure::RefusedName;

/// Makes guarded calls. Cheap to clone; connections are kept and shared.
#[derive(Clone)]
pub struct Outbound(Arc<Inner>);

struct Inner {
    targets: Targets,
    lookup: Lookup,
    haste: u32,
    /// By the limit on connecting, which belongs to a client. Callers have it as a constant, so there are few.
    clients: Mutex<HashMap<Duration, reqwest::Client>>,
}

/// Finds the addresses of a name.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// User and password in it become basic authentication.
    pub url: Url,
    pub headers: header::HeaderMap,
    pub body: Bytes,
}

/// What one call may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For the whole exchange: name, connection, TLS, request and answer.
    pub total: Duration,
    /// For name, connection and TLS together.
    pub connect: Duration,
    pub body: BodyLimit,
}

/// How much of an answer is read.
#[derive(Clone, Copy, Debug)]
pub enum BodyLimit {
    /// All of it; a longer one is [`Failure::TooLarge`].
    Whole(usize),
    /// Its beginning; the rest does not matter.
    Beginning(usize),
}

/// An answer that is read while it arrives. Dropping it ends the connection.
pub struct Download {
    pub status: StatusCode,
    pub headers: header::HeaderMap,
    answer: reqwest::Response,
    began: Tick,
    total: Duration,
    left: usize,
}

impl Download {
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let time = self.total.saturating_sub(Ticker.since(self.began));
        let Ok(chunk) = tokio::time::timeout(time, self.answer.chunk()).await else { return Err(Failure::TimedOut) };
        let Some(chunk) = chunk? else { return Ok(None) };
        self.left = self.left.checked_sub(chunk.len()).ok_or(Failure::TooLarge)?;
        Ok(Some(chunk))
    }
}

/// What the other side said. A redirect is an answer like any other.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: header::HeaderMap,
    pub body: Vec<u8>,
}

impl Outbound {
    pub fn new(targets: Targets) -> Self {
        Self::with_lookup(targets, Arc::new(|name| Box::pin(system_lookup(name))))
    }

    /// With other names than the system's.
    pub fn with_lookup(targets: Targets, lookup: Lookup) -> Self {
        Self(Arc::new(Inner { targets, lookup, haste: 1, clients: Mutex::default() }))
    }

    /// With limits on time that are so many times shorter, to see them kept without waiting for them.
    pub fn hurried(targets: Targets, haste: u32) -> Self {
        let lookup: Lookup = Arc::new(|name| Box::pin(system_lookup(name)));
        Self(Arc::new(Inner { targets, lookup, haste, clients: Mutex::default() }))
    }

    /// Makes a call. Nothing is tried again, and nothing is sent to a target that is refused.
    pub async fn send(&self, request: Request, limits: &Limits) -> Result<Answer, Failure> {
        let total = limits.total / self.0.haste;
        tokio::time::timeout(total, self.exchange(request, limits)).await.unwrap_or(Err(Failure::TimedOut))
    }

    /// Makes a call whose answer may be large: it is handed over as it arrives, within the same limits.
    pub async fn download(&self, request: Request, limits: &Limits) -> Result<Download, Failure> {
        let (began, total) = (Ticker.now(), limits.total / self.0.haste);
        let asked = tokio::time::timeout(total, self.ask(request, limits)).await;
        let mut answer = asked.unwrap_or(Err(Failure::TimedOut))?;
        let (BodyLimit::Whole(left) | BodyLimit::Beginning(left)) = limits.body;
        let (status, headers) = (answer.status(), std::mem::take(answer.headers_mut()));
        Ok(Download { status, headers, answer, began, total, left })
    }

    async fn ask(&self, request: Request, limits: &Limits) -> Result<reqwest::Response, Failure> {
        let Request { method, url, headers, body } = request;
        // The client asks its resolver for names only, so that literal addresses are checked here. `Url` has read them
        // already, however they were spelled.
        if !self.0.targets.allow_url(&url) {
            return Err(Failure::Refused);
        }
        Ok(self.client(limits.connect / self.0.haste)?.request(method, url).headers(headers).body(body).send().await?)
    }

    async fn exchange(&self, request: Request, limits: &Limits) -> Result<Answer, Failure> {
        let mut answer = self.ask(request, limits).await?;
        let (status, headers) = (answer.status(), std::mem::take(answer.headers_mut()));
        let body = read_body(answer, limits.body).await?;
        Ok(Answer { status, headers, body })
    }

    fn client(&self, connect: Duration) -> Result<reqwest::Client, Failure> {
        let mut clients = self.0.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&connect) {
            return Ok(client.clone());
        }
        let guard = Guard { targets: self.0.targets, lookup: self.0.lookup.clone() };
        let client = client_builder().connect_timeout(connect).no_proxy().dns_resolver(Arc::new(guard)).build();
        // Without root certificates there is no client.
        let client = client.map_err(|error| Failure::Tls(error.to_string()))?;
        clients.insert(connect, client.clone());
        Ok(client)
    }
}

/// What every client of ours is like, guarded or not.
pub fn client_builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(redirect::Policy::none())
        .referer(false)
        .user_agent(concat!("Tenantry/", env!("CARGO_PKG_VERSION")))
}

async fn read_body(mut answer: reqwest::Response, limit: BodyLimit) -> Result<Vec<u8>, Failure> {
    let (BodyLimit::Whole(most) | BodyLimit::Beginning(most)) = limit;
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        let room = most - body.len();
        if chunk.len() <= room {
            body.extend_from_slice(&chunk);
            continue;
        }
        match limit {
            BodyLimit::Whole(_) => return Err(Failure::TooLarge),
            BodyLimit::Beginning(_) => {
                body.extend_from_slice(&chunk[..room]);
                break;
            }
        }
    }
    Ok(body)
}

/// Hands to the connector the addresses that passed and no others: there is no second lookup that could answer otherwise.
struct Guard {
    targets: Targets,
    lookup: Lookup,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (targets, looked_up) = (self.targets, (self.lookup)(name.as_str().to_owned()));
        Box::pin(async move {
            let found = looked_up.await?;
            if found.is_empty() {
                return Err("the name has no address".into());
            }
            // The connector puts in the port.
            let allowed: Vec<SocketAddr> =
                found.into_iter().filter(|&ip| targets.allow(ip)).map(|ip| SocketAddr::new(ip, 0)).collect();
            if allowed.is_empty() {
                return Err(RefusedName.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

async fn system_lookup(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}
