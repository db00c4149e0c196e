//! The signed address of a file, with ranges and `ETag`. Files share the origin of the login pages, so that a browser shows
//! only harmless types and runs nothing in any of them. From a storage elsewhere bytes do not pass here: the address leads
//! on to one that the storage takes, for as long as it is valid itself.

use std::{ops::Range, time::Duration};

use axum::{
    body::Body,
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts};
use kernel::{Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use vault::sha256_hex;
use web::{Anyone, Describe, Failure, IfNoneMatch, Operation, Params, Path, Routes, State};

use crate::{
    File, FileId, FileState, Files,
    content::{SHOWN, essence},
    names,
    storage::{Reader, Remote, Served, Storage},
    store,
    tickets::{DownloadTicket, Ticket as _, refused},
    upload::FORM,
};

/// The address of a file that is not public.
const ADDRESS_LASTS: Duration = Duration::from_secs(3_600);
pub(crate) const ADDRESS: &str = "/cloud-views/files/{key}";

pub(crate) fn routes() -> Routes<Files> {
    Routes::new("Files")
        .get(ADDRESS, download, "Get a file by its signed address")
        .answers(206, "The part of the file that was asked for")
        .answers(307, "The file is in a storage elsewhere, under the address in `Location`")
        .answers(304, "The caller has the file already")
        .answers(403, "The address is not valid, or is not valid any more")
        .answers(416, "The range lies outside of the file")
        .any_origin()
}

/// What makes the address valid.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Signed {
    /// From the answer that named the address.
    #[serde(default)]
    token: String,
}

/// The headers that decide how much of a file is sent.
struct Wanted {
    is_head: bool,
    range: Option<String>,
    if_range: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Wanted {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let text =
            |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
        Ok(Self { is_head: parts.method == Method::HEAD, range: text(header::RANGE), if_range: text(header::IF_RANGE) })
    }
}

impl Describe for Wanted {
    fn describe(operation: &mut Operation) {
        operation.header("range", false, "A part of the file: `bytes=0-499`");
    }
}

/// A file, a part of it, or word that it is known already.
struct Sent(Response);

impl IntoResponse for Sent {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Describe for Sent {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "application/octet-stream");
    }
}

async fn download(
    _: Anyone,
    State(files): State<Files>,
    Path(key): Path<FileId>,
    Params(Signed { token }): Params<Signed>,
    known: IfNoneMatch,
    wanted: Wanted,
) -> Result<Sent> {
    send(&files, key, &token, &known, wanted).await.map(Sent)
}

/// The file that an address leads to, as long as the address is valid, and how long that is.
async fn find(files: &Files, key: FileId, token: &str) -> Result<(File, Duration)> {
    let (found, now) = files.tenancy.db.read(move |tx| Ok((store::find_anywhere(tx, key)?, tx.now()))).await?;
    let ticket = DownloadTicket::open(&files.tenancy.keyring, key, token).ok();
    let Some(file) = found.filter(|file| file.state == FileState::Finished) else {
        // Who was given an address may know that there is nothing any more.
        return Err(ticket.map_or_else(refused, |_| Error::not_found("file")));
    };
    let is_public = file.public_file && vault::same(file.object.as_bytes(), token.as_bytes());
    if is_public {
        return Ok((file, ADDRESS_LASTS));
    }
    match ticket.filter(|ticket| now < ticket.until) {
        Some(ticket) => Ok((file, ticket.until.since(now))),
        None => Err(refused()),
    }
}

/// A file that is read by its address without a detour over the network.
pub struct OwnFile {
    pub file_name: String,
    pub content_type: String,
    /// In bytes.
    pub size: u64,
    bytes: Reader,
    left: u64,
}

impl OwnFile {
    /// `None` at its end.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let piece = self.bytes.next(self.left).await.map_err(Error::internal)?;
        self.left -= piece.len() as u64;
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}

impl Files {
    /// The file behind an address of this service; `None` for an address of anybody else.
    pub async fn open_own(&self, url: &str) -> Option<Result<OwnFile>> {
        let rest = url.strip_prefix(&*self.tenancy.base_url)?.strip_prefix(FORM)?.strip_prefix('/')?;
        Some(self.open_by_address(rest).await)
    }

    async fn open_by_address(&self, address: &str) -> Result<OwnFile> {
        let parts = address.split_once("?token=").and_then(|(key, token)| Some((key.parse().ok()?, token)));
        let (key, token) = parts.ok_or_else(refused)?;
        let (file, _) = find(self, key, token).await?;
        let size = u64::try_from(file.size).map_err(Error::internal)?;
        let bytes = self.storage.open(&file.object).await?.ok_or_else(bytes_missing)?;
        let File { file_name, content_type, .. } = file;
        Ok(OwnFile { file_name, content_type, size, bytes, left: size })
    }
}

fn bytes_missing() -> Error {
    Error::internal("a file's bytes are missing")
}

