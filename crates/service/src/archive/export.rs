//! Making an archive: one snapshot is read twice, once for what the manifest says of it and once for the rows themselves,
//! while everybody else keeps writing.

use std::{
    fs::File,
    io::{self, BufWriter, Read as _, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use files::{Files, StoredObject};
use kernel::{AppId, Code, Error, Result};
use spine::outbox;
use store::{RawCell, RawTable, Table, Tx};
use tenancy::apps;
use vault::{ArchiveKey, ArchiveWriter, Keyring, Place, Sha256};

use super::{
    blocking,
    cells::{self, ArchivedCell},
    manifest::{self, FilePart, Manifest, SealedPart, TablePart},
    moving, naming, unreadable,
};
use crate::{Core, MIGRATIONS, VERSION};

/// How often an export is begun again because files were deleted meanwhile.
const ATTEMPTS: usize = 3;

/// How long what follows from earlier changes is waited for, and how often it is asked about.
const LONGEST_SETTLING: Duration = Duration::from_secs(1);
const SETTLING: Duration = Duration::from_millis(20);

type Output = ArchiveWriter<BufWriter<File>>;

/// Writes an app into a new file, which nobody but the owner reads.
pub(super) async fn export(core: &Core, app: AppId, key: &ArchiveKey, path: &Path) -> Result<Manifest> {
    // A release before the one that changed the schema does not know all of an app.
    if !core.db.is_migrated(MIGRATIONS).await? {
        return Err(Error::internal("the store is not up to date"));
    }
    settle(core).await?;
    let export = Export {
        app,
        key: key.clone(),
        keyring: core.keyring.clone(),
        files: core.files.clone(),
        path: path.to_owned(),
    };
    for _ in 0..ATTEMPTS {
        let (rows, files) = (export.clone(), core.files.clone());
        let (mut out, manifest) = core.db.scan(move |tx| rows.write(tx)).await?;
        let written = blocking(move || {
            let complete = write_files(&mut out, &files, &manifest.files)?;
            out.finish().and_then(|mut file| file.flush()).map_err(unreadable)?;
            Ok(complete.then_some(manifest))
        });
        if let Some(manifest) = written.await? {
            return Ok(manifest);
        }
    }
    Err(Error::new(Code::Conflict, "Files of the app were deleted while it was exported. Try again."))
}

/// What follows from changes made before, such as their entries in the audit trail, belongs to them. It is a matter of
/// milliseconds, unless something is wrong that an export is not to wait for.
async fn settle(core: &Core) -> Result<()> {
    for _ in 0..LONGEST_SETTLING.as_millis() / SETTLING.as_millis() {
        if core.db.read(outbox::backlog).await?.0 == 0 {
            break;
        }
        tokio::time::sleep(SETTLING).await;
    }
    Ok(())
}

#[derive(Clone)]
struct Export {
    app: AppId,
    key: ArchiveKey,
    keyring: Keyring,
    files: Files,
    path: PathBuf,
}

impl Export {
    /// Everything but the bytes of files. May run again, then from the start.
    fn write(&self, tx: &mut Tx<'_>) -> Result<(Output, Manifest)> {
        let app = apps::get(tx, self.app)?;
        let tables = self.tables(tx)?;
        let (files, missing_files) = self.file_parts(tx)?;
        let mut manifest = Manifest {
            version: manifest::VERSION,
            schema: MIGRATIONS.last().map_or(0, |last| last.number),
            release: VERSION.to_owned(),
            made_at: tx.now(),
            app_id: self.app,
            name: app.profile.name.clone(),
            domain: app.profile.domain.clone(),
            tables: Vec::with_capacity(tables.len()),
            files,
            missing_files,
        };
        for table in &tables {
            let (mut measured, mut rows) = (Measured::default(), 0);
            self.each_line(tx, table, &mut |line| {
                rows += 1;
                measured.write_all(line.as_bytes()).map_err(unreadable)
            })?;
            manifest.tables.push(table.part(rows, measured));
        }
        let file = store::private::create_file(&self.path).map_err(unreadable)?;
        let mut out = ArchiveWriter::new(BufWriter::new(file), &self.key, tx.entropy())?;
        manifest.write(&mut out)?;
        for table in &tables {
            self.each_line(tx, table, &mut |line| out.write_all(line.as_bytes()).map_err(unreadable))?;
        }
        Ok((out, manifest))
    }

    fn tables(&self, tx: &mut Tx<'_>) -> Result<Vec<ExportedTable>> {
        let mut found = tx.raw_tables()?;
        let mut tables = Vec::new();
        for table in moving() {
            let place = found.iter().position(|raw| raw.name() == table.name);
            let place = place.ok_or_else(|| Error::internal(format!("there is no table {}", table.name)))?;
            tables.push(ExportedTable::new(table, found.swap_remove(place))?);
        }
        Ok(tables)
    }

    fn each_line(
        &self,
        tx: &mut Tx<'_>,
        table: &ExportedTable,
        visit: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<()> {
        tx.each_raw(&table.raw, naming(table.table, self.app), table.table.key, &mut |row| {
            visit(cells::line(&self.opened(table, &row)?))
        })
    }

    /// A row with what was sealed in it open.
    fn opened(&self, table: &ExportedTable, row: &[RawCell]) -> Result<Vec<ArchivedCell>> {
        let mut opened = Vec::with_capacity(row.len());
        for (index, cell) in row.iter().enumerate() {
            let sealed = table.sealed.iter().find(|sealed| sealed.column == index);
            opened.push(match (sealed, cell) {
                (Some(sealed), RawCell::Text(text)) if !text.is_empty() => {
                    let RawCell::Text(name) = &row[sealed.row] else {
                        return Err(Error::internal(format!("a row of {} without a name", table.table.name)));
                    };
                    let place = Place { table: table.table.name, column: sealed.name, row: name, app: Some(self.app) };
                    ArchivedCell::Opened(self.keyring.open(&place, text)?)
                }
                _ => ArchivedCell::Plain(cell.clone()),
            });
        }
        Ok(opened)
    }

    /// The files whose bytes are here, and how many are missing.
    fn file_parts(&self, tx: &mut Tx<'_>) -> Result<(Vec<FilePart>, u64)> {
        let (mut parts, mut missing) = (Vec::new(), 0);
        for object in files::archived(tx, self.app)? {
            let mut measured = Measured::default();
            match self.files.open_object(&object).map_err(unreadable)? {
                Some(mut file) => {
                    io::copy(&mut file, &mut measured).map_err(unreadable)?;
                    let Measured { bytes, digest } = measured;
                    parts.push(FilePart { object: object.name, bytes, sha256: digest.finish_hex() });
                }
                None => missing += 1,
            }
        }
        Ok((parts, missing))
    }
}

/// False when one is not there any more as it was.
fn write_files(out: &mut Output, files: &Files, parts: &[FilePart]) -> Result<bool> {
    for part in parts {
        let object = StoredObject { name: part.object.clone() };
        let Some(file) = files.open_object(&object).map_err(unreadable)? else { return Ok(false) };
        let mut measured = Measured::default();
        let mut both = Both { measured: &mut measured, out };
        io::copy(&mut file.take(part.bytes), &mut both).map_err(unreadable)?;
        if measured.bytes != part.bytes || measured.digest.finish_hex() != part.sha256 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A table as it is written.
struct ExportedTable {
    table: &'static Table,
    raw: RawTable,
    sealed: Vec<SealedCell>,
}

/// Where a sealed value and the name of its row stand.
struct SealedCell {
    name: &'static str,
    column: usize,
    row: usize,
}

impl ExportedTable {
    fn new(table: &'static Table, raw: RawTable) -> Result<Self> {
        let place = |name: &str| {
            let found = raw.columns().position(|column| column == name);
            found.ok_or_else(|| Error::internal(format!("there is no column {name} in {}", table.name)))
        };
        let mut sealed = Vec::new();
        for column in table.sealed {
            sealed.push(SealedCell { name: column.column, column: place(column.column)?, row: place(column.row)? });
        }
        Ok(Self { table, raw, sealed })
    }

    fn part(&self, rows: u64, measured: Measured) -> TablePart {
        let sealed = self.table.sealed.iter();
        TablePart {
            name: self.table.name.to_owned(),
            columns: self.raw.columns().map(str::to_owned).collect(),
            sealed: sealed.map(|part| SealedPart { column: part.column.into(), row: part.row.into() }).collect(),
            rows,
            bytes: measured.bytes,
            sha256: measured.digest.finish_hex(),
        }
    }
}

/// Counts and digests what is written into it.
#[derive(Default)]
struct Measured {
    bytes: u64,
    digest: Sha256,
}

impl Write for Measured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        self.digest.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Both<'a> {
    measured: &'a mut Measured,
    out: &'a mut Output,
}

impl Write for Both<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.measured.write(&bytes[..written])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
