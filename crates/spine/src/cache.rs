//! A read-through cache that a write on any node can empty, and that a race cannot fill with what was just revoked.
//!
//! A fill notes the generation before it reads and is dropped if that moved meanwhile. Bounded: what was not asked for
//! in the last two rounds is forgotten.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kernel::Result;

/// Values of `V` by `K`. Cheap to clone; clones are one cache.
///
/// The writer of a change invalidates in `tx.on_commit`, other nodes when they hear the fact from the outbox.
pub struct Cached<K, V>(Arc<Shards<K, V>>);

struct Shards<K, V> {
    hasher: RandomState,
    shards: Vec<Mutex<Shard<K, V>>>,
    /// Entries that one half of a shard may hold.
    half: usize,
}

/// Two halves stand in for a list by last use: when the young half is full it becomes the old one.
struct Shard<K, V> {
    generation: u64,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

/// Permission to fill a key, noted before reading what goes there.
#[must_use]
pub struct Fill<K> {
    key: K,
    generation: u64,
}

const SHARDS: usize = 16;

impl<K: Eq + Hash + Clone, V: Clone> Cached<K, V> {
    /// Holds about `capacity` entries at most.
    pub fn new(capacity: usize) -> Self {
        let shards = (0..SHARDS)
            .map(|_| Mutex::new(Shard { generation: 0, young: HashMap::new(), old: HashMap::new() }))
            .collect();
        Self(Arc::new(Shards { hasher: RandomState::new(), shards, half: capacity.div_ceil(SHARDS * 2).max(1) }))
    }

    pub fn get(&self, key: &K) -> Option<V> {
        let mut shard = self.shard(key);
        if let Some(value) = shard.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = shard.old.remove_entry(key)?;
        shard.put(key, value.clone(), self.0.half);
        Some(value)
    }

    /// Notes the generation. To be called before the value is read from the database.
    pub fn begin_fill(&self, key: K) -> Fill<K> {
        let generation = self.shard(&key).generation;
        Fill { key, generation }
    }

    /// Keeps the value unless something was invalidated since the fill began; whether it was kept.
    pub fn finish_fill(&self, fill: Fill<K>, value: V) -> bool {
        let mut shard = self.shard(&fill.key);
        let current = shard.generation == fill.generation;
        if current {
            shard.put(fill.key, value, self.0.half);
        }
        current
    }

    /// The cached value, or the one that `read` finds, which is cached unless it may be stale.
    pub async fn get_or_read<F>(&self, key: K, read: impl FnOnce(K) -> F) -> Result<V>
    where
        F: Future<Output = Result<V>>,
    {
        if let Some(value) = self.get(&key) {
            return Ok(value);
        }
        let fill = self.begin_fill(key.clone());
        let value = read(key).await?;
        self.finish_fill(fill, value.clone());
        Ok(value)
    }

    /// Forgets the key and drops fills under way.
    pub fn invalidate(&self, key: &K) {
        let mut shard = self.shard(key);
        shard.generation += 1;
        shard.young.remove(key);
        shard.old.remove(key);
    }

    /// Forgets everything and drops all fills under way.
    pub fn flush(&self) {
        for shard in &self.0.shards {
            let mut shard = lock(shard);
            shard.generation += 1;
            shard.young.clear();
            shard.old.clear();
        }
    }

    pub fn len(&self) -> usize {
        let count = |shard: &Mutex<Shard<K, V>>| {
            let shard = lock(shard);
            shard.young.len() + shard.old.len()
        };
        self.0.shards.iter().map(count).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, key: &K) -> MutexGuard<'_, Shard<K, V>> {
        let hash = self.0.hasher.hash_one(key);
        // The remainder is below 16: it fits whatever the width of a pointer.
        lock(&self.0.shards[(hash % SHARDS as u64) as usize])
    }
}

impl<K, V> Clone for Cached<K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash, V> Shard<K, V> {
    fn put(&mut self, key: K, value: V, half: usize) {
        self.old.remove(&key);
        if self.young.len() >= half && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

/// No code that can panic runs while a shard is locked, apart from a key's own `Hash` and `Eq`.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_that_began_before_an_invalidation_is_dropped() {
        let cache = Cached::new(100);
        let fill = cache.begin_fill("key");
        cache.invalidate(&"key");
        assert!(!cache.finish_fill(fill, "revoked"));
        assert_eq!(cache.get(&"key"), None);
        let fill = cache.begin_fill("key");
        assert!(cache.finish_fill(fill, "fresh"));
        assert_eq!(cache.get(&"key"), Some("fresh"));
    }

    #[test]
    fn a_flush_forgets_everything_and_drops_all_fills() {
        let cache = Cached::new(100);
        for key in 0..50 {
            let fill = cache.begin_fill(key);
            cache.finish_fill(fill, key);
        }
        let fill = cache.begin_fill(7);
        cache.flush();
        assert!(!cache.finish_fill(fill, 7));
        assert!(cache.is_empty());
    }

    #[test]
    fn it_stays_bounded_and_keeps_what_is_used() {
        let cache = Cached::new(1_000);
        for key in 0..100_000 {
            let fill = cache.begin_fill(key);
            cache.finish_fill(fill, key);
            cache.get(&0);
        }
        assert!(cache.len() <= 1_040, "{}", cache.len());
        assert_eq!(cache.get(&0), Some(0));
    }
}
