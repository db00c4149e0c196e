//! Guarded calls against real servers on this machine, with names of the tests' own.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use spine::outbound::{Answer, BodyLimit, Failure, Limits, Lookup, Method, Outbound, Request, Targets, Url, header};

use crate::{servers, soon};

const LONG: Duration = Duration::from_secs(15);
const LIMITS: Limits = Limits { total: LONG, connect: LONG, body: BodyLimit::Whole(1_000) };
const HELLO: &[u8] = b"HTTP/1.1 200 x\r\nx-kind: test\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";

fn lookup(find: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Lookup {
    Arc::new(move |name| Box::pin(std::future::ready(find(&name))))
}

/// Every name is this machine's.
fn all_names_here() -> Lookup {
    lookup(|_| Ok(vec!["127.0.0.1".parse().unwrap()]))
}

fn get(url: &str) -> Request {
    let url = Url::parse(url).unwrap();
    Request { method: Method::GET, url, headers: header::HeaderMap::new(), body: Bytes::new() }
}

async fn send(outbound: &Outbound, url: &str) -> Result<Answer, Failure> {
    soon("an answer", outbound.send(get(url), &LIMITS)).await
}

/// By name, from a service that may call this machine.
async fn call(server: SocketAddr, limits: &Limits) -> Result<Answer, Failure> {
    let outbound = Outbound::with_lookup(Targets::PublicAndLoopback, all_names_here());
    soon("an answer", outbound.send(get(&format!("http://hooks.example:{}/", server.port())), limits)).await
}

#[tokio::test]
async fn a_call_brings_status_headers_and_body() {
    let (server, mut requests) = servers::raw(HELLO.to_vec(), true).await;
    let outbound = Outbound::with_lookup(Targets::PublicAndLoopback, all_names_here());
    let mut request = get(&format!("http://me:p%40ss@hooks.example:{}/in?a=1", server.port()));
    request.method = Method::POST;
    request.headers.insert("x-signature", "t=1".parse().unwrap());
    request.body = Bytes::from_static(b"{\"a\":1}");
    let answer = outbound.send(request, &LIMITS).await.unwrap();
    assert_eq!((answer.status.as_u16(), &*answer.body), (200, &b"hello"[..]));
    assert_eq!(answer.headers["x-kind"], "test");
    let sent = requests.recv().await.unwrap();
    assert!(sent.starts_with("POST /in?a=1 HTTP/1.1\r\n"), "{sent}");
    let host = format!("host: hooks.example:{}\r\n", server.port());
    for part in [&*host, "x-signature: t=1\r\n", "authorization: Basic bWU6cEBzcw==\r\n", "user-agent: Tenantry/"] {
        assert!(sent.contains(part), "{part} in {sent}");
    }
    assert!(sent.ends_with("\r\n\r\n{\"a\":1}"), "{sent}");
}

#[tokio::test]
async fn hostile_targets_reach_nothing() {
    let (server, mut requests) = servers::raw(HELLO.to_vec(), true).await;
    let outbound = Outbound::with_lookup(Targets::Public, all_names_here());
    let corpus = include_str!("../corpus/refused-targets.txt");
    let targets = corpus.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut tried = 0;
    for target in targets.map(|line| line.replace("{port}", &server.port().to_string())) {
        // What is not a URL cannot be called either.
        let Ok(url) = Url::parse(&target) else { continue };
        tried += 1;
        let request = Request { method: Method::GET, url, headers: header::HeaderMap::new(), body: Bytes::new() };
        let outcome = soon(&target, outbound.send(request, &LIMITS)).await;
        assert!(matches!(outcome, Err(Failure::Refused)), "{target}: {outcome:?}");
    }
    assert!(tried > 60, "{tried}");
    assert!(requests.try_recv().is_err(), "a request arrived");
}

#[tokio::test]
async fn what_was_checked_is_what_is_called() {
    let (server, mut requests) = servers::raw(HELLO.to_vec(), true).await;
    let lookups = Arc::new(AtomicUsize::new(0));
    let counted = lookups.clone();
    // As an attacker's name server does: an address that may be called first, then another one.
    let names = lookup(move |_| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        Ok(vec![if first { "127.0.0.1" } else { "10.0.0.1" }.parse().unwrap()])
    });
    let outbound = Outbound::with_lookup(Targets::PublicAndLoopback, names);
    let url = format!("http://rebound.example:{}/", server.port());
    assert!(send(&outbound, &url).await.is_ok());
    assert_eq!(lookups.load(Ordering::SeqCst), 1, "a second lookup could have answered otherwise");
    assert_eq!(send(&outbound, &url).await.unwrap_err(), Failure::Refused);
    assert!(requests.recv().await.is_some() && requests.try_recv().is_err());
}

