//! The line before each endpoint. Sixteen deliveries are sent at a time; whoever takes them quickly has more of them waiting
//! here, claimed together, and is not served in transactions of sixteen.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::endpoints::EndpointId;

/// Deliveries that are sent to one endpoint at a time.
pub(super) const AT_ONCE: usize = 16;
/// Deliveries that one endpoint may have claimed, those that are sent included.
const LONGEST: usize = 256;
/// An answer that took longer than this does not make the line longer: whoever waits in it should come to their turn long
/// before their claim is stale.
const QUICK: Duration = Duration::from_millis(100);

/// The lines of all endpoints that have something claimed.
pub(super) struct Lines {
    of: HashMap<EndpointId, Line>,
    /// What all endpoints together may have on the wire.
    wire: Arc<Semaphore>,
}

struct Line {
    claimed: usize,
    /// How many may be claimed.
    room: usize,
    gate: Arc<Semaphore>,
    /// Counted up when those who wait shall give way.
    turned_away: Arc<AtomicU64>,
}

impl Line {
    fn new() -> Self {
        Self { claimed: 0, room: AT_ONCE, gate: Arc::new(Semaphore::new(AT_ONCE)), turned_away: Arc::default() }
    }
}

/// What became of somebody in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Acknowledged after this time.
    Acknowledged(Duration),
    Failed,
    /// Never sent.
    Unsent,
}

/// A place in a line.
pub(super) struct Place {
    gate: Arc<Semaphore>,
    wire: Arc<Semaphore>,
    turned_away: Arc<AtomicU64>,
    joined_at: u64,
}

/// Somebody's turn, until it is dropped.
pub(super) struct Turn {
    _gate: OwnedSemaphorePermit,
    _wire: OwnedSemaphorePermit,
}

impl Place {
    /// Waits; `None` for whoever has to give way because an attempt before theirs failed.
    pub(super) async fn turn(self) -> Option<Turn> {
        let gate = self.gate.acquire_owned().await.ok()?;
        if self.turned_away.load(Ordering::Acquire) != self.joined_at {
            return None;
        }
        Some(Turn { _gate: gate, _wire: self.wire.acquire_owned().await.ok()? })
    }
}

impl Lines {
    pub(super) fn new(on_the_wire: usize) -> Self {
        Self { of: HashMap::new(), wire: Arc::new(Semaphore::new(on_the_wire)) }
    }

    pub(super) fn join(&mut self, endpoint: EndpointId) -> Place {
        let line = self.of.entry(endpoint).or_insert_with(Line::new);
        line.claimed += 1;
        Place {
            gate: Arc::clone(&line.gate),
            wire: Arc::clone(&self.wire),
            turned_away: Arc::clone(&line.turned_away),
            joined_at: line.turned_away.load(Ordering::Acquire),
        }
    }

    pub(super) fn leave(&mut self, endpoint: EndpointId, how: Left) {
        let Some(line) = self.of.get_mut(&endpoint) else { return };
        line.claimed -= 1;
        match how {
            Left::Acknowledged(after) if after < QUICK => line.room = (line.room + 1).min(LONGEST),
            Left::Acknowledged(_) | Left::Unsent => {}
            // Who does not answer keeps as little as possible waiting: it is due at once, for whoever takes it then.
            Left::Failed if line.room > AT_ONCE => {
                line.room = AT_ONCE;
                line.turned_away.fetch_add(1, Ordering::Release);
            }
            Left::Failed => {}
        }
        if line.claimed == 0 {
            self.of.remove(&endpoint);
        }
    }

    /// Nobody comes to their turn any more.
    pub(super) fn close(&mut self) {
        for line in self.of.values() {
            line.gate.close();
        }
    }

    /// Whether the endpoint has anything claimed, and how many more it may have.
    pub(super) fn room(&self, endpoint: EndpointId) -> (bool, usize) {
        match self.of.get(&endpoint) {
            Some(line) => (true, line.room.saturating_sub(line.claimed)),
            None => (false, AT_ONCE),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const QUICKLY: Left = Left::Acknowledged(Duration::from_millis(1));

    fn id(number: u128) -> EndpointId {
        EndpointId::from_u128(number)
    }

    #[test]
    fn sixteen_come_to_their_turn_and_the_next_when_one_is_done() {
        let mut lines = Lines::new(256);
        let mut turns: Vec<_> = (0..AT_ONCE).map(|_| lines.join(id(1)).turn().now_or_never().flatten()).collect();
        assert!(turns.iter().all(Option::is_some));
        let mut next = Box::pin(lines.join(id(1)).turn());
        assert!((&mut next).now_or_never().is_none());
        turns.pop();
        assert!(next.now_or_never().flatten().is_some());
    }

    #[test]
    fn all_endpoints_share_the_wire() {
        let mut lines = Lines::new(3);
        let turns: Vec<_> = (0..4).map(|number| lines.join(id(number)).turn().now_or_never().flatten()).collect();
        assert_eq!(turns.iter().filter(|turn| turn.is_some()).count(), 3);
    }

    #[test]
    fn a_line_grows_with_quick_answers_up_to_a_limit() {
        let mut lines = Lines::new(256);
        let _here = lines.join(id(1));
        for expected in [AT_ONCE, AT_ONCE + 1, AT_ONCE + 2] {
            assert_eq!(lines.room(id(1)), (true, expected - 1));
            lines.join(id(1));
            lines.leave(id(1), QUICKLY);
        }
        lines.join(id(1));
        lines.leave(id(1), Left::Acknowledged(QUICK));
        assert_eq!(lines.room(id(1)), (true, AT_ONCE + 2), "not for a slow one");
        for _ in 0..1_000 {
            lines.join(id(1));
            lines.leave(id(1), QUICKLY);
        }
        assert_eq!(lines.room(id(1)), (true, LONGEST - 1));
        lines.leave(id(1), QUICKLY);
        assert_eq!(lines.room(id(1)), (false, AT_ONCE), "whoever comes again begins anew");
    }

    #[test]
    fn those_who_wait_give_way_when_an_attempt_fails() {
        let mut lines = Lines::new(256);
        let mut turns: Vec<_> = (0..AT_ONCE).map(|_| lines.join(id(1)).turn().now_or_never().flatten()).collect();
        for _ in 0..4 {
            lines.join(id(1));
            lines.leave(id(1), QUICKLY);
        }
        let waiting: Vec<_> = (0..4).map(|_| lines.join(id(1)).turn()).collect();
        lines.leave(id(1), Left::Failed);
        turns.pop();
        for place in waiting {
            assert!(place.now_or_never().expect("at once").is_none());
            lines.leave(id(1), Left::Unsent);
        }
        assert_eq!(lines.room(id(1)), (true, 1));
        assert!(lines.join(id(1)).turn().now_or_never().flatten().is_some(), "whoever joins afterwards is sent");
    }
}
