//! `provider-signature: t=<unix seconds>,v1=<hex>`: the hex HMAC-SHA256 of `<t>.<raw body>`, five minutes of tolerance. Any of
//! several `v1` may be right, as while a secret is replaced. Pure.

use kernel::{Secret, Timestamp};
use vault::verify_hmac_sha256_hex;

/// How far a signature's time may lie from ours.
const TOLERANCE: i64 = 300;

/// A header that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureHeader<'a> {
    at: i64,
    signatures: Vec<&'a str>,
}

impl<'a> SignatureHeader<'a> {
    /// Elements of other names are passed over.
    pub fn parse(header: &'a str) -> Option<Self> {
        let (mut at, mut signatures) = (None, Vec::new());
        for element in header.split(',').take(32) {
            match element.trim().split_once('=')? {
                ("t", seconds) if at.is_none() => at = Some(seconds.parse().ok().filter(|seconds| *seconds >= 0)?),
                ("t", _) => return None,
                ("v1", signature) => signatures.push(signature),
                _ => {}
            }
        }
        Some(Self { at: at?, signatures }).filter(|header| !header.signatures.is_empty())
    }
}

/// Whether the body was signed with the secret, a moment ago.
pub fn is_genuine(header: &str, body: &[u8], secret: &Secret<String>, now: Timestamp) -> bool {
    let Some(SignatureHeader { at, signatures }) = SignatureHeader::parse(header) else { return false };
    if now.as_seconds().saturating_sub(at).saturating_abs() > TOLERANCE {
        return false;
    }
    let signed = [format!("{at}.").as_bytes(), body].concat();
    signatures.into_iter().any(|signature| verify_hmac_sha256_hex(secret.expose().as_bytes(), &signed, signature))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vault::hmac_sha256_hex;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn signed(secret: &str, at: i64, body: &[u8]) -> String {
        let signature = hmac_sha256_hex(secret.as_bytes(), &[format!("{at}.").as_bytes(), body].concat());
        format!("t={at},v1={signature}")
    }

    fn genuine(header: &str, body: &[u8]) -> bool {
        is_genuine(header, body, &Secret::new("whsec".into()), Timestamp::from_seconds(NOW))
    }

    #[test]
    fn what_was_signed_a_moment_ago_is_genuine() {
        let header = signed("whsec", NOW, b"{}");
        assert!(genuine(&header, b"{}"));
        assert!(genuine(&format!("{header},v1=00,v0=x"), b"{}"));
        assert!(!genuine(&header, b"{ }") && !genuine(&signed("other", NOW, b"{}"), b"{}"));
        for (ahead, fits) in [(-300, true), (300, true), (-301, false), (301, false)] {
            assert_eq!(genuine(&signed("whsec", NOW + ahead, b"{}"), b"{}"), fits, "{ahead}");
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let header = signed("whsec", NOW, b"{}");
        for junk in
            ["", "t", "t=", "v1=00", "t=1", "t=-1,v1=00", "t=x,v1=00", &format!("t=1,{header}"), &"a=b,".repeat(99)]
        {
            assert!(!genuine(junk, b"{}"), "{junk}");
        }
    }

    proptest! {
        #[test]
        fn no_header_and_no_body_is_a_problem(header in ".{0,200}", body in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(!genuine(&header, &body));
        }
    }
}
