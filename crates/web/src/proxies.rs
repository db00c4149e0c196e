//! Who the client is when proxies stand in between. Only the word of a trusted proxy counts, so `X-Forwarded-For` is
//! read from its right end, where the nearest proxy wrote, up to the first address that is not one of ours.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::HeaderMap;
use ipnet::IpNet;

/// Address ranges whose `X-Forwarded-For` counts; none by default. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Arc<Ranges>);

#[derive(Debug, Default)]
struct Ranges {
    trusted: Vec<IpNet>,
    /// Somebody forwards requests and is not believed: then all clients look like one.
    unheeded: AtomicBool,
}

impl TrustedProxies {
    pub fn new(ranges: Vec<IpNet>) -> Self {
        Self(Arc::new(Ranges { trusted: ranges, unheeded: AtomicBool::new(false) }))
    }

    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.0.trusted.iter().any(|range| range.contains(&address))
    }

    pub fn is_empty(&self) -> bool {
        self.0.trusted.is_empty()
    }

    /// Whether a request was forwarded while no proxy is trusted.
    pub fn was_unheeded(&self) -> bool {
        self.0.unheeded.load(Ordering::Relaxed)
    }

    fn note_forwarding(&self, headers: &HeaderMap) {
        if headers.contains_key("x-forwarded-for") && !self.0.unheeded.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "a request came with X-Forwarded-For and no proxy is trusted: behind a proxy all clients count as one \
                 address; set trusted_proxies"
            );
        }
    }

    /// The address of the client behind `peer`.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if self.0.trusted.is_empty() {
            self.note_forwarding(headers);
            return client;
        }
        // The last header is the nearest proxy's; a word that is not an address ends the trail, since nothing left of it
        // can be vouched for.
        for line in headers.get_all("x-forwarded-for").iter().rev() {
            for word in line.to_str().unwrap_or("?").rsplit(',') {
                if !self.trusts(client) {
                    return client;
                }
                match parse(word.trim()) {
                    Some(address) => client = address,
                    None => return client,
                }
            }
        }
        client
    }
}

/// An address, which some proxies write with a port or in brackets.
fn parse(word: &str) -> Option<IpAddr> {
    let address = word.parse::<IpAddr>().ok();
    let address = address.or_else(|| word.parse::<SocketAddr>().ok().map(|socket| socket.ip()));
    let address = address.or_else(|| word.strip_prefix('[')?.strip_suffix(']')?.parse().ok());
    address.map(|address| address.to_canonical())
}
