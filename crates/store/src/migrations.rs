//! Migrations: one numbered, checksummed list. Several nodes may start at once; a newer or altered schema is refused.

use aws_lc_rs::digest::{SHA256, digest};
use kernel::{Code, Error, Result};

use crate::{Db, EngineName, FromRow, Row, Tx, args, dialect, sqlite};

/// One step of the schema. The text is shared by both engines and uses the type tokens of `docs/conventions.md`; only
/// where that is impossible does a step have a text per engine.
pub struct Migration {
    pub number: u32,
    pub name: &'static str,
    pub sql: MigrationSql,
}

pub enum MigrationSql {
    Shared(&'static str),
    PerEngine { sqlite: &'static str, postgres: &'static str },
}

impl Migration {
    pub const fn shared(number: u32, name: &'static str, sql: &'static str) -> Self {
        Self { number, name, sql: MigrationSql::Shared(sql) }
    }

    pub const fn per_engine(number: u32, name: &'static str, sqlite: &'static str, postgres: &'static str) -> Self {
        Self { number, name, sql: MigrationSql::PerEngine { sqlite, postgres } }
    }

    pub(crate) fn text(&self, engine: EngineName) -> String {
        let text = match (&self.sql, engine) {
            (MigrationSql::Shared(text), _) => text,
            (MigrationSql::PerEngine { sqlite, .. }, EngineName::Sqlite) => sqlite,
            (MigrationSql::PerEngine { postgres, .. }, EngineName::Postgres) => postgres,
        };
        dialect::migration(text, engine)
    }

    /// Over the texts of both engines, so that a backup restored on the other engine carries the same sums.
    fn checksum(&self) -> String {
        let text = match &self.sql {
            MigrationSql::Shared(text) => (*text).to_owned(),
            MigrationSql::PerEngine { sqlite, postgres } => format!("{sqlite}\n-- postgres --\n{postgres}"),
        };
        digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What a call of [`Db::migrate`] found and did.
#[derive(Debug, PartialEq, Eq)]
pub struct MigrationReport {
    /// Numbers of the steps that this call applied.
    pub applied: Vec<u32>,
    /// The schema had no step at all before.
    pub was_empty: bool,
}

pub(crate) struct Applied {
    pub(crate) number: i64,
    pub(crate) name: String,
    pub(crate) checksum: String,
}

impl FromRow for Applied {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self { number: row.get("number")?, name: row.get("name")?, checksum: row.get("checksum")? })
    }
}

pub(crate) const CREATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (number {int} PRIMARY KEY, name TEXT NOT NULL, \
                            checksum TEXT NOT NULL, applied_at {int} NOT NULL) {strict}";
pub(crate) const LIST: &str = "SELECT number, name, checksum FROM schema_migrations ORDER BY number";
const INSERT: &str = "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)";

impl Db {
    /// Applies what is missing, one transaction per step, each under the migration lock.
    pub async fn migrate(&self, list: &'static [Migration]) -> Result<MigrationReport> {
        debug_assert!(list.is_sorted_by(|a, b| a.number < b.number), "migrations must be in ascending order");
        let engine = self.engine();
        let mut report = MigrationReport { applied: Vec::new(), was_empty: false };
        loop {
            let (found_empty, step) = self.write_alone(move |tx| apply_next(tx, list, engine)).await?;
            match step {
                Some(migration) => {
                    report.was_empty |= found_empty;
                    report.applied.push(migration.number);
                    // A new store has all of them, which nobody needs to read.
                    if !report.was_empty {
                        tracing::info!(number = migration.number, name = migration.name, "migration applied");
                    }
                }
                None => break,
            }
        }
        if engine == EngineName::Sqlite {
            self.write_alone(sqlite::estimates::tell).await?;
        }
        Ok(report)
    }

    /// Whether no step was ever applied here: there is no store, and whoever did not mean to make one should stop.
    pub async fn is_empty(&self) -> Result<bool> {
        let sql = match self.engine() {
            EngineName::Sqlite => "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'",
            EngineName::Postgres => {
                "SELECT 1 FROM information_schema.tables WHERE table_schema = current_schema() \
                 AND table_name = 'schema_migrations'"
            }
        };
        self.read(move |tx| {
            let mut found = false;
            tx.each_unrecorded(sql, &[], &mut |_| {
                found = true;
                Ok(())
            })?;
            Ok(!found || applied(tx)?.is_empty())
        })
        .await
    }

    /// Whether every step of `list` is applied and nothing else.
    pub async fn is_migrated(&self, list: &'static [Migration]) -> Result<bool> {
        self.read(move |tx| {
            let applied = applied(tx)?;
            check(&applied, list)?;
            Ok(applied.len() == list.len())
        })
        .await
    }
}

pub(crate) fn apply_next(
    tx: &mut Tx<'_>,
    list: &'static [Migration],
    engine: EngineName,
) -> Result<(bool, Option<&'static Migration>)> {
    // Another node may be at work on a large table.
    tx.take_as_long_as_needed()?;
    tx.lock(&crate::WholeDatabase("migrations"))?;
    tx.script(&dialect::migration(CREATE_TABLE, engine))?;
    let applied = applied(tx)?;
    check(&applied, list)?;
    let Some(next) = list.get(applied.len()) else { return Ok((applied.is_empty(), None)) };
    tx.script(&next.text(engine))
        .map_err(|error| Error::internal(format!("migration {} ({}): {error:?}", next.number, next.name)))?;
    let (checksum, now) = (next.checksum(), tx.now());
    tx.each_unrecorded(INSERT, &args![next.number, next.name, checksum, now], &mut |_| Ok(()))?;
    Ok((applied.is_empty(), Some(next)))
}

/// Unrecorded, like all statements here: test databases are copies of a template, which only the first run migrates.
pub(crate) fn applied(tx: &mut Tx<'_>) -> Result<Vec<Applied>> {
    let mut applied = Vec::new();
    tx.each_unrecorded(LIST, &[], &mut |row| {
        applied.push(Applied::from_row(row)?);
        Ok(())
    })?;
    Ok(applied)
}

/// The applied steps must be a prefix of the list.
pub(crate) fn check(applied: &[Applied], list: &[Migration]) -> Result<()> {
    for (index, found) in applied.iter().enumerate() {
        match list.get(index) {
            Some(known) if i64::from(known.number) == found.number => {
                if known.checksum() != found.checksum {
                    return Err(refusal(format!(
                        "Migration {} ({}) in the database differs from the one in this program. The schema was \
                         altered, or another build of the same version was run on it. Use the build that was used \
                         before, or restore a backup.",
                        found.number, found.name
                    )));
                }
            }
            _ => {
                return Err(refusal(format!(
                    "The database has migration {} ({}), which this program does not know: the database was used by a \
                     newer release. Start that release or a later one.",
                    found.number, found.name
                )));
            }
        }
    }
    Ok(())
}

fn refusal(message: String) -> Error {
    Error::new(Code::StorageUnavailable, message)
}
