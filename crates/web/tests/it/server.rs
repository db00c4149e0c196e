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
    Conventions, Empty, IpNet, Origins, Pace, RateLimits, RawBody, Result, Routes, Settings, State, Text,
    TrustedProxies,
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

async fn large() -> Result<Text> {
    Ok(Text("x".repeat(LARGE)))
}

/// More than the buffers of a connection hold.
const LARGE: usize = 16 * 1024 * 1024;

async fn echo(RawBody(body): RawBody) -> Result<Text> {
    Ok(Text(format!("{} bytes", body.len())))
}

async fn start(limits: Limits) -> Running {
    start_with(limits, Settings::default()).await
}

async fn start_with(limits: Limits, settings: Settings) -> Running {
    let gate = Gate::default();
    let clock = Clock::system();
    let ids = IdSource::new(clock.clone(), Entropy::seeded_for_tests(1));
    let routes = Routes::new("Gate")
        .get("/slow", slow, "Waits")
        .get("/fast", fast, "Does not")
        .get("/large", large, "Is large")
        .post("/echo", echo, "Counts");
    let router = routes.into_router(gate.clone());
    let conventions = Conventions::new(settings, ids, Arc::new(RateLimits::new(clock)), Arc::new(NoOrigins));
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

const HALF: &str = "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 20\r\n\r\nx";
const FAST: &str = "GET /fast HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn a_body_that_does_not_come_keeps_nobody_waiting() {
    let settings = Settings { max_in_flight: 1, ..Settings::default() };
    let running = start_with(Limits::default(), settings).await;
    let mut halves = Vec::new();
    for _ in 0..50 {
        halves.push(send(running.address, HALF).await);
    }
    let text = rest(send(running.address, FAST).await).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    halves[0].write_all(&[b'x'; 19]).await.unwrap();
    assert!(read_head(&mut halves[0]).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_body_that_is_too_slow_is_given_up_with_its_connection() {
    let pace = Pace { grace: Duration::from_millis(30), bytes_per_second: 1_000_000 };
    let running = start_with(Limits::default(), Settings { pace, ..Settings::default() }).await;
    let text = rest(send(running.address, HALF).await).await;
    assert!(text.starts_with("HTTP/1.1 400") && text.contains("connection: close"), "{text}");
    assert!(text.contains("did not arrive in time"), "{text}");
}

#[tokio::test]
async fn an_address_with_its_share_of_requests_is_refused_and_others_are_served() {
    let settings = Settings {
        max_in_flight_per_address: 2,
        trusted_proxies: TrustedProxies::new(vec![IpNet::from(std::net::IpAddr::from([127, 0, 0, 1]))]),
        ..Settings::default()
    };
    let running = start_with(Limits::default(), settings).await;
    let from = |client: &str| format!("GET /slow HTTP/1.1\r\nhost: x\r\nx-forwarded-for: {client}\r\n\r\n");
    let fast = |client: &str| FAST.replace("host: x", &format!("host: x\r\nx-forwarded-for: {client}"));
    let mut held = Vec::new();
    for client in ["2001:db8::1", "2001:db8::2"] {
        held.push(send(running.address, &from(client)).await);
        running.gate.entered.notified().await;
    }
    let refused = rest(send(running.address, &fast("2001:db8::3")).await).await;
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("retry-after: 1"), "{refused}");
    let served = rest(send(running.address, &fast("2001:db8:0:1::1")).await).await;
    assert!(served.starts_with("HTTP/1.1 200"), "{served}");
    running.gate.open.notify_waiters();
    assert!(read_head(&mut held[0]).await.starts_with("HTTP/1.1 200"));
    assert!(read_head(&mut held[1]).await.starts_with("HTTP/1.1 200"));
    let served = rest(send(running.address, &fast("2001:db8::3")).await).await;
    assert!(served.starts_with("HTTP/1.1 200"), "{served}");
}

#[tokio::test]
async fn bodies_of_one_address_weigh_together() {
    let running = start(Limits::default()).await;
    let megabyte = 1024 * 1024;
    let head = format!("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: {megabyte}\r\n\r\n");
    let mut held = Vec::new();
    loop {
        let mut stream = send(running.address, &head).await;
        let _ = stream.write_all(&vec![b'x'; megabyte - 1]).await;
        let mut status = [0; 12];
        // One that was taken waits for its last byte; one that was refused is answered, sooner or later.
        match tokio::time::timeout(Duration::from_millis(100), stream.read_exact(&mut status)).await {
            Ok(Ok(_)) => {
                assert_eq!(&status, b"HTTP/1.1 429");
                break;
            }
            Ok(Err(_)) => break,
            Err(_) => held.push(stream),
        }
        assert!(held.len() < 100, "what all bodies weigh together is bounded");
    }
    assert!(held.len() >= 32, "{} were taken", held.len());
    held[0].write_all(b"x").await.unwrap();
    assert!(read_head(&mut held[0]).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn an_address_with_its_share_of_connections_gets_no_more() {
    let limits = Limits { max_connections_per_address: 2, ..Limits::default() };
    let running = start(limits).await;
    let mut held = [send(running.address, "").await, send(running.address, "").await];
    for stream in &mut held {
        stream.write_all(FAST.replace("connection: close\r\n", "").as_bytes()).await.unwrap();
        assert!(read_head(stream).await.starts_with("HTTP/1.1 200"));
    }
    let mut third = TcpStream::connect(running.address).await.unwrap();
    let _ = third.write_all(FAST.as_bytes()).await;
    let mut byte = [0];
    assert!(matches!(third.read(&mut byte).await, Ok(0) | Err(_)), "it is closed without a word");
    let [first, _second] = held;
    drop(first);
    let served = async {
        loop {
            let mut text = String::new();
            let mut again = TcpStream::connect(running.address).await.unwrap();
            let _ = again.write_all(FAST.as_bytes()).await;
            if again.read_to_string(&mut text).await.is_ok() && text.starts_with("HTTP/1.1 200") {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), served).await.expect("a place that was given back is used again");
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_connection() {
    let running = start(Limits { stuck: Duration::from_millis(100), ..Limits::default() }).await;
    let mut stream = send(running.address, "GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let cut = tokio::time::timeout(Duration::from_secs(10), async {
        // Sending fails once the other end is gone. What it sends itself is left unread.
        while stream.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    cut.await.expect("the connection ends");
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_everything() {
    let running = start(Limits { stuck: Duration::from_millis(500), ..Limits::default() }).await;
    let mut stream = send(running.address, &FAST.replace("/fast", "/large")).await;
    let (mut read, mut buffer) = (0, vec![0; 1024 * 1024]);
    loop {
        let count = stream.read(&mut buffer).await.unwrap();
        if count == 0 {
            break;
        }
        read += count;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(read > LARGE, "{read} bytes");
}

#[tokio::test]
async fn an_error_before_the_body_keeps_the_connection_or_says_that_it_ends() {
    let running = start(Limits::default()).await;
    for (path, status) in [("/nothing", 404), ("/fast", 405)] {
        let mut stream =
            send(running.address, &format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 7\r\n\r\n")).await;
        stream.write_all(b"1234567").await.unwrap();
        stream.write_all(FAST.as_bytes()).await.unwrap();
        let text = rest(stream).await;
        assert!(text.starts_with(&format!("HTTP/1.1 {status}")) && text.contains("HTTP/1.1 200"), "{text}");
    }
    let huge = "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 9999999\r\n\r\n";
    let mut stream = send(running.address, huge).await;
    let head = read_head(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 413") && head.contains("connection: close"), "{head}");
}

#[tokio::test]
async fn who_sends_everything_before_reading_sees_why_it_was_refused() {
    let running = start(Limits::default()).await;
    let mut stream = send(running.address, "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 9999999\r\n\r\n").await;
    stream.write_all(&vec![b'x'; 9_999_999]).await.expect("all of it is taken");
    assert!(rest(stream).await.starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn a_connection_of_http2_has_few_requests_at_once_and_ends_when_it_is_idle() {
    let limits = Limits {
        first_request: Duration::from_millis(100),
        next_request: Duration::from_millis(100),
        max_streams: 64,
        ..Limits::default()
    };
    let running = start(limits).await;
    let mut stream = send(running.address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    // No settings of its own, and GET /fast with everything from HPACK's static table but the path.
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    stream.write_all(&[0, 0, 9, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x04, 5]).await.unwrap();
    stream.write_all(b"/fast").await.unwrap();
    let mut told = Vec::new();
    stream.read_to_end(&mut told).await.unwrap();
    assert!(told.windows(6).any(|setting| setting == [0, 3, 0, 0, 0, 64]), "MAX_CONCURRENT_STREAMS is 64: {told:?}");
    let goaway = told.windows(5).any(|frame| frame[3] == 7 && frame[4] == 0);
    assert!(goaway, "it says that it ends: {told:?}");
}
