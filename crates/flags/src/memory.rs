//! All apps' flags in memory, compiled. The committing node puts its change in before the write answers; other nodes
//! read the app anew when they hear of it. Revisions keep an older state from replacing a newer one.

use std::{
    collections::{HashMap, HashSet},
    num::NonZero,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    thread::available_parallelism,
    time::Duration,
};

use kernel::{AppId, Error, Result};
use spine::{Fact, Job, News, Signal, Worked};
use store::Db;
use tokio::sync::watch;

use crate::definitions::{CHANGED, CompiledApp, StoredApp, load_all, load_app};

/// Cheap to clone.
#[derive(Clone)]
pub struct Memory(Arc<Inner>);

struct Inner {
    db: Db,
    shards: Vec<RwLock<HashMap<AppId, Arc<CompiledApp>>>>,
    /// What other nodes changed and the refresher has not read yet.
    stale: Mutex<Stale>,
    signal: Signal,
}

#[derive(Default)]
struct Stale {
    apps: HashSet<AppId>,
    everything: bool,
}

const SHARDS: usize = 32;

impl Memory {
    pub(crate) fn new(db: Db) -> Self {
        let shards = (0..SHARDS).map(|_| RwLock::default()).collect();
        let (stale, signal) = (Mutex::default(), Signal::new());
        Self(Arc::new(Inner { db, shards, stale, signal }))
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
        match news {
            News::Fact(fact) if fact.kind == CHANGED => match fact.app {
                Some(app) if self.is_behind(app, fact) => self.stale().apps.extend(fact.app),
                _ => return,
            },
            News::Fact(fact) if fact.kind == tenancy::apps::DELETED => {
                fact.app.into_iter().for_each(|app| self.remove(app));
                return;
            }
            News::Fact(_) => return,
            News::Gap => self.stale().everything = true,
        }
        self.0.signal.wake();
    }

    fn is_behind(&self, app: AppId, fact: &Fact) -> bool {
        let told = fact.data["revision"].as_i64().unwrap_or(i64::MAX);
        self.get(app).is_none_or(|known| known.revision < told)
    }

    fn stale(&self) -> MutexGuard<'_, Stale> {
        self.0.stale.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn refresh(&self, app: AppId) -> Result<()> {
        let definitions = self.0.db.snapshot(move |tx| load_app(tx, app)).await?;
        self.put(app, Arc::new(definitions.compile()));
        Ok(())
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

    pub(crate) fn refresher(&self) -> Refresher {
        Refresher(self.clone())
    }
}

/// Reads anew what other nodes changed.
pub(crate) struct Refresher(Memory);

impl Job for Refresher {
    fn name(&self) -> &'static str {
        "flags-refresh"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.0.0.signal.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        let Stale { apps, everything } = std::mem::take(&mut *self.0.stale());
        let outcome = self.read(&apps, everything).await;
        if outcome.is_err() {
            let mut stale = self.0.stale();
            stale.apps.extend(&apps);
            stale.everything |= everything;
        }
        outcome.map(|()| Worked::some_if(everything || !apps.is_empty()))
    }
}

impl Refresher {
    async fn read(&self, apps: &HashSet<AppId>, everything: bool) -> Result<()> {
        if everything {
            return self.0.load().await;
        }
        for app in apps {
            self.0.refresh(*app).await?;
        }
        Ok(())
    }
}
