//! A bucket of an S3-compatible storage. Everything lies below one prefix, and nothing else in the bucket is looked at: files
//! under random names, and what was posted by a form under the file's key until it is taken over.

mod address;
mod faults;
mod signing;
mod transfer;
mod unended;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use kernel::{Clock, Error, Result};
use rusty_s3::{Method, actions::ListObjectsV2};
use spine::outbound::{
    Answer, BodyLimit, Download, Limits, Method as HttpMethod, Outbound, Request, StatusCode, Targets,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use tokio::runtime::Handle;

pub use address::S3Address;
pub use faults::Fault;
pub use signing::Allowed;
use signing::Unsigned;
pub(crate) use unended::UnendedUpload;

/// Of all that is ours in the bucket.
const PREFIX: &str = "tenantry/";
const TEMPORARY: &str = "tenantry/tmp/";
/// Our own requests are made at once.
const SIGNED_FOR: Duration = Duration::from_mins(5);
const CONNECT: Duration = Duration::from_secs(5);
/// Of answers that are read whole; a page of a listing is the largest.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;
const QUICK: Limits =
    Limits { total: Duration::from_secs(15), connect: CONNECT, body: BodyLimit::Whole(LARGEST_ANSWER) };
/// A copy inside the storage, and pieces on their way there.
const SLOW: Limits = Limits { total: Duration::from_mins(2), connect: CONNECT, body: BodyLimit::Whole(LARGEST_ANSWER) };
/// A whole object on its way here.
const STREAM: Limits = Limits { total: Duration::from_hours(1), connect: CONNECT, body: BodyLimit::Whole(usize::MAX) };
/// The largest page that storages give.
const LARGEST_PAGE: usize = 1_000;

type Answered<T> = std::result::Result<T, Fault>;

/// The bucket, and how it is spoken to. Cheap to clone.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    address: S3Address,
    outbound: Outbound,
    /// The storage judges signatures by real time, whatever the business clock says.
    clock: Clock,
    /// Carries the requests of threads that wait.
    runtime: Handle,
}

/// What the storage says of an object.
pub(crate) struct Held {
    pub(crate) size: u64,
    /// Names these bytes: others under the same name have another one.
    pub(crate) etag: String,
}

impl Remote {
    /// Within a runtime, which then carries its requests.
    pub(super) fn new(address: S3Address) -> Self {
        // The operator's own server, wherever it is.
        let outbound = Outbound::new(Targets::Any);
        Self(Arc::new(Inner { address, outbound, clock: Clock::system(), runtime: Handle::current() }))
    }

    /// Whether the bucket is there and can be used.
    pub(super) async fn check(&self) -> Answered<()> {
        self.page(None, 1).await.map(|_| ())
    }

    /// A form that posts an object under this name, for a while.
    pub(crate) fn form(
        &self,
        name: &str,
        content_type: &str,
        max_bytes: u64,
        lasts: Duration,
    ) -> Result<(String, BTreeMap<&'static str, String>)> {
        let address = &self.0.address;
        let allowed = Allowed { key: &temporary(name), content_type, max_bytes, lasts };
        Ok((address.form_url(), address.form(&allowed, self.0.clock.now())?))
    }

    /// An address under which everybody can read an object for a while: with `HEAD`, or with `GET`.
    pub(crate) fn readable(&self, object: &str, head: bool, served: &Served, lasts: Duration) -> Result<String> {
        let query = [
            ("response-content-disposition", served.disposition.as_str()),
            ("response-content-type", served.content_type.as_str()),
        ];
        let method = if head { Method::Head } else { Method::Get };
        let request = Unsigned { method, key: Some(&place(object)), query: &query, headers: &[] };
        Ok(self.0.address.signed(&request, self.0.clock.now(), lasts)?.into())
    }

    /// What was posted under this name.
    pub(crate) async fn posted(&self, name: &str) -> Result<Option<Held>> {
        Ok(self.head(&temporary(name)).await?)
    }

