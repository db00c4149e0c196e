//! Digests that other systems made. They are believed for one login and then replaced.

use aws_lc_rs::digest;
use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use kernel::{Error, Result};
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

use super::{argon, phc};
use crate::digest::same;

/// How the digest was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(rename = "PasswordAlgorithm")]
pub enum DigestAlgorithm {
    Bcrypt,
    Argon2i,
    Md5,
    Sha1,
    Sha256,
    Sha512,
    Argon2id,
    Pbkdf2,
    Scrypt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum PepperPosition {
    Begin,
    End,
}

/// A text that was put before or after every password before it was digested.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq, schemars::JsonSchema)]
pub struct Pepper {
    pub value: String,
    pub position: PepperPosition,
}

/// Says where, never what.
impl std::fmt::Debug for Pepper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pepper({:?})", self.position)
    }
}

/// A digest from elsewhere: `$2b$…`, a PHC string, or a plain hash in hex or base64, told apart by its length.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct Imported {
    pub algorithm: DigestAlgorithm,
    pub value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pepper: Option<Pepper>,
}

impl std::fmt::Debug for Imported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Imported({:?})", self.algorithm)
    }
}

/// A digest that asks for more would let whoever supplies it keep the password threads busy.
const MAX_MEMORY_KIB: u32 = 256 * 1024;
const MAX_PASSES: u32 = 16;
const MAX_LANES: u32 = 8;
/// Below 4 there is no bcrypt.
const BCRYPT_COSTS: std::ops::RangeInclusive<u32> = 4..=14;

impl Imported {
    /// Whether a password could ever match, with what is wrong otherwise; reads on from the field's name.
    pub fn check(&self) -> Result<(), &'static str> {
        match self.algorithm {
            DigestAlgorithm::Bcrypt => match self.value.parse::<bcrypt::HashParts>() {
                Ok(parts) if BCRYPT_COSTS.contains(&parts.get_cost()) => Ok(()),
                Ok(_) => Err("must have a bcrypt cost of 4 to 14"),
                Err(_) => Err("must be a bcrypt digest such as $2b$10$…"),
            },
            DigestAlgorithm::Argon2i if self.value.starts_with("$argon2i$") => self.check_argon(),
            DigestAlgorithm::Argon2i => Err("must be an argon2i digest such as $argon2i$v=19$…"),
            DigestAlgorithm::Argon2id if self.value.starts_with("$argon2id$") => self.check_argon(),
            DigestAlgorithm::Argon2id => Err("must be an argon2id digest such as $argon2id$v=19$…"),
            DigestAlgorithm::Pbkdf2 => phc::Pbkdf2::parse(&self.value)?.check(),
            DigestAlgorithm::Scrypt => phc::Scrypt::parse(&self.value)?.check(),
            plain => match decoded(&self.value, length(plain)) {
                Some(_) => Ok(()),
                None => Err("must be the digest in hex or base64"),
            },
        }
    }

    fn check_argon(&self) -> Result<(), &'static str> {
        let Some((memory, passes, lanes)) = argon::costs(&self.value) else {
            return Err("must be a whole argon2 digest: $argon2…$v=19$m=…,t=…,p=…$salt$hash");
        };
        let bearable = memory <= MAX_MEMORY_KIB && passes <= MAX_PASSES && lanes <= MAX_LANES;
        if bearable { Ok(()) } else { Err("must not ask for more than 256 MiB, 16 passes or 8 lanes") }
    }

    pub(crate) fn verify(&self, password: &str) -> bool {
        let seasoned = self.seasoned(password);
        match self.algorithm {
            DigestAlgorithm::Bcrypt => bcrypt::verify(&seasoned, &self.value).unwrap_or(false),
            DigestAlgorithm::Argon2i | DigestAlgorithm::Argon2id => argon::verify(&seasoned, &self.value),
            DigestAlgorithm::Pbkdf2 => phc::Pbkdf2::parse(&self.value).is_ok_and(|digest| digest.verify(&seasoned)),
            DigestAlgorithm::Scrypt => phc::Scrypt::parse(&self.value).is_ok_and(|digest| digest.verify(&seasoned)),
            plain => {
                let expected = decoded(&self.value, length(plain));
                expected.is_some_and(|expected| same(&plain_digest(plain, seasoned.as_bytes()), &expected))
            }
        }
    }

    /// Whether checking it costs about as much as one of our own.
    pub(super) const fn is_slow(&self) -> bool {
        length(self.algorithm) == 0
    }

    fn seasoned(&self, password: &str) -> String {
        match &self.pepper {
            None => password.to_owned(),
            Some(Pepper { value, position: PepperPosition::Begin }) => format!("{value}{password}"),
            Some(Pepper { value, position: PepperPosition::End }) => format!("{password}{value}"),
        }
    }

    /// As JSON, to be sealed: a pepper is a secret of the system it came from.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(Error::internal)
    }

    pub fn from_json(json: &[u8]) -> Result<Self> {
        serde_json::from_slice(json).map_err(Error::internal)
    }
}

