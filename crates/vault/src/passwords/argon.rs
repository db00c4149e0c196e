//! Argon2id with today's parameters, as PHC strings.

use argon2::{
    Argon2, Params, Version,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash},
};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use kernel::{Error, Result};

/// 19 MiB, two passes, one lane: about 28 ms of CPU.
fn today() -> Argon2<'static> {
    Argon2::new(argon2::Algorithm::Argon2id, Version::V0x13, Params::DEFAULT)
}

pub(super) fn digest(password: &str, salt: &[u8; 16]) -> Result<String> {
    let made = today().hash_password_with_salt(password.as_bytes(), salt);
    made.map(|digest| digest.to_string()).map_err(|failed| Error::internal(failed.to_string()))
}

/// Costs as much to verify as today's digests do; nobody knows a password for it.
pub(super) fn of_no_password(salt: &[u8; 16], output: &[u8; 32]) -> String {
    let (memory, passes, lanes) = (Params::DEFAULT_M_COST, Params::DEFAULT_T_COST, Params::DEFAULT_P_COST);
    let (salt, output) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(output));
    format!("$argon2id$v=19$m={memory},t={passes},p={lanes}${salt}${output}")
}

/// Takes the parameters from the digest.
pub(super) fn verify(password: &str, digest: &str) -> bool {
    today().verify_password(password.as_bytes(), digest).is_ok()
}

/// Whether the digest was made otherwise than today's are.
pub(super) fn is_outdated(digest: &str) -> bool {
    let Ok(parsed) = PasswordHash::new(digest) else { return true };
    let number = |name: &str| parsed.params.get_decimal(name);
    parsed.algorithm.as_str() != "argon2id"
        || parsed.version != Some(Version::V0x13.into())
        || number("m") != Some(Params::DEFAULT_M_COST)
        || number("t") != Some(Params::DEFAULT_T_COST)
        || number("p") != Some(Params::DEFAULT_P_COST)
}

/// The memory in KiB, the passes and the lanes that checking a digest takes; `None` when no password could match it.
pub(super) fn costs(digest: &str) -> Option<(u32, u32, u32)> {
    let parsed = PasswordHash::new(digest).ok()?;
    let complete = parsed.salt.is_some() && parsed.hash.is_some();
    let named = ["m", "t", "p"].into_iter().all(|name| parsed.params.get_decimal(name).is_some());
    let known = parsed.version.is_none_or(|version| Version::try_from(version).is_ok());
    // As the verifier reads them: of a parameter that is given twice it takes the last.
    let params = Params::try_from(&parsed).ok().filter(|_| complete && named && known)?;
    Some((params.m_cost(), params.t_cost(), params.p_cost()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_verifies_its_password_and_no_other() {
        let made = digest("correct horse", &[7; 16]).expect("digests");
        assert!(made.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{made}");
        assert!(verify("correct horse", &made));
        assert!(!verify("correct house", &made));
        assert!(!verify("correct horse", "garbage"));
        assert!(!is_outdated(&made));
    }

    #[test]
    fn a_digest_of_no_password_costs_as_much_as_any() {
        let made = of_no_password(&[7; 16], &[9; 32]);
        let real = digest("correct horse", &[7; 16]).expect("digests");
        assert_eq!(costs(&made), costs(&real));
        assert_eq!(made.len(), real.len());
        assert!(!is_outdated(&made));
        assert!(!verify("correct horse", &made));
    }

    #[test]
    fn other_parameters_are_outdated() {
        // Made with the reference implementation, through Python's argon2-cffi.
        for other in
            ["$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "", "$2b$x"]
        {
            assert!(is_outdated(other), "{other}");
        }
        assert!(verify(
            "password",
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
        ));
    }
}
