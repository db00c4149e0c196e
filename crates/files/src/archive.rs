//! Files on their way from one installation to another: which bytes belong to an app, and putting bytes in from elsewhere.

use std::io::{self, Read};

use ::store::{AttachedSource, AttachedTarget, Tx, args};
use kernel::{AppId, Result};

use crate::{Files, Storage};

/// The bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// What they are called in the storage.
    pub name: String,
}

/// Lists what the bytes of all apps' files are called, in a backup.
pub const OBJECTS: &str = "SELECT object FROM files WHERE state <> 'prepared' ORDER BY id";

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
    pub fn open_object(&self, object: &StoredObject) -> io::Result<Option<Box<dyn Read + Send>>> {
        self.storage.open_blocking(&object.name)
    }

    /// Puts bytes in that a row names already, in a thread that may wait. Durable when it answers.
    pub fn keep_object(&self, object: &StoredObject, bytes: &mut dyn Read) -> io::Result<()> {
        self.storage.keep_blocking(&object.name, bytes)
    }
}

impl AttachedSource for Storage {
    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Read + '_>>> {
        // A row that somebody altered leads nowhere.
        if !(StoredObject { name: name.to_owned() }).is_ours() {
            return Ok(None);
        }
        Ok(self.open_blocking(name)?.map(|bytes| bytes as Box<dyn Read>))
    }
}

impl AttachedTarget for Storage {
    fn accepts(&self, name: &str) -> bool {
        StoredObject { name: name.to_owned() }.is_ours()
    }

    fn keep(&self, name: &str, bytes: &mut dyn Read) -> io::Result<()> {
        self.keep_blocking(name, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    #[test]
    fn names_that_lead_elsewhere_are_neither_read_nor_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("secret12"), "not a file of anybody").expect("written");
        let storage = Storage::new(Place::Folder(folder.path().join("files")));
        let outside = folder.path().join("secret12").display().to_string();
        for name in ["../secret12", "../../secret12", "..", "", "a/b", "abcdefg\0", "käse-brot", outside.as_str()] {
            assert!(!storage.accepts(name), "{name}");
            assert!(AttachedSource::open(&storage, name).expect("asked").is_none(), "{name}");
        }
        let name = "0123456789abcdefghijklmnopqrstuv";
        assert!(storage.accepts(name));
        for content in ["first", "again, after a restore that was cut off"] {
            storage.keep(name, &mut content.as_bytes()).expect("kept");
            let mut read = String::new();
            AttachedSource::open(&storage, name)
                .expect("asked")
                .expect("there")
                .read_to_string(&mut read)
                .expect("read");
            assert_eq!(read, content);
        }
    }
}
