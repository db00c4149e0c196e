//! A PostgreSQL server of one's own, for tests that restart or crash it. Unlike the shared one it is durable.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use kernel::{Entropy, Secret};

use crate::DatabaseUrl;

/// A running server; stopped and removed on drop.
pub struct OwnPostgres {
    programs: PathBuf,
    folder: String,
    port: u16,
}

impl OwnPostgres {
    pub fn start_new() -> Self {
        let programs = find_programs();
        let folder = as_server("mktemp").args(["-d", "/tmp/tenantry-postgres.XXXXXX"]).output();
        let folder = folder.expect("a folder for the server can be made").stdout;
        let folder = String::from_utf8(folder).expect("a path in /tmp is text").trim().to_owned();
        let mut server = Self { programs, folder, port: 0 };
        let mut initdb = as_server(server.program("initdb"));
        initdb.args(["-D", &server.cluster(), "-U", "tenantry", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        assert!(succeeds(&mut initdb), "initdb failed");
        // Taken ports are found out by trying, below the range that outgoing connections draw from.
        for _ in 0..8 {
            server.port = 20_000 + u16::from_be_bytes(Entropy::os().bytes()) % 12_000;
            if server.try_start() {
                return server;
            }
        }
        panic!("PostgreSQL did not start; its log: {}", server.log());
    }

    pub fn url(&self) -> DatabaseUrl {
        DatabaseUrl::Postgres(Secret::new(format!("postgres://tenantry@127.0.0.1:{}/postgres", self.port)))
    }

    /// Ends all sessions and stops cleanly, then starts again.
    pub fn restart_fast(&self) {
        self.stop("fast");
        self.start();
    }

    /// Crashes the server, then starts it: it recovers from its log.
    pub fn restart_immediate(&self) {
        self.stop("immediate");
        self.start();
    }

    pub fn start(&self) {
        assert!(self.try_start(), "PostgreSQL did not start again; its log: {}", self.log());
    }

    /// `mode` is one of pg_ctl's: smart, fast or immediate.
    pub fn stop(&self, mode: &str) {
        let mut stop = as_server(self.program("pg_ctl"));
        assert!(succeeds(stop.args(["stop", "-w", "-D", &self.cluster(), "-m", mode])), "pg_ctl stop failed");
    }

    fn try_start(&self) -> bool {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c shared_buffers=32MB -c jit=off",
            self.port
        );
        let log = format!("{}/log", self.folder);
        let mut start = as_server(self.program("pg_ctl"));
        succeeds(start.args(["start", "-w", "-t", "60", "-D", &self.cluster(), "-l", &log, "-o", &options]))
    }

    fn cluster(&self) -> String {
        format!("{}/cluster", self.folder)
    }

    fn program(&self, name: &str) -> String {
        self.programs.join(name).display().to_string()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(format!("{}/log", self.folder)).unwrap_or_default()
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        let mut stop = as_server(self.program("pg_ctl"));
        succeeds(stop.args(["stop", "-w", "-D", &self.cluster(), "-m", "immediate"]));
        succeeds(as_server("rm").args(["-rf", &self.folder]));
    }
}

/// What `scripts/test` found, or the newest of Debian's.
fn find_programs() -> PathBuf {
    if let Some(chosen) = std::env::var_os("TENANTRY_PG_BIN") {
        return chosen.into();
    }
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed.max_by_key(|entry| entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    newest.expect("PostgreSQL is not installed: set TENANTRY_PG_BIN, or run ./scripts/test").path().join("bin")
}

/// PostgreSQL refuses to run as root; root hands over to the user that Debian's package creates.
fn as_server(program: impl Into<String>) -> Command {
    let program = program.into();
    let id = Command::new("id").arg("-u").output().expect("id tells the user");
    let mut command = if id.stdout.trim_ascii() == b"0" {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", &program]);
        command
    } else {
        Command::new(program)
    };
    command.current_dir("/").stdin(Stdio::null());
    command
}

/// The server must not inherit the test's own output.
fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.expect("the program can be run").success()
}
