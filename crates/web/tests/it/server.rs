//! The server over a real socket: it answers, keeps connections, turns silence away and stops without losing an answer.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use kernel::{Clock, Entropy, IdSource};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, oneshot},
    task::JoinHandle,
};
use web::{
    Conventions, Empty, Origins, RateLimits, Result, Routes, Settings, State, Text,
    server::{Limits, Stopped, serve},
};

struct NoOrigins;

impl Origins for NoOrigins {
    fn any_app_allows(&self, _: &str) -> bool {
        false
    }

    fn app_allows(&self, _: kernel::AppId, _: &str) -> bool {
        false
    }
}

/// Tells that a request is in work, and lets it end.
#[derive(Clone, Default)]
struct Gate {
    entered: Arc<Notify>,
    open: Arc<Notify>,
}

async fn slow(State(gate): State<Gate>) -> Result<Text> {
    gate.entered.notify_one();
    gate.open.notified().await;
    Ok(Text("done".to_owned()))
}

async fn fast() -> Result<Empty> {
    Ok(Empty)
}

struct Running {
    address: SocketAddr,
    gate: Gate,
    stop: oneshot::Sender<()>,
    server: JoinHandle<Stopped>,
}

async fn start(limits: Limits) -> Running {
    let gate = Gate::default();
    let clock = Clock::system();
    let ids = IdSource::new(clock.clone(), Entropy::seeded_for_tests(1));
    let router =
        Routes::new("Gate").get("/slow", slow, "Waits").get("/fast", fast, "Does not").into_router(gate.clone());
    let conventions = Conventions::new(Settings::default(), ids, Arc::new(RateLimits::new(clock)), Arc::new(NoOrigins));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let server = tokio::spawn(serve(listener, conventions.wrap(router), limits, async move {
        let _ = stopped.await;
    }));
    Running { address, gate, stop, server }
}

async fn send(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// An answer without a body, leaving the connection open.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn answers_requests_on_one_connection() {
    let running = start(Limits::default()).await;
    let requests = "GET /fast HTTP/1.1\r\nhost: x\r\n\r\nGET /v1/fast HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let text = rest(send(running.address, requests).await).await;
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
    assert_eq!(text.matches("x-request-id: req_").count(), 2, "{text}");
}

#[tokio::test]
async fn stopping_finishes_what_is_in_work_and_takes_nothing_new() {
    let running = start(Limits::default()).await;
    let in_work = send(running.address, "GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await;
    running.gate.entered.notified().await;
    let mut idle = send(running.address, "GET /fast HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let head = read_head(&mut idle).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");

    running.stop.send(()).unwrap();
    assert_eq!(rest(idle).await, "", "an idle connection is closed at once");
    assert!(TcpStream::connect(running.address).await.is_err(), "no new connection is accepted");

    running.gate.open.notify_one();
    let text = rest(in_work).await;
    assert!(text.contains("HTTP/1.1 200 OK") && text.ends_with("done"), "{text}");
    assert_eq!(running.server.await.unwrap(), Stopped::Drained);
}

#[tokio::test]
async fn what_is_not_done_by_the_deadline_is_cut_off() {
    let running = start(Limits { drain: Duration::from_millis(20), ..Limits::default() }).await;
    let _in_work = send(running.address, "GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await;
    running.gate.entered.notified().await;
    running.stop.send(()).unwrap();
    assert_eq!(running.server.await.unwrap(), Stopped::CutOff(1));
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let running = start(Limits { first_request: Duration::from_millis(20), ..Limits::default() }).await;
    assert_eq!(rest(send(running.address, "").await).await, "");
    assert_eq!(rest(send(running.address, "GET /fast HT").await).await, "");
}

#[tokio::test]
async fn an_oversized_head_is_refused() {
    let running = start(Limits { max_head: 8 * 1024, ..Limits::default() }).await;
    let text = format!("GET /fast HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n", "x".repeat(20_000));
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let _ = stream.write_all(text.as_bytes()).await;
    let mut answer = vec![0; 64];
    let read = stream.read(&mut answer).await.unwrap_or(0);
    assert!(answer[..read].starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer[..read]));
}
