//! The client's address, whatever a client writes into `X-Forwarded-For`.

use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use web::TrustedProxies;

fn proxies() -> TrustedProxies {
    TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()])
}

fn client(peer: &str, lines: &[&str]) -> String {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append("x-forwarded-for", HeaderValue::from_str(line).unwrap());
    }
    proxies().client(peer.parse().unwrap(), &headers).to_string()
}

#[test]
fn the_trail_is_followed_from_the_right_through_trusted_proxies() {
    for (peer, lines, expected) in [
        ("192.0.2.1", &["198.51.100.9"][..], "192.0.2.1"),
        ("10.0.0.1", &[], "10.0.0.1"),
        ("10.0.0.1", &["198.51.100.9"], "198.51.100.9"),
        ("10.0.0.1", &["6.6.6.6, 198.51.100.9, 10.0.0.2"], "198.51.100.9"),
        ("10.0.0.1", &["6.6.6.6", "198.51.100.9"], "198.51.100.9"),
        ("10.0.0.1", &["198.51.100.9, nonsense, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", &["198.51.100.9:4711"], "198.51.100.9"),
        ("fd00::1", &["[2001:db8::1]:80"], "2001:db8::1"),
        ("::ffff:10.0.0.1", &["::ffff:198.51.100.9"], "198.51.100.9"),
    ] {
        assert_eq!(client(peer, lines), expected, "{peer} {lines:?}");
    }
}

proptest! {
    /// What a client prepends never changes what the proxies saw.
    #[test]
    fn nobody_can_pretend_to_be_another(forged in "[ -~]{0,80}", real in 0u32.., hops in 0usize..4) {
        let real = IpAddr::V4(Ipv4Addr::from(real));
        prop_assume!(!real.to_string().starts_with("10."));
        let mut line = if forged.is_empty() { real.to_string() } else { format!("{forged}, {real}") };
        for hop in 0..hops {
            line.push_str(&format!(", 10.1.0.{hop}"));
        }
        prop_assert_eq!(client("10.0.0.1", &[&line]), real.to_string());
        prop_assert_eq!(client(&real.to_string(), &[&line]), real.to_string());
    }
}
