//! Which addresses a call may go to. Pure: an address in, a verdict out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Networks of IPv4 that are not somebody else's server on the internet.
const NOT_PUBLIC_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8), // this network; the unspecified address reaches this machine
    (Ipv4Addr::new(10, 0, 0, 0), 8), // private
    (Ipv4Addr::new(100, 64, 0, 0), 10), // shared by carriers (CGNAT), and metadata services
    (Ipv4Addr::new(127, 0, 0, 0), 8), // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16), // link-local, and metadata services
    (Ipv4Addr::new(172, 16, 0, 0), 12), // private
    (Ipv4Addr::new(192, 0, 0, 0), 24), // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24), // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24), // relays from 6to4
    (Ipv4Addr::new(192, 168, 0, 0), 16), // private
    (Ipv4Addr::new(198, 18, 0, 0), 15), // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(168, 63, 129, 16), 32), // looks public, and is the host's own service inside one large cloud
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved, and broadcast
];

/// The only part of IPv6 that is handed out to networks of the internet.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// What lies inside it and is something else. Outside of it lie, among others, mapped IPv4, NAT64, ULA and link-local.
const NOT_PUBLIC_V6: &[(Ipv6Addr, u32)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments: Teredo, benchmarks, identifiers
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4: an IPv4 address in disguise
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// Whether an address belongs to the public internet. Addresses that translate to IPv4 do not, whatever they translate
/// to: a network that needs them can say so by [`Targets::Any`].
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|&network| v4_is_within(address, network)),
        IpAddr::V6(address) => {
            v6_is_within(address, GLOBAL_V6) && !NOT_PUBLIC_V6.iter().any(|&network| v6_is_within(address, network))
        }
    }
}

fn v4_is_within(address: Ipv4Addr, (network, bits): (Ipv4Addr, u32)) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits
}

fn v6_is_within(address: Ipv6Addr, (network, bits): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits
}

/// Where calls may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Servers on the internet only.
    Public,
    /// This machine too: for a service that itself runs on a loopback address, as during development.
    PublicAndLoopback,
    /// Wherever the network leads.
    Any,
}

impl Targets {
    /// What holds for a service with this base URL. `allow_private` is the operator's word.
    pub fn of_service(base_url: &str, allow_private: bool) -> Self {
        match Url::parse(base_url) {
            _ if allow_private => Self::Any,
            Ok(url) if is_loopback(&url) => Self::PublicAndLoopback,
            _ => Self::Public,
        }
    }

    pub(super) fn allow(self, address: IpAddr) -> bool {
        match self {
            Self::Public => is_public(address),
            Self::PublicAndLoopback => is_public(address) || address.is_loopback(),
            Self::Any => true,
        }
    }

    /// Whether the URL alone rules a call out. A name passes here: its addresses are checked when they are known.
    pub(super) fn allow_url(self, url: &Url) -> bool {
        matches!(url.scheme(), "http" | "https")
            && match url.host() {
                Some(Host::Ipv4(address)) => self.allow(address.into()),
                Some(Host::Ipv6(address)) => self.allow(address.into()),
                Some(Host::Domain(_)) => true,
                None => false,
            }
    }
}

