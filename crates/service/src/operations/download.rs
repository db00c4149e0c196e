//! A file of the server's as an answer, piece by piece: it may be larger than memory.

use std::path::Path;

use axum::{body::Body, response::Response};
use http::{HeaderValue, header};
use kernel::{Error, Result};
use tokio::io::AsyncReadExt as _;

const PIECE: usize = 256 * 1024;

/// Its name can go at once: the open file stays readable.
pub(crate) async fn stream(file: &Path, media_type: &'static str) -> Result<Response> {
    let opened = tokio::fs::File::open(file).await.map_err(Error::internal)?;
    let length = opened.metadata().await.map_err(Error::internal)?.len();
    let pieces = futures_util::stream::unfold(opened, |mut file| async move {
        let mut piece = vec![0; PIECE];
        match file.read(&mut piece).await {
            Ok(0) => None,
            Ok(read) => {
                piece.truncate(read);
                Some((Ok::<_, std::io::Error>(piece), file))
            }
            Err(error) => Some((Err(error), file)),
        }
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}
