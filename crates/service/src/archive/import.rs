//! Taking an app out of an archive. Its rows are put in a few at a time while nobody sees them, and the last transaction
//! makes the app. Until then the purge is set to remove them at a time that every step moves on: whatever is cut off,
//! nothing of it stays.

use std::{path::PathBuf, sync::Arc, time::Duration};

use files::StoredObject;
use kernel::{AppId, Code, Error, Result, Ticker};
use spine::purge::{self, Expected};
use store::{Db, RawCell, RawTable, Table, Tx};
use tenancy::{
    app_lifecycle,
    apps::{
        App,
        moving::{self, Load},
    },
};
use tokio::{runtime::Handle, sync::mpsc};
use vault::ArchiveKey;

use super::{APPS, Archive, blocking, folder::WorkFolder, scratch::Scratch, unreadable};
use crate::Core;

/// What goes into one transaction.
const BATCH_ROWS: usize = 200;
const BATCH_BYTES: usize = 256 * 1024;
/// After the last step of an import that was cut off.
const GIVEN_UP_AFTER: Duration = Duration::from_mins(10);
/// While others wait for the store, an import waits for them: so often, and so long.
const PAUSE: Duration = Duration::from_millis(20);
const MOST_PAUSES: usize = 500;
/// How long an import waits for what a deleted app left behind, and how often it looks.
const DELETION_TAKES: Duration = Duration::from_secs(45);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What was, or would be, brought.
pub(super) struct Imported {
    pub(super) app: App,
    pub(super) archive: Arc<Archive>,
}

/// `db` knows the author. With `dry_run` everything is tried but nothing stored.
pub(super) async fn import(
    core: &Core,
    db: &Db,
    folder: &WorkFolder,
    file: PathBuf,
    key: ArchiveKey,
    dry_run: bool,
) -> Result<Imported> {
    let archive = blocking(move || {
        let archive = Archive::open(&file, &key)?;
        archive.verify()?;
        Ok(Arc::new(archive))
    })
    .await?;
    let scratch = Scratch::fill(core, &archive, folder.join("scratch.db")).await?;
    let imported = match dry_run {
        true => {
            let (id, domain) = (scratch.app.id, scratch.app.profile.domain.clone());
            db.write(move |tx| moving::refuse_known(tx, id, &domain)).await.map(|()| scratch.app.clone())
        }
        false => Import { core, db, archive: &archive, scratch: &scratch }.run().await,
    };
    scratch.db.close().await;
    Ok(Imported { app: imported?, archive })
}

struct Import<'a> {
    core: &'a Core,
    db: &'a Db,
    archive: &'a Arc<Archive>,
    scratch: &'a Scratch,
}

