//! What each client has of something that is limited in all: connections, requests, bytes of bodies. A client that has its
//! share is refused more, so that one cannot keep the others out.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Whom an address stands for: an IPv6 client commands a whole /64.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX))),
        address => address,
    }
}

/// Cheap to clone; clones count together.
#[derive(Clone)]
pub(crate) struct Shares(Arc<Inner>);

struct Inner {
    most: usize,
    held: Mutex<HashMap<IpAddr, usize>>,
}

impl Shares {
    /// How much one client may have at most; 0 means no limit.
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Inner { most: if most == 0 { usize::MAX } else { most }, held: Mutex::default() }))
    }

    /// Nothing yet.
    pub(crate) fn of(&self, address: IpAddr) -> Share {
        Share { shares: self.clone(), client: network(address), amount: 0 }
    }

    /// One, unless the client has its share.
    pub(crate) fn take_one(&self, address: IpAddr) -> Option<Share> {
        let mut share = self.of(address);
        share.grow(1).then_some(share)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of a client's share, given back when it is dropped.
pub(crate) struct Share {
    shares: Shares,
    client: IpAddr,
    amount: usize,
}

impl Share {
    /// Takes more. Only what the client holds elsewhere stands against it, so that a single thing may be as large as its own
    /// limit says.
    pub(crate) fn grow(&mut self, by: usize) -> bool {
        let mut held = self.shares.held();
        let all = held.entry(self.client).or_insert(0);
        let fits = *all - self.amount < self.shares.0.most;
        if fits {
            *all += by;
            self.amount += by;
        } else if *all == 0 {
            held.remove(&self.client);
        }
        fits
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.amount > 0
            && let Entry::Occupied(mut all) = self.shares.held().entry(self.client)
        {
            *all.get_mut() -= self.amount;
            if *all.get() == 0 {
                all.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_client_with_its_share_is_refused_and_the_others_are_not() {
        let shares = Shares::new(2);
        let held = [shares.take_one(address("192.0.2.1")), shares.take_one(address("::ffff:192.0.2.1"))];
        assert!(shares.take_one(address("192.0.2.1")).is_none());
        assert!(shares.take_one(address("192.0.2.2")).is_some());
        drop(held);
        assert!(shares.take_one(address("192.0.2.1")).is_some());
        assert!(shares.held().is_empty(), "what nobody holds is not kept");
    }

    #[test]
    fn an_ipv6_client_has_one_share_for_its_64() {
        let shares = Shares::new(1);
        let _held = shares.take_one(address("2001:db8::1"));
        assert!(shares.take_one(address("2001:db8::2")).is_none());
        assert!(shares.take_one(address("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn one_thing_may_be_larger_than_a_share() {
        let shares = Shares::new(10);
        let (mut first, mut second) = (shares.of(address("192.0.2.1")), shares.of(address("192.0.2.1")));
        assert!(first.grow(8) && first.grow(8), "only what is held elsewhere counts");
        assert!(!second.grow(1));
        drop(first);
        assert!(second.grow(1));
    }

    #[test]
    fn zero_is_off() {
        let shares = Shares::new(0);
        let held: Vec<_> = (0..10_000).map(|_| shares.take_one(address("192.0.2.1"))).collect();
        assert!(held.iter().all(Option::is_some));
    }
}
