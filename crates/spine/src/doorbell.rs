//! "This process committed something that a job waits for." Rung by an on-commit hook, so that domain code needs
//! nothing but its transaction to emit a fact or queue a mail.
//!
//! One process serves one database, so one bell is enough; where tests open several, a ring that was not meant for a
//! database costs it one look. A ring says nothing to other nodes: the sequencer tells them once positions are given.

use std::sync::LazyLock;

use tokio::sync::watch;

static RINGS: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));

pub(crate) fn ring() {
    RINGS.send_modify(|count| *count = count.wrapping_add(1));
}

pub(crate) fn listen() -> watch::Receiver<u64> {
    RINGS.subscribe()
}
