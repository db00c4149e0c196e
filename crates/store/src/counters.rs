//! Counts of what the engine did, for metrics, benchmarks and the proof that writes are grouped.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A snapshot of the counts since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Write closures answered with `Ok`.
    pub writes: u64,
    /// Transactions committed for them.
    pub commits: u64,
    /// Statements run by closures.
    pub statements: u64,
    /// Read closures run.
    pub reads: u64,
    /// Closures run again after a deadlock, a lost connection or a failed batch.
    pub reruns: u64,
}

#[derive(Default)]
pub(crate) struct Cells {
    pub(crate) writes: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) statements: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) reruns: AtomicU64,
    /// Closures that are being run.
    pub(crate) running: AtomicUsize,
    /// Whether the last write failed because nothing could be stored.
    pub(crate) cannot_write: AtomicBool,
}

impl Cells {
    pub(crate) fn add(cell: &AtomicU64, count: u64) {
        cell.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Counters {
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Counters {
            writes: read(&self.writes),
            commits: read(&self.commits),
            statements: read(&self.statements),
            reads: read(&self.reads),
            reruns: read(&self.reruns),
        }
    }
}
