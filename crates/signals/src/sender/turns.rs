//! Whose turn it is. Pure: who waits and how much room each has in, how many each may claim out.

use crate::endpoints::EndpointId;

/// How many deliveries each endpoint may have claimed.
pub(super) type Plan = Vec<(EndpointId, usize)>;

/// Where the last round ended, so that the next one goes on behind it.
#[derive(Default)]
pub(super) struct Turns {
    last: Option<EndpointId>,
}

impl Turns {
    /// Shares out the free places: to each endpoint in turn, the quiet ones first when there are not enough. `room` tells
    /// whether an endpoint has anything claimed, and how many more it may have.
    pub(super) fn plan(&mut self, due: &[EndpointId], room: impl Fn(EndpointId) -> (bool, usize), free: usize) -> Plan {
        let with_room = |endpoint: &EndpointId| (*endpoint, room(*endpoint));
        let mut in_turn: Vec<(EndpointId, (bool, usize))> =
            due.iter().map(with_room).filter(|(_, (_, room))| *room > 0).collect();
        let split = in_turn.partition_point(|(endpoint, _)| Some(*endpoint) <= self.last);
        in_turn.rotate_left(split);
        // An endpoint that has several under way gives way to one that has none.
        in_turn.sort_by_key(|(_, (is_busy, _))| *is_busy);
        let mut left = free;
        let mut plan = Plan::new();
        for (endpoint, (_, room)) in in_turn {
            if left == 0 {
                break;
            }
            let share = room.min(left);
            plan.push((endpoint, share));
            left -= share;
        }
        self.last = plan.last().map(|(endpoint, _)| *endpoint).or(self.last);
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[u128]) -> Vec<EndpointId> {
        numbers.iter().map(|number| EndpointId::from_u128(*number)).collect()
    }

    /// With room for sixteen each, of which some are taken.
    fn plan(turns: &mut Turns, due: &[u128], busy: &[(u128, usize)], free: usize) -> Vec<(u128, usize)> {
        let room = |endpoint: EndpointId| match busy.iter().find(|(id, _)| *id == endpoint.as_u128()) {
            Some((_, taken)) => (true, 16 - taken),
            None => (false, 16),
        };
        turns.plan(&ids(due), room, free).into_iter().map(|(id, count)| (id.as_u128(), count)).collect()
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
        assert_eq!(plan(&mut turns, &[1, 2, 3], &[], 20), [(1, 16), (2, 4)]);
        assert_eq!(plan(&mut turns, &[1, 2, 3], &[], 20), [(3, 16), (1, 4)]);
        assert_eq!(plan(&mut turns, &[1, 2, 3], &[(2, 3)], 20), [(3, 16), (1, 4)], "who has none goes first");
    }
}