    /// The beginning of what was posted, as long as it is still the same.
    pub(crate) async fn first_of_posted(&self, name: &str, held: &Held, most: usize) -> Result<Vec<u8>> {
        if held.size == 0 {
            return Ok(Vec::new());
        }
        let range = format!("bytes=0-{}", most.saturating_sub(1));
        let headers = [("if-match", held.etag.as_str()), ("range", range.as_str())];
        let answer = self.call(&Call::get(&temporary(name), &headers), &QUICK).await?;
        match answer.status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(answer.body.into_iter().take(most).collect()),
            StatusCode::NOT_FOUND => Err(Fault::Changed.into()),
            _ => Err(Fault::of_answer(&answer).into()),
        }
    }

    /// All of what was posted, as long as it is still the same.
    pub(crate) async fn read_posted(&self, name: &str, held: &Held) -> Result<Vec<u8>> {
        let headers = [("if-match", held.etag.as_str())];
        let read = self.read_at(&temporary(name), &headers).await?;
        Ok(read.ok_or(Fault::Changed)?)
    }

    /// Makes what was posted an object, as long as it is still the same.
    pub(crate) async fn keep_posted(&self, name: &str, held: &Held, object: &str) -> Result<()> {
        let source = format!("/{}/{}", self.0.address.bucket.name(), temporary(name));
        let signed = [("x-amz-copy-source", source.as_str()), ("x-amz-copy-source-if-match", held.etag.as_str())];
        let key = place(object);
        let answer = self.call(&Call { signed: &signed, ..Call::put(&key, Bytes::new()) }, &SLOW).await?;
        match answer.status {
            // A copy that fails on the way has said 200 by then.
            StatusCode::OK if contains(&answer.body, b"CopyObjectResult") => Ok(()),
            StatusCode::OK => Err(Fault::of(StatusCode::BAD_GATEWAY, &answer.body).into()),
            StatusCode::NOT_FOUND => Err(Fault::Changed.into()),
            _ => Err(Fault::of_answer(&answer).into()),
        }
    }

    pub(super) async fn put(&self, object: &str, bytes: Vec<u8>) -> Result<()> {
        Ok(self.put_at(&place(object), bytes.into()).await?)
    }

    /// All of it; `None` when there is no such object.
    pub(super) async fn read(&self, object: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.read_at(&place(object), &[]).await?)
    }

    /// Its bytes as they arrive; `None` when there is no such object.
    pub(super) async fn open(&self, object: &str) -> Answered<Option<Download>> {
        let key = place(object);
        let request = self.request(&Call::get(&key, &[]))?;
        let mut download = self.0.outbound.download(request, &STREAM).await?;
        match download.status {
            StatusCode::OK => Ok(Some(download)),
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(Fault::of(status, &download.next().await?.unwrap_or_default())),
        }
    }

    pub(super) async fn has(&self, object: &str) -> Result<bool> {
        Ok(self.head(&place(object)).await?.is_some())
    }

    /// An object, or what was posted under a file's key.
    pub(super) async fn delete(&self, name: &str) -> Result<()> {
        let answer = self.call(&Call::to(Method::Delete, Some(&key_of(name))), &QUICK).await?;
        if answer.status.is_success() || answer.status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(Fault::of_answer(&answer).into())
    }

    pub(super) fn objects(&self) -> RemoteObjects {
        RemoteObjects { remote: self.clone(), next: Some(None) }
    }

    async fn head(&self, key: &str) -> Answered<Option<Held>> {
        let answer = self.call(&Call::to(Method::Head, Some(key)), &QUICK).await?;
        let text = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
        match answer.status {
            StatusCode::OK => {
                let size = text("content-length").and_then(|size| size.parse().ok());
                let held = size.zip(text("etag")).map(|(size, etag)| Held { size, etag: etag.to_owned() });
                held.map(Some).ok_or_else(|| Fault::strange("HEAD"))
            }
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(Fault::of_answer(&answer)),
        }
    }

    async fn read_at(&self, key: &str, headers: &[(&str, &str)]) -> Answered<Option<Vec<u8>>> {
        let answer = self.call(&Call::get(key, headers), &STREAM).await?;
        match answer.status {
            StatusCode::OK => Ok(Some(answer.body)),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(Fault::of_answer(&answer)),
        }
    }

    async fn put_at(&self, key: &str, bytes: Bytes) -> Answered<()> {
        let answer = self.call(&Call::put(key, bytes), &SLOW).await?;
        if answer.status.is_success() { Ok(()) } else { Err(Fault::of_answer(&answer)) }
    }

    /// Some keys below the prefix, and where to go on.
    async fn page(&self, after: Option<&str>, most: usize) -> Answered<(Vec<String>, Option<String>)> {
        let most = most.clamp(1, LARGEST_PAGE).to_string();
        let mut query =
            vec![("list-type", "2"), ("encoding-type", "url"), ("prefix", PREFIX), ("max-keys", most.as_str())];
        query.extend(after.map(|token| ("continuation-token", token)));
        let answer = self.call(&Call { query: &query, ..Call::to(Method::Get, None) }, &QUICK).await?;
        if answer.status != StatusCode::OK {
            return Err(Fault::of_answer(&answer));
        }
        let listed = std::str::from_utf8(&answer.body).ok().and_then(|text| ListObjectsV2::parse_response(text).ok());
        let listed = listed.ok_or_else(|| Fault::strange("a listing"))?;
        Ok((listed.contents.into_iter().map(|object| object.key).collect(), listed.next_continuation_token))
    }

    async fn call(&self, call: &Call<'_>, limits: &Limits) -> Answered<Answer> {
        Ok(self.0.outbound.send(self.request(call)?, limits).await?)
    }

    fn request(&self, call: &Call<'_>) -> Answered<Request> {
        let unsigned = Unsigned { method: call.method, key: call.key, query: call.query, headers: call.signed };
        let url = self.0.address.signed(&unsigned, self.0.clock.now(), SIGNED_FOR);
        let url = url.map_err(|error| Fault::Away(error.to_string()))?;
        let mut headers = HeaderMap::new();
        for (name, value) in call.signed.iter().chain(call.headers) {
            let header = HeaderName::try_from(*name).ok().zip(HeaderValue::from_str(value).ok());
            let (name, value) = header.ok_or_else(|| Fault::strange("HEAD"))?;
            headers.insert(name, value);
        }
        let method = match call.method {
            Method::Head => HttpMethod::HEAD,
            Method::Get => HttpMethod::GET,
            Method::Post => HttpMethod::POST,
            Method::Put => HttpMethod::PUT,
            Method::Delete => HttpMethod::DELETE,
        };
        Ok(Request { method, url, headers, body: call.body.clone() })
    }
}

