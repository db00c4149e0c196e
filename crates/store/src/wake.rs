//! Wake-ups: "something was committed, look at the outbox". They carry nothing and may be lost; whoever listens also
//! polls.

use std::sync::Arc;

use tokio::sync::watch;

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
