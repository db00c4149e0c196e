//! Runs the program in a folder of its own, on either engine.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use serde_json::Value;
use store::{
    DatabaseUrl, EngineName,
    testing::{Template, TestStore},
};
use tempfile::TempDir;

/// Nothing waits for this time to pass; it ends a test that would hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// Makes two tests, `name::sqlite` and `name::postgres`, of each `async fn name(home: Home)`.
macro_rules! on_both_engines {
    ($($name:ident),+ $(,)?) => { $(
        mod $name {
            #[test]
            fn sqlite() {
                $crate::program::run(store::EngineName::Sqlite, super::$name);
            }

            #[test]
            fn postgres() {
                $crate::program::run(store::EngineName::Postgres, super::$name);
            }
        }
    )+ };
}
pub(crate) use on_both_engines;

/// The same for what only PostgreSQL makes possible.
macro_rules! on_postgres {
    ($($name:ident),+ $(,)?) => { $(
        mod $name {
            #[test]
            fn postgres() {
                $crate::program::run(store::EngineName::Postgres, super::$name);
            }
        }
    )+ };
}
pub(crate) use on_postgres;

/// The same for what only an embedded store has.
macro_rules! on_sqlite {
    ($($name:ident),+ $(,)?) => { $(
        mod $name {
            #[test]
            fn sqlite() {
                $crate::program::run(store::EngineName::Sqlite, super::$name);
            }
        }
    )+ };
}
pub(crate) use on_sqlite;

/// The program that is tested: `TENANTRY_TEST_PROGRAM`, as for an optimised build, or the one that was built for the tests.
pub(crate) fn program() -> PathBuf {
    given_program().unwrap_or_else(|| env!("CARGO_BIN_EXE_tenantry").into())
}

pub(crate) fn given_program() -> Option<PathBuf> {
    std::env::var_os("TENANTRY_TEST_PROGRAM").map(PathBuf::from)
}

pub(crate) fn run<F: Future<Output = ()>>(engine: EngineName, test: impl FnOnce(Home) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be started").block_on(test(Home::new(engine)));
}

/// A folder to run in and an empty database: one installation.
pub(crate) struct Home {
    folder: TempDir,
    /// On SQLite the database lies in the data folder.
    store: Option<TestStore>,
}

impl Home {
    pub(crate) fn new(engine: EngineName) -> Self {
        let template = Template { migrations: &[], content: None };
        let store = (engine == EngineName::Postgres).then(|| TestStore::create(engine, template));
        Self { folder: tempfile::tempdir().expect("a temporary folder can be made"), store }
    }

    /// One in which a server has run.
    pub(crate) fn set_up(self) -> Self {
        self.serve().stop();
        self
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// The key of the first app. It is not printed here, because nobody sits at a terminal.
    pub(crate) fn first_key(&self) -> String {
        std::fs::read_to_string(self.path("tenantry-data/first-app.key")).expect("it was kept").trim().to_owned()
    }

    pub(crate) fn database(&self) -> Option<&DatabaseUrl> {
        self.store.as_ref().map(|store| &store.url)
    }

    pub(crate) fn engine(&self) -> EngineName {
        if self.store.is_some() { EngineName::Postgres } else { EngineName::Sqlite }
    }

    /// The program with these arguments, in this folder and without the settings of the surrounding environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        let kept =
            std::env::vars().filter(|(name, _)| name == "TENANTRY_RECORD_STATEMENTS" || name == "LLVM_PROFILE_FILE");
        command.envs(kept).env("TENANTRY_LISTEN", "127.0.0.1:0");
        if let Some(DatabaseUrl::Postgres(url)) = self.database() {
            command.env("TENANTRY_DATABASE_URL", url.expose());
        }
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(&mut self.command(arguments))
    }

    pub(crate) fn serve(&self) -> Server {
        Server::start(&mut self.command(&["serve"]))
    }
}

/// What a finished command said.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Outcome {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the program runs");
        let text = |bytes| String::from_utf8(bytes).expect("the program writes text");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// It must have failed and said why.
    #[track_caller]
    pub(crate) fn fails(self, why: &str) -> Self {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(self.err.contains(why), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }
}

/// A running server. Killed when it is dropped.
pub(crate) struct Server {
    child: Mutex<Child>,
    pub(crate) base: String,
    /// What it printed when it was ready.
    pub(crate) printed: String,
    pub(crate) client: reqwest::Client,
    /// Reads its log until it ends.
    log: Mutex<Option<thread::JoinHandle<String>>>,
}

impl Server {
    /// Starts it and waits until it says that it is running.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut stderr = child.stderr.take().expect("standard error is piped");
        let log = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdout = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut printed = String::new();
        while !printed.contains("Ctrl-C") {
            match receiver.recv_timeout(PATIENCE) {
                Ok(line) => printed += &(line + "\n"),
                Err(_) => {
                    let _ = child.kill();
                    panic!("the server did not start: {printed} {}", log.join().unwrap_or_default());
                }
            }
        }
        let base = value(&printed, "Base URL").expect("it prints its address").to_owned();
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("a client");
        Self { child: Mutex::new(child), base, printed, client, log: Mutex::new(Some(log)) }
    }

    /// A value that it printed behind a name.
    pub(crate) fn printed_value(&self, name: &str) -> Option<&str> {
        value(&self.printed, name)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) async fn get(&self, path: &str, header: (&str, &str)) -> (u16, Value) {
        let answer = self.client.get(self.url(path)).header(header.0, header.1).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.expect("JSON"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.child().id()
    }

    /// Asks it to stop.
    pub(crate) fn terminate(&self) {
        let pid = self.child().id();
        let asked = Command::new("sh").args(["-c", &format!("kill -TERM {pid}")]).status();
        assert!(asked.expect("sh runs").success());
    }

    /// Waits for its end; its exit status and its log.
    pub(crate) fn wait(self) -> (ExitStatus, String) {
        let status = self.child().wait().expect("the server can be waited for");
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner).take();
        (status, log.expect("nobody else waits").join().expect("its log was read"))
    }

    pub(crate) fn stop(self) {
        self.terminate();
        let (status, log) = self.wait();
        assert!(status.success(), "{status}: {log}");
    }

    /// Ends it as a power failure would.
    pub(crate) fn kill(&self) {
        let mut child = self.child();
        child.kill().expect("the server can be killed");
        child.wait().expect("the server can be waited for");
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut child = self.child();
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn value<'a>(printed: &'a str, name: &str) -> Option<&'a str> {
    printed.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim)
}

/// The operator key that the program made.
pub(crate) fn operator_key(data: &Path) -> String {
    std::fs::read_to_string(data.join("operator.key")).expect("the program made a key").trim().to_owned()
}
