//! The real server as a child process: in a folder of its own, on a port of its own, stopped when it is dropped.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use bench::{
    Result,
    client::{Connection, Request},
};
use kernel::Ticker;
use tempfile::TempDir;

/// What a server is started with, again and again.
pub struct Installation {
    program: PathBuf,
    folder: TempDir,
    database_url: Option<String>,
    log: String,
}

impl Installation {
    pub fn new(program: &Path, database_url: Option<String>, log: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
        Ok(Self { program: program.to_owned(), folder, database_url, log: log.to_owned() })
    }

    /// Starts a server and waits for its first answer. Its log goes nowhere, but it is written.
    pub async fn start(&self) -> Result<Server> {
        let address = free_address()?;
        let mut command = Command::new(&self.program);
        command.arg("serve").args(["--listen", &address.to_string(), "--log", &self.log]);
        command.arg("--data-dir").arg(self.data_folder());
        if let Some(url) = &self.database_url {
            command.args(["--database-url", url]);
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TENANTRY_")) {
            command.env_remove(name);
        }
        // The folder holds no tenantry.toml, so that nobody's settings slip in.
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = Ticker.now();
        let mut server = Server { child: command.spawn()?, address, first_answer: Duration::ZERO };
        loop {
            if let Some(status) = server.child.try_wait()? {
                return Err(
                    format!("the server ended at once: {status}; try `{} serve`", self.program.display()).into()
                );
            }
            if let Ok(mut connection) = Connection::open(address, Request::get("/healthz", "")).await {
                connection.ask().await?;
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.first_answer = Ticker.since(started);
        Ok(server)
    }

    /// The header line of the operator.
    pub fn operator(&self) -> Result<String> {
        let key = fs::read_to_string(self.data_folder().join("operator.key"))?;
        Ok(format!("authorization: Bearer {}", key.trim()))
    }

    fn data_folder(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

/// An address that nobody listens on just now.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

/// A running server.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// From its start as a process to the first answer.
    pub first_answer: Duration,
}

impl Server {
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Stops it as an operator does and waits until it has ended.
    pub fn stop(mut self) -> Result<()> {
        Command::new("kill").args(["-TERM", &self.process().to_string()]).status()?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server did not stop well: {status}").into()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone after `stop`; otherwise the benchmark failed and nothing is worth keeping.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
