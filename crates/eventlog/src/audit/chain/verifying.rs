//! Verifications under way. A long chain takes longer than an answer may: whoever asks again waits for the one that has begun.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kernel::{AppId, Code, Error, Result, Tick, Ticker};
use store::Db;
use tokio::sync::watch;

use super::verify::{Verdict, verify};
use crate::fold::Folder;

/// How long a caller waits for a verdict.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a verdict that nobody has waited for is good.
const FRESH: Duration = Duration::from_mins(1);

const STILL_VERIFYING: &str =
    "The trail has so many entries that they are still being verified. Ask again in a moment for the result.";

type Ended = watch::Receiver<Option<(Verdict, Tick)>>;

/// Those of this node, by app. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Verifications(Arc<Mutex<HashMap<AppId, Ended>>>);

impl Verifications {
    /// Whether the entries of an app are those that were written down; 409 while that is still being found out.
    pub(crate) async fn verify(&self, db: &Db, folder: &Folder, app: AppId) -> Result<Verdict> {
        let mut ended = self.begin_or_join(db, folder, app);
        if tokio::time::timeout(PATIENCE, ended.wait_for(Option::is_some)).await.is_err() {
            return Err(Error::new(Code::Conflict, STILL_VERIFYING));
        }
        let verdict = ended.borrow().clone();
        // The next one is about what is there then.
        let mut running = self.running();
        if running.get(&app).is_some_and(|known| known.same_channel(&ended)) {
            running.remove(&app);
        }
        // Why it failed was logged where it did.
        verdict.map(|(verdict, _)| verdict).ok_or_else(|| Error::internal("a verification ended without a verdict"))
    }

    fn begin_or_join(&self, db: &Db, folder: &Folder, app: AppId) -> Ended {
        let mut running = self.running();
        if let Some(begun) = running.get(&app).filter(|begun| is_of_use(begun)) {
            return begun.clone();
        }
        let (end, ended) = watch::channel(None);
        let (db, folder) = (db.clone(), folder.clone());
        tokio::spawn(async move {
            match verify(&db, &folder, app).await {
                Ok(verdict) => _ = end.send_replace(Some((verdict, Ticker.now()))),
                Err(error) => tracing::error!(%app, ?error, "the audit trail could not be verified"),
            }
        });
        running.insert(app, ended.clone());
        ended
    }

    fn running(&self) -> MutexGuard<'_, HashMap<AppId, Ended>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it goes on, or has ended just now.
fn is_of_use(begun: &Ended) -> bool {
    match &*begun.borrow() {
        Some((_, at)) => Ticker.since(*at) < FRESH,
        None => begun.has_changed().is_ok(),
    }
}
