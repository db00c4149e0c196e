//! Makes connections, waits a while for a server that is away, and stops waiting when it stays away: callers then learn
//! at once that there is no database instead of queueing for it.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kernel::{Code, Error, Result, Tick, Ticker};
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, SimpleQueryMessage, Socket, tls::MakeTlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{connection::PgConnection, errors, target::Target, tls};
use crate::fault;

type Driver = tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// What a connection is for decides its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPurpose {
    Closures,
    Scans,
    SingleStatements,
}

/// What a connection told about its server when it was made.
#[derive(Clone)]
pub(super) struct Greeting {
    /// Differs before and after a crash of the server; see [`super::verdict`].
    pub(super) since_crash: String,
    pub(super) process: i32,
}

/// A connection for tasks: many may use it at once. It ends when the client is dropped.
pub(super) struct Line {
    pub(super) client: Client,
    pub(super) greeting: Greeting,
    /// Ends with the connection.
    pub(super) driver: JoinHandle<()>,
}

pub(super) struct Connector {
    target: Target,
    tls: MakeRustlsConnect,
    /// How long an outage may last before callers are turned away.
    patience: Duration,
    outage: Mutex<Option<Outage>>,
}

struct Outage {
    since: Tick,
    tried: Tick,
    /// Why the last try failed: a server that is full is not away.
    cause: String,
}

/// Why there is no connection, in words for an operator.
pub(super) struct Refused {
    pub(super) message: String,
    /// Worth trying again by itself.
    passing: bool,
}

const OLDEST_SERVER: u32 = 150_000;
/// For the whole making of a shared connection: a server may accept it and then say nothing.
const HANDSHAKE: Duration = Duration::from_secs(20);
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// During a long outage the server is tried this often, by whoever comes first.
const PROBE_EVERY: Duration = Duration::from_secs(1);

impl Connector {
    pub(super) fn new(url: &str, patience: Duration) -> Result<Self> {
        let target = Target::parse(url)?;
        let tls = tls::connector(target.verify, target.roots.as_deref())?;
        Ok(Self { target, tls, patience, outage: Mutex::new(None) })
    }