impl Import<'_> {
    fn id(&self) -> AppId {
        self.scratch.app.id
    }

    async fn run(&self) -> Result<App> {
        let id = self.id();
        self.begin().await?;
        let arrived = self.bring().await;
        if arrived.is_err() {
            // Now, instead of in some minutes; without it the purge comes by itself.
            if let Err(error) = self.db.write(move |tx| purge::postpone(tx, id, tx.now())).await {
                tracing::warn!(?error, "what is left of an import is removed later");
            }
        }
        arrived.map_err(|error| match store::is_unique_violation(&error) {
            true => Error::new(Code::Conflict, "Something of the app is here already. Nothing was imported.")
                .with_source(error),
            false => error,
        })
    }

    /// Where the app has just been deleted, what it left goes first.
    async fn begin(&self) -> Result<()> {
        let (id, domain, began) = (self.id(), self.scratch.app.profile.domain.clone(), Ticker.now());
        loop {
            let domain = domain.clone();
            let expected = self.db.write(move |tx| {
                moving::refuse_known(tx, id, &domain)?;
                purge::expect(tx, id, tx.now().plus(GIVEN_UP_AFTER))
            });
            let doing = match expected.await? {
                Expected::Yes => return Ok(()),
                Expected::AfterDeletion if Ticker.since(began) < DELETION_TAKES => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                    continue;
                }
                Expected::AfterDeletion => "removed",
                Expected::Elsewhere => "imported",
            };
            let message = format!("The app {id} is being {doing} here at this moment. Try again in some minutes.");
            return Err(Error::new(Code::Conflict, message));
        }
    }

    async fn bring(&self) -> Result<App> {
        let last = self.scratch.db.read(|tx| tx.raw_children(APPS)).await?;
        let is_last = |table: &Table| table.name == APPS || last.iter().any(|name| name == table.name);
        let (together, mut before): (Vec<_>, Vec<_>) = super::moving().into_iter().partition(|table| is_last(table));
        before.sort_by_key(|table| table.acted_on.is_some());
        for table in before {
            let table = MovedTable::new(self, table).await?;
            let mut batches = self.read(&table);
            while let Some(rows) = batches.recv().await {
                self.put(&table, rows?).await?;
            }
        }
        self.bring_files().await?;
        let mut rows = Vec::new();
        for table in together {
            let table = MovedTable::new(self, table).await?;
            let mut batches = self.read(&table);
            while let Some(batch) = batches.recv().await {
                rows.push((Arc::clone(&table.target), batch?));
            }
        }
        self.finish(rows).await
    }

    /// The rows of the scratch store, some at a time.
    fn read(&self, table: &MovedTable) -> mpsc::Receiver<Result<Vec<Vec<RawCell>>>> {
        let (send, receive) = mpsc::channel(2);
        let (source, known, app) = (Arc::clone(&table.source), table.known, self.id());
        let rows = send.clone();
        let reading = self.scratch.db.scan(move |tx| {
            let gone = |_| Error::internal("nobody takes the rows any more");
            let (mut batch, mut bytes) = (Vec::new(), 0);
            tx.each_raw(&source, super::naming(known, app), known.key, &mut |row| {
                bytes += row.iter().map(RawCell::size).sum::<usize>();
                batch.push(row);
                if batch.len() == BATCH_ROWS || bytes > BATCH_BYTES {
                    bytes = 0;
                    return rows.blocking_send(Ok(std::mem::take(&mut batch))).map_err(gone);
                }
                Ok(())
            })?;
            if batch.is_empty() { Ok(()) } else { rows.blocking_send(Ok(batch)).map_err(gone) }
        });
        tokio::spawn(async move {
            if let Err(error) = reading.await {
                // Who takes no more rows needs no reason either.
                let _ = send.send(Err(error)).await;
            }
        });
        receive
    }

    async fn put(&self, table: &MovedTable, rows: Vec<Vec<RawCell>>) -> Result<()> {
        for _ in 0..MOST_PAUSES {
            if !self.db.is_busy() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        let (id, target) = (self.id(), Arc::clone(&table.target));
        let put = self.db.write(move |tx| {
            move_on(tx, id)?;
            tx.insert_raw(&target, &rows)
        });
        put.await
    }

    /// After their rows, so that no sweep takes them for bytes without one.
    async fn bring_files(&self) -> Result<()> {
        let (archive, files) = (Arc::clone(self.archive), self.core.files.clone());
        let (db, id) = (self.db.clone(), self.id());
        blocking(move || {
            let mut parts = archive.parts()?;
            parts.skip_tables(&archive.manifest)?;
            for file in &archive.manifest.files {
                let object = StoredObject { name: file.object.clone() };
                if !object.is_ours() {
                    return Err(Error::invalid("archive", "holds a file with a name that is never given"));
                }
                let mut bytes = parts.next(file.bytes, &file.sha256);
                files.keep_object(&object, &mut bytes).map_err(unreadable)?;
                bytes.finish()?;
                Handle::current().block_on(db.write(move |tx| move_on(tx, id)))?;
            }
            Ok(())
        })
        .await
    }

    /// From this commit on the app is there.
    async fn finish(&self, rows: Vec<(Arc<RawTable>, Vec<Vec<RawCell>>)>) -> Result<App> {
        let (id, domain, tenancy) = (self.id(), self.scratch.app.profile.domain.clone(), self.core.tenancy.clone());
        let load = load(self.archive);
        let arrived = self.db.write(move |tx| {
            moving::refuse_known(tx, id, &domain)?;
            rows.iter().try_for_each(|(table, rows)| tx.insert_raw(table, rows))?;
            if !purge::call_off(tx, id)? {
                return Err(too_late());
            }
            app_lifecycle::arrive(tx, &tenancy, id, load)
        });
        let app = arrived.await?;
        self.core.flags.arrive(id).await?;
        Ok(app)
    }
}

pub(super) fn load(archive: &Archive) -> Load {
    Load { rows: archive.manifest.rows(), files: archive.manifest.files.len() as u64 }
}

/// An import that is alive has more time.
fn move_on(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    if purge::postpone(tx, app, tx.now().plus(GIVEN_UP_AFTER))? { Ok(()) } else { Err(too_late()) }
}

fn too_late() -> Error {
    Error::new(Code::Conflict, "The import took too long between two steps and was given up. Try again.")
}

/// A table in both stores.
struct MovedTable {
    known: &'static Table,
    source: Arc<RawTable>,
    /// With its columns in the order of the source.
    target: Arc<RawTable>,
}

impl MovedTable {
    async fn new(import: &Import<'_>, table: &'static Table) -> Result<Self> {
        let source = raw(&import.scratch.db, table.name).await?;
        let columns: Vec<String> = source.columns().map(str::to_owned).collect();
        let target = raw(import.db, table.name).await?.in_order(&columns);
        let target = target.ok_or_else(|| Error::internal(format!("{} differs between the stores", table.name)))?;
        Ok(Self { known: table, source: Arc::new(source), target: Arc::new(target) })
    }
}

async fn raw(db: &Db, name: &'static str) -> Result<RawTable> {
    let found = db.read(move |tx| Ok(tx.raw_tables()?.into_iter().find(|table| table.name() == name))).await?;
    found.ok_or_else(|| Error::internal(format!("there is no table {name}")))
}
