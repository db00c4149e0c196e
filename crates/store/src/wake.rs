//! What nodes tell each other outside of transactions, and what may be lost. Wake-ups say "something was committed, look at
//! the outbox" and carry nothing; whoever listens also polls. Notes carry a short text that is worth something only now.

use std::sync::Arc;

use tokio::sync::{broadcast, watch};

/// Counts wake-ups; receivers see that the number moved.
#[derive(Clone)]
pub(crate) struct Wake(Arc<watch::Sender<u64>>);

impl Wake {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    pub(crate) fn ring(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// The longest note in bytes: PostgreSQL carries no longer ones.
pub const LONGEST_NOTE: usize = 7_999;
/// Notes that a listener may be behind before it misses some.
const NOTES: usize = 256;

/// Notes of other nodes.
#[derive(Clone)]
pub(crate) struct Notes(broadcast::Sender<Arc<str>>);

impl Notes {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(NOTES))
    }

    pub(crate) fn hear(&self, note: &str) {
        // Nobody may be listening.
        let _ = self.0.send(note.into());
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<str>> {
        self.0.subscribe()
    }
}