#[tokio::test]
async fn of_several_addresses_only_allowed_ones_are_tried() {
    let (server, _requests) = servers::raw(HELLO.to_vec(), true).await;
    let names =
        lookup(|_| Ok(["10.255.255.1", "::ffff:127.0.0.1", "127.0.0.1"].map(|ip| ip.parse().unwrap()).to_vec()));
    let outbound = Outbound::with_lookup(Targets::PublicAndLoopback, names);
    // The private one is a black hole: had it been tried first, the call would end in it.
    let limits = Limits { connect: Duration::from_secs(2), ..LIMITS };
    let url = format!("http://mixed.example:{}/", server.port());
    assert!(soon("an answer", outbound.send(get(&url), &limits)).await.is_ok());
}

#[tokio::test]
async fn the_operator_can_lift_it() {
    let (server, _requests) = servers::raw(HELLO.to_vec(), true).await;
    let outbound = Outbound::new(Targets::Any);
    assert!(send(&outbound, &format!("http://{server}/")).await.is_ok());
    assert!(send(&outbound, &format!("http://[::ffff:127.0.0.1]:{}/", server.port())).await.is_ok());
    let public = Outbound::new(Targets::Public);
    assert_eq!(send(&public, &format!("http://localhost:{}/", server.port())).await.unwrap_err(), Failure::Refused);
}

#[tokio::test]
async fn redirects_are_answers() {
    let (inside, mut requests) = servers::raw(HELLO.to_vec(), true).await;
    let redirect = format!("HTTP/1.1 307 x\r\nlocation: http://{inside}/\r\ncontent-length: 0\r\n\r\n");
    let (server, _requests) = servers::raw(redirect.into_bytes(), true).await;
    let answer = call(server, &LIMITS).await.unwrap();
    assert_eq!(answer.status.as_u16(), 307);
    assert!(requests.try_recv().is_err(), "the redirect was followed");
}

#[tokio::test]
async fn a_long_answer_is_refused_or_cut() {
    let mut long = b"HTTP/1.1 200 x\r\n\r\n".to_vec();
    long.extend(std::iter::repeat_n(b'x', 100_000));
    let (server, _requests) = servers::raw(long, false).await;
    let limited = |body| Limits { body, ..LIMITS };
    assert_eq!(call(server, &limited(BodyLimit::Whole(99_999))).await.unwrap_err(), Failure::TooLarge);
    let answer = call(server, &limited(BodyLimit::Beginning(99_999))).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 99_999));
    let (server, _requests) = servers::raw(HELLO.to_vec(), true).await;
    assert_eq!(call(server, &limited(BodyLimit::Whole(5))).await.unwrap().body, b"hello");
    assert_eq!(call(server, &limited(BodyLimit::Whole(4))).await.unwrap_err(), Failure::TooLarge);
}

#[tokio::test]
async fn whatever_hangs_is_given_up() {
    let short = Duration::from_millis(50);
    let limits = Limits { total: short, ..LIMITS };
    for beginning in ["", "HTTP/1.1 200 x\r\n", "HTTP/1.1 200 x\r\ncontent-length: 5\r\n\r\nhe"] {
        let (server, _requests) = servers::raw(beginning.into(), false).await;
        assert_eq!(call(server, &limits).await.unwrap_err(), Failure::TimedOut, "{beginning}");
    }
    let no_name_server: Lookup = Arc::new(|_| Box::pin(std::future::pending()));
    let outbound = Outbound::with_lookup(Targets::Public, no_name_server);
    for limits in [limits, Limits { connect: short, ..LIMITS }] {
        let outcome = soon("an answer", outbound.send(get("http://slow.example/"), &limits)).await;
        assert_eq!(outcome.unwrap_err(), Failure::TimedOut);
    }
}

