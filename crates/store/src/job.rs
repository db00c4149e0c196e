//! A closure on its way to a connection and its answer on the way back.

use std::{
    panic::{AssertUnwindSafe, Location, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kernel::{Author, Error, Result, Ticker, error::panic_text};
use tokio::sync::oneshot;

use crate::tx::{Hook, Tx};

/// Work that waits for a transaction. It can be run again until it is answered.
pub(crate) trait Job: Send {
    /// Runs the closure; `true` when it wants its changes kept. A panic is caught and counts as an error.
    fn run(&mut self, tx: &mut Tx<'_>) -> bool;
    /// Replaces the outcome: what ran well did not commit after all.
    fn fail(&mut self, error: Error);
    /// Sends the outcome to the caller. Hooks of a committed closure run first, so that the committing node's own
    /// caches are fresh before anybody is told of the change.
    fn answer(self: Box<Self>, hooks: Vec<Hook>);
}

/// A closure that takes longer than this holds up other writers on SQLite and is worth a line in the log.
const SLOW: Duration = Duration::from_millis(10);

pub(crate) struct Closure<T, F> {
    work: F,
    author: Option<Arc<Author>>,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
    from: &'static Location<'static>,
    ticker: Ticker,
    log_slow: bool,
}

impl<T, F> Closure<T, F>
where
    T: Send + 'static,
    F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
{
    pub(crate) fn with_answer(
        work: F,
        author: Option<Arc<Author>>,
        from: &'static Location<'static>,
        ticker: Ticker,
        log_slow: bool,
    ) -> (Box<dyn Job>, oneshot::Receiver<Result<T>>) {
        let (reply, answer) = oneshot::channel();
        (Box::new(Self { work, author, outcome: None, reply, from, ticker, log_slow }), answer)
    }
}

impl<T, F> Job for Closure<T, F>
where
    T: Send,
    F: Fn(&mut Tx<'_>) -> Result<T> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> bool {
        let started = self.ticker.now();
        let running = &tx.context().cells.running;
        running.fetch_add(1, Ordering::Relaxed);
        tx.begin_as(self.author.clone());
        // A closure is `Fn` and its transaction is rolled back, so nothing half-changed survives the panic.
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.work)(tx)))
            .unwrap_or_else(|panic| Err(Error::internal(format!("panic in a transaction: {}", panic_text(&*panic)))));
        running.fetch_sub(1, Ordering::Relaxed);
        let took = self.ticker.since(started);
        if self.log_slow && took > SLOW {
            tracing::warn!(from = %self.from, took_ms = took.as_millis(), "slow transaction closure");
        }
        let keep = outcome.is_ok();
        self.outcome = Some(outcome);
        keep
    }

    fn fail(&mut self, error: Error) {
        self.outcome = Some(Err(error));
    }

    fn answer(self: Box<Self>, hooks: Vec<Hook>) {
        let Self { work, outcome, reply, from, .. } = *self;
        for hook in hooks {
            if catch_unwind(AssertUnwindSafe(hook)).is_err() {
                tracing::error!(%from, "panic in an on_commit hook");
            }
        }
        // Whoever is answered may count on being the only owner of what it shared with the closure.
        drop(work);
        // The caller may have gone away; what it asked for is done all the same.
        let _ = reply.send(outcome.unwrap_or_else(|| Err(crate::fault::closed())));
    }
}
