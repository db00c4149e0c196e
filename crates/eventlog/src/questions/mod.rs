//! Questions about events that are folded: series of buckets, single queries, journeys, funnels, lists.
//!
//! Whole buckets are answered from aggregates, ragged ends and filters from rows. What is quick runs with the readers; what
//! reads many rows begins again on the lane for scans, where an app has one at a time and ten seconds.

mod charts;
mod funnel;
mod journeys;
mod listing;
mod query;
mod series;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ::store::{Db, Tx};
use kernel::{AppId, Code, Error, Result, Tick, Ticker};
use tokio::sync::Semaphore;
use web::Routes;

use crate::EventLog;
pub(crate) use journeys::parameters_of;
pub(crate) use listing::{RawEvent, StoredEvent};

pub(crate) fn routes() -> Routes<EventLog> {
    Routes::new("Event log")
        .post("/event-log/query", query::query, "Count and sum the events of a name")
        .description(
            "`from` and `to` are inclusive. `filters` compares parameters with plain values, by type and value. `totalSum` \
             and `total` are there exactly when `sumField` is. `currency` and `limit` are reserved.",
        )
        .answers(503, TOO_WIDE)
        .get("/event-log/charts", charts::charts, "List the buckets of an event, oldest first")
        .description(
            "Buckets are in UTC, weeks begin on Monday, empty ones are left out. The first and the last are cut to `from` \
             and `to`; of more than `limit` buckets the newest are answered. A parameter with over 1,000 values in a bucket \
             counts the rest as `__other__`.",
        )
        .answers(503, TOO_WIDE)
        .get("/event-log/entities/{entity_type}/{entity_value}", journeys::entity, "Get the journey of an entity")
        .description(
            "When each event first happened to it, and how long it took from each to each later one. `entity_type` is a \
             parameter's name (`userId`) or, where no parameter is called so, its stem (`user`).",
        )
        .answers(503, TOO_WIDE)
        .get("/event-log/journeys/stats", journeys::stats, "Get how long entities take from one event to another")
        .description("Between first occurrences. `from` and `to` are about the end event.")
        .answers(503, TOO_WIDE)
        .post("/event-log/funnel", funnel::funnel, "Count how many entities got how far")
        .description(
            "An entity has reached a step when its first occurrences of all steps up to that one lie in their order. `from` \
             and `to` are about the first step.",
        )
        .answers(503, TOO_WIDE)
        .get("/event-log/names", listing::list_names, "List which events are sent, how often and with which parameters")
        .answers(503, TOO_WIDE)
        .get("/event-log/events", listing::list_events, "List the events of a name, newest first")
        .answers(503, TOO_WIDE)
        .get("/event-log/events/{event_id}", listing::get_event, "Get an event")
}

const TOO_WIDE: &str = "The question takes over ten seconds";

/// How long a question may take.
const LONGEST: Duration = Duration::from_secs(10);
/// Rows that a question may read among the readers.
const QUICK_ROWS: usize = 4_000;

pub(crate) fn too_wide() -> Error {
    let message = "The question takes too long. Ask for a shorter time, or without filters.";
    Error::new(Code::QueryTooWide, message).with_retry_after(Duration::from_secs(10))
}

/// How much a question may still read. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Allowance {
    begun: Tick,
    /// Rows that may be read; `None` on the lane for scans.
    rows: Option<usize>,
    /// Nobody waits for the answer any more.
    gone: Arc<AtomicBool>,
}

/// Why a question was not answered.
pub(crate) enum Stop {
    /// It belongs to the lane for scans.
    NeedsScan,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Allowance {
    /// To be asked after each page of rows, with how many were read in all.
    pub(crate) fn check(&self, read: usize) -> Result<(), Stop> {
        if self.rows.is_some_and(|most| read > most) {
            return Err(Stop::NeedsScan);
        }
        if self.gone.load(Ordering::Relaxed) || Ticker.since(self.begun) > LONGEST {
            return Err(Stop::Failed(too_wide()));
        }
        Ok(())
    }
}

/// Tells a scan that its caller is gone.
struct TellGone(Arc<AtomicBool>);

impl Drop for TellGone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The lane for scans, shared out among apps.
#[derive(Clone, Default)]
pub(crate) struct Scans(Arc<Mutex<HashMap<AppId, Weak<Semaphore>>>>);

impl Scans {
    /// An app has one scan at a time; another one waits for it.
    fn turn(&self, app: AppId) -> Arc<Semaphore> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(&app).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(Semaphore::new(1));
        turns.insert(app, Arc::downgrade(&turn));
        turn
    }

    /// Answers a question: among the readers if it is quick, else on the lane for scans.
    pub(crate) async fn ask<T, F>(&self, db: &Db, app: AppId, question: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>, &Allowance) -> Result<T, Stop> + Clone + Send + 'static,
    {
        let gone = Arc::new(AtomicBool::new(false));
        let _tell = TellGone(Arc::clone(&gone));
        let begun = Ticker.now();
        let quick = Allowance { begun, rows: Some(QUICK_ROWS), gone: Arc::clone(&gone) };
        let work = question.clone();
        let answer = db.snapshot(move |tx| match work(tx, &quick) {
            Ok(answer) => Ok(Some(answer)),
            Err(Stop::NeedsScan) => Ok(None),
            Err(Stop::Failed(error)) => Err(error),
        });
        if let Some(answer) = answer.await? {
            return Ok(answer);
        }
        let scan = async {
            let turn = self.turn(app);
            let _turn = turn.acquire().await.map_err(Error::internal)?;
            let wide = Allowance { begun, rows: None, gone };
            let scan = db.scan(move |tx| match question(tx, &wide) {
                Ok(answer) => Ok(answer),
                Err(Stop::NeedsScan) => Err(Error::internal("a scan has no limit on rows")),
                Err(Stop::Failed(error)) => Err(error),
            });
            scan.await
        };
        tokio::time::timeout(LONGEST, scan).await.unwrap_or_else(|_| Err(too_wide()))
    }
}
