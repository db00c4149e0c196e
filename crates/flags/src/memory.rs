//! All apps' flags in memory, compiled. The committing node puts its change in before the write answers; other nodes
//! read the app again when they hear of it. Revisions keep an older state from replacing a newer one.

use std::{
    collections::HashMap,
    num::NonZero,
    sync::{Arc, PoisonError, RwLock},
    thread::available_parallelism,
};

use kernel::{AppId, Error, Result};
use spine::{Mirror, News, Stale};
use store::Db;
use tenancy::facts::{AppDeleted, AppImported};

use crate::{
    definitions::{CompiledApp, StoredApp, load_all, load_app},
    facts::FlagsChanged,
};

/// Cheap to clone.
#[derive(Clone)]
pub struct Memory(Arc<MemoryInner>);

struct MemoryInner {
    db: Db,
    shards: Vec<RwLock<HashMap<AppId, Arc<CompiledApp>>>>,
    stale: Stale,
}

const SHARDS: usize = 32;

impl Memory {
    pub(crate) fn new(db: Db) -> Self {
        let shards = (0..SHARDS).map(|_| RwLock::default()).collect();
        Self(Arc::new(MemoryInner { db, shards, stale: Stale::default() }))
    }

    /// `None` when the app has had no flag or group yet.
    pub fn get(&self, app: AppId) -> Option<Arc<CompiledApp>> {
        self.shard(app).read().unwrap_or_else(PoisonError::into_inner).get(&app).cloned()
    }

    /// Keeps whichever is newer.
    pub(crate) fn put(&self, app: AppId, compiled: Arc<CompiledApp>) {
        let mut shard = self.shard(app).write().unwrap_or_else(PoisonError::into_inner);
        if shard.get(&app).is_none_or(|known| known.revision < compiled.revision) {
            shard.insert(app, compiled);
        }
    }

    fn remove(&self, app: AppId) {
        self.shard(app).write().unwrap_or_else(PoisonError::into_inner).remove(&app);
    }

    fn shard(&self, app: AppId) -> &RwLock<HashMap<AppId, Arc<CompiledApp>>> {
        // The last bits of an id are random. The remainder is below 32.
        &self.0.shards[(app.as_u128() % SHARDS as u128) as usize]
    }

    /// Notes what a fact says has changed; the refresher reads it.
    pub(crate) fn hear(&self, news: News<'_>) {
        let News::Fact(fact) = news else { return self.0.stale.note_everything() };
        let Some(app) = fact.app else { return };
        if fact.is::<AppDeleted>() {
            return self.remove(app);
        }
        if fact.is::<AppImported>() {
            return self.0.stale.note(app);
        }
        match fact.read::<FlagsChanged>() {
            Ok(Some(changed)) if !self.is_behind(app, changed.revision) => {}
            Ok(None) => {}
            // What cannot be read is read from the store.
            Ok(Some(_)) | Err(_) => self.0.stale.note(app),
        }
    }

    fn is_behind(&self, app: AppId, revision: i64) -> bool {
        self.get(app).is_none_or(|known| known.revision < revision)
    }

    /// Reads and compiles all apps' flags, on all processors: an installation may have very many.
    pub async fn load(&self) -> Result<()> {
        let apps: Vec<(AppId, StoredApp)> = self.0.db.scan(load_all).await?.into_iter().collect();
        let share = apps.len().div_ceil(available_parallelism().map_or(1, NonZero::get)).max(1);
        let apps = Arc::new(apps);
        let parts = (0..apps.len()).step_by(share).map(|from| {
            let (memory, apps) = (self.clone(), Arc::clone(&apps));
            tokio::task::spawn_blocking(move || -> Result<()> {
                let part = apps.iter().skip(from).take(share);
                for (app, stored) in part {
                    memory.put(*app, Arc::new(stored.compile()?));
                }
                Ok(())
            })
        });
        for part in parts.collect::<Vec<_>>() {
            part.await.map_err(Error::internal)??;
        }
        Ok(())
    }
}

impl Mirror for Memory {
    const NAME: &'static str = "flags-refresh";

    fn stale(&self) -> &Stale {
        &self.0.stale
    }

    async fn refresh(&self, app: AppId) -> Result<()> {
        let definitions = self.0.db.snapshot(move |tx| load_app(tx, app)).await?;
        self.put(app, Arc::new(definitions.compile()));
        Ok(())
    }

    async fn reload(&self) -> Result<()> {
        self.load().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{EngineName, testing::TestDb};

    #[tokio::test]
    async fn an_older_state_never_replaces_a_newer_one() {
        let test = TestDb::empty(EngineName::Sqlite).await;
        let (memory, app) = (Memory::new(test.db.clone()), AppId::from_u128(1));
        for (read, kept) in [(2, 2), (1, 2), (2, 2), (3, 3)] {
            memory.put(app, Arc::new(CompiledApp { revision: read, ..CompiledApp::default() }));
            assert_eq!(memory.get(app).map(|known| known.revision), Some(kept));
        }
    }
}
