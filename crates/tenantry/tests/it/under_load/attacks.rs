//! Strangers who flood a server. While they do, ordinary writes are answered, and memory stays where it was. They come from an
//! address of their own, as the whole of 127.0.0.0/8 is this machine. How long a write or a transaction takes depends on the
//! machine and what else it does: that is judged only for a program that was given in order to measure it
//! (`TENANTRY_TEST_PROGRAM`).

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    sync::watch,
    task::JoinHandle,
};

use crate::program::{Home, Server, given_program, on_both_engines, operator_key};

on_both_engines!(
    a_flood_of_reports_keeps_nobody_waiting,
    bodies_that_never_come_keep_nobody_waiting,
    clients_that_never_read_keep_nobody_waiting,
    a_flood_of_sign_ups_keeps_nobody_waiting,
    guesses_at_once_keep_nobody_waiting,
);

const ROOM: f64 = 64.0 * 1024.0 * 1024.0;
/// Nothing waits for this time to pass; it ends a test that would hang.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a measured program takes at most, for a write and for a transaction that keeps others waiting.
const SLOWEST_WRITE: Duration = Duration::from_secs(1);
const LONGEST_CLOSURE_MS: u64 = 10;

/// Somebody who writes all the time, and the server's memory at the beginning.
struct Bystander {
    server: Arc<Server>,
    bearer: String,
    memory: f64,
    over: Arc<AtomicBool>,
    written: watch::Receiver<usize>,
    writing: JoinHandle<Duration>,
}

impl Bystander {
    async fn watch(server: Server, home: &Home) -> Self {
        let bearer = format!("Bearer {}", operator_key(&home.path("tenantry-data")));
        let (server, over) = (Arc::new(server), Arc::new(AtomicBool::new(false)));
        // The first write of a server that has just started finds nothing prepared, whoever else is there.
        let app = create_app(&server, &bearer).await;
        rename(&server, &bearer, &app, 0).await;
        let memory = memory(&server, &bearer).await;
        let (counter, written) = watch::channel(0);
        let writing = write(Arc::clone(&server), bearer.clone(), app, Arc::clone(&over), counter);
        Self { server, bearer, memory, over, written, writing: tokio::spawn(writing) }
    }

    /// Ends the watch once ten more writes were answered, in spite of whoever is still there; memory is what it was.
    async fn was_served(mut self) {
        let before = *self.written.borrow();
        self.written.wait_for(|written| *written >= before + 10).await.expect("every write succeeds");
        let after = memory(&self.server, &self.bearer).await;
        self.over.store(true, Ordering::Relaxed);
        let slowest = self.writing.await.expect("every write succeeds");
        let grown = after - self.memory;
        let count = *self.written.borrow();
        println!("{count} writes, the slowest took {slowest:?}; memory grew by {:.1} MiB", grown / 1024.0 / 1024.0);
        let measured = given_program().is_some();
        assert!(!measured || slowest < SLOWEST_WRITE, "the slowest of {count} writes took {slowest:?}");
        assert!(grown < ROOM, "memory grew by {grown} bytes");
        let server = Arc::into_inner(self.server).expect("nobody else asks it");
        server.kill();
        let (_, log) = server.wait();
        let slow = log.lines().filter(|line| line.contains("slow transaction closure"));
        let took = |line: &str| -> Option<u64> {
            let line: Value = serde_json::from_str(line).ok()?;
            line["took_ms"].as_str()?.parse().ok()
        };
        let longest = slow.map(|line| took(line).expect("its length in milliseconds")).max().unwrap_or_default();
        println!("the longest transaction took {longest} ms");
        assert!(!measured || longest <= LONGEST_CLOSURE_MS, "a transaction took {longest} ms: {log}");
    }
}

/// Writes until it is over; how long the slowest took.
/// Always changes the same app: what is asked about is the memory that strangers take.
async fn write(
    server: Arc<Server>,
    bearer: String,
    app: String,
    over: Arc<AtomicBool>,
    written: watch::Sender<usize>,
) -> Duration {
    let mut slowest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let began = now();
        let number = *written.borrow() + 1;
        rename(&server, &bearer, &app, number).await;
        slowest = slowest.max(began.elapsed());
        written.send_modify(|written| *written += 1);
    }
    slowest
}

