//! Whose turn it is. Pure: who waits and how many are under way in, how many each may have out.

use std::collections::HashMap;

use crate::endpoints::EndpointId;

/// Deliveries under way to one endpoint.
pub(super) const MOST_PER_ENDPOINT: usize = 16;

/// How many deliveries each endpoint may have claimed.
pub(super) type Plan = Vec<(EndpointId, usize)>;

/// Where the last round ended, so that the next one goes on behind it.
#[derive(Default)]
pub(super) struct Turns {
    last: Option<EndpointId>,
}

impl Turns {
    /// Shares out the free places: to each endpoint in turn, the quiet ones first when there are not enough.
    pub(super) fn plan(&mut self, due: &[EndpointId], taken: &HashMap<EndpointId, usize>, free: usize) -> Plan {
        let mut in_turn: Vec<(EndpointId, usize)> = due
            .iter()
            .map(|endpoint| (*endpoint, taken.get(endpoint).copied().unwrap_or(0)))
            .filter(|(_, under_way)| *under_way < MOST_PER_ENDPOINT)
            .collect();
        let split = in_turn.partition_point(|(endpoint, _)| Some(*endpoint) <= self.last);
        in_turn.rotate_left(split);
        // An endpoint that has several under way gives way to one that has none.
        in_turn.sort_by_key(|(_, under_way)| *under_way > 0);
        let mut left = free;
        let mut plan = Plan::new();
        for (endpoint, under_way) in in_turn {
            if left == 0 {
                break;
            }
            let share = (MOST_PER_ENDPOINT - under_way).min(left);
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

    fn plan(turns: &mut Turns, due: &[u128], busy: &[(u128, usize)], free: usize) -> Vec<(u128, usize)> {
        let busy = busy.iter().map(|(id, count)| (EndpointId::from_u128(*id), *count)).collect();
        turns.plan(&ids(due), &busy, free).into_iter().map(|(id, count)| (id.as_u128(), count)).collect()
    }

    #[test]
    fn each_endpoint_has_at_most_sixteen_under_way() {
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
