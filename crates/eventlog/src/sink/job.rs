//! Sends what there is, on one node at a time. A sink that is slow or down keeps no other waiting.

use std::{collections::BTreeSet, time::Duration};

use ::store::Db;
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use kernel::{AppId, Result, Timestamp};
use spine::{Job, Worked, outbound::Outbound};
use vault::Keyring;

use super::{Sink, Way, batches, batches::Outgoing, send::send, store};

/// Sinks that are served at once.
const AT_ONCE: usize = 16;
/// How often sinks that had nothing are looked at again while others are still being served.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(crate) struct SinkJob {
    pub(crate) db: Db,
    pub(crate) keyring: Keyring,
    pub(crate) outbound: Outbound,
}

impl Job for SinkJob {
    fn name(&self) -> &'static str {
        "event-sinks"
    }

    fn every(&self) -> Duration {
        LOOK_AGAIN
    }

    /// Until no sink has anything left to send.
    async fn run(&self) -> Result<Worked> {
        let (mut busy, mut idle) = (BTreeSet::new(), BTreeSet::new());
        let mut outcome = Ok(Worked::Nothing);
        let mut served = FuturesUnordered::new();
        loop {
            let due = self.db.read(store::due).await?;
            let due = due.into_iter().filter(|sink| !busy.contains(&sink.app) && !idle.contains(&sink.app));
            for sink in due.take(AT_ONCE - busy.len()).collect::<Vec<_>>() {
                busy.insert(sink.app);
                served.push(async move { (sink.app, self.serve(&sink).await) });
            }
            tokio::select! {
                next = served.next() => match next {
                    Some((app, sent)) => {
                        busy.remove(&app);
                        let more = sent.unwrap_or_else(|error| {
                            // Told at the end: the others have nothing to do with it.
                            outcome = Err(error);
                            false
                        });
                        if !more {
                            idle.insert(app);
                        }
                    }
                    None => return outcome,
                },
                () = tokio::time::sleep(LOOK_AGAIN) => idle.clear(),
            }
        }
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        self.db.read(store::next_retry).await
    }
}

impl SinkJob {
    /// A batch of new events and one of the backfill; whether there was something to send and it arrived.
    async fn serve(&self, sink: &Sink) -> Result<bool> {
        let mut sent = false;
        for way in [Way::New, Way::Backfill] {
            let seen = sink.clone();
            let Some(outgoing) = self.db.scan(move |tx| batches::next(tx, &seen, way)).await? else {
                if way == Way::Backfill && sink.backfill.is_some() {
                    let seen = sink.clone();
                    self.db.write(move |tx| batches::end_backfill(tx, &seen)).await?;
                }
                continue;
            };
            if !self.fix(sink, way, &outgoing).await? || !self.deliver(sink, way, outgoing).await? {
                return Ok(false);
            }
            sent = true;
        }
        Ok(sent)
    }

    /// Before the first attempt, so that every further one sends the same.
    async fn fix(&self, sink: &Sink, way: Way, outgoing: &Outgoing) -> Result<bool> {
        if sink.lane(way).is_some_and(|lane| lane.batch.is_some()) {
            return Ok(true);
        }
        let (seen, batch) = (sink.clone(), outgoing.batch.clone());
        self.db.write(move |tx| batches::fix(tx, &seen, way, &batch)).await
    }

    async fn deliver(&self, sink: &Sink, way: Way, outgoing: Outgoing) -> Result<bool> {
        let app: AppId = sink.app;
        let outcome = if outgoing.events.is_empty() {
            Ok(())
        } else {
            send(&self.outbound, sink, &sink.credentials(&self.keyring)?, &outgoing).await?
        };
        match outcome {
            Ok(()) => {
                self.db.write(move |tx| batches::arrived(tx, app, way, &outgoing.batch)).await?;
                Ok(true)
            }
            Err(reason) => {
                tracing::warn!(app = %app, reason, "an event sink did not take a batch");
                self.db.write(move |tx| store::failed(tx, app, &reason)).await?;
                Ok(false)
            }
        }
    }
}
