//! Real servers for outgoing messages: a small SMTP server and a small HTTP one, each with answers of the test's choice.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// What the server says to a recipient.
pub(crate) enum Reply {
    Accept,
    Refuse(&'static str),
    /// Nothing, ever.
    Silence,
}

/// Starts an SMTP server that asks `reply` about each recipient (`RCPT TO`); its address and what it received.
pub(crate) async fn smtp(
    reply: impl Fn(&str) -> Reply + Clone + Send + Sync + 'static,
) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (deliver, delivered) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (reply, deliver) = (reply.clone(), deliver.clone());
            // A client that goes away in the middle is not a failure of the server.
            tokio::spawn(async move { drop(serve_smtp(stream, reply, deliver).await) });
        }
    });
    (address, delivered)
}

async fn serve_smtp(
    stream: TcpStream,
    reply: impl Fn(&str) -> Reply,
    deliver: mpsc::UnboundedSender<String>,
) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 test\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        let command = line.to_ascii_uppercase();
        let answer = if command.starts_with("RCPT TO:") {
            match reply(line["RCPT TO:".len()..].trim_matches(['<', '>', ' '])) {
                Reply::Accept => "250 ok",
                Reply::Refuse(answer) => answer,
                Reply::Silence => std::future::pending().await,
            }
        } else if command == "DATA" {
            write.write_all(b"354 go on\r\n").await?;
            let mut message = String::new();
            while let Some(line) = lines.next_line().await?.filter(|line| line != ".") {
                message += line.strip_prefix('.').unwrap_or(&line);
                message += "\r\n";
            }
            let _ = deliver.send(message);
            "250 received"
        } else if command == "QUIT" {
            "221 bye"
        } else if command.starts_with("EHLO") {
            // A password is welcome, encryption is not on offer: so looks a relay whose offer somebody has cut out.
            "250-test\r\n250 AUTH PLAIN"
        } else if command.starts_with("AUTH") {
            let _ = deliver.send(line.clone());
            "235 welcome"
        } else {
            "250 ok"
        };
        write.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
    Ok(())
}

/// Starts an HTTP server that answers the requests with these statuses in turn, the last one for ever; its address and
/// the requests.
pub(crate) async fn http(statuses: &'static [u16]) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (deliver, delivered) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut count = 0;
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read_request(&mut stream).await.unwrap();
            let status = statuses[statuses.len().min(count + 1) - 1];
            count += 1;
            let _ = deliver.send(request);
            let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, delivered)
}

/// Starts an HTTP server that answers each request with these bytes, and then closes the connection or says nothing more;
/// its address and the requests.
pub(crate) async fn raw(answer: Vec<u8>, then_close: bool) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (deliver, delivered) = mpsc::unbounded_channel();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (answer, deliver) = (answer.clone(), deliver.clone());
            tokio::spawn(async move {
                let _ = deliver.send(read_request(&mut stream).await.unwrap_or_default());
                // A client that stops reading is not a failure of the server.
                let _ = stream.write_all(&answer).await;
                if !then_close {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    (address, delivered)
}

/// Starts an HTTP server that keeps connections open; its address and how many there were.
pub(crate) async fn keeping() -> (SocketAddr, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let opened = Arc::new(Mutex::new(0));
    let count = opened.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            *count.lock().unwrap() += 1;
            tokio::spawn(async move {
                while read_request(&mut stream).await.is_ok_and(|request| !request.is_empty()) {
                    let _ = stream.write_all(b"HTTP/1.1 204 x\r\n\r\n").await;
                }
            });
        }
    });
    (address, opened)
}

/// Starts a server that shows this certificate to one caller and then closes the connection.
pub(crate) fn tls(certificate: &Path, key: &Path) -> SocketAddr {
    let chain = CertificateDer::pem_file_iter(certificate).unwrap().map(|one| one.unwrap()).collect();
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut session = rustls::ServerConnection::new(config).unwrap();
        // It ends with the client's refusal.
        while session.is_handshaking() && session.complete_io(&mut stream).is_ok() {}
    });
    address
}

async fn read_request(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Ok(text);
            }
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(text);
        }
    }
}