#[tokio::test]
async fn failures_say_what_went_wrong() {
    let (server, _requests) = servers::raw(Vec::new(), true).await;
    assert!(matches!(call(server, &LIMITS).await.unwrap_err(), Failure::Broken(_)));
    let (server, _requests) = servers::raw(b"SSH-2.0-x\r\n".to_vec(), true).await;
    assert!(matches!(call(server, &LIMITS).await.unwrap_err(), Failure::Broken(_)));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(matches!(call(free, &LIMITS).await.unwrap_err(), Failure::Unreachable(cause) if cause.contains("refused")));
    for names in [lookup(|_| Err(io::Error::other("no such name"))), lookup(|_| Ok(Vec::new()))] {
        let outbound = Outbound::with_lookup(Targets::Any, names);
        let failure = send(&outbound, "http://me:s3cret@nowhere.example/").await.unwrap_err();
        assert!(matches!(failure, Failure::Unreachable(_)) && !failure.to_string().contains("s3cret"), "{failure}");
    }
}

#[tokio::test]
async fn certificates_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .args(["req", "-new", "-x509", "-nodes", "-days", "2", "-newkey", "rsa:2048", "-subj", "/CN=hooks.example"])
        .args(["-addext", "subjectAltName=DNS:hooks.example", "-keyout", "key.pem", "-out", "certificate.pem"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let server = servers::tls(&folder.path().join("certificate.pem"), &folder.path().join("key.pem"));
    let (not_tls, _mails) = servers::smtp(|_| servers::Reply::Accept).await;
    let outbound = Outbound::with_lookup(Targets::PublicAndLoopback, all_names_here());
    for port in [server.port(), not_tls.port()] {
        let failure = send(&outbound, &format!("https://hooks.example:{port}/")).await.unwrap_err();
        assert!(matches!(failure, Failure::Tls(_)), "{failure:?}");
    }
}

#[tokio::test]
async fn connections_are_kept() {
    let (server, opened) = servers::keeping().await;
    let outbound = Outbound::with_lookup(Targets::PublicAndLoopback, all_names_here());
    for _ in 0..3 {
        assert!(send(&outbound, &format!("http://hooks.example:{}/", server.port())).await.is_ok());
    }
    assert_eq!(*opened.lock().unwrap(), 1);
}

/// Run by the test below in a process with proxies in its environment.
#[tokio::test]
#[ignore = "the child of another test"]
async fn child_makes_a_call() {
    let target = std::env::var("CHILD_TARGET").unwrap();
    let outbound = Outbound::new(Targets::Any);
    assert!(send(&outbound, &target).await.is_ok());
}

#[tokio::test]
async fn proxies_of_the_environment_are_not_asked() {
    let (server, mut requests) = servers::raw(HELLO.to_vec(), true).await;
    let (proxy, mut through_proxy) = servers::raw(HELLO.to_vec(), true).await;
    let child = tokio::task::spawn_blocking(move || {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "outbound::child_makes_a_call", "--ignored"]);
        child.env("CHILD_TARGET", format!("http://{server}/"));
        for variable in ["http_proxy", "https_proxy", "all_proxy"] {
            child.env(variable, format!("http://{proxy}")).env(variable.to_uppercase(), format!("http://{proxy}"));
        }
        child.env_remove("no_proxy").env_remove("NO_PROXY").output().unwrap()
    });
    let child = soon("the child's end", child).await.unwrap();
    assert!(child.status.success(), "{child:?}");
    assert!(requests.try_recv().is_ok() && through_proxy.try_recv().is_err());
}
