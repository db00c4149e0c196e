//! Receivers that are not what they were, or not who they say: nothing is sent to them.

use std::{
    io::{BufRead as _, BufReader},
    net::{IpAddr, Ipv4Addr},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use spine::outbound::{Outbound, Targets};
use testkit::{
    EngineName, Receiver, TestApp, on_both_engines,
    webhooks::{deliveries, delivery, path},
};

on_both_engines!(a_name_that_is_pointed_inside_is_refused, an_unknown_certificate_is_refused);

/// The first app's webhook points at this URL from here on.
async fn point(app: &TestApp, url: &str) {
    let body = json!({ "url": url, "enabled": true, "events": ["tenant.created"] });
    app.operator().put(&path(app, ""), body).await.expect(200);
}

async fn newest(app: &TestApp) -> Value {
    delivery(app, &deliveries(app).await[0]["id"]).await
}

/// The first answer of the name server is harmless, each further one leads into the operator's network.
async fn a_name_that_is_pointed_inside_is_refused(engine: EngineName) {
    let lookups = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lookups);
    let app = TestApp::start_with(engine, move |options| {
        let lookup = Arc::new(move |_| {
            let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
            let address = if first { Ipv4Addr::LOCALHOST } else { Ipv4Addr::new(10, 0, 0, 1) };
            let found: std::io::Result<Vec<IpAddr>> = Ok(vec![address.into()]);
            Box::pin(std::future::ready(found)) as futures_util::future::BoxFuture<'static, _>
        });
        options.outbound = Outbound::with_lookup(Targets::PublicAndLoopback, lookup);
    })
    .await;
    let receiver = Receiver::start().await;
    // The connection is not kept, so that the second attempt has to ask for the name again.
    receiver.reply_next([testkit::Reply::Reset]);
    let port = receiver.url("").rsplit_once(':').expect("a port").1.to_owned();
    point(&app, &format!("http://hooks.example:{port}/")).await;
    app.workspace("acme").await;
    app.advance(Duration::from_secs(62)).await;
    let made = newest(&app).await;
    assert_eq!((&made["status"], &made["attempt"]), (&json!("failed"), &json!(2)));
    assert_eq!(made["lastError"], "The target is not a public HTTP address.");
    assert_eq!(receiver.received().len(), 1, "what was checked first was called");
    assert_eq!(lookups.load(Ordering::SeqCst), 2, "one lookup for each attempt");
}

/// A server with a certificate that nobody vouches for.
struct SelfSigned {
    server: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl SelfSigned {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let made = Command::new("openssl")
            .args(["req", "-new", "-x509", "-nodes", "-days", "2", "-newkey", "rsa:2048", "-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "certificate.pem"])
            .current_dir(folder.path())
            .output()
            .expect("openssl");
        assert!(made.status.success(), "{made:?}");
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let mut server = Command::new("openssl")
            .args(["s_server", "-www", "-cert", "certificate.pem", "-key", "key.pem"])
            .args(["-accept", &format!("127.0.0.1:{port}")])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl");
        let said = BufReader::new(server.stdout.take().expect("its output"));
        let this = Self { server, port, _folder: folder };
        assert!(said.lines().map_while(Result::ok).any(|line| line == "ACCEPT"), "openssl s_server does not listen");
        this
    }
}

impl Drop for SelfSigned {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

async fn an_unknown_certificate_is_refused(app: TestApp) {
    let receiver = SelfSigned::start();
    point(&app, &format!("https://localhost:{}/", receiver.port)).await;
    app.workspace("acme").await;
    app.drain().await;
    let made = newest(&app).await;
    assert_eq!((&made["status"], &made["responseCode"]), (&json!("failed"), &Value::Null));
    let error = made["lastError"].as_str().expect("a text");
    assert!(error.contains("ertificate"), "{error}");
}
