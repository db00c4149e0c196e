//! A ClickHouse that can be killed: its own engine in a process of Python, behind its HTTP interface. Some of its answers
//! to inserts get lost.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use tempfile::TempDir;

/// The server. Gone when it is dropped.
pub struct ClickHouse {
    tables: TempDir,
    port: u16,
    process: Mutex<Child>,
}

impl ClickHouse {
    pub async fn start() -> Self {
        let tables = tempfile::tempdir().expect("a temporary folder can be made");
        let (process, port) = serve(tables.path().into(), 0).await;
        Self { tables, port, process: Mutex::new(process) }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Ends it as a power failure would, and starts it again at the same address with the same tables.
    pub async fn kill_and_restart(&self) {
        self.kill();
        let (process, _) = serve(self.tables.path().into(), self.port).await;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = process;
    }

    fn kill(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.wait();
    }

    /// What it answers to a statement, a line for each row.
    pub async fn query(&self, statement: &str) -> Vec<String> {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let asked = client.post(self.url()).query(&[("query", statement)]).send().await;
        let answer = asked.expect("it answers");
        let (status, text) = (answer.status(), answer.text().await.expect("text"));
        assert_eq!(status, 200, "{statement}: {text}");
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for ClickHouse {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn serve(tables: PathBuf, port: u16) -> (Child, u16) {
    let start = move || {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../service/tests/counterparts");
        let mut python = Command::new(folder.join("python"));
        python.arg("clickhouse.py").arg(tables).arg(port.to_string());
        let mut child = python.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("python runs");
        let mut printed = String::new();
        let stdout = child.stdout.take().expect("standard output is piped");
        BufReader::new(stdout).read_line(&mut printed).expect("it prints its port");
        let port = printed.trim().parse().unwrap_or_else(|_| panic!("clickhouse.py did not start: {printed:?}"));
        (child, port)
    };
    tokio::task::spawn_blocking(start).await.expect("the call ends")
}
