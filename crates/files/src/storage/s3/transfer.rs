//! Whole objects in and out of the bucket, in threads that may wait: for archives and for what a backup brings back. A few
//! MiB are in memory, however large the object is.

use std::io::{self, Read};

use bytes::Bytes;
use rusty_s3::{
    Method,
    actions::{CompleteMultipartUpload, CompleteMultipartUploadResponse, CreateMultipartUpload},
};
use spine::outbound::{Download, StatusCode};

use super::{Answered, Call, Fault, Remote, SLOW, place};

/// Storages take parts of at least 5 MiB.
const PART: usize = 8 * 1024 * 1024;

impl Remote {
    /// `None` when there is no such object.
    pub(in crate::storage) fn open_blocking(&self, object: &str) -> io::Result<Option<Box<dyn Read + Send>>> {
        let opened = self.0.runtime.block_on(self.open(object)).map_err(io::Error::other)?;
        Ok(opened.map(|download| {
            let reader = BlockingDownload { remote: self.clone(), download, piece: Bytes::new() };
            Box::new(reader) as Box<dyn Read + Send>
        }))
    }

    /// Nobody sees an object before all of it is there.
    pub(in crate::storage) fn keep_blocking(&self, object: &str, bytes: &mut dyn Read) -> io::Result<()> {
        let key = place(object);
        let first = next_part(bytes)?;
        if first.len() < PART {
            return self.0.runtime.block_on(self.put_at(&key, first)).map_err(io::Error::other);
        }
        let upload = self.0.runtime.block_on(self.begin_parts(&key)).map_err(io::Error::other)?;
        let kept = self.put_parts(&key, &upload, first, bytes);
        if kept.is_err() {
            // Parts that nobody ends are stored, and paid for.
            let _ = self.0.runtime.block_on(self.abort_parts(&key, &upload));
        }
        kept
    }

    fn put_parts(&self, key: &str, upload: &str, first: Bytes, bytes: &mut dyn Read) -> io::Result<()> {
        let (mut part, mut etags) = (first, Vec::new());
        while !part.is_empty() {
            let length = part.len();
            let put = self.put_part(key, upload, etags.len() + 1, part);
            etags.push(self.0.runtime.block_on(put).map_err(io::Error::other)?);
            part = if length < PART { Bytes::new() } else { next_part(bytes)? };
        }
        self.0.runtime.block_on(self.end_parts(key, upload, &etags)).map_err(io::Error::other)
    }

    async fn begin_parts(&self, key: &str) -> Answered<String> {
        let call = Call { query: &[("uploads", "1")], ..Call::to(Method::Post, Some(key)) };
        let answer = self.call(&call, &SLOW).await?;
        if answer.status != StatusCode::OK {
            return Err(Fault::of_answer(&answer));
        }
        let begun =
            std::str::from_utf8(&answer.body).ok().and_then(|text| CreateMultipartUpload::parse_response(text).ok());
        begun.map(|begun| begun.upload_id().to_owned()).ok_or_else(|| Fault::strange("an upload in parts"))
    }

    async fn put_part(&self, key: &str, upload: &str, number: usize, part: Bytes) -> Answered<String> {
        let number = number.to_string();
        let query = [("partNumber", number.as_str()), ("uploadId", upload)];
        let answer = self.call(&Call { query: &query, ..Call::put(key, part) }, &SLOW).await?;
        if answer.status != StatusCode::OK {
            return Err(Fault::of_answer(&answer));
        }
        let etag = answer.headers.get("etag").and_then(|etag| etag.to_str().ok());
        etag.map(str::to_owned).ok_or_else(|| Fault::strange("a part"))
    }

    async fn end_parts(&self, key: &str, upload: &str, etags: &[String]) -> Answered<()> {
        let etags = etags.iter().map(String::as_str);
        let body = CompleteMultipartUpload::new(&self.0.address.bucket, None, key, upload, etags).body();
        let call = Call { query: &[("uploadId", upload)], body: body.into(), ..Call::to(Method::Post, Some(key)) };
        let answer = self.call(&call, &SLOW).await?;
        if answer.status != StatusCode::OK {
            return Err(Fault::of_answer(&answer));
        }
        // One that fails on the way has said 200 by then.
        let ended =
            std::str::from_utf8(&answer.body).ok().and_then(|text| CompleteMultipartUploadResponse::parse(text).ok());
        ended.map(|_| ()).ok_or_else(|| Fault::of(StatusCode::BAD_GATEWAY, &answer.body))
    }

    pub(super) async fn abort_parts(&self, key: &str, upload: &str) -> Answered<()> {
        let call = Call { query: &[("uploadId", upload)], ..Call::to(Method::Delete, Some(key)) };
        self.call(&call, &SLOW).await.map(|_| ())
    }
}

fn next_part(bytes: &mut dyn Read) -> io::Result<Bytes> {
    let mut part = Vec::new();
    bytes.take(PART as u64).read_to_end(&mut part)?;
    Ok(part.into())
}

struct BlockingDownload {
    remote: Remote,
    download: Download,
    piece: Bytes,
}

impl Read for BlockingDownload {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.remote.0.runtime.block_on(self.download.next()).map_err(io::Error::other)? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let length = into.len().min(self.piece.len());
        into[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}