/// How a browser is told to take an object.
pub(crate) struct Served {
    pub(crate) content_type: String,
    pub(crate) disposition: String,
}

/// A request to the storage.
struct Call<'a> {
    method: Method,
    key: Option<&'a str>,
    query: &'a [(&'a str, &'a str)],
    signed: &'a [(&'a str, &'a str)],
    headers: &'a [(&'a str, &'a str)],
    body: Bytes,
}

impl<'a> Call<'a> {
    fn to(method: Method, key: Option<&'a str>) -> Self {
        Self { method, key, query: &[], signed: &[], headers: &[], body: Bytes::new() }
    }

    fn get(key: &'a str, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { headers, ..Self::to(Method::Get, Some(key)) }
    }

    fn put(key: &'a str, body: Bytes) -> Self {
        Self { body, ..Self::to(Method::Put, Some(key)) }
    }
}

/// The same below the prefix as in a folder, so that one can be copied into the other.
fn place(object: &str) -> String {
    format!("{PREFIX}{}/{object}", object.get(..2).unwrap_or("xx"))
}

fn temporary(name: &str) -> String {
    format!("{TEMPORARY}{name}")
}

/// Where a name stands for: the keys of files have a mark between their parts, the names of objects have none.
fn key_of(name: &str) -> String {
    if name.contains('_') { temporary(name) } else { place(name) }
}

/// The file's key, of the key that its form was posted under.
pub(crate) fn without_prefix(key: &str) -> &str {
    key.strip_prefix(TEMPORARY).unwrap_or(key)
}

/// A walk over all objects, in the order of their keys. A page of names is in memory.
pub(crate) struct RemoteObjects {
    remote: Remote,
    /// Where the next page begins; `None` at the end.
    next: Option<Option<String>>,
}

impl RemoteObjects {
    /// The names of some further objects; none at the end.
    pub(super) async fn next(&mut self, most: usize) -> Result<Vec<String>> {
        while let Some(after) = self.next.take() {
            let (keys, next) = self.remote.page(after.as_deref(), most).await?;
            self.next = next.map(Some);
            let names: Vec<String> = keys.iter().filter_map(|key| name_in(key)).collect();
            if !names.is_empty() {
                return Ok(names);
            }
        }
        Ok(Vec::new())
    }
}

/// The name of an object that lies where we would have put it.
fn name_in(key: &str) -> Option<String> {
    let (_, name) = key.rsplit_once('/')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && key == key_of(name)).then(|| name.to_owned())
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// Bytes that a row names, and the storage does not have.
pub(super) fn missing() -> Error {
    Error::internal("a file's bytes are missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_where_we_put_it_is_ours() {
        for (key, name) in [
            ("tenantry/ab/abcdef", Some("abcdef")),
            ("tenantry/tmp/file_01", Some("file_01")),
            ("tenantry/ab/other", None),
            ("tenantry/ab/cd/abcdef", None),
            ("tenantry/readme", None),
            ("tenantry/tmp/", None),
            ("tenantry/tmp/abcdef", None),
            ("tenantry/tmp/a%2Fb", None),
            ("elsewhere/ab/abcdef", None),
            ("abcdef", None),
        ] {
            assert_eq!(name_in(key).as_deref(), name, "{key}");
        }
        assert_eq!(without_prefix("tenantry/tmp/file_01"), "file_01");
        assert_eq!(without_prefix("file_01"), "file_01");
    }
}
