//! Rate limits: token buckets per class and subject, kept in memory per node, on the business clock.
//!
//! Each bucket is one number, the instant at which it will be full again (GCRA), so that a bucket that has refilled
//! need not be kept. The number of buckets is bounded: the ones closest to full give way.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kernel::{AppId, Clock, Code, Error, Result};

use crate::shares::network;

/// What a limit guards. The general ones count every request and are off by default; the others are strict and sit on
/// the endpoints that guess credentials or cost money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitClass {
    /// Every request, of whoever sends it.
    General,
    /// Every request of an app's own callers, whatever their addresses.
    App,
    /// Keys and tokens that were refused. Nobody guesses one: this bounds the work that refusing takes.
    Key,
    /// What could be guessed, or takes much work to refuse.
    Credential,
    /// Logins elsewhere that are begun, each of which is remembered for a while.
    Start,
    /// What sends a mail or an SMS.
    Message,
}

impl LimitClass {
    /// Message is the last one.
    const COUNT: usize = Self::Message as usize + 1;

    /// As in the metrics.
    fn label(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::App => "app",
            Self::Key => "key",
            Self::Credential => "credential",
            Self::Start => "start",
            Self::Message => "message",
        }
    }
}

/// A bucket's size and how fast it refills. Either at 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub per_minute: u32,
    pub burst: u32,
}

impl Quota {
    pub const OFF: Self = Self { per_minute: 0, burst: 0 };
}

/// Whom a bucket belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    Address(IpAddr),
    App(AppId),
}

impl Subject {
    fn normalised(self) -> Self {
        match self {
            Self::Address(address) => Self::Address(network(address)),
            other => other,
        }
    }
}

const SHARDS: usize = 16;

/// The buckets of one node.
pub struct RateLimits {
    clock: Clock,
    quotas: [Quota; LimitClass::COUNT],
    hasher: RandomState,
    shards: [Mutex<HashMap<(LimitClass, Subject), i64>>; SHARDS],
    shard_capacity: usize,
}

impl RateLimits {
    /// No limit at all, until [`RateLimits::with`] sets one.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            quotas: [Quota::OFF; LimitClass::COUNT],
            hasher: RandomState::new(),
            shards: Default::default(),
            shard_capacity: 4096,
        }
    }

    #[must_use]
    pub fn with(mut self, class: LimitClass, quota: Quota) -> Self {
        self.quotas[class as usize] = quota;
        self
    }

    /// Takes one token of the subject's bucket, or says when the next one will be there.
    pub fn check(&self, class: LimitClass, subject: Subject) -> Result<()> {
        let Quota { per_minute, burst } = self.quotas[class as usize];
        if per_minute == 0 || burst == 0 {
            return Ok(());
        }
        let key = (class, subject.normalised());
        let now = self.clock.now().as_micros();
        let cost = 60_000_000 / i64::from(per_minute);
        let size = cost * i64::from(burst);
        let shard = &self.shards[self.hasher.hash_one(key) as usize % SHARDS];
        let mut buckets = shard.lock().unwrap_or_else(PoisonError::into_inner);
        // A bucket is never emptier than empty, whatever the clock said before it was set back.
        let full_at = buckets.get(&key).copied().unwrap_or(now).clamp(now, now + size) + cost;
        if full_at - now > size {
            if let Some(known) = buckets.get_mut(&key) {
                *known = full_at - cost;
            }
            let wait = Duration::from_micros((full_at - now - size).unsigned_abs());
            return Err(limited(class.label(), TOO_MANY, wait));
        }
        if buckets.len() >= self.shard_capacity && !buckets.contains_key(&key) {
            make_room(&mut buckets, now);
        }
        buckets.insert(key, full_at);
        Ok(())
    }
}

const TOO_MANY: &str = "Too many requests. Try again after the number of seconds in Retry-After.";

/// A refusal by any limit, counted by its class: 429.
pub fn limited(class: &'static str, message: &'static str, wait: Duration) -> Error {
    metrics::counter!("tenantry_rate_limited_total", "class" => class).increment(1);
    Error::new(Code::RateLimited, message).with_retry_after(wait)
}

/// Forgets the buckets that are full again; when none is, the one that will be first.
fn make_room(buckets: &mut HashMap<(LimitClass, Subject), i64>, now: i64) {
    let before = buckets.len();
    buckets.retain(|_, full_at| *full_at > now);
    if buckets.len() == before
        && let Some(first) = buckets.iter().min_by_key(|(_, full_at)| **full_at).map(|(key, _)| *key)
    {
        buckets.remove(&first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::Timestamp;

    fn limits(quota: Quota) -> (RateLimits, Clock) {
        let clock = Clock::frozen(Timestamp::from_seconds(1_000));
        (RateLimits::new(clock.clone()).with(LimitClass::Credential, quota), clock)
    }

    fn address(text: &str) -> Subject {
        Subject::Address(text.parse().unwrap())
    }

    #[test]
    fn a_burst_passes_then_one_per_interval() {
        let (limits, clock) = limits(Quota { per_minute: 6, burst: 3 });
        let client = address("192.0.2.1");
        for _ in 0..3 {
            limits.check(LimitClass::Credential, client).unwrap();
        }
        let error = limits.check(LimitClass::Credential, client).unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(10)));
        clock.advance_to(Timestamp::from_seconds(1_010));
        limits.check(LimitClass::Credential, client).unwrap();
        limits.check(LimitClass::Credential, client).unwrap_err();
    }

    #[test]
    fn subjects_and_classes_have_buckets_of_their_own_and_ipv6_shares_a_64() {
        let (limits, _) = limits(Quota { per_minute: 1, burst: 1 });
        limits.check(LimitClass::Credential, address("192.0.2.1")).unwrap();
        limits.check(LimitClass::Credential, address("192.0.2.2")).unwrap();
        limits.check(LimitClass::Message, address("192.0.2.1")).unwrap();
        limits.check(LimitClass::Credential, address("2001:db8::1")).unwrap();
        limits.check(LimitClass::Credential, address("2001:db8::2")).unwrap_err();
        limits.check(LimitClass::Credential, address("2001:db8:0:1::1")).unwrap();
    }

    #[test]
    fn a_clock_that_steps_back_costs_nobody_more_than_an_empty_bucket() {
        let (mut limits, _) = limits(Quota { per_minute: 6, burst: 3 });
        let client = address("192.0.2.1");
        limits.check(LimitClass::Credential, client).unwrap();
        limits.clock = Clock::frozen(Timestamp::from_seconds(1_000 - 7_200));
        let error = limits.check(LimitClass::Credential, client).unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(10)));
        limits.clock = Clock::frozen(Timestamp::from_seconds(1_010 - 7_200));
        limits.check(LimitClass::Credential, client).unwrap();
    }

    #[test]
    fn zero_is_off() {
        let (limits, _) = limits(Quota { per_minute: 0, burst: 5 });
        for _ in 0..100 {
            limits.check(LimitClass::Credential, address("192.0.2.1")).unwrap();
        }
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let (mut limits, _) = limits(Quota { per_minute: 1, burst: 2 });
        limits.shard_capacity = 8;
        for host in 0..1_000u32 {
            limits.check(LimitClass::Credential, Subject::Address(IpAddr::V4(host.into()))).unwrap();
        }
        let kept: usize = limits.shards.iter().map(|shard| shard.lock().unwrap().len()).sum();
        assert!(kept <= 8 * SHARDS, "{kept}");
    }
}
