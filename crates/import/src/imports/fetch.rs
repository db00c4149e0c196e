//! A batch that lies on somebody's server, fetched by the guarded client, or among the files of this service.

use std::time::Duration;

use bytes::Bytes;
use files::OwnFile;
use kernel::{Code, Error, Result};
use spine::outbound::{BodyLimit, Download, Failure, Limits, Method, Request, StatusCode, Url, header::HeaderMap};

use super::http::MAX_BYTES;
use crate::Imports;

const LIMITS: Limits =
    Limits { total: Duration::from_secs(60), connect: Duration::from_secs(10), body: BodyLimit::Whole(MAX_BYTES) };

/// A file that is arriving.
pub(super) struct Fetched {
    from: Place,
    pub(super) is_csv: bool,
}

enum Place {
    Elsewhere(Download),
    Here(OwnFile),
}

pub(super) async fn open(room: &Imports, address: &str) -> Result<Fetched> {
    if let Some(own) = room.files.open_own(address).await {
        return own.map_err(unreadable).and_then(here);
    }
    let url = Url::parse(address).map_err(|_| Error::invalid("fileUrl", "must be an absolute http or https URL"))?;
    let name = url.path().to_owned();
    let request = Request { method: Method::GET, url, headers: HeaderMap::new(), body: Bytes::new() };
    let download = room.outbound.download(request, &LIMITS).await.map_err(failed)?;
    if download.status != StatusCode::OK {
        let message = format!("The file could not be fetched: its server answered with {}.", download.status.as_u16());
        return Err(Error::new(Code::ProviderFailed, message));
    }
    let media_type = download.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_csv = is_csv(media_type, &name);
    Ok(Fetched { from: Place::Elsewhere(download), is_csv })
}

fn here(file: OwnFile) -> Result<Fetched> {
    if usize::try_from(file.size).is_ok_and(|size| size <= MAX_BYTES) {
        let is_csv = is_csv(&file.content_type, &file.file_name);
        return Ok(Fetched { from: Place::Here(file), is_csv });
    }
    Err(failed(Failure::TooLarge))
}

/// What somebody else's server would have answered with.
fn unreadable(error: Error) -> Error {
    match error.code() {
        Code::Forbidden | Code::NotFound => {
            let message = "The file could not be fetched: its address is not valid, or is not valid any more.";
            Error::new(Code::ProviderFailed, message)
        }
        _ => error,
    }
}

pub(super) fn is_csv(media_type: &str, name: &str) -> bool {
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "text/csv" || (name.to_ascii_lowercase().ends_with(".csv") && !media_type.contains("json"))
}

impl Fetched {
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>> {
        match &mut self.from {
            Place::Elsewhere(download) => download.next().await.map_err(failed),
            Place::Here(file) => file.next().await,
        }
    }
}

fn failed(failure: Failure) -> Error {
    match failure {
        Failure::Refused => Error::invalid("fileUrl", "must be a public http or https address"),
        Failure::TooLarge => Error::invalid("fileUrl", "must lead to a file of at most 64 MiB"),
        other => Error::new(Code::ProviderFailed, format!("The file could not be fetched: {other}.")),
    }
}
