//! Bytes without a row: of files that expired, of workspaces and apps that are gone, of uploads that were cut off. They are
//! deleted when two runs in a row found them so, which no upload that is under way is. Parts of uploads that nobody ended count too.

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
pub(crate) const AT_ONCE: usize = 500;
/// Names that are remembered until the next run; what is beyond them waits for a later one.
const REMEMBERED: usize = 10_000;

pub(crate) struct Sweep {
    db: Db,
    storage: Storage,
    /// What the last run found.
    without_row: Mutex<Vec<String>>,
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
        let before = std::mem::take(&mut *self.without_row.lock().unwrap_or_else(PoisonError::into_inner));
        let mut gone = HashSet::new();
        for found in before.chunks(AT_ONCE) {
            for object in without_row(&self.db, found.to_vec()).await? {
                self.storage.delete(&object).await?;
                gone.insert(object);
            }
        }
        let mut found = self.give_up_uploads(&gone).await?;
        let mut objects = self.storage.objects().await?;
        while found.len() < REMEMBERED {
            let some = objects.next(AT_ONCE).await?;
            if some.is_empty() {
                break;
            }
            found.extend(without_row(&self.db, some).await?);
        }
        *self.without_row.lock().unwrap_or_else(PoisonError::into_inner) = found;
        Ok(Worked::Nothing)
    }
}

impl Sweep {
    /// Gives up the uploads of these objects, and answers with those of further objects that no file has.
    async fn give_up_uploads(&self, gone: &HashSet<String>) -> Result<Vec<String>> {
        let mut others = Vec::new();
        for upload in self.storage.unended_uploads().await {
            if gone.contains(&upload.object) {
                self.storage.give_up(&upload).await;
            } else {
                others.push(upload.object);
            }
        }
        let mut found = Vec::new();
        for some in others.chunks(AT_ONCE) {
            found.extend(without_row(&self.db, some.to_vec()).await?);
        }
        Ok(found)
    }
}

/// Those of these objects that no file has.
pub(crate) async fn without_row(db: &Db, mut objects: Vec<String>) -> Result<Vec<String>> {
    let asked = objects.clone();
    let known: HashSet<String> = db.read(move |tx| store::known_objects(tx, &asked)).await?.into_iter().collect();
    objects.retain(|object| !known.contains(object));
    Ok(objects)
}