/// Whether an address leads to this very machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_public_text(address: &str) -> bool {
        is_public(address.parse().expect("an address"))
    }

    #[test]
    fn servers_on_the_internet_are_public() {
        for address in
            ["1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "2a00:1450::5"]
        {
            assert!(is_public_text(address), "{address}");
        }
    }

    #[test]
    fn everything_special_is_not() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:1.1.1.1",
            "64:ff9b::7f00:1",
            "64:ff9b::101:101",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:101:101::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public_text(address), "{address}");
        }
    }

    /// The addresses around the ends of each network: inside refused, outside decided by the other networks alone.
    #[test]
    fn networks_begin_and_end_where_they_should() {
        for &(network, bits) in NOT_PUBLIC_V4 {
            let last = network.to_bits() | u32::MAX.checked_shr(bits).unwrap_or(0);
            assert!(!is_public(network.into()) && !is_public(Ipv4Addr::from_bits(last).into()), "{network}/{bits}");
            for outside in [network.to_bits().checked_sub(1), last.checked_add(1)].into_iter().flatten() {
                let outside = Ipv4Addr::from_bits(outside);
                let elsewhere = NOT_PUBLIC_V4.iter().any(|&other| other.0 != network && v4_is_within(outside, other));
                assert_eq!(is_public(outside.into()), !elsewhere, "{outside} beside {network}/{bits}");
            }
        }
    }

    proptest! {
        /// The standard library's own opinion, where it has one.
        #[test]
        fn nothing_that_the_standard_library_calls_special_is_public(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let special = address.is_private() || address.is_loopback() || address.is_link_local() || address.is_multicast()
                || address.is_broadcast() || address.is_documentation() || address.is_unspecified();
            prop_assert!(!(special && is_public(address.into())), "{address}");
        }

        #[test]
        fn no_disguise_of_an_ipv4_address_is_public(bits: u32, rest: u64) {
            let (high, low) = ((bits >> 16) as u16, bits as u16);
            let rest = [(rest >> 48) as u16, (rest >> 32) as u16, (rest >> 16) as u16, rest as u16];
            for address in [
                Ipv4Addr::from_bits(bits).to_ipv6_mapped(),
                Ipv4Addr::from_bits(bits).to_ipv6_compatible(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 1, rest[0], rest[1], rest[2], high, low),
                Ipv6Addr::new(0x2002, high, low, rest[0], rest[1], rest[2], rest[3], 1),
                Ipv6Addr::new(0x2001, 0, rest[0], rest[1], rest[2], rest[3], !high, !low),
            ] {
                prop_assert!(!is_public(address.into()), "{address}");
            }
        }

        #[test]
        fn ipv6_outside_of_global_unicast_is_not_public(bits: u128) {
            let address = Ipv6Addr::from_bits(bits);
            prop_assert!(bits >> 125 == 1 || !is_public(address.into()), "{address}");
        }

        /// However the URL is spelled, what is allowed is a public address or a name.
        #[test]
        fn an_allowed_literal_is_a_public_address(host in "(0x)?[0-9a-f]{1,10}(\\.(0x)?[0-9a-f]{1,4}){0,4}\\.?") {
            if let Ok(url) = Url::parse(&format!("http://{host}/")) && Targets::Public.allow_url(&url) {
                match url.host() {
                    Some(Host::Ipv4(address)) => prop_assert!(is_public(address.into()), "{url}"),
                    Some(Host::Domain(name)) => prop_assert!(name.parse::<IpAddr>().is_err(), "{url}"),
                    _ => prop_assert!(false, "{url}"),
                }
            }
        }
    }

    #[test]
    fn the_base_url_and_the_operator_decide() {
        for (base_url, allow_private, expected) in [
            ("https://auth.example.com", false, Targets::Public),
            ("https://auth.example.com", true, Targets::Any),
            ("http://localhost:4780", false, Targets::PublicAndLoopback),
            ("http://acme.localhost", false, Targets::PublicAndLoopback),
            ("http://127.0.0.9:1", false, Targets::PublicAndLoopback),
            ("http://[::1]:4780", false, Targets::PublicAndLoopback),
            ("http://192.168.0.7", false, Targets::Public),
            ("http://localhost.example.com", false, Targets::Public),
        ] {
            assert_eq!(Targets::of_service(base_url, allow_private), expected, "{base_url}");
        }
        let loopback: IpAddr = "127.0.0.1".parse().expect("an address");
        let private: IpAddr = "10.0.0.1".parse().expect("an address");
        assert_eq!(
            [Targets::Public, Targets::PublicAndLoopback, Targets::Any]
                .map(|targets| (targets.allow(loopback), targets.allow(private))),
            [(false, false), (true, false), (true, true)]
        );
    }
}
