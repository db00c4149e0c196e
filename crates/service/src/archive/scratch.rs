//! A store of an archive's own: made with the schema the archive was made with, filled, and brought up to date by the
//! ordinary migrations. Nobody else sees it, and secrets in it are sealed under this installation's master key.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
    sync::Arc,
};

use kernel::{AppId, Code, Error, Result};
use store::{AppColumn, DatabaseUrl, Db, Limits, RawCell, RawTable};
use tenancy::apps::{self, App};
use tokio::runtime::Handle;
use vault::{Keyring, Place};

use super::{
    APPS,
    cells::{self, ArchivedCell},
    contents::{Archive, Part},
    manifest::TablePart,
    unreadable,
};
use crate::{Core, MIGRATIONS};

/// Rows and bytes that go into one statement.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 1 << 20;
/// Longer than any row is.
const LONGEST_LINE: u64 = 64 << 20;

pub(super) struct Scratch {
    pub(super) db: Db,
    pub(super) app: App,
}

impl Scratch {
    /// Everything that is wrong with the archive's rows is found here.
    pub(super) async fn fill(core: &Core, archive: &Arc<Archive>, file: PathBuf) -> Result<Self> {
        let schema = archive.manifest.schema;
        let steps = MIGRATIONS.iter().position(|migration| migration.number == schema);
        let steps = steps
            .ok_or_else(|| Error::invalid("archive", "was made by a newer release; use that release or a later one"))?
            + 1;
        let db = Db::open(store::Options {
            url: DatabaseUrl::Sqlite(file),
            clock: core.db.clock().clone(),
            entropy: core.db.entropy().clone(),
            limits: Limits::default(),
        })
        .await?;
        let filled = Self::fill_and_update(&db, core, archive, steps).await;
        match filled {
            Ok(app) => Ok(Self { db, app }),
            Err(error) => {
                db.close().await;
                Err(error)
            }
        }
    }

    async fn fill_and_update(db: &Db, core: &Core, archive: &Arc<Archive>, steps: usize) -> Result<App> {
        db.migrate(&MIGRATIONS[..steps]).await?;
        let (rows, archive, keyring) = (db.clone(), Arc::clone(archive), core.keyring.clone());
        let (id, files) = (archive.manifest.app_id, object_names(&archive));
        super::blocking(move || Filling { db: rows, keyring, app: id }.all(&archive)).await?;
        db.migrate(MIGRATIONS).await?;
        db.read(move |tx| {
            let known: BTreeSet<String> = files::archived(tx, id)?.into_iter().map(|object| object.name).collect();
            if !files.is_subset(&known) {
                return Err(Error::invalid("archive", "holds bytes that belong to none of its files"));
            }
            apps::moving::described(tx, id)
        })
        .await
    }
}

fn object_names(archive: &Archive) -> BTreeSet<String> {
    archive.manifest.files.iter().map(|file| file.object.clone()).collect()
}

struct Filling {
    db: Db,
    keyring: Keyring,
    app: AppId,
}

impl Filling {
    fn all(&self, archive: &Archive) -> Result<()> {
        let mut tables = Handle::current().block_on(self.db.read(|tx| tx.raw_tables()))?;
        let mut parts = archive.parts()?;
        for part in &archive.manifest.tables {
            let place = tables.iter().position(|table| table.name() == part.name);
            let table = place.map(|place| tables.swap_remove(place)).and_then(|table| table.in_order(&part.columns));
            let table = Arc::new(table.ok_or_else(unfit)?);
            let mut lines = parts.next(part.bytes, &part.sha256);
            self.table(&table, part, &mut lines)?;
            lines.finish()?;
        }
        Ok(())
    }

