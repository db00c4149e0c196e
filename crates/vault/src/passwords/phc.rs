//! PBKDF2 and scrypt digests as PHC strings, in the spelling of passlib too: `$pbkdf2-sha256$29000$salt$hash`, base64
//! without padding, and with `.` where others have `+`.

use std::num::NonZeroU32;

use aws_lc_rs::pbkdf2;
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use crate::digest::same;

/// About half a second of CPU: what the most cautious frameworks ask for today, doubled.
const MAX_ITERATIONS: u32 = 2_000_000;
const MAX_SCRYPT_MEMORY: u64 = 256 * 1024 * 1024;
/// Memory that is gone through in all, lanes included.
const MAX_SCRYPT_WORK: u64 = 2 * MAX_SCRYPT_MEMORY;
/// Of salts and hashes, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 1..=128;

const NO_PBKDF2: &str = "must be a PBKDF2 digest such as $pbkdf2-sha256$i=29000$salt$hash";
const NO_SCRYPT: &str = "must be an scrypt digest such as $scrypt$ln=16,r=8,p=1$salt$hash";

pub(super) struct Pbkdf2 {
    algorithm: pbkdf2::Algorithm,
    iterations: NonZeroU32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl Pbkdf2 {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (name, cost, salt, hash) = parts(text).ok_or(NO_PBKDF2)?;
        let algorithm = match name {
            "pbkdf2" | "pbkdf2-sha1" => pbkdf2::PBKDF2_HMAC_SHA1,
            "pbkdf2-sha256" => pbkdf2::PBKDF2_HMAC_SHA256,
            "pbkdf2-sha512" => pbkdf2::PBKDF2_HMAC_SHA512,
            _ => return Err(NO_PBKDF2),
        };
        // passlib writes the bare number.
        let iterations = cost.parse().ok().or_else(|| parameter(cost, "i")).ok_or(NO_PBKDF2)?;
        Ok(Self { algorithm, iterations, salt, hash })
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.iterations.get() <= MAX_ITERATIONS {
            Ok(())
        } else {
            Err("must not ask for more than 2,000,000 iterations")
        }
    }

    pub(super) fn verify(&self, password: &str) -> bool {
        pbkdf2::verify(self.algorithm, self.iterations, &self.salt, password.as_bytes(), &self.hash).is_ok()
    }
}

pub(super) struct Scrypt {
    log_n: u8,
    r: u32,
    p: u32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl Scrypt {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (_, cost, salt, hash) = parts(text).filter(|(name, ..)| *name == "scrypt").ok_or(NO_SCRYPT)?;
        let read = |name: &str| parameter::<u32>(cost, name).filter(|value| *value > 0).ok_or(NO_SCRYPT);
        let log_n = read("ln")?.try_into().map_err(|_| NO_SCRYPT)?;
        Ok(Self { log_n, r: read("r")?, p: read("p")?, salt, hash })
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        let memory = 1_u64.checked_shl(self.log_n.into()).and_then(|n| n.checked_mul(128)?.checked_mul(self.r.into()));
        let work = memory.and_then(|memory| memory.checked_mul(self.p.into()));
        let bearable = memory.is_some_and(|memory| memory <= MAX_SCRYPT_MEMORY)
            && work.is_some_and(|work| work <= MAX_SCRYPT_WORK)
            && self.params().is_some();
        if bearable { Ok(()) } else { Err("must not ask for more than 256 MiB, or 512 MiB over all lanes") }
    }

    fn params(&self) -> Option<scrypt::Params> {
        scrypt::Params::new(self.log_n, self.r, self.p).ok()
    }

    pub(super) fn verify(&self, password: &str) -> bool {
        let Some(params) = self.params().filter(|_| self.check().is_ok()) else { return false };
        let mut made = vec![0; self.hash.len()];
        scrypt::scrypt(password.as_bytes(), &self.salt, &params, &mut made).is_ok() && same(&made, &self.hash)
    }
}

/// `$name$cost$salt$hash`.
fn parts(text: &str) -> Option<(&str, &str, Vec<u8>, Vec<u8>)> {
    let mut fields = text.strip_prefix('$')?.split('$');
    let (name, cost) = (fields.next()?, fields.next()?);
    let (salt, hash) = (bytes(fields.next()?)?, bytes(fields.next()?)?);
    fields.next().is_none().then_some((name, cost, salt, hash))
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let read = STANDARD_NO_PAD.decode(text.trim_end_matches('=').replace('.', "+")).ok()?;
    LENGTHS.contains(&read.len()).then_some(read)
}

/// The one value under this name in `a=1,b=2`.
fn parameter<T: std::str::FromStr>(cost: &str, name: &str) -> Option<T> {
    let mut found = cost.split(',').filter_map(|pair| pair.split_once('=')).filter(|(known, _)| *known == name);
    let (_, value) = found.next()?;
    found.next().is_none().then(|| value.parse().ok())?
}
