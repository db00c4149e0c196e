//! When tokens were last used: noted in memory while requests are served, written in batches by a job.
//!
//! A token's row is written at most once a minute. Bounded: what does not fit is noted at the next use. A use that was
//! noted and not written is lost with its process.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use ::store::Db;
use kernel::{Result, Timestamp};
use spine::{Job, Worked};

use super::{ApiTokenId, store};

const AT_MOST_EVERY: Duration = Duration::from_secs(60);
/// Tokens whose use may wait to be written.
const WAITING: usize = 100_000;
const BATCH: usize = 200;

#[derive(Clone, Default)]
pub(super) struct Uses(Arc<Mutex<HashMap<ApiTokenId, Timestamp>>>);

/// When a token was last seen in use, by what is known in memory.
pub(super) struct LastSeen(AtomicI64);

impl LastSeen {
    pub(super) fn new(last_used_at: Option<Timestamp>) -> Self {
        Self(AtomicI64::new(last_used_at.unwrap_or(Timestamp::MIN).as_micros()))
    }

    /// True for one caller a minute.
    fn is_news(&self, now: Timestamp) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        let due = now.minus(AT_MOST_EVERY).as_micros() >= seen;
        due && self.0.compare_exchange(seen, now.as_micros(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Uses {
    pub(super) fn note(&self, id: ApiTokenId, seen: &LastSeen, now: Timestamp) {
        if !seen.is_news(now) {
            return;
        }
        let mut waiting = self.waiting();
        if waiting.len() < WAITING {
            waiting.insert(id, now);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<ApiTokenId, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what was noted.
pub(super) struct UseWriter {
    pub(super) db: Db,
    pub(super) uses: Uses,
}

impl Job for UseWriter {
    fn name(&self) -> &'static str {
        "api-token-uses"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn run(&self) -> Result<Worked> {
        let mut noted: Vec<(ApiTokenId, Timestamp)> = std::mem::take(&mut *self.uses.waiting()).into_iter().collect();
        // In one order on every node, so that two of them cannot wait for each other's rows.
        noted.sort_unstable();
        let mut written = 0;
        for batch in noted.chunks(BATCH) {
            if let Err(error) = self.write(batch.to_vec()).await {
                let mut waiting = self.uses.waiting();
                for (id, at) in &noted[written..] {
                    waiting.entry(*id).or_insert(*at);
                }
                return Err(error);
            }
            written += batch.len();
        }
        Ok(Worked::some_if(written > 0))
    }

    async fn stopped(&self) {
        if let Err(error) = self.run().await {
            tracing::debug!(?error, "the last uses of API tokens were not written");
        }
    }
}

impl UseWriter {
    async fn write(&self, batch: Vec<(ApiTokenId, Timestamp)>) -> Result<()> {
        let write = self
            .db
            .write(move |tx| batch.iter().try_for_each(|(id, at)| store::used(tx, *id, *at, at.minus(AT_MOST_EVERY))));
        write.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);

    #[test]
    fn a_use_is_news_once_a_minute() {
        let seen = LastSeen::new(None);
        assert!(seen.is_news(NOON));
        assert!(!seen.is_news(NOON.plus(Duration::from_secs(59))));
        assert!(seen.is_news(NOON.plus(Duration::from_secs(60))));
        assert!(!LastSeen::new(Some(NOON)).is_news(NOON.plus(Duration::from_secs(1))));
    }

    #[test]
    fn what_waits_is_bounded() {
        let uses = Uses::default();
        for number in 0..WAITING as u128 + 10 {
            uses.note(ApiTokenId::from_u128(number), &LastSeen::new(None), NOON);
        }
        assert_eq!(uses.waiting().len(), WAITING);
    }
}
