//! The job that sends what is due.
//!
//! Some hundred deliveries are under way at a time, at most sixteen to one endpoint, and endpoints are served in turn, so
//! that a receiver that hangs delays only its own; one that is quick has more of them claimed ahead (see `lines`). Each
//! delivery is claimed, with the number of its attempt, before it is sent, and its outcome is written only while the claim
//! is held. An attempt without an outcome is repeated under the same number: on SQLite at the next start, on PostgreSQL
//! when the claim has run out.

mod attempt;
mod lines;
mod rows;
mod turns;

use std::{collections::HashSet, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use kernel::{Result, Tick, Ticker, Timestamp};
use spine::{Job, Signal, Worked, lease, outbound::Outbound};
use store::Db;
use tenancy::Tenancy;
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
};

pub(crate) use attempt::{Answered, Parcel, send};
use lines::{Lines, Places};
use rows::{Claimed, Ended, Outcome};
use turns::{DueEndpoint, Turns};

use crate::endpoints::EndpointId;

/// Deliveries on the wire at a time.
pub(crate) const ON_THE_WIRE: usize = 256;
/// Deliveries that are claimed ahead of their turn.
const AHEAD: usize = 768;
/// Longer than any attempt takes.
const LEASE: Duration = Duration::from_secs(30);
/// A claim that could not be acted on for so long is left to whoever takes it next.
const STALE_AFTER: Duration = Duration::from_secs(10);
const EVERY: Duration = Duration::from_secs(1);
/// How long an outcome waits for others, so that they are written together. What was claimed together ends at about the same
/// time.
const GATHERED: Duration = Duration::from_millis(2);

pub(crate) struct Sender {
    db: Db,
    tenancy: Tenancy,
    outbound: Outbound,
    due: Signal,
    owner: String,
    state: Mutex<State>,
}

struct State {
    under_way: JoinSet<Ended>,
    lines: Lines,
    /// Outcomes that are not written yet; shared with the transaction that writes them.
    ended: Arc<Vec<Ended>>,
    /// Since when the first of them waits.
    ended_since: Option<Tick>,
    turns: Turns,
    news: watch::Receiver<u64>,
}

impl State {
    /// Takes over what has ended meanwhile.
    fn gather(&mut self) {
        while let Some(joined) = self.under_way.try_join_next() {
            self.take(joined);
        }
    }

    fn take(&mut self, joined: std::result::Result<Ended, tokio::task::JoinError>) {
        // Attempts do not panic (see `attempt`): only the end of the runtime cuts one off.
        let Ok(ended) = joined else { return };
        self.lines.leave(ended.claim.endpoint, ended.left());
        Arc::make_mut(&mut self.ended).push(ended);
        self.ended_since.get_or_insert_with(|| Ticker.now());
    }

    /// Whether outcomes have waited long enough, or nothing is left that they could wait for.
    fn is_to_be_written(&self) -> bool {
        self.ended_since.is_some_and(|since| self.under_way.is_empty() || Ticker.since(since) >= GATHERED)
    }

    /// What nobody has taken.
    fn free(&self) -> Places {
        let taken = self.lines.taken();
        Places { first: ON_THE_WIRE.saturating_sub(taken.first), ahead: AHEAD.saturating_sub(taken.ahead) }
    }

    /// What to claim. An endpoint with outcomes that wait gets nothing new before these are written: it would be served in
    /// many small steps.
    fn plan(&mut self, due: &[EndpointId]) -> turns::Plan {
        let held_up: HashSet<EndpointId> = match self.is_to_be_written() {
            true => HashSet::new(),
            false => self.ended.iter().map(|ended| ended.claim.endpoint).collect(),
        };
        let waiting = due.iter().filter(|endpoint| !held_up.contains(endpoint)).map(|endpoint| DueEndpoint {
            endpoint: *endpoint,
            is_busy: self.lines.is_busy(*endpoint),
            free: self.lines.free(*endpoint),
        });
        self.turns.plan(waiting.collect(), self.free())
    }