/// The path of a new app.
async fn create_app(server: &Server, bearer: &str) -> String {
    let app = json!({ "name": "Bystander", "domain": "bystander.example" });
    let request = server.client.post(server.url("/admin/apps")).header("authorization", bearer);
    let answer = request.json(&app).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 201);
    let made: Value = answer.json().await.expect("JSON");
    format!("/admin/apps/{}", made["app"]["id"].as_str().expect("an id"))
}

async fn rename(server: &Server, bearer: &str, app: &str, number: usize) {
    let request = server.client.put(server.url(app)).header("authorization", bearer);
    let answer = request.json(&json!({ "name": format!("Bystander {number}") })).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 200);
}

#[expect(clippy::disallowed_methods, reason = "a promise about real time")]
fn now() -> Instant {
    Instant::now()
}

async fn memory(server: &Server, bearer: &str) -> f64 {
    let answer = server.client.get(server.url("/metrics")).header("authorization", bearer).send().await;
    let text = answer.expect("an answer").text().await.expect("metrics");
    let line = text.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    line.and_then(|value| value.parse().ok()).expect("a gauge")
}

fn address(server: &Server) -> SocketAddr {
    let port = server.base.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// A connection of a stranger that has sent this.
async fn stranger(to: SocketAddr, text: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, 2], 0))).expect("this machine is all of 127.0.0.0/8");
    let mut stream = socket.connect(to).await.ok()?;
    stream.write_all(text.as_bytes()).await.ok()?;
    Some(stream)
}

/// The frames of HTTP/2 that begin a POST whose body is to follow: the settings, once, and the head.
fn request_head(stream: u32) -> Vec<u8> {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const END_HEADERS: u8 = 4;
    // From HPACK's static table: POST, http, and a path and an authority in clear.
    let mut head = vec![0x83, 0x86, 0x04, 15];
    head.extend_from_slice(b"/account/tenant");
    head.extend_from_slice(&[0x01, 1, b'x']);
    let mut frames = if stream == 1 { SETTINGS.to_vec() } else { Vec::new() };
    frames.extend_from_slice(&[0, 0, head.len() as u8, 1, END_HEADERS]);
    frames.extend_from_slice(&stream.to_be_bytes());
    frames.extend_from_slice(&head);
    frames
}

async fn a_flood_of_reports_keeps_nobody_waiting(home: Home) {
    let server = home.serve();
    let app = server.printed_value("App id").expect("an app").to_owned();
    let bystander = Bystander::watch(server, &home).await;
    let server = &bystander.server;
    let flags = server.url(&format!("/admin/apps/{app}/flags"));
    let operator = |request: reqwest::RequestBuilder| request.header("authorization", &bystander.bearer);
    let made = operator(server.client.post(&flags)).json(&json!({ "key": "k" })).send().await.expect("an answer");
    assert_eq!(made.status(), 201);
    let report = async |path: &str, reports: Vec<Value>| {
        let request = server.client.post(server.url(path)).header("x-app-id", &app);
        let answer = request.header("origin", "http://localhost:3000").json(&reports).send().await;
        assert_eq!(answer.expect("an answer").status(), 202);
    };
    for round in 0..40 {
        let file = |line: i64| format!("{round}-{line}-{}", "\u{20000}".repeat(if line % 2 == 0 { 220 } else { 200 }));
        let sites = (0..1_000).map(|line| json!({ "flagKey": "k", "file": file(line), "line": line })).collect();
        report("/flags/call-sites", sites).await;
        let event = |number: i64| {
            let day = format!("20{:02}-{:02}-{:02}T00:00:00Z", 20 + round % 7, 1 + number % 12, 1 + number % 28);
            json!({ "flagKey": "k", "variantIndex": number % 100, "timestamp": day })
        };
        report("/flags/eval-events", (0..1_000).map(event).collect()).await;
        let seen = |number: i64| json!({ "key": format!("key-{round}-{number}-{}", "x".repeat(100)) });
        report("/flags/discover", (0..1_000).map(seen).collect()).await;
        // Whoever looks at the flags has what was gathered written.
        if round % 10 == 9 {
            let list = operator(server.client.get(&flags)).send().await.expect("an answer");
            assert_eq!(list.status(), 200);
        }
    }
    bystander.was_served().await;
}

