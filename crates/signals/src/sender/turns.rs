//! Whose turn it is. Pure: who waits and what is free in, how many each may claim out.

use super::lines::Places;
use crate::endpoints::EndpointId;

/// How many deliveries each endpoint may have claimed.
pub(super) type Plan = Vec<(EndpointId, usize)>;

/// An endpoint with something due.
#[derive(Clone, Copy, Debug)]
pub(super) struct DueEndpoint {
    pub(super) endpoint: EndpointId,
    /// Whether it has anything claimed.
    pub(super) is_busy: bool,
    /// The places that it has free.
    pub(super) free: Places,
}

/// Places for endpoints that have nothing under way.
const KEPT: usize = 64;

/// Where the last round ended, so that the next one goes on behind it.
#[derive(Default)]
pub(super) struct Turns {
    last: Option<EndpointId>,
}

impl Turns {
    /// Shares out the free places, to each endpoint in turn. Whoever has nothing under way gets one before anybody gets more,
    /// and the last places are kept for such endpoints: a few receivers that hang do not take them all. Nobody waits ahead who
    /// could be sent at once, and what waits takes no place of those who could be.
    pub(super) fn plan(&mut self, mut in_turn: Vec<DueEndpoint>, mut free: Places) -> Plan {
        let split = in_turn.partition_point(|waiting| Some(waiting.endpoint) <= self.last);
        in_turn.rotate_left(split);
        in_turn.sort_by_key(|waiting| waiting.is_busy);
        let quiet = in_turn.iter().filter(|waiting| !waiting.is_busy).count().min(free.first);
        free.first -= quiet;
        let (mut plan, mut last) = (Plan::new(), None);
        for (index, waiting) in in_turn.into_iter().enumerate() {
            let one = usize::from(index < quiet);
            let more = (waiting.free.first - one).min(free.first.saturating_sub(KEPT));
            let ahead = if one + more == waiting.free.first { waiting.free.ahead.min(free.ahead) } else { 0 };
            free = Places { first: free.first - more, ahead: free.ahead - ahead };
            if one + more + ahead > 0 {
                plan.push((waiting.endpoint, one + more + ahead));
            }
            if more + ahead > 0 || free.first == 0 && one > 0 {
                last = Some(waiting.endpoint);
            }
        }
        self.last = last.or(self.last);
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With sixteen first places each, of which some are taken.
    fn plan(turns: &mut Turns, due: &[u128], busy: &[(u128, usize)], free: usize) -> Vec<(u128, usize)> {
        let waiting = |number: &u128| {
            let taken = busy.iter().find(|(id, _)| id == number).map_or(0, |(_, taken)| *taken);
            let free = Places { first: 16 - taken, ahead: 0 };
            DueEndpoint { endpoint: EndpointId::from_u128(*number), is_busy: taken > 0, free }
        };
        shared(turns, due.iter().map(waiting).collect(), Places { first: free, ahead: 0 })
    }

    fn shared(turns: &mut Turns, waiting: Vec<DueEndpoint>, free: Places) -> Vec<(u128, usize)> {
        turns.plan(waiting, free).into_iter().map(|(id, count)| (id.as_u128(), count)).collect()
    }

    #[test]
    fn each_endpoint_gets_what_it_has_room_for() {
        let mut turns = Turns::default();
        assert_eq!(plan(&mut turns, &[1, 2], &[], 256), [(1, 16), (2, 16)]);
        assert_eq!(plan(&mut turns, &[1, 2], &[(1, 16), (2, 15)], 256), [(2, 1)]);
    }

    #[test]
    fn endpoints_are_served_in_turn() {
        let mut turns = Turns::default();
        assert_eq!(plan(&mut turns, &[1, 2, 3], &[], KEPT + 20), [(1, 16), (2, 3), (3, 1)]);
        assert_eq!(plan(&mut turns, &[1, 2, 3], &[], KEPT + 20), [(3, 16), (1, 3), (2, 1)]);
        assert_eq!(plan(&mut turns, &[1, 2, 3], &[(2, 3)], KEPT + 20), [(3, 16), (1, 4)], "who has none goes first");
    }

    #[test]
    fn the_last_places_are_for_endpoints_with_nothing_under_way() {
        let mut turns = Turns::default();
        assert_eq!(plan(&mut turns, &[1, 2, 3], &[(1, 1), (2, 1)], KEPT), [(3, 1)]);
        assert_eq!(plan(&mut turns, &[1, 2, 3], &[(1, 1), (2, 1)], KEPT + 5), [(3, 5)]);
        assert_eq!(plan(&mut turns, &[1, 2, 3], &[], 2), [(1, 1), (2, 1)], "after 3");
        assert_eq!(plan(&mut turns, &[1, 2, 3], &[], 2), [(3, 1), (1, 1)]);
    }

    #[test]
    fn what_waits_ahead_takes_no_first_place() {
        let waiting = |number, first, ahead| DueEndpoint {
            endpoint: EndpointId::from_u128(number),
            is_busy: first < 16,
            free: Places { first, ahead },
        };
        let due = vec![waiting(1, 0, 200), waiting(2, 0, 200), waiting(3, 16, 0)];
        let mut turns = Turns::default();
        assert_eq!(
            shared(&mut turns, due.clone(), Places { first: KEPT + 20, ahead: 300 }),
            [(3, 16), (1, 200), (2, 100)]
        );
        assert_eq!(shared(&mut turns, due, Places { first: KEPT + 20, ahead: 0 }), [(3, 16)]);
        let due = vec![waiting(1, 5, 200)];
        assert_eq!(
            shared(&mut turns, due, Places { first: KEPT + 3, ahead: 300 }),
            [(1, 3)],
            "nobody waits who could be sent"
        );
    }
}