async fn send(files: &Files, key: FileId, token: &str, known: &IfNoneMatch, wanted: Wanted) -> Result<Response> {
    let (file, lasts) = find(files, key, token).await?;
    let folder = match &files.storage {
        Storage::Folder(folder) => folder,
        Storage::S3(remote) => return elsewhere(remote, &file, wanted.is_head, lasts),
    };
    let etag = etag_of(&file);
    let mut headers = headers_of(&file, &etag)?;
    if known.names(&etag) {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    let size = u64::try_from(file.size).map_err(Error::internal)?;
    let asked = wanted.range.filter(|_| wanted.if_range.is_none_or(|version| version == etag));
    let (status, part) = match asked.map_or(Asked::Everything, |range| asked_for(&range, size)) {
        Asked::Everything => (StatusCode::OK, 0..size),
        Asked::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Asked::Nothing => {
            headers.insert(header::CONTENT_RANGE, value(&format!("bytes */{size}"))?);
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, headers).into_response());
        }
    };
    if status == StatusCode::PARTIAL_CONTENT {
        headers.insert(header::CONTENT_RANGE, value(&format!("bytes {}-{}/{size}", part.start, part.end - 1))?);
    }
    headers.insert(header::CONTENT_LENGTH, (part.end - part.start).into());
    let opened = folder.open(&file.object, part.start).await?;
    let bytes = Reader::File(opened.ok_or_else(bytes_missing)?);
    Ok((status, headers, pieces(bytes, part.end - part.start)).into_response())
}

/// What makes an address valid. That of a public file lasts as long as the file, whatever becomes of the master key: it names
/// the file's bytes, which nobody else can.
pub(crate) fn token(files: &Files, file: &File) -> Result<String> {
    if file.public_file {
        return Ok(file.object.clone());
    }
    let until = files.tenancy.db.clock().now().plus(ADDRESS_LASTS);
    DownloadTicket { until }.seal(&files.tenancy.keyring, file.id)
}

fn value(text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(text).map_err(Error::internal)
}

/// Objects never change, so that their names are as good as a digest where the bytes never passed here.
fn etag_of(file: &File) -> String {
    let digest = if file.sha256.is_empty() { sha256_hex(file.object.as_bytes()) } else { file.sha256.clone() };
    format!("\"{digest}\"")
}

/// On to the storage. It is another origin than that of the login pages, and still shows harmless types only.
fn elsewhere(remote: &Remote, file: &File, is_head: bool, lasts: Duration) -> Result<Response> {
    let address = remote.readable(&file.object, is_head, &served(file), lasts)?;
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, value(&address)?);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_SECURITY_POLICY, SANDBOX);
    Ok((StatusCode::TEMPORARY_REDIRECT, headers).into_response())
}

const SANDBOX: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");

/// How a browser is told to take a file.
fn served(file: &File) -> Served {
    let kind = essence(&file.content_type);
    let shown = file.fits_type && SHOWN.contains(&kind.as_str());
    let content_type = match (shown, kind.as_str()) {
        (true, "text/plain") => "text/plain; charset=utf-8".to_owned(),
        (true, kind) => kind.to_owned(),
        // Whatever it is called, a browser does not try to show it.
        (false, _) if file.fits_type => file.content_type.clone(),
        (false, _) => "application/octet-stream".to_owned(),
    };
    let disposition = names::disposition(if shown { "inline" } else { "attachment" }, &file.file_name);
    Served { content_type, disposition }
}

fn headers_of(file: &File, etag: &str) -> Result<HeaderMap> {
    let Served { content_type, disposition } = served(file);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, value(&content_type)?);
    headers.insert(header::CONTENT_DISPOSITION, value(&disposition)?);
    headers.insert(header::ETAG, value(etag)?);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, SANDBOX);
    Ok(headers)
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Everything,
    Part(Range<u64>),
    Nothing,
}

/// What cannot be read, and several ranges at once, stand for everything (RFC 9110 §14.2).
fn asked_for(range: &str, size: u64) -> Asked {
    let Some((first, last)) = range.trim().strip_prefix("bytes=").and_then(|range| range.trim().split_once('-')) else {
        return Asked::Everything;
    };
    match (first.trim(), last.trim()) {
        ("", last) => match last.parse::<u64>() {
            Ok(0) => Asked::Nothing,
            Ok(_) if size == 0 => Asked::Nothing,
            Ok(count) => Asked::Part(size.saturating_sub(count)..size),
            Err(_) => Asked::Everything,
        },
        (first, last) => match (first.parse::<u64>(), last.parse::<u64>()) {
            (Ok(first), _) if first >= size && (last.is_empty() || last.parse::<u64>().is_ok()) => Asked::Nothing,
            (Ok(first), _) if last.is_empty() => Asked::Part(first..size),
            (Ok(first), Ok(last)) if last >= first => Asked::Part(first..last.saturating_add(1).min(size)),
            _ => Asked::Everything,
        },
    }
}

fn pieces(bytes: Reader, length: u64) -> Body {
    let pieces = futures_util::stream::try_unfold((bytes, length), |(mut bytes, left)| async move {
        let piece = bytes.next(left).await?;
        let left = left - piece.len() as u64;
        Ok::<_, std::io::Error>((!piece.is_empty()).then_some((piece, (bytes, left))))
    });
    Body::from_stream(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        for (range, asked) in [
            ("bytes=0-0", Asked::Part(0..1)),
            ("bytes=2-5", Asked::Part(2..6)),
            ("bytes=5-", Asked::Part(5..10)),
            ("bytes=-3", Asked::Part(7..10)),
            ("bytes=-30", Asked::Part(0..10)),
            ("bytes=8-99", Asked::Part(8..10)),
            ("bytes=10-", Asked::Nothing),
            ("bytes=10-12", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=5-2", Asked::Everything),
            ("bytes=0-1,3-4", Asked::Everything),
            ("lines=0-1", Asked::Everything),
            ("bytes=x-y", Asked::Everything),
            ("bytes=0-18446744073709551615", Asked::Part(0..10)),
        ] {
            assert_eq!(asked_for(range, 10), asked, "{range}");
        }
        assert_eq!(asked_for("bytes=-1", 0), Asked::Nothing);
    }
}
