//! Attempts that are under way on this node. Successes are not counted, so those that come at once wait for each other
//! instead of being taken for guesses.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use kernel::Result;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Attempt, addresses::network, too_many};

/// Below the free failures of an account, so that right answers alone never use them up.
const OF_AN_ACCOUNT: usize = 4;
const OF_AN_ADDRESS: usize = 50;
/// Beyond that somebody is not in a hurry but an attacker.
const WAITING: usize = 256;
const PATIENCE: Duration = Duration::from_secs(10);

type Places = HashMap<String, Weak<Semaphore>>;

/// Cheap to clone; clones share one memory.
#[derive(Clone, Default)]
pub(crate) struct Gates(Arc<Mutex<Places>>);

/// Keeps the places until the attempt is settled.
pub(crate) struct Turn(#[expect(dead_code, reason = "held, not looked at")] Vec<OwnedSemaphorePermit>);

impl Gates {
    /// Waits for a turn; 429 when too many are waiting.
    pub(crate) async fn enter(&self, attempt: &Attempt) -> Result<Turn> {
        let mut places = vec![self.place(attempt.key(), OF_AN_ACCOUNT)];
        if !attempt.is_known {
            places.push(self.place(&network(attempt.client).to_string(), OF_AN_ADDRESS));
        }
        let mut permits = Vec::new();
        for place in places {
            if Arc::strong_count(&place) > WAITING {
                return Err(too_many("account", PATIENCE));
            }
            let permit = tokio::time::timeout(PATIENCE, place.acquire_owned()).await;
            permits.push(permit.map_err(|_| too_many("account", PATIENCE))?.map_err(kernel::Error::internal)?);
        }
        Ok(Turn(permits))
    }

    fn place(&self, key: &str, permits: usize) -> Arc<Semaphore> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(key).and_then(Weak::upgrade) {
            return place;
        }
        if places.len() >= 1024 {
            places.retain(|_, place| place.strong_count() > 0);
        }
        let place = Arc::new(Semaphore::new(permits));
        places.insert(key.to_owned(), Arc::downgrade(&place));
        place
    }
}
