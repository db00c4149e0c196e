//! The job that carries imports out. Each node takes one import at a time under a lease; an import gives way to the next
//! after a while, and all of them to everybody who waits for an answer.

use std::time::Duration;

use kernel::{Error, Result, Ticker, Timestamp};
use spine::{Job, JobThread, Worked, emit, lease};
use tokio::sync::watch;

use super::{Import, ImportState, staging, store, turn};
use crate::{Imports, batch::MOST_AT_ONCE, facts::ImportFinished};

const LEASE: Duration = Duration::from_secs(30);
/// After this time the next import has its turn.
const LONGEST_RUN: Duration = Duration::from_millis(500);
/// While so many wait for the store that it would be felt.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Importing {
    room: Imports,
    owner: String,
}

impl Importing {
    pub(crate) fn new(room: Imports) -> Self {
        let owner = lease::new_owner(room.tenancy.db.entropy());
        Self { room, owner }
    }

    /// One transaction's worth; whether there was something left.
    async fn step(&self, import: &Import) -> Result<bool> {
        let (db, id) = (&self.room.tenancy.db, import.id);
        let most = i64::try_from(MOST_AT_ONCE).unwrap_or(i64::MAX);
        let app_id = import.app;
        let rows = db.read(move |tx| store::next_rows(tx, app_id, id, most)).await?;
        if rows.is_empty() {
            self.finish(import).await?;
            return Ok(false);
        }
        // The app is deleted: its rows are, too, in a while.
        let Some(app) = self.room.tenancy.apps.find(app_id).await? else { return Ok(false) };
        let keyring = &self.room.tenancy.keyring;
        let opened = rows.into_iter().map(|row| {
            let bundle = staging::open(keyring, app_id, &row.id, &row.sealed)?;
            Ok((row.id, bundle))
        });
        let (opened, tenancy) = (opened.collect::<Result<Vec<_>>>()?, self.room.tenancy.clone());
        db.by(&import.author).write(move |tx| turn::store_rows(tx, &tenancy, &app, id, &opened)).await?;
        Ok(true)
    }

    async fn finish(&self, import: &Import) -> Result<()> {
        let (app, id) = (import.app, import.id);
        let finished = self.room.tenancy.db.by(&import.author).write(move |tx| {
            let Some(import) = store::hold(tx, app, id)? else { return Ok(()) };
            let state = match import.done_tenants {
                0 if import.tenants > 0 => ImportState::Error,
                _ => ImportState::Completed,
            };
            store::finish(tx, &import, state)?;
            let told = ImportFinished {
                reference: id,
                status: state,
                tenants: import.done_tenants,
                users: import.done_users,
                left_out: import.left_out,
            };
            emit(tx, app, &told)
        });
        finished.await
    }
}

impl Job for Importing {
    fn name(&self) -> &'static str {
        "import"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.room.due.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        let (db, owner) = (&self.room.tenancy.db, self.owner.clone());
        let Some(import) = db.write(move |tx| store::claim(tx, &owner, LEASE)).await? else {
            return Ok(Worked::Nothing);
        };
        let begun = Ticker.now();
        while Ticker.since(begun) < LONGEST_RUN {
            if db.is_busy() {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            match self.step(&import).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(Error::internal(format!("{}: {error:?}", import.id))),
            }
        }
        Ok(Worked::Something)
    }

    fn thread(&self) -> JobThread {
        JobThread::Unhurried
    }

    /// An import is due at once.
    async fn next_due(&self) -> Result<Option<Timestamp>> {
        self.room.tenancy.db.read(store::oldest).await
    }

    async fn stopped(&self) {
        let owner = self.owner.clone();
        if let Err(error) = self.room.tenancy.db.write(move |tx| store::free(tx, &owner)).await {
            tracing::debug!(?error, "imports not given back; their leases will expire");
        }
    }
}
