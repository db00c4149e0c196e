//! Failures per client address, in this node's memory. An IPv6 client commands a whole /64, which counts as one.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kernel::{Clock, Result, Timestamp};

use super::{ADDRESS, streak::Streak, too_many};

/// Beyond that the addresses whose streaks end first give way.
const CAPACITY: usize = 50_000;

/// Cheap to clone; clones share one memory.
#[derive(Clone)]
pub struct Addresses {
    clock: Clock,
    streaks: Arc<Mutex<HashMap<IpAddr, Streak>>>,
}

impl Addresses {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, streaks: Arc::default() }
    }

    /// 429 while the address has to wait.
    pub fn check(&self, client: IpAddr) -> Result<()> {
        let wait = self.streaks().get(&network(client)).and_then(|streak| streak.wait(self.clock.now()));
        wait.map_or(Ok(()), |wait| Err(too_many(wait)))
    }

    pub fn fail(&self, client: IpAddr) {
        let (now, mut streaks) = (self.clock.now(), self.streaks());
        if streaks.len() >= CAPACITY {
            make_room(&mut streaks, now);
        }
        let streak = streaks.entry(network(client)).or_insert_with(|| Streak::new(now));
        *streak = streak.failed(ADDRESS, now);
    }

    fn streaks(&self) -> MutexGuard<'_, HashMap<IpAddr, Streak>> {
        self.streaks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets what is over; when nothing is, half of what ends soonest.
fn make_room(streaks: &mut HashMap<IpAddr, Streak>, now: Timestamp) {
    streaks.retain(|_, streak| streak.forgotten_at(ADDRESS) > now);
    if streaks.len() >= CAPACITY {
        let mut ends: Vec<Timestamp> = streaks.values().map(|streak| streak.forgotten_at(ADDRESS)).collect();
        let middle = ends.len() / 2;
        let (_, median, _) = ends.select_nth_unstable(middle);
        let median = *median;
        streaks.retain(|_, streak| streak.forgotten_at(ADDRESS) > median);
    }
}

fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => IpAddr::V4(mapped),
            None => IpAddr::V6(Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_failures_block_the_address_and_its_network_only() {
        let addresses = Addresses::new(Clock::frozen(Timestamp::from_seconds(1_000)));
        let (one, near, far) = ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1");
        let parse = |text: &str| text.parse::<IpAddr>().unwrap();
        for _ in 0..99 {
            addresses.fail(parse(one));
        }
        addresses.check(parse(near)).unwrap();
        addresses.fail(parse(near));
        addresses.check(parse(one)).unwrap_err();
        addresses.check(parse(far)).unwrap();
    }
}
