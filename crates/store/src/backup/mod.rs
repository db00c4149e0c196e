//! Backups: one portable file for both engines, made while writers continue, loaded into an empty database of either.
//!
//! The file is an SQLite database with the schema of the same migrations, all rows, a table `backup_info`, and the bytes of
//! what lies beside the database if they are wanted; it ends in a keyed digest of it all. It appears under its name only when it is complete and on disk; a restore is one transaction, so
//! that a failed one leaves the target as empty as it was.

mod attached;
mod checksum;
mod digest;
mod dump;
mod file;
mod load;
mod moving;
pub(crate) mod tables;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

use kernel::{Code, Error, Result, Timestamp};

pub use attached::{Attached, AttachedCounts, AttachedSource, AttachedTarget};
pub use checksum::BackupKey;
pub use moving::{MoveEstimate, MoveOrder, MoveProgress, Moved};

use crate::{Db, Migration};

/// What a backup says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupInfo {
    /// When the backup was begun: every write acknowledged before is in it.
    pub made_at: Timestamp,
    /// The engine it was made on, for people; it can be restored on either.
    pub engine: String,
    /// The number of the last migration.
    pub schema: u32,
    /// What the maker added, such as the check value of the master key.
    pub entries: BTreeMap<String, String>,
    /// What of the bytes beside the database is in it.
    pub attached: AttachedCounts,
}

/// What a restore brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    pub tables: usize,
    pub rows: u64,
    /// How many of what lies beside the database.
    pub attached: u64,
}

impl Db {
    /// Writes everything committed so far into a new file. Refuses to replace one.
    pub async fn backup_to(
        &self,
        path: &Path,
        entries: &[(&str, &str)],
        attached: Option<Attached>,
        key: &BackupKey,
        migrations: &'static [Migration],
    ) -> Result<BackupInfo> {
        if path.exists() {
            return Err(Error::new(Code::Conflict, format!("{} exists already.", path.display())));
        }
        let mut info = BackupInfo {
            made_at: self.clock().now(),
            engine: self.engine().to_string(),
            schema: 0,
            entries: entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            attached: AttachedCounts::default(),
        };
        let partial = partial_of(path);
        let outcome = async {
            file::create_empty(&partial)?;
            match self.copy_sqlite_to(&partial).await {
                Some(copied) => copied?,
                None => dump::dump(self, &partial, migrations).await?,
            }
            let (written, target, key) = (partial.clone(), path.to_owned(), key.clone());
            let finished = tokio::task::spawn_blocking(move || {
                file::finish(&written, &mut info, attached.as_ref(), migrations)?;
                checksum::append(&written, &key).map_err(|error| file::cannot("write", &written, &error))?;
                publish(&written, &target).map_err(|error| file::cannot("write", &target, &error))?;
                Ok(info)
            });
            finished.await.map_err(Error::internal)?
        }
        .await;
        if outcome.is_err() {
            let _ = fs::remove_file(&partial);
        }
        outcome
    }
}

/// Reads what a backup says about itself, without reading the rest.
pub async fn read_backup_info(path: &Path) -> Result<BackupInfo> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || file::Backup::open(&path)?.info()).await.map_err(Error::internal)?
}

/// Loads a backup into a database without a schema, then brings the schema up to date; what lies beside the database goes to
/// `beside`, without which a backup that holds any is refused. Refuses a file that is damaged or was made with none of these keys, a file of a newer release, and a target in
/// which there is anything.
pub async fn restore(
    path: &Path,
    target: &Db,
    beside: Option<Arc<dyn AttachedTarget>>,
    keys: &[BackupKey],
    migrations: &'static [Migration],
) -> Result<Restored> {
    let restored = load::load(path, target, beside, keys, migrations).await?;
    target.migrate(migrations).await?;
    Ok(restored)
}

fn partial_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".partial");
    name.into()
}

/// First the content is on disk, then the name, then the folder that holds the name.
fn publish(partial: &Path, path: &Path) -> std::io::Result<()> {
    File::open(partial)?.sync_all()?;
    fs::rename(partial, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
