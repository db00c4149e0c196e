//! Files on their way from one installation to another: which bytes belong to an app, and putting bytes in from elsewhere.

use std::io::{self, Read};

use ::store::{Tx, args};
use kernel::{AppId, Result};

use crate::Files;

/// The bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// What they are called in the storage.
    pub name: String,
}

/// The bytes that belong to an app, in the order of its files.
pub fn archived(tx: &mut Tx<'_>, app: AppId) -> Result<Vec<StoredObject>> {
    let names: Vec<(String,)> =
        tx.all("SELECT object FROM files WHERE app_id = $1 AND state <> 'prepared' ORDER BY id", &args![app])?;
    Ok(names.into_iter().map(|(name,)| StoredObject { name }).collect())
}

impl StoredObject {
    /// Whether it is a name that this room gives, and so never leads out of the folder.
    pub fn is_ours(&self) -> bool {
        (8..=64).contains(&self.name.len()) && self.name.bytes().all(|byte| byte.is_ascii_alphanumeric())
    }
}

impl Files {
    /// For reading, in a thread that may wait; `None` when the bytes are missing.
    pub fn open_object(&self, object: &StoredObject) -> io::Result<Option<std::fs::File>> {
        self.storage.open_blocking(&object.name)
    }

    /// Puts bytes in that a row names already, in a thread that may wait. Durable when it answers.
    pub fn keep_object(&self, object: &StoredObject, bytes: &mut dyn Read) -> io::Result<()> {
        self.storage.keep_blocking(&object.name, bytes)
    }
}
