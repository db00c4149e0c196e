//! A client that costs as little as possible, since it shares the machine with the server: requests are bytes made
//! beforehand, and of an answer only the status and the length are read.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{Result, load::Caller};

/// A request as it goes over the wire, and the status that it must be answered with.
#[derive(Clone, Debug)]
pub struct Request {
    bytes: Vec<u8>,
    expected: u16,
}

impl Request {
    /// `header` is a whole line such as `x-api-key: …`, or empty.
    pub fn get(path: &str, header: &str) -> Self {
        let header = line(header);
        Self { bytes: format!("GET {path} HTTP/1.1\r\nhost: bench\r\n{header}\r\n").into_bytes(), expected: 200 }
    }

    pub fn post(path: &str, header: &str, body: &str) -> Self {
        Self { bytes: with_body("POST", path, header, JSON, body), expected: 201 }
    }

    pub fn put(path: &str, header: &str, body: &str) -> Self {
        Self { bytes: with_body("PUT", path, header, JSON, body), expected: 200 }
    }

    pub fn patch(path: &str, header: &str, body: &str) -> Self {
        Self { bytes: with_body("PATCH", path, header, JSON, body), expected: 200 }
    }

    /// What a browser posts; answered by a redirect.
    pub fn form(path: &str, body: &str) -> Self {
        Self { bytes: with_body("POST", path, "", "application/x-www-form-urlencoded", body), expected: 303 }
    }

    /// The same request where another status is right.
    #[must_use]
    pub fn expecting(self, status: u16) -> Self {
        Self { expected: status, ..self }
    }
}

const JSON: &str = "application/json";

fn with_body(method: &str, path: &str, header: &str, kind: &str, body: &str) -> Vec<u8> {
    let (header, length) = (line(header), body.len());
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\n{header}content-type: {kind}\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    text.into_bytes()
}

fn line(header: &str) -> String {
    if header.is_empty() { String::new() } else { format!("{header}\r\n") }
}

/// One connection that is kept and sends the same request again and again.
pub struct Connection {
    stream: TcpStream,
    request: Request,
    received: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr, request: Request) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, request, received: Vec::with_capacity(4096) })
    }

    /// From now on this request is sent.
    pub fn ask_next(&mut self, request: Request) {
        self.request = request;
    }

    /// Sends the request and returns the body of the answer.
    pub async fn ask(&mut self) -> Result<&[u8]> {
        self.received.clear();
        self.stream.write_all(&self.request.bytes).await?;
        loop {
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err("the server closed the connection".into());
            }
            let Some(head) = Head::read(&self.received)? else { continue };
            if self.received.len() < head.end + head.body {
                continue;
            }
            let (status, body) = (head.status, &self.received[head.end..]);
            if status != self.request.expected {
                return Err(format!("answered {status}: {}", String::from_utf8_lossy(body)).into());
            }
            return Ok(body);
        }
    }

    /// A header of the last answer.
    pub fn header(&self, name: &str) -> Option<&str> {
        let end = self.received.windows(4).position(|four| four == b"\r\n\r\n")?;
        let mut lines = str::from_utf8(&self.received[..end]).ok()?.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

impl Caller for Connection {
    async fn call(&mut self) -> Result<()> {
        self.ask().await.map(|_| ())
    }
}

struct Head {
    status: u16,
    /// Where the body begins.
    end: usize,
    body: usize,
}

impl Head {
    /// `None` while it has not arrived as a whole.
    fn read(received: &[u8]) -> Result<Option<Self>> {
        let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let head = str::from_utf8(&received[..end])?;
        let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or("an answer without a status")?;
        let body = head.lines().find_map(content_length).ok_or("an answer without a content-length")??;
        Ok(Some(Self { status, end: end + 4, body }))
    }
}

fn content_length(line: &str) -> Option<Result<usize>> {
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case("content-length").then(|| Ok(value.trim().parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_status_and_length_once_the_head_is_there() {
        let answer = b"HTTP/1.1 201 Created\r\nx: y\r\nContent-Length: 5\r\n\r\nhello";
        let head = Head::read(answer).expect("well formed").expect("whole");
        assert_eq!((head.status, head.body, &answer[head.end..]), (201, 5, &b"hello"[..]));
        assert!(Head::read(&answer[..40]).expect("well formed").is_none());
        assert!(Head::read(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
