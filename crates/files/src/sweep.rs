//! Bytes without a row: of files that expired, of workspaces and apps that are gone, of uploads that were cut off. They are
//! deleted when two runs in a row found them so, which no upload that is under way is.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use ::store::Db;
use kernel::Result;
use spine::{Job, Worked};

use crate::{storage::Storage, store};

/// Names that are asked for at once.
const AT_ONCE: usize = 500;

pub(crate) struct Sweep {
    db: Db,
    storage: Storage,
    /// What the last run found.
    without_row: Mutex<HashSet<String>>,
}

impl Sweep {
    pub(crate) fn new(db: Db, storage: Storage) -> Self {
        Self { db, storage, without_row: Mutex::default() }
    }
}

impl Job for Sweep {
    fn name(&self) -> &'static str {
        "file-sweep"
    }

    fn every(&self) -> Duration {
        Duration::from_hours(1)
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    async fn run(&self) -> Result<Worked> {
        let mut found = HashSet::new();
        for objects in self.storage.objects().await?.chunks(AT_ONCE) {
            let asked = objects.to_vec();
            let known = self.db.read(move |tx| store::known_objects(tx, &asked)).await?;
            found.extend(objects.iter().filter(|object| !known.contains(object)).cloned());
        }
        let before = std::mem::take(&mut *self.without_row.lock().unwrap_or_else(PoisonError::into_inner));
        for object in found.intersection(&before) {
            self.storage.delete(object).await?;
        }
        let left: HashSet<String> = found.difference(&before).cloned().collect();
        *self.without_row.lock().unwrap_or_else(PoisonError::into_inner) = left;
        Ok(Worked::Nothing)
    }
}
