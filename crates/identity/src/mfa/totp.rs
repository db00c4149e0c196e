//! Codes of authenticator apps (RFC 6238): SHA-1, six digits, thirty seconds, one step of tolerance either way.

use kernel::{Error, Result, Timestamp};
use totp_rs::{Algorithm, Builder, Secret, Totp};

pub(super) const SECRET_LENGTH: usize = 20;

fn totp(secret: &[u8], app: &str, account: &str) -> Result<Totp> {
    // A colon separates the two in the URL, so neither may hold one; and what is longer fits no QR code.
    let plain = |text: &str| text.chars().take(64).collect::<String>().replace(':', " ");
    Builder::new()
        .with_algorithm(Algorithm::SHA1)
        .with_digits(6)
        .with_skew(1)
        .with_step_duration(30)
        .with_secret(secret)
        .with_issuer(Some(plain(app)))
        .with_account_name(plain(account))
        .build()
        .map_err(|error| Error::internal(error.to_string()))
}

/// What an authenticator app reads from a QR code.
pub(super) fn url(secret: &[u8], app: &str, account: &str) -> Result<String> {
    totp(secret, app, account)?.to_url().map_err(|error| Error::internal(error.to_string()))
}

/// For typing it in.
pub(super) fn base32(secret: &[u8]) -> String {
    Secret::from(secret).to_base32()
}

/// The time step whose code this is, if it is one of now.
pub(super) fn matching_step(secret: &[u8], code: &str, now: Timestamp) -> Result<Option<i64>> {
    let seconds = u64::try_from(now.as_seconds()).map_err(Error::internal)?;
    let step = totp(secret, "app", "account")?.check(code.trim(), seconds);
    step.map(i64::try_from).transpose().map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238, appendix B, the last six of its eight digits.
    const VECTORS: [(i64, &str); 4] =
        [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (2_000_000_000, "279037")];

    #[test]
    fn published_codes_match_at_their_time_and_a_step_around_it() {
        let secret = b"12345678901234567890";
        for (at, code) in VECTORS {
            for shift in [-30, 0, 30] {
                let step = matching_step(secret, code, Timestamp::from_seconds(at + shift)).unwrap();
                assert_eq!(step, Some(at / 30), "{code}");
            }
            assert_eq!(matching_step(secret, code, Timestamp::from_seconds(at + 75)).unwrap(), None);
        }
        for junk in ["", "28708", "2870822", "28708x", "２８７０８２"] {
            assert_eq!(matching_step(secret, junk, Timestamp::from_seconds(59)).unwrap(), None, "{junk}");
        }
    }

    #[test]
    fn the_url_names_app_and_account() {
        let url = url(b"12345678901234567890", "Shop: Berlin", "ada@example.com").unwrap();
        assert!(url.starts_with("otpauth://totp/Shop%20%20Berlin:ada%40example.com?"), "{url}");
        assert!(url.contains("secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"), "{url}");
    }
}
