//! Failures per client address, in this node's memory. An IPv6 client commands a whole /64, which counts as one.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kernel::{Clock, Code, Error, Result, Timestamp};

use super::{
    LoginLimits,
    streak::{LONGEST_DELAY, Rule, Streak},
    too_many,
};

/// Beyond that the addresses whose streaks end first give way.
const CAPACITY: usize = 50_000;

/// Cheap to clone; clones share one memory.
#[derive(Clone)]
pub struct Addresses {
    clock: Clock,
    rule: Rule,
    streaks: Arc<Mutex<HashMap<IpAddr, Streak>>>,
}

impl Addresses {
    pub(crate) fn new(clock: Clock, limits: LoginLimits) -> Self {
        let rule =
            Rule { free: limits.per_address.into(), window: Duration::from_secs(60), longest: Some(LONGEST_DELAY) };
        Self { clock, rule, streaks: Arc::default() }
    }

    /// 429 while the address has to wait.
    pub fn check(&self, client: IpAddr) -> Result<()> {
        let wait = self.streaks().get(&network(client)).and_then(|streak| streak.wait(self.clock.now()));
        wait.map_or(Ok(()), |wait| Err(too_many("address", wait)))
    }

    /// Counts an attempt before it is judged; 429 while there were too many.
    pub fn take(&self, client: IpAddr) -> Result<()> {
        if self.rule.free == 0 {
            return Ok(());
        }
        let (now, mut streaks) = (self.clock.now(), self.streaks());
        if streaks.len() >= CAPACITY {
            make_room(&mut streaks, self.rule, now);
        }
        let streak = streaks.entry(network(client)).or_insert_with(|| Streak::new(now));
        if let Some(wait) = streak.wait(now) {
            return Err(too_many("address", wait));
        }
        *streak = streak.failed(self.rule, now);
        Ok(())
    }

    /// Gives an attempt back that was right, or was not judged.
    pub fn give_back(&self, client: IpAddr) {
        if let Some(streak) = self.streaks().get_mut(&network(client)) {
            *streak = streak.forgiven(self.rule);
        }
    }

    /// Judges an attempt, and gives it back unless it was wrong.
    pub async fn judge<T>(&self, client: IpAddr, attempt: impl Future<Output = Result<T>>) -> Result<T> {
        self.take(client)?;
        let outcome = attempt.await;
        let is_wrong = |error: &Error| matches!(error.code(), Code::InvalidCredential | Code::WrongCode);
        if !outcome.as_ref().err().is_some_and(is_wrong) {
            self.give_back(client);
        }
        outcome
    }

    fn streaks(&self) -> MutexGuard<'_, HashMap<IpAddr, Streak>> {
        self.streaks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets what is over; when nothing is, half of what ends soonest.
fn make_room(streaks: &mut HashMap<IpAddr, Streak>, rule: Rule, now: Timestamp) {
    streaks.retain(|_, streak| streak.forgotten_at(rule) > now);
    if streaks.len() >= CAPACITY {
        let mut ends: Vec<Timestamp> = streaks.values().map(|streak| streak.forgotten_at(rule)).collect();
        let middle = ends.len() / 2;
        let (_, median, _) = ends.select_nth_unstable(middle);
        let median = *median;
        streaks.retain(|_, streak| streak.forgotten_at(rule) > median);
    }
}

pub(super) fn network(client: IpAddr) -> IpAddr {
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
        let addresses = Addresses::new(Clock::frozen(Timestamp::from_seconds(1_000)), LoginLimits::default());
        let (one, near, far) = ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1");
        let parse = |text: &str| text.parse::<IpAddr>().unwrap();
        for _ in 0..99 {
            addresses.take(parse(one)).unwrap();
        }
        addresses.take(parse(near)).unwrap();
        addresses.give_back(parse(one));
        addresses.take(parse(one)).unwrap();
        addresses.take(parse(one)).unwrap_err();
        addresses.check(parse(near)).unwrap_err();
        addresses.take(parse(far)).unwrap();
    }
}
