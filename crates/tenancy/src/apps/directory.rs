//! All apps in memory: whom a request is for and which origins may ask are looked up on nearly every request.
//!
//! The committing node puts its change in before the write answers; other nodes read the app again when they see the
//! fact. Versions keep an older state from replacing a newer one, whichever arrives last.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ::store::{Db, args};
use arc_swap::ArcSwap;
use kernel::{AppId, Error, Page, Result};
use spine::{Mirror, News, Stale};

use super::{App, store};
use crate::facts::{AppChanged, AppCreated, AppDeleted, AppImported};

#[derive(Clone)]
pub struct AppDirectory(Arc<Inner>);

struct Inner {
    db: Db,
    snapshot: ArcSwap<Snapshot>,
    /// Taken while a new snapshot is made from the old one. Counts changes, so that a read that began before a
    /// change is not put in after it.
    changes: Mutex<u64>,
    stale: Stale,
}

#[derive(Clone, Default)]
struct Snapshot {
    apps: HashMap<AppId, Arc<App>>,
    /// How many apps allow an origin.
    origins: HashMap<String, usize>,
}

impl AppDirectory {
    /// Empty until it is loaded.
    pub(crate) fn new(db: Db) -> Self {
        Self(Arc::new(Inner {
            db,
            snapshot: ArcSwap::from_pointee(Snapshot::default()),
            changes: Mutex::new(0),
            stale: Stale::default(),
        }))
    }

    pub fn get(&self, id: AppId) -> Option<Arc<App>> {
        self.0.snapshot.load().apps.get(&id).cloned()
    }

    pub fn has(&self, id: AppId) -> bool {
        self.0.snapshot.load().apps.contains_key(&id)
    }

    /// The app as it is in the database now. One small statement tells whether the copy in memory is that; usually it
    /// is, and nothing has to be read and parsed.
    pub(crate) async fn current(&self, id: AppId) -> Result<Arc<App>> {
        let version: Option<(i64,)> = self.0.db.get_one(store::VERSION, &args![id]).await?;
        let Some((version,)) = version else { return Err(Error::not_found("app")) };
        if let Some(app) = self.get(id).filter(|app| app.version == version) {
            return Ok(app);
        }
        self.refresh(id).await?;
        self.get(id).ok_or_else(|| Error::not_found("app"))
    }

    /// Like [`AppDirectory::get`], but asks the database about an app that another node may have made just now. For
    /// callers who have proven to hold something of the app; others could make every request cost a query.
    pub async fn find(&self, id: AppId) -> Result<Option<Arc<App>>> {
        if let Some(app) = self.get(id) {
            return Ok(Some(app));
        }
        if !self.0.db.is_single_node() {
            self.refresh(id).await?;
        }
        Ok(self.get(id))
    }

    pub(super) fn put(&self, app: App) {
        self.change(|snapshot| snapshot.put(app));
    }

    pub(super) fn remove(&self, id: AppId) {
        self.change(|snapshot| snapshot.remove(id));
    }

    /// Notes what a fact says has changed; the refresher reads it.
    pub(crate) fn hear(&self, news: News<'_>) {
        match news {
            News::Fact(fact)
                if fact.is::<AppCreated>()
                    || fact.is::<AppChanged>()
                    || fact.is::<AppDeleted>()
                    || fact.is::<AppImported>() =>
            {
                fact.app.into_iter().for_each(|app| self.0.stale.note(app));
            }
            News::Fact(_) => {}
            News::Gap => self.0.stale.note_everything(),
        }
    }

    fn changes(&self) -> u64 {
        *self.0.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Snapshot)) {
        let mut changes = self.0.changes.lock().unwrap_or_else(PoisonError::into_inner);
        *changes += 1;
        self.swap(change);
    }

    fn change_if_unchanged(&self, seen: u64, change: impl FnOnce(&mut Snapshot)) -> bool {
        let changes = self.0.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if *changes != seen {
            return false;
        }
        self.swap(change);
        true
    }

    fn swap(&self, change: impl FnOnce(&mut Snapshot)) {
        let mut snapshot = Snapshot::clone(&self.0.snapshot.load());
        change(&mut snapshot);
        self.0.snapshot.store(Arc::new(snapshot));
    }
}

impl Mirror for AppDirectory {
    const NAME: &'static str = "app-directory";

    fn stale(&self) -> &Stale {
        &self.0.stale
    }

    async fn refresh(&self, id: AppId) -> Result<()> {
        loop {
            let seen = self.changes();
            let found = self.0.db.read(move |tx| store::find(tx, id)).await?;
            let put_in = self.change_if_unchanged(seen, |snapshot| match found {
                // Whatever was known: an app that was deleted and came back begins with a lower version.
                Some(app) => {
                    snapshot.remove(id);
                    snapshot.put(app);
                }
                None => snapshot.remove(id),
            });
            if put_in {
                return Ok(());
            }
        }
    }

    async fn reload(&self) -> Result<()> {
        loop {
            let seen = self.changes();
            let apps = self.0.db.scan(|tx| store::list(tx, Page::ALL)).await?;
            let put_in = self.change_if_unchanged(seen, |snapshot| {
                *snapshot = Snapshot::default();
                apps.into_iter().for_each(|app| snapshot.put(app));
            });
            if put_in {
                return Ok(());
            }
        }
    }
}

impl Snapshot {
    fn put(&mut self, app: App) {
        if self.apps.get(&app.id).is_some_and(|known| known.version > app.version) {
            return;
        }
        self.remove(app.id);
        for origin in app.profile.origins() {
            *self.origins.entry(origin).or_default() += 1;
        }
        self.apps.insert(app.id, Arc::new(app));
    }

    fn remove(&mut self, id: AppId) {
        let Some(app) = self.apps.remove(&id) else { return };
        for origin in app.profile.origins() {
            if let Some(count) = self.origins.get_mut(&origin) {
                *count -= 1;
                if *count == 0 {
                    self.origins.remove(&origin);
                }
            }
        }
    }
}

impl web::Origins for AppDirectory {
    fn any_app_allows(&self, origin: &str) -> bool {
        self.0.snapshot.load().origins.contains_key(origin)
    }

    fn app_allows(&self, app: AppId, origin: &str) -> bool {
        self.get(app).is_some_and(|app| app.profile.origins().iter().any(|allowed| allowed == origin))
    }
}