    /// A connection for a thread. Waits for the server up to the limit of patience.
    pub(super) fn connect(&self, purpose: ConnectionPurpose) -> Result<PgConnection> {
        let mut wait = FIRST_WAIT;
        loop {
            self.turn_away_in_a_long_outage()?;
            match self.connect_once(purpose) {
                Ok(connection) => return Ok(connection),
                Err(refused) => self.may_try_again(refused)?,
            }
            pause(wait);
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// The same for tasks.
    pub(super) async fn connect_async(&self, purpose: ConnectionPurpose) -> Result<Line> {
        let mut wait = FIRST_WAIT;
        loop {
            self.turn_away_in_a_long_outage()?;
            match self.connect_async_once(purpose, |_| ()).await {
                Ok(line) => return Ok(line),
                Err(refused) => self.may_try_again(refused)?,
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    fn connect_once(&self, purpose: ConnectionPurpose) -> Result<PgConnection, Refused> {
        let config = ::postgres::Config::from(self.target.config.clone());
        let mut client = config.connect(self.tls.clone()).map_err(|error| self.refused(&error))?;
        let answers = client.simple_query(&settings(purpose)).map_err(|error| self.refused(&error))?;
        let greeting = self.greeting(&answers)?;
        self.reached();
        Ok(PgConnection::new(client, greeting))
    }

    /// One try. `hear` is called for what the server says unasked.
    pub(super) async fn connect_async_once(
        &self,
        purpose: ConnectionPurpose,
        hear: impl FnMut(AsyncMessage) + Send + 'static,
    ) -> Result<Line, Refused> {
        let trial = tokio::time::timeout(HANDSHAKE, self.connect_and_greet(purpose, hear)).await;
        trial.unwrap_or_else(|_| {
            Err(Refused { message: format!("Cannot connect to {}: no answer", self.target.name), passing: true })
        })
    }

    async fn connect_and_greet(
        &self,
        purpose: ConnectionPurpose,
        hear: impl FnMut(AsyncMessage) + Send + 'static,
    ) -> Result<Line, Refused> {
        let (client, connection) =
            self.target.config.connect(self.tls.clone()).await.map_err(|error| self.refused(&error))?;
        let driver = tokio::spawn(drive(connection, hear));
        let answers = client.simple_query(&settings(purpose)).await.map_err(|error| self.refused(&error))?;
        let greeting = self.greeting(&answers)?;
        self.reached();
        Ok(Line { client, greeting, driver })
    }

    fn greeting(&self, answers: &[SimpleQueryMessage]) -> Result<Greeting, Refused> {
        let row = answers.iter().rev().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let column = |index| row.and_then(|row| row.try_get(index).ok().flatten()).unwrap_or_default();
        let version: u32 = column(0).parse().unwrap_or_default();
        if version < OLDEST_SERVER {
            let (major, oldest) = (version / 10_000, OLDEST_SERVER / 10_000);
            return Err(Refused {
                message: format!(
                    "{} is version {major}; Tenantry needs PostgreSQL {oldest} or later.",
                    self.target.name
                ),
                passing: false,
            });
        }
        Ok(Greeting { since_crash: column(1).to_owned(), process: column(2).parse().unwrap_or_default() })
    }

    pub(super) fn refused(&self, error: &tokio_postgres::Error) -> Refused {
        // A wrong password or a missing database stays wrong; a server that starts, stops or is full does not.
        let passing =
            error.code().is_none_or(|code| ["08", "53", "57"].iter().any(|class| code.code().starts_with(class)));
        Refused { message: format!("Cannot connect to {}: {}", self.target.name, errors::chain(error)), passing }
    }

    fn reached(&self) {
        *self.outage.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn turn_away_in_a_long_outage(&self) -> Result<()> {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outage) = &mut *outage {
            if Ticker.since(outage.since) > self.patience && Ticker.since(outage.tried) < PROBE_EVERY {
                return Err(fault::unavailable(outage.cause.clone()));
            }
            outage.tried = Ticker.now();
        }
        Ok(())
    }

    /// Notes the outage; an error when there is no point in another try.
    fn may_try_again(&self, refused: Refused) -> Result<()> {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Ticker.now();
        let Refused { message, passing } = refused;
        let outage = outage.get_or_insert_with(|| Outage { since: now, tried: now, cause: String::new() });
        outage.cause.clone_from(&message);
        if passing && Ticker.since(outage.since) < self.patience {
            return Ok(());
        }
        Err(fault::unavailable(message))
    }
}

impl Refused {
    /// For the operator who starts the service.
    pub(super) fn into_startup_error(self) -> Error {
        Error::new(Code::StorageUnavailable, self.message).with_retry_after(Duration::from_secs(2))
    }
}

async fn drive(mut connection: Driver, mut hear: impl FnMut(AsyncMessage)) {
    loop {
        match std::future::poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(message)) => hear(message),
            Some(Err(error)) => {
                tracing::debug!(error = errors::chain(&error), "a connection to PostgreSQL ended");
                return;
            }
            None => return,
        }
    }
}

/// A thread's pause that nothing cuts short.
pub(super) fn pause(duration: Duration) {
    let _ = crossbeam_channel::after(duration).recv();
}

/// One round trip that sets the session up and asks what [`Greeting`] holds.
///
/// Threads read by default and write only where a transaction says so: a read closure cannot change anything. A server
/// that is told to acknowledge commits before they are durable is overruled, because that is what we promise.
fn settings(purpose: ConnectionPurpose) -> String {
    let (statement_timeout, read_only) = match purpose {
        ConnectionPurpose::Closures => ("30s", "on"),
        ConnectionPurpose::Scans => ("5min", "on"),
        ConnectionPurpose::SingleStatements => ("30s", "off"),
    };
    format!(
        "SET statement_timeout = '{statement_timeout}'; SET lock_timeout = '10s'; \
         SET idle_in_transaction_session_timeout = '60s'; SET default_transaction_isolation = 'read committed'; \
         SET default_transaction_read_only = {read_only}; SET client_min_messages = 'warning'; \
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'; \
         SELECT current_setting('server_version_num'), (SELECT stats_reset FROM pg_stat_bgwriter), pg_backend_pid()"
    )
}