    fn table(&self, table: &Arc<RawTable>, part: &TablePart, lines: &mut Part<'_>) -> Result<()> {
        let sealed = SealedCells::of(part)?;
        let (owner, app) = self.owner(part).ok_or_else(unfit)?;
        let mut lines = BufReader::new(lines);
        let (mut batch, mut bytes, mut count, mut line) = (Vec::new(), 0, 0, String::new());
        loop {
            line.clear();
            let read = lines.by_ref().take(LONGEST_LINE).read_line(&mut line).map_err(unreadable)?;
            if read > 0 {
                let cells = cells::parse(line.trim_end_matches('\n')).ok_or_else(unfit)?;
                let row = self.sealed(part, &sealed, cells)?;
                // What belongs to somebody else is nobody's to bring.
                if row.len() != part.columns.len() || row[owner] != app {
                    return Err(unfit());
                }
                bytes += row.iter().map(RawCell::size).sum::<usize>();
                batch.push(row);
                count += 1;
            }
            if !batch.is_empty() && (read == 0 || batch.len() == BATCH_ROWS || bytes > BATCH_BYTES) {
                self.put(table, std::mem::take(&mut batch))?;
                bytes = 0;
            }
            if read == 0 {
                return if count == part.rows { Ok(()) } else { Err(unfit()) };
            }
        }
    }

    /// The column that names the app in the schema of the archive, and what has to stand there.
    fn owner(&self, part: &TablePart) -> Option<(usize, RawCell)> {
        let place = |wanted: &str| part.columns.iter().position(|column| column == wanted);
        let id = if part.name == APPS { "id" } else { AppColumn::Id.as_str() };
        match place(id) {
            Some(id) => Some((id, RawCell::Text(self.app.to_string()))),
            None => Some((place(AppColumn::Number.as_str())?, RawCell::Int(self.app.number().as_i64()))),
        }
    }

    fn put(&self, table: &Arc<RawTable>, rows: Vec<Vec<RawCell>>) -> Result<()> {
        let table = Arc::clone(table);
        let put = Handle::current().block_on(self.db.write(move |tx| tx.insert_raw(&table, &rows)));
        put.map_err(|error| match error.code() {
            Code::Internal => unfit().with_source(error),
            _ => error,
        })
    }

    /// A row with its secrets sealed for this installation.
    fn sealed(&self, part: &TablePart, sealed: &SealedCells, row: Vec<ArchivedCell>) -> Result<Vec<RawCell>> {
        let names: Vec<Option<String>> = row.iter().map(text_of).collect();
        let mut cells = Vec::with_capacity(row.len());
        for (index, cell) in row.into_iter().enumerate() {
            cells.push(match cell {
                ArchivedCell::Plain(cell) => cell,
                ArchivedCell::Opened(secret) => {
                    let (column, row) = sealed.place(index).ok_or_else(unfit)?;
                    let row = names.get(row).and_then(Option::as_deref).ok_or_else(unfit)?;
                    let place = Place { table: &part.name, column, row, app: Some(self.app) };
                    RawCell::Text(self.keyring.seal(&place, secret.expose()))
                }
            });
        }
        Ok(cells)
    }
}

fn text_of(cell: &ArchivedCell) -> Option<String> {
    match cell {
        ArchivedCell::Plain(RawCell::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

/// Where sealed values stand, and the names of their rows.
struct SealedCells(Vec<(usize, String, usize)>);

impl SealedCells {
    fn of(part: &TablePart) -> Result<Self> {
        let place = |name: &str| part.columns.iter().position(|column| column == name).ok_or_else(unfit);
        let cells =
            part.sealed.iter().map(|sealed| Ok((place(&sealed.column)?, sealed.column.clone(), place(&sealed.row)?)));
        cells.collect::<Result<_>>().map(Self)
    }

    fn place(&self, index: usize) -> Option<(&str, usize)> {
        self.0.iter().find(|(column, ..)| *column == index).map(|(_, name, row)| (name.as_str(), *row))
    }
}

fn unfit() -> Error {
    Error::invalid("archive", "holds rows that do not fit its schema")
}
