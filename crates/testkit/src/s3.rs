//! An S3 storage that believes nobody, in a process of Python (moto behind botocore's judgement).

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};

use crate::{Caller, TestApp, files::part};

/// As `s3.py` has them.
pub const KEY: &str = "AKIDTENANTRY";
pub const SECRET: &str = "s3cr/et+key=";
pub const REGION: &str = "eu-test-1";
pub const BUCKET: &str = "acme-files";

/// The storage. Cheap to clone; gone with the last clone.
#[derive(Clone)]
pub struct S3 {
    port: u16,
    process: Arc<Process>,
    client: reqwest::Client,
}

struct Process(Mutex<Child>);

/// What it answered.
pub struct Fetched {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Fetched {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl S3 {
    /// For as long as the app may call it.
    pub async fn start(app: &TestApp) -> Self {
        let started = Self::start_alone().await;
        app.keep_beside(started.clone());
        started
    }

    /// For an app that is started later.
    pub async fn start_alone() -> Self {
        let (process, port) = tokio::task::spawn_blocking(serve).await.expect("the call ends");
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { port, process: Arc::new(Process(Mutex::new(process))), client }
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// As the operator configures it.
    pub fn url(&self) -> String {
        let secret = SECRET.replace('/', "%2F");
        format!("s3://{KEY}:{secret}@127.0.0.1:{}/{BUCKET}?region={REGION}&path_style=true&tls=none", self.port)
    }

    pub fn place(&self) -> files::Place {
        Self::place_of(&self.url())
    }

    pub fn place_of(url: &str) -> files::Place {
        files::Place::from_url(&kernel::Secret::new(url.to_owned())).expect("an address of a storage")
    }

    /// All keys.
    pub async fn objects(&self) -> Vec<String> {
        self.list("objects").await
    }

    /// The keys of uploads in parts that nobody ended.
    pub async fn parts(&self) -> Vec<String> {
        self.list("parts").await
    }

    async fn list(&self, what: &str) -> Vec<String> {
        let listed = self.fetch(Method::GET, &format!("{}/_test/{what}", self.endpoint()), &[]).await;
        serde_json::from_slice(&listed.bytes).expect("a list")
    }

    pub async fn put(&self, key: &str, bytes: &[u8]) {
        self.tell(Method::PUT, &format!("objects/{key}"), bytes).await;
    }

    /// Begins an upload in parts, which nobody ends.
    pub async fn begin_parts(&self, key: &str) {
        self.tell(Method::PUT, &format!("parts/{key}"), b"").await;
    }

    /// So many objects that nobody knows, where the service would have put them.
    pub async fn put_many(&self, count: usize) {
        self.tell(Method::PUT, &format!("many/{count}"), b"").await;
    }

    pub async fn remove(&self, key: &str) {
        self.tell(Method::DELETE, &format!("objects/{key}"), b"").await;
    }

    /// Answers everything so; 0 ends that.
    pub async fn answer_with(&self, status: u16) {
        self.tell(Method::PUT, &format!("fault/{status}"), b"").await;
    }

    /// Changes an object right after the next such request for it: `HEAD` looks at it, `GET` reads some of it.
    pub async fn change_once_after(&self, method: Method, key: &str) {
        self.tell(Method::PUT, &format!("race/{method}/{key}"), b"").await;
    }

    /// Lets the next copy fail after it has said 200.
    pub async fn fail_a_copy(&self) {
        self.tell(Method::PUT, "late/copy", b"").await;
    }

    /// Lets the first, or the second, … such request from now on fail, without doing what it asks for.
    pub async fn refuse(&self, method: &Method, count: usize) {
        self.tell(Method::PUT, &format!("refuse/{method}/{count}"), b"").await;
    }

    /// The same, but does what it asks for and breaks off in the middle of the answer.
    pub async fn cut(&self, method: &Method, count: usize) {
        self.tell(Method::PUT, &format!("cut/{method}/{count}"), b"").await;
    }

    /// The same, but does what it asks for and never answers.
    pub async fn hold(&self, method: &Method, count: usize) {
        self.tell(Method::PUT, &format!("hold/{method}/{count}"), b"").await;
    }

    /// Waits until that was done.
    pub async fn holds(&self) {
        self.tell(Method::GET, "held", b"").await;
    }

    /// So much later than everybody else.
    pub async fn is_ahead(&self, by: Duration) {
        self.tell(Method::PUT, &format!("later/{}", by.as_secs()), b"").await;
    }

    async fn tell(&self, method: Method, what: &str, body: &[u8]) {
        let url = format!("{}/_test/{what}", self.endpoint());
        let answer = self.client.request(method, url).body(body.to_vec()).send().await.expect("it answers");
        assert_eq!(answer.status(), 204);
    }

    pub async fn fetch(&self, method: Method, url: &str, headers: &[(&str, &str)]) -> Fetched {
        let mut request = self.client.request(method, url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.expect("it answers");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Fetched { status, headers, bytes: answer.bytes().await.expect("bytes").into() }
    }

    /// Posts a form of its own with a file, and answers with the status and the code of the refusal.
    pub async fn post(&self, fields: &Map<String, Value>, bytes: &[u8]) -> (u16, String) {
        self.send(&[crate::files::fields(fields), vec![part("file", bytes, true)]].concat()).await
    }

    pub async fn send(&self, parts: &[Vec<u8>]) -> (u16, String) {
        let body = [parts.concat(), b"--b0undary--\r\n".to_vec()].concat();
        let request = self.client.post(format!("{}/{BUCKET}", self.endpoint())).body(body);
        let answer = request.header("content-type", "multipart/form-data; boundary=b0undary").send().await;
        let answer = answer.expect("it answers");
        let (status, text) = (answer.status().as_u16(), answer.text().await.expect("text"));
        let code =
            text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map_or("", |(code, _)| code);
        (status, code.to_owned())
    }

    /// The fields of the form for a file.
    pub async fn prepare(&self, caller: &Caller, name: &str, kind: &str) -> Map<String, Value> {
        let body = json!({ "fileName": name, "contentType": kind });
        let form = caller.post("/account/tenant/upload/prepare", body).await.expect(200);
        assert_eq!(form.text("/url"), format!("{}/{BUCKET}", self.endpoint()));
        form.at("/fields").as_object().expect("fields").clone()
    }

    /// Ends it as a power failure would.
    pub fn kill(&self) {
        self.process.kill();
    }
}

impl Process {
    fn kill(&self) {
        let mut process = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn serve() -> (Child, u16) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../service/tests/counterparts");
    let mut python = Command::new(folder.join("python"));
    let mut child = python.arg("s3.py").stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("python runs");
    let mut printed = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut printed).expect("it prints its port");
    let port = printed.trim().parse().unwrap_or_else(|_| panic!("s3.py did not start: {printed:?}"));
    (child, port)
}
