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
#[derive(Clone)]
pub(crate) struct Verifications {
    begun: Arc<Mutex<HashMap<AppId, Ended>>>,
    patience: Duration,
}

impl Default for Verifications {
    fn default() -> Self {
        Self { begun: Arc::default(), patience: PATIENCE }
    }
}

impl Verifications {
    /// Whether the entries of an app are those that were written down; 409 while that is still being found out.
    pub(crate) async fn verify(&self, db: &Db, folder: &Folder, app: AppId) -> Result<Verdict> {
        let (db, folder) = (db.clone(), folder.clone());
        self.verdict(app, async move { verify(&db, &folder, app).await }).await
    }

    /// Of the verification that has begun, else of this one.
    async fn verdict(
        &self,
        app: AppId,
        verification: impl Future<Output = Result<Verdict>> + Send + 'static,
    ) -> Result<Verdict> {
        let mut ended = self.begin_or_join(app, verification);
        if tokio::time::timeout(self.patience, ended.wait_for(Option::is_some)).await.is_err() {
            return Err(Error::new(Code::Conflict, STILL_VERIFYING));
        }
        let verdict = ended.borrow().clone();
        // The next one is about what is there then.
        let mut begun = self.begun();
        if begun.get(&app).is_some_and(|known| known.same_channel(&ended)) {
            begun.remove(&app);
        }
        // Why it failed was logged where it did.
        verdict.map(|(verdict, _)| verdict).ok_or_else(|| Error::internal("a verification ended without a verdict"))
    }

    fn begin_or_join(&self, app: AppId, verification: impl Future<Output = Result<Verdict>> + Send + 'static) -> Ended {
        let mut begun = self.begun();
        if let Some(useful) = begun.get(&app).filter(|begun| is_of_use(begun)) {
            return useful.clone();
        }
        let (end, ended) = watch::channel(None);
        tokio::spawn(async move {
            match verification.await {
                Ok(verdict) => _ = end.send_replace(Some((verdict, Ticker.now()))),
                Err(error) => tracing::error!(%app, ?error, "the audit trail could not be verified"),
            }
        });
        begun.insert(app, ended.clone());
        ended
    }

    fn begun(&self) -> MutexGuard<'_, HashMap<AppId, Ended>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it goes on, or has ended just now.
fn is_of_use(begun: &Ended) -> bool {
    match &*begun.borrow() {
        Some((_, at)) => Ticker.since(*at) < FRESH,
        None => begun.has_changed().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    const APP: AppId = AppId::from_u128(1);

    fn found(entries: u64) -> Verdict {
        Verdict { ok: true, entries, first_bad: None }
    }

    fn entries(verdict: Result<Verdict>) -> Result<u64, Code> {
        verdict.map(|verdict| verdict.entries).map_err(|error| error.code())
    }

    #[tokio::test]
    async fn whoever_asks_again_gets_the_verdict_of_what_was_begun() {
        let patient = Verifications::default();
        let hurried = Verifications { patience: Duration::ZERO, ..patient.clone() };
        let (end, ended) = oneshot::channel();
        let long = async move { ended.await.map_err(Error::internal) };
        assert_eq!(entries(hurried.verdict(APP, long).await), Err(Code::Conflict));
        assert_eq!(entries(hurried.verdict(APP, async { Ok(found(2)) }).await), Err(Code::Conflict));
        assert_eq!(entries(patient.verdict(AppId::from_u128(2), async { Ok(found(3)) }).await), Ok(3));
        end.send(found(1)).expect("somebody listens");
        assert_eq!(entries(patient.verdict(APP, async { Ok(found(2)) }).await), Ok(1));
        // Told once; the next one looks anew.
        assert_eq!(entries(patient.verdict(APP, async { Ok(found(2)) }).await), Ok(2));
    }

    #[tokio::test]
    async fn one_that_failed_is_begun_anew() {
        let verifications = Verifications::default();
        let failed = async { Err(Error::internal("the store is away")) };
        assert_eq!(entries(verifications.verdict(APP, failed).await), Err(Code::Internal));
        assert_eq!(entries(verifications.verdict(APP, async { Ok(found(1)) }).await), Ok(1));
    }
}
