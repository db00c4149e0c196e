//! A batch that lies on somebody's server, fetched by the guarded client.

use std::time::Duration;

use bytes::Bytes;
use kernel::{Code, Error, Result};
use spine::outbound::{
    BodyLimit, Download, Failure, Limits, Method, Outbound, Request, StatusCode, Url, header::HeaderMap,
};

use super::http::MAX_BYTES;

const LIMITS: Limits =
    Limits { total: Duration::from_secs(60), connect: Duration::from_secs(10), body: BodyLimit::Whole(MAX_BYTES) };

/// A file that is arriving.
pub(super) struct Fetched {
    download: Download,
    pub(super) is_csv: bool,
}

pub(super) async fn open(outbound: &Outbound, url: &str) -> Result<Fetched> {
    let url = Url::parse(url).map_err(|_| Error::invalid("fileUrl", "must be an absolute http or https URL"))?;
    let names_csv = url.path().to_ascii_lowercase().ends_with(".csv");
    let request = Request { method: Method::GET, url, headers: HeaderMap::new(), body: Bytes::new() };
    let download = outbound.download(request, &LIMITS).await.map_err(failed)?;
    if download.status != StatusCode::OK {
        let message = format!("The file could not be fetched: its server answered with {}.", download.status.as_u16());
        return Err(Error::new(Code::ProviderFailed, message));
    }
    let media_type = download.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_csv = media_type == "text/csv" || (names_csv && !media_type.contains("json"));
    Ok(Fetched { download, is_csv })
}

impl Fetched {
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>> {
        self.download.next().await.map_err(failed)
    }
}

fn failed(failure: Failure) -> Error {
    match failure {
        Failure::Refused => Error::invalid("fileUrl", "must be a public http or https address"),
        Failure::TooLarge => Error::invalid("fileUrl", "must lead to a file of at most 64 MiB"),
        other => Error::new(Code::ProviderFailed, format!("The file could not be fetched: {other}.")),
    }
}