    /// Until outcomes are to be written, there is news, or it is time to look again.
    async fn wait(&mut self) {
        let mut look_again = std::pin::pin!(tokio::time::sleep(EVERY));
        while !self.is_to_be_written() {
            let gathered = match self.ended_since {
                Some(since) => GATHERED.saturating_sub(Ticker.since(since)),
                None => EVERY,
            };
            let joined = tokio::select! {
                joined = self.under_way.join_next() => joined,
                _ = self.news.changed() => return,
                () = tokio::time::sleep(gathered), if self.ended_since.is_some() => None,
                () = &mut look_again => return,
            };
            if let Some(joined) = joined {
                self.take(joined);
            }
        }
    }
}

impl Sender {
    pub(crate) fn new(tenancy: Tenancy, outbound: Outbound, due: Signal) -> Self {
        let db = tenancy.db.clone();
        let state = State {
            under_way: JoinSet::new(),
            lines: Lines::default(),
            ended: Arc::default(),
            ended_since: None,
            turns: Turns::default(),
            news: due.listen(),
        };
        Self { owner: lease::new_owner(db.entropy()), db, tenancy, outbound, due, state: Mutex::new(state) }
    }

    /// Writes down what has ended and claims what is due, in one transaction.
    async fn turn_over(&self, state: &mut State, plan: turns::Plan) -> Result<Vec<Claimed>> {
        let (ended, owner, tenancy) = (Arc::clone(&state.ended), self.owner.clone(), self.tenancy.clone());
        let written = self.db.write(move |tx| {
            rows::finish(tx, &tenancy, &owner, &ended)?;
            rows::claim(tx, &tenancy.keyring, &owner, &plan, LEASE)
        });
        let claimed = written.await?;
        state.ended_since = None;
        std::mem::take(&mut state.ended).iter().for_each(Ended::count);
        Ok(claimed)
    }

    fn begin(&self, state: &mut State, claimed: Vec<Claimed>, claimed_at: Tick) {
        for Claimed { claim, parcel } in claimed {
            let place = state.lines.join(claim.endpoint);
            let (outbound, clock) = (self.outbound.clone(), self.db.clock().clone());
            state.under_way.spawn(async move {
                let fresh = STALE_AFTER.saturating_sub(Ticker.since(claimed_at));
                let turn = tokio::time::timeout(fresh, place.turn()).await.ok().flatten();
                let at = clock.now();
                let outcome = match turn {
                    Some(_turn) => match AssertUnwindSafe(send(&outbound, at, parcel)).catch_unwind().await {
                        Ok(answered) => Outcome::Answered(answered),
                        Err(_) => Outcome::Unknown,
                    },
                    None => Outcome::Unsent,
                };
                Ended { claim, at, until: clock.now(), outcome }
            });
        }
    }
}

impl Job for Sender {
    fn name(&self) -> &'static str {
        "webhook-sender"
    }

    fn every(&self) -> Duration {
        EVERY
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.due.listen()]
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        self.db.read(rows::next_due).await
    }

    /// One round: what ended is written down, free places are filled; with nothing to do of either kind it waits for what
    /// is under way, and ends when there is none. Short, so that a node that stops is not kept waiting.
    async fn run(&self) -> Result<Worked> {
        let mut state = self.state.lock().await;
        state.gather();
        state.news.mark_unchanged();
        let plan = match state.free() {
            Places { first: 0, ahead: 0 } => turns::Plan::default(),
            _ => {
                let waiting = self.db.read(rows::waiting).await?;
                if waiting.abandoned {
                    self.db.write(rows::free_abandoned).await?;
                    return Ok(Worked::Something);
                }
                state.plan(&waiting.due)
            }
        };
        if !plan.is_empty() || state.is_to_be_written() {
            let claimed_at = Ticker.now();
            let claimed = self.turn_over(&mut state, plan).await?;
            self.begin(&mut state, claimed, claimed_at);
            state.lines.forget_idle();
            return Ok(Worked::Something);
        }
        if state.under_way.is_empty() {
            return Ok(Worked::Nothing);
        }
        state.wait().await;
        Ok(Worked::Something)
    }

    /// Waits for what is under way: left alone, it would be sent a second time. Who still waits in a line gives way.
    async fn stopped(&self) {
        let mut state = self.state.lock().await;
        state.lines.close();
        while let Some(joined) = state.under_way.join_next().await {
            state.take(joined);
        }
        if let Err(error) = self.turn_over(&mut state, turns::Plan::default()).await {
            tracing::warn!(?error, "outcomes of deliveries not written; these attempts will be repeated");
        }
    }
}
