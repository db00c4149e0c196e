//! Readers in memory: every node tails the outbox for its caches and streams.
//!
//! A follower hears each fact from the node's start on, in order, soon after the commit on whichever node, or is told
//! that it missed some.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use kernel::Result;
use store::{Db, args};
use tokio::sync::{Mutex, watch};

use super::{Fact, Reader, fact::AFTER};
use crate::{Job, Signal, Worked};

/// What a follower is told.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    Fact(&'a Fact),
    /// Facts were trimmed before this node read them: forget everything that was learnt from facts.
    Gap,
}

pub(super) struct Follower {
    pub(super) reader: Reader,
    pub(super) hear: Box<dyn Fn(News<'_>) + Send + Sync>,
}

impl Follower {
    fn tell(&self, news: News<'_>) {
        if matches!(news, News::Fact(fact) if !self.reader.reads(&fact.kind)) {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| (self.hear)(news))).is_err() {
            tracing::error!(follower = self.reader.name, "panic in a follower of the outbox");
        }
    }
}

const BATCH: i64 = 500;
const HEAD: &str = "SELECT last_position FROM outbox_head WHERE id = 1";

pub(super) struct Tail {
    db: Db,
    head: Signal,
    followers: Vec<Follower>,
    position: Mutex<i64>,
}

impl Tail {
    pub(super) fn new(db: Db, head: Signal, followers: Vec<Follower>, start: i64) -> Self {
        Self { db, head, followers, position: Mutex::new(start) }
    }

    fn tell(&self, news: News<'_>) {
        self.followers.iter().for_each(|follower| follower.tell(news));
    }
}

impl Job for Tail {
    fn name(&self) -> &'static str {
        "outbox-tail"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.head.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        let mut position = self.position.lock().await;
        let after = *position;
        // The head is read first: facts up to it that the second query does not show are gone.
        let (head, facts) = self
            .db
            .read(move |tx| {
                let (head,): (i64,) = tx.one(HEAD, &[])?;
                let facts = if head > after { tx.all::<Fact>(AFTER, &args![after, BATCH])? } else { Vec::new() };
                Ok((head, facts))
            })
            .await?;
        if head <= after {
            return Ok(Worked::Nothing);
        }
        // Positions are dense and trimmed from the front, so only the first one can show a gap.
        if facts.first().is_none_or(|first| first.position != after + 1) {
            metrics::counter!("tenantry_outbox_gaps_total").increment(1);
            tracing::warn!(after, head, "facts were trimmed before this node read them; caches are flushed");
            self.tell(News::Gap);
        }
        *position = facts.last().map_or(head, |last| last.position);
        facts.iter().for_each(|fact| self.tell(News::Fact(fact)));
        Ok(Worked::Something)
    }
}
