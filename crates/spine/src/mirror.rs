//! What a node keeps in memory of every app, true to what other nodes commit: facts name the apps that changed, and a
//! job reads those again.

use std::{
    collections::HashSet,
    mem::take,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kernel::{AppId, Result};
use tokio::sync::watch;

use crate::{Job, Signal, Worked};

/// Something of every app in memory. [`Refresher`] is the job that keeps it true.
pub trait Mirror: Send + Sync + 'static {
    /// The job's name.
    const NAME: &'static str;

    /// What was heard and not read yet.
    fn stale(&self) -> &Stale;

    /// Reads one app again.
    fn refresh(&self, app: AppId) -> impl Future<Output = Result<()>> + Send;

    /// Reads all apps again.
    fn reload(&self) -> impl Future<Output = Result<()>> + Send;
}

/// The apps that other nodes changed and this one has not read since.
#[derive(Default)]
pub struct Stale {
    noted: Mutex<Noted>,
    signal: Signal,
}

#[derive(Default)]
struct Noted {
    apps: HashSet<AppId>,
    everything: bool,
}

impl Stale {
    pub fn note(&self, app: AppId) {
        self.noted().apps.insert(app);
        self.signal.wake();
    }

    /// For when facts were missed.
    pub fn note_everything(&self) {
        self.noted().everything = true;
        self.signal.wake();
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads again what is stale. What could not be read stays so.
pub struct Refresher<M>(pub M);

impl<M: Mirror> Refresher<M> {
    async fn read(&self, noted: &Noted) -> Result<()> {
        if noted.everything {
            return self.0.reload().await;
        }
        for app in &noted.apps {
            self.0.refresh(*app).await?;
        }
        Ok(())
    }
}

impl<M: Mirror> Job for Refresher<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn every(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.0.stale().signal.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        let noted = take(&mut *self.0.stale().noted());
        if let Err(error) = self.read(&noted).await {
            let mut again = self.0.stale().noted();
            again.apps.extend(noted.apps);
            again.everything |= noted.everything;
            return Err(error);
        }
        Ok(Worked::some_if(noted.everything || !noted.apps.is_empty()))
    }
}