/// In bytes; the self-describing digests have none of their own.
const fn length(algorithm: DigestAlgorithm) -> usize {
    match algorithm {
        DigestAlgorithm::Md5 => 16,
        DigestAlgorithm::Sha1 => 20,
        DigestAlgorithm::Sha256 => 32,
        DigestAlgorithm::Sha512 => 64,
        _ => 0,
    }
}

fn plain_digest(algorithm: DigestAlgorithm, input: &[u8]) -> Vec<u8> {
    match algorithm {
        DigestAlgorithm::Md5 => Md5::digest(input).to_vec(),
        DigestAlgorithm::Sha1 => digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, input).as_ref().to_vec(),
        DigestAlgorithm::Sha256 => digest::digest(&digest::SHA256, input).as_ref().to_vec(),
        DigestAlgorithm::Sha512 => digest::digest(&digest::SHA512, input).as_ref().to_vec(),
        _ => Vec::new(),
    }
}

fn decoded(text: &str, length: usize) -> Option<Vec<u8>> {
    let bytes = if text.len() == 2 * length { from_hex(text)? } else { from_base64(text)? };
    (bytes.len() == length).then_some(bytes)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    text.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let alphabet = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(alphabet, lenient).decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(algorithm: DigestAlgorithm, value: &str) -> Imported {
        Imported { algorithm, value: value.into(), pepper: None }
    }

    /// Digests of `password`, made with coreutils, Python's bcrypt, argon2-cffi and passlib.
    const KNOWN: [(DigestAlgorithm, &str); 14] = [
        (
            DigestAlgorithm::Argon2id,
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        ),
        (DigestAlgorithm::Pbkdf2, "$pbkdf2-sha256$1000$c29tZXNhbHQ$j4Aa14inUtOh7Sg/D7hH54ohymuHNQD4.ccfhepGWAY"),
        (DigestAlgorithm::Pbkdf2, "$pbkdf2-sha256$i=1000,l=32$c29tZXNhbHQ$j4Aa14inUtOh7Sg/D7hH54ohymuHNQD4+ccfhepGWAY"),
        (
            DigestAlgorithm::Pbkdf2,
            "$pbkdf2-sha512$1000$c29tZXNhbHQ$pArTsT8AahzxmI5OZcxKNw2o4l9qiKwc5zbWR8bo8900Q7MYRcodIEijxiztL4hDlWTfVLTSRiLheMi39WU5Yw",
        ),
        (DigestAlgorithm::Pbkdf2, "$pbkdf2$1000$c29tZXNhbHQ$nhpKdz3UCE/OUeC0aLwb8Rne5X8"),
        (DigestAlgorithm::Scrypt, "$scrypt$ln=4,r=8,p=1$c29tZXNhbHQ$7xe5L3Roj67jYaBKf3ePT2Y6rVHHGUWO44Z8iz+O6PQ"),
        (DigestAlgorithm::Md5, "5f4dcc3b5aa765d61d8327deb882cf99"),
        (DigestAlgorithm::Md5, "X03MO1qnZdYdgyfeuILPmQ=="),
        (DigestAlgorithm::Sha1, "5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8"),
        (DigestAlgorithm::Sha256, "5E884898DA28047151D0E56F8DC6292773603D0D6AABBDD62A11EF721D1542D8"),
        (DigestAlgorithm::Sha256, "XohImNooBHFR0OVvjcYpJ3NgPQ1qq73WKhHvch0VQtg"),
        (
            DigestAlgorithm::Sha512,
            "b109f3bbbc244eb82441917ed06d618b9008dd09b3befd1b5e07394c706a8bb980b1d7785e5976ec049b46df5f1326af\
             5a2ea6d103fd07c95385ffab0cacbc86",
        ),
        (DigestAlgorithm::Bcrypt, "$2b$04$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm"),
        (
            DigestAlgorithm::Argon2i,
            "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8",
        ),
    ];

    #[test]
    fn known_digests_verify_their_password_and_no_other() {
        for (algorithm, value) in KNOWN {
            let digest = imported(algorithm, value);
            assert_eq!(digest.check(), Ok(()), "{algorithm:?}");
            assert!(digest.verify("password"), "{algorithm:?} {value}");
            assert!(!digest.verify("Password"), "{algorithm:?}");
        }
    }

    #[test]
    fn a_pepper_goes_before_or_after() {
        // printf 'saltpassword' | sha1sum, printf 'passwordsalt' | sha1sum
        for (position, value) in [
            (PepperPosition::Begin, "59b3e8d637cf97edbe2384cf59cb7453dfe30789"),
            (PepperPosition::End, "c88e9c67041a74e0357befdff93f87dde0904214"),
        ] {
            let pepper = Some(Pepper { value: "salt".into(), position });
            let digest = Imported { pepper, ..imported(DigestAlgorithm::Sha1, value) };
            assert!(digest.verify("password"), "{position:?}");
            assert!(!digest.verify("passwor"), "{position:?}");
        }
    }

    #[test]
    fn what_can_never_match_or_costs_too_much_is_named() {
        for (algorithm, value) in [
            (DigestAlgorithm::Md5, "5f4dcc3b5aa765d61d8327deb882cf9"),
            (DigestAlgorithm::Md5, ""),
            (DigestAlgorithm::Sha1, "5f4dcc3b5aa765d61d8327deb882cf99"),
            (DigestAlgorithm::Sha256, "zz884898DA28047151D0E56F8DC6292773603D0D6AABBDD62A11EF721D1542D8"),
            (DigestAlgorithm::Bcrypt, "$2b$31$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm"),
            (DigestAlgorithm::Bcrypt, "password"),
            (
                DigestAlgorithm::Argon2i,
                "$argon2i$v=19$m=4000000,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8",
            ),
            // The verifier takes the last of two.
            (
                DigestAlgorithm::Argon2i,
                "$argon2i$v=19$m=256,m=4000000,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8",
            ),
            (DigestAlgorithm::Argon2i, "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ"),
            (DigestAlgorithm::Argon2id, "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ"),
            (DigestAlgorithm::Argon2id, "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu"),
            (DigestAlgorithm::Pbkdf2, "$pbkdf2-sha256$2000001$c29tZXNhbHQ$j4Aa14inUtOh7Sg"),
            (DigestAlgorithm::Pbkdf2, "$pbkdf2-sha256$0$c29tZXNhbHQ$j4Aa14inUtOh7Sg"),
            (DigestAlgorithm::Pbkdf2, "$pbkdf2-md5$1000$c29tZXNhbHQ$j4Aa14inUtOh7Sg"),
            (DigestAlgorithm::Pbkdf2, "$pbkdf2-sha256$1000$c29tZXNhbHQ$"),
            (DigestAlgorithm::Scrypt, "$scrypt$ln=22,r=8,p=1$c29tZXNhbHQ$7xe5L3Roj67jYaBKf3ePT2Y6rVHHGUWO"),
            (DigestAlgorithm::Scrypt, "$scrypt$ln=63,r=4294967295,p=4294967295$c29tZXNhbHQ$7xe5L3Roj67jYaBK"),
            (DigestAlgorithm::Scrypt, "$scrypt$ln=14,r=8,p=64$c29tZXNhbHQ$7xe5L3Roj67jYaBKf3ePT2Y6rVHHGUWO"),
            (DigestAlgorithm::Scrypt, "$scrypt$ln=4,r=8,r=1,p=1$c29tZXNhbHQ$7xe5L3Roj67jYaBKf3ePT2Y6rVHHGUWO"),
            (DigestAlgorithm::Argon2i, "$2b$04$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm"),
        ] {
            assert!(imported(algorithm, value).check().is_err(), "{algorithm:?} {value}");
        }
    }

    #[test]
    fn neither_digest_nor_pepper_is_printed() {
        let pepper = Some(Pepper { value: "secret".into(), position: PepperPosition::End });
        let text = format!("{:?}", Imported { pepper, ..imported(DigestAlgorithm::Md5, "5f4d") });
        assert_eq!(text, "Imported(Md5)");
    }
}