async fn bodies_that_never_come_keep_nobody_waiting(home: Home) {
    let bystander = Bystander::watch(home.serve(), &home).await;
    let to = address(&bystander.server);
    let half = "POST /account/tenant HTTP/1.1\r\nhost: x\r\ncontent-length: 20\r\n\r\n{";
    let mut held = Vec::new();
    for _ in 0..2_100 {
        held.extend(stranger(to, half).await);
    }
    // With HTTP/2 many fit into one connection.
    for _ in 0..11 {
        let mut stream = stranger(to, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        for id in (1..400).step_by(2) {
            if let Some(stream) = &mut stream {
                let _ = stream.write_all(&request_head(id)).await;
            }
        }
        held.extend(stream);
    }
    let (status, _) = bystander.server.get("/account", ("x-nothing", "")).await;
    assert_eq!(status, 200);
    bystander.was_served().await;
}

async fn clients_that_never_read_keep_nobody_waiting(home: Home) {
    let mut command = home.command(&["serve"]);
    command.env("TENANTRY_LIMITS_CONNECTIONS", "400").env("TENANTRY_LIMITS_CONNECTIONS_PER_ADDRESS", "300");
    let server = Server::start(&mut command);
    // Written when it is first asked for, once in a server's life.
    let document = server.client.get(server.url("/openapi.json")).send().await.expect("an answer");
    assert_eq!(document.status(), 200);
    let bystander = Bystander::watch(server, &home).await;
    let to = address(&bystander.server);
    let asks = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(40);
    let (mut held, mut refused) = (Vec::new(), 0);
    for number in 0..450 {
        match stranger(to, &asks).await {
            // What was accepted by the kernel alone is closed by the server.
            Some(mut stream) if number >= 300 => {
                let mut byte = [0];
                let closed = tokio::time::timeout(PATIENCE, stream.read(&mut byte)).await;
                refused += usize::from(matches!(closed, Ok(Ok(0) | Err(_))));
            }
            Some(stream) => held.push(stream),
            None => refused += 1,
        }
    }
    assert!(refused >= 100, "an address that has its share is refused: {refused}");
    bystander.was_served().await;
}

/// Every sign-up writes a row and a mail, so that a stranger gets few of them, with short names.
async fn a_flood_of_sign_ups_keeps_nobody_waiting(home: Home) {
    let server = home.serve();
    let app = server.printed_value("App id").expect("an app").to_owned();
    let bystander = Bystander::watch(server, &home).await;
    let server = &bystander.server;
    let (mut accepted, mut limited) = (0, 0);
    for number in 0..1_000 {
        let name = "\u{20000}".repeat(200);
        let email = format!("s{number}@example.com");
        let body = json!({ "email": email, "firstName": name, "lastName": name, "appId": app, "mode": "sdk" });
        let request = server.client.post(server.url("/auth/auth/signup")).header("origin", "http://localhost:3000");
        match request.json(&body).send().await.expect("an answer").status().as_u16() {
            200 => accepted += 1,
            429 => limited += 1,
            other => panic!("{other}"),
        }
    }
    println!("{accepted} sign-ups were accepted, {limited} were not");
    assert!((50..700).contains(&accepted) && limited > 0, "{accepted} accepted, {limited} limited");
    bystander.was_served().await;
}

/// A burst of guesses is judged like guesses in a row: ten at most, whatever the rest costs.
async fn guesses_at_once_keep_nobody_waiting(home: Home) {
    let server = home.serve();
    let app = server.printed_value("App id").expect("an app").to_owned();
    let bystander = Bystander::watch(server, &home).await;
    let guess = |number: i32| {
        let (server, app) = (Arc::clone(&bystander.server), app.clone());
        async move {
            let body = json!({ "username": "ada@example.com", "password": format!("guess {number}"), "appId": app,
                               "mode": "sdk" });
            let request = server.client.post(server.url("/auth/auth/authenticate"));
            let answer = request.header("origin", "http://localhost:3000").json(&body).send().await;
            answer.expect("an answer").status().as_u16()
        }
    };
    let statuses = futures_util::future::join_all((0..300).map(guess)).await;
    let judged = statuses.iter().filter(|status| **status == 401).count();
    assert!(judged <= 10 && statuses.iter().all(|status| matches!(status, 401 | 429 | 503)), "{judged}: {statuses:?}");
    bystander.was_served().await;
}
