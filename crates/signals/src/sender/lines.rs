//! The line before each endpoint. Sixteen deliveries are sent at a time; whoever takes them quickly has more of them waiting
//! here, claimed together, and is not served in transactions of sixteen.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::endpoints::EndpointId;

/// Deliveries that are sent to one endpoint at a time.
pub(super) const AT_ONCE: usize = 16;
/// Deliveries that one endpoint may have claimed, those that are sent included.
const LONGEST: usize = 256;
/// An answer that took longer than this makes the line shorter: whoever waits in it should come to their turn long before
/// their claim is stale.
const QUICK: Duration = Duration::from_millis(100);

/// The lines of all endpoints that have something claimed.
#[derive(Default)]
pub(super) struct Lines {
    of: HashMap<EndpointId, Line>,
}

struct Line {
    claimed: usize,
    /// How many may be claimed.
    room: usize,
    gate: Arc<Semaphore>,
    /// Told of every failure: who waits then gives way.
    failures: watch::Sender<()>,
}

impl Line {
    fn new() -> Self {
        Self { claimed: 0, room: AT_ONCE, gate: Arc::new(Semaphore::new(AT_ONCE)), failures: watch::Sender::new(()) }
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

/// Places for deliveries, of an endpoint or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// Where they are sent at once.
    pub(super) first: usize,
    /// Where they wait for that.
    pub(super) ahead: usize,
}

/// A place in a line.
pub(super) struct PlaceInLine {
    gate: Arc<Semaphore>,
    failures: watch::Receiver<()>,
}

/// Somebody's turn, until it is dropped.
pub(super) type Turn = OwnedSemaphorePermit;

impl PlaceInLine {
    /// Waits; `None` for whoever has to give way because an attempt before theirs failed.
    pub(super) async fn turn(mut self) -> Option<Turn> {
        tokio::select! {
            biased;
            turn = self.gate.acquire_owned() => turn.ok(),
            _ = self.failures.changed() => None,
        }
    }
}

impl Lines {
    pub(super) fn join(&mut self, endpoint: EndpointId) -> PlaceInLine {
        let line = self.of.entry(endpoint).or_insert_with(Line::new);
        line.claimed += 1;
        PlaceInLine { gate: Arc::clone(&line.gate), failures: line.failures.subscribe() }
    }

    pub(super) fn leave(&mut self, endpoint: EndpointId, how: Left) {
        let Some(line) = self.of.get_mut(&endpoint) else { return };
        line.claimed -= 1;
        match how {
            Left::Acknowledged(after) if after < QUICK => line.room = (line.room + 1).min(LONGEST),
            Left::Acknowledged(_) => line.room = (line.room / 2).max(AT_ONCE),
            Left::Unsent => {}
            Left::Failed => {
                line.room = AT_ONCE;
                // A receiver that hangs keeps nobody waiting in this line: they are due again, for any node.
                line.failures.send_replace(());
            }
        }
    }

    /// Forgets endpoints that have nothing claimed: those who come again begin anew.
    pub(super) fn forget_idle(&mut self) {
        self.of.retain(|_, line| line.claimed > 0);
    }

    /// Nobody comes to their turn any more.
    pub(super) fn close(&mut self) {
        for line in self.of.values() {
            line.gate.close();
        }
    }

    pub(super) fn is_busy(&self, endpoint: EndpointId) -> bool {
        self.of.get(&endpoint).is_some_and(|line| line.claimed > 0)
    }

    /// The places that an endpoint has free.
    pub(super) fn free(&self, endpoint: EndpointId) -> Places {
        let (claimed, room) = self.of.get(&endpoint).map_or((0, AT_ONCE), |line| (line.claimed, line.room));
        Places { first: AT_ONCE.saturating_sub(claimed), ahead: room.saturating_sub(claimed.max(AT_ONCE)) }
    }

    /// The places that all endpoints together have taken.
    pub(super) fn taken(&self) -> Places {
        let add = |sum: Places, line: &Line| {
            let first = line.claimed.min(AT_ONCE);
            Places { first: sum.first + first, ahead: sum.ahead + line.claimed - first }
        };
        self.of.values().fold(Places::default(), add)
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

    fn pass(lines: &mut Lines, how: Left, times: usize) {
        for _ in 0..times {
            lines.join(id(1));
            lines.leave(id(1), how);
        }
    }

    #[test]
    fn sixteen_come_to_their_turn_and_the_next_when_one_is_done() {
        let mut lines = Lines::default();
        let mut turns: Vec<_> = (0..AT_ONCE).map(|_| lines.join(id(1)).turn().now_or_never().flatten()).collect();
        assert!(turns.iter().all(Option::is_some));
        let mut next = Box::pin(lines.join(id(1)).turn());
        assert!((&mut next).now_or_never().is_none());
        turns.pop();
        assert!(next.now_or_never().flatten().is_some());
    }

    #[test]
    fn a_line_grows_with_quick_answers_and_shrinks_with_slow_ones() {
        let mut lines = Lines::default();
        assert_eq!((lines.free(id(1)), lines.is_busy(id(1))), (Places { first: 16, ahead: 0 }, false));
        let _here = lines.join(id(1));
        pass(&mut lines, QUICKLY, 4);
        assert_eq!((lines.free(id(1)), lines.is_busy(id(1))), (Places { first: 15, ahead: 4 }, true));
        pass(&mut lines, QUICKLY, 1_000);
        assert_eq!(lines.free(id(1)), Places { first: 15, ahead: LONGEST - AT_ONCE });
        pass(&mut lines, Left::Acknowledged(QUICK), 1);
        assert_eq!(lines.free(id(1)), Places { first: 15, ahead: LONGEST / 2 - AT_ONCE });
        pass(&mut lines, Left::Acknowledged(QUICK), 10);
        assert_eq!(lines.free(id(1)), Places { first: 15, ahead: 0 });
    }

    #[test]
    fn what_all_have_taken_is_counted_apart() {
        let mut lines = Lines::default();
        (0..20).for_each(|_| drop(lines.join(id(1))));
        (0..3).for_each(|_| drop(lines.join(id(2))));
        assert_eq!(lines.taken(), Places { first: 19, ahead: 4 });
        (0..3).for_each(|_| lines.leave(id(2), QUICKLY));
        lines.forget_idle();
        assert_eq!((lines.taken(), lines.is_busy(id(2))), (Places { first: 16, ahead: 4 }, false));
    }

    #[test]
    fn those_who_wait_give_way_when_an_attempt_fails() {
        let mut lines = Lines::default();
        let mut turns: Vec<_> = (0..AT_ONCE).map(|_| lines.join(id(1)).turn().now_or_never().flatten()).collect();
        let mut waiting: Vec<_> = (0..4).map(|_| Box::pin(lines.join(id(1)).turn())).collect();
        assert!(waiting.iter_mut().all(|place| place.now_or_never().is_none()));
        lines.leave(id(1), Left::Failed);
        for place in waiting {
            assert!(place.now_or_never().expect("at once").is_none());
            lines.leave(id(1), Left::Unsent);
        }
        assert_eq!(lines.free(id(1)), Places { first: 1, ahead: 0 });
        let mut next = Box::pin(lines.join(id(1)).turn());
        assert!((&mut next).now_or_never().is_none(), "the others are still being sent");
        turns.pop();
        assert!(next.now_or_never().flatten().is_some(), "whoever joins afterwards is sent");
    }
}
