//! Loading a backup into an empty store.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ::store::{AttachedCounts, AttachedTarget, Db, Restored, read_backup_info};
use files::Storage;
use kernel::{Code, Error, Result};
use vault::Keyring;

use super::keys::{self, GivenKeys};
use crate::{MIGRATIONS, Options};

const CHECK: &str = "master_key_check";

/// What a backup says about the installation it came from: enough to refuse a wrong master key.
pub(crate) fn backup_info(keyring: &Keyring) -> Vec<(&'static str, String)> {
    vec![(CHECK, keyring.check_value().to_owned())]
}

/// What a restore has brought back.
#[derive(Debug)]
pub struct Recovered {
    pub rows: u64,
    pub tables: usize,
    /// What became of the files of workspaces: how many were put back, were missing when the backup was made, or were
    /// left out of it.
    pub files: AttachedCounts,
    /// The file that holds the operator key, unless configuration gave it.
    pub operator_file: Option<PathBuf>,
}

/// The master key is checked before anything is written: without it the restored secrets could never be opened. Who has
/// it is the operator, also when the operator key was lost with the old machine.
pub async fn restore(options: Options, file: &Path) -> Result<Recovered> {
    let info = read_backup_info(file).await?;
    let keyring = keys::present_keyring(&options.keys, options.entropy.clone())?;
    let wanted = info.entries.get(CHECK).map(String::as_str).unwrap_or_default();
    let found = keyring.is_some();
    let Some(keyring) = keyring.filter(|keyring| keyring.matches_check_value(wanted)) else {
        let word = if found { "not the one" } else { "missing: it needs the one" };
        return Err(Error::new(
            Code::StorageUnavailable,
            format!(
                "The master key is {word} that the backup's secrets are sealed with. Set TENANTRY_MASTER_KEY, or put the \
                 key into {}.",
                options.keys.folder.join("master.key").display()
            ),
        ));
    };
    super::protect(&options.keys.folder)?;
    let db = Db::open(::store::Options {
        url: options.database,
        clock: options.clock,
        entropy: options.entropy,
        limits: options.store_limits,
    })
    .await?;
    let storage = Storage::new(options.files.place);
    let recovered = recover(&db, storage, options.keys, &keyring, file).await;
    db.close().await;
    recovered.map(|recovered| Recovered { files: info.attached, ..recovered })
}

async fn recover(db: &Db, storage: Storage, keys: GivenKeys, keyring: &Keyring, file: &Path) -> Result<Recovered> {
    let (beside, backup_keys) = (Some(Arc::new(storage) as Arc<dyn AttachedTarget>), keyring.backup_keys());
    let Restored { rows, tables, attached } = ::store::restore(file, db, beside, &backup_keys, MIGRATIONS).await?;
    let operator_file = keys::settle_restored(db, keys).await?;
    let files = AttachedCounts { held: attached, ..AttachedCounts::default() };
    Ok(Recovered { rows, tables, files, operator_file })
}
