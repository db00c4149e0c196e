//! TypeIDs: a lower-case prefix, `_`, and a UUIDv7 in 26 characters of Crockford base32.
//!
//! Ids sort by creation, say what they name, and are public: never a code, link or secret.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{Clock, Entropy};

/// What an id names. Declared with [`id_kinds!`].
pub trait IdKind: 'static {
    const PREFIX: &'static str;
}

/// Declares id types: `id_kinds! { AppId(App) = "app"; }`.
#[macro_export]
macro_rules! id_kinds {
    ($($(#[$doc:meta])* $alias:ident($kind:ident) = $prefix:literal;)*) => { $(
        #[doc(hidden)]
        pub enum $kind {}
        impl $crate::IdKind for $kind {
            const PREFIX: &'static str = $prefix;
        }
        $(#[$doc])*
        pub type $alias = $crate::Id<$kind>;
    )* };
}

id_kinds! {
    /// One customer-facing product served by this installation.
    AppId(App) = "app";
    /// A workspace; `tenant` on the wire.
    TenantId(Tenant) = "tenant";
    /// A person within an app.
    UserId(User) = "user";
    /// A person's membership of one workspace; `tenantUserId` on the wire.
    MemberId(Member) = "member";
    /// An app's API key.
    KeyId(Key) = "key";
}

/// An id of kind `K`: 16 bytes, copied freely, written as text on the wire and in the database.
pub struct Id<K>(u128, PhantomData<fn() -> K>);

impl<K> Id<K> {
    pub const fn from_u128(value: u128) -> Self {
        Self(value, PhantomData)
    }

    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl Id<App> {
    /// Stands for the app in tables of very many short rows: 60 of its random bits, so that no two apps have the same by
    /// chance. Whoever brings an app in from elsewhere looks.
    pub const fn number(self) -> AppNumber {
        AppNumber((self.0 & ((1 << 60) - 1)) as i64)
    }
}

/// Stands for an [`AppId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppNumber(i64);

impl AppNumber {
    pub const fn from_i64(number: i64) -> Self {
        Self(number)
    }

    pub const fn as_i64(self) -> i64 {
        self.0
    }
}

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Id<K> {}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<K> Eq for Id<K> {}
impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}
impl<K> Hash for Id<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const SUFFIX_LENGTH: usize = 26;

impl<K: IdKind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut suffix = [0u8; SUFFIX_LENGTH];
        for (place, character) in suffix.iter_mut().rev().enumerate() {
            *character = ALPHABET[(self.0 >> (5 * place)) as usize & 31];
        }
        let suffix = std::str::from_utf8(&suffix).map_err(|_| fmt::Error)?;
        write!(f, "{}_{suffix}", K::PREFIX)
    }
}

impl<K: IdKind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not an id of the wanted kind.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidId {
    prefix: &'static str,
}

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "must be an id that starts with {}_", self.prefix)
    }
}

impl std::error::Error for InvalidId {}

impl<K: IdKind> FromStr for Id<K> {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = InvalidId { prefix: K::PREFIX };
        let suffix = text.strip_prefix(K::PREFIX).and_then(|rest| rest.strip_prefix('_'));
        match suffix.and_then(decode) {
            Some(value) => Ok(Self::from_u128(value)),
            None => Err(invalid),
        }
    }
}

/// Strict: lower case only and no look-alikes, so that one id has exactly one spelling.
fn decode(suffix: &str) -> Option<u128> {
    // 26 characters hold 130 bits; a first character above 7 would not fit into 128.
    if suffix.len() != SUFFIX_LENGTH || suffix.as_bytes()[0] > b'7' {
        return None;
    }
    suffix.bytes().try_fold(0u128, |value, character| {
        let digit = DIGITS[usize::from(character)];
        (digit != NO_DIGIT).then(|| value << 5 | u128::from(digit))
    })
}

const NO_DIGIT: u8 = u8::MAX;

/// The value of each character: ids are read on every request.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        digits[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

impl<K: IdKind> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, K: IdKind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl<K: IdKind> schemars::JsonSchema for Id<K> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}Id", K::PREFIX).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let pattern = format!("^{}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$", K::PREFIX);
        schemars::json_schema!({
            "type": "string",
            "pattern": pattern,
            "x-message": InvalidId { prefix: K::PREFIX }.to_string(),
        })
    }
}

/// Makes ids that strictly increase within the process, even while the clock stands still or steps back.
#[derive(Clone)]
pub struct IdSource {
    clock: Clock,
    entropy: Entropy,
    last: Arc<Mutex<u128>>,
}

/// The 74 bits of a UUIDv7 that are neither time, version nor variant.
const RANDOM_BITS: u32 = 74;

impl IdSource {
    pub fn new(clock: Clock, entropy: Entropy) -> Self {
        Self { clock, entropy, last: Arc::default() }
    }

    pub fn next<K: IdKind>(&self) -> Id<K> {
        Id::from_u128(to_uuid_v7(self.next_sequence()))
    }

    /// 48 bits of milliseconds and 74 random ones; when that is not above the last one, the last one plus a random step.
    fn next_sequence(&self) -> u128 {
        let millis = u128::from(self.clock.now().as_millis().max(0).cast_unsigned()) & ((1 << 48) - 1);
        let random = u128::from_be_bytes(self.entropy.bytes()) & ((1 << RANDOM_BITS) - 1);
        let fresh = millis << RANDOM_BITS | random;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = if fresh > *last { fresh } else { *last + 1 + (random & 0xFFFF_FFFF) };
        *last
    }
}

/// Spreads the 122 bits around the version (7) and variant (binary 10) fields, keeping their order.
fn to_uuid_v7(sequence: u128) -> u128 {
    let time = sequence >> RANDOM_BITS;
    let rand_a = sequence >> 62 & 0xFFF;
    let rand_b = sequence & ((1 << 62) - 1);
    time << 80 | 7 << 76 | rand_a << 64 | 2 << 62 | rand_b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    fn source() -> IdSource {
        IdSource::new(Clock::frozen(Timestamp::from_seconds(1_700_000_000)), Entropy::seeded_for_tests(1))
    }

    #[test]
    fn round_trips_and_names_its_kind() {
        let id: AppId = source().next();
        let text = id.to_string();
        assert!(text.starts_with("app_") && text.len() == 30, "{text}");
        assert_eq!(text.parse::<AppId>(), Ok(id));
        assert!(text.parse::<TenantId>().is_err());
    }

    #[test]
    fn is_a_version_7_uuid_of_its_time() {
        let id: AppId = source().next();
        assert_eq!(id.as_u128() >> 76 & 0xF, 7);
        assert_eq!(id.as_u128() >> 62 & 0b11, 0b10);
        assert_eq!(id.as_u128() >> 80, 1_700_000_000_000);
    }

    #[test]
    fn increases_strictly_while_the_clock_stands_still() {
        let source = source();
        let ids: Vec<AppId> = (0..10_000).map(|_| source.next()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b && a.to_string() < b.to_string()));
    }

    #[test]
    fn has_exactly_one_spelling() {
        let text = source().next::<App>().to_string();
        for wrong in
            [text.to_uppercase(), text.replace("app_", "app"), format!("{text}0"), format!("app_8{}", &text[5..])]
        {
            assert!(wrong.parse::<AppId>().is_err(), "{wrong}");
        }
        for look_alike in ["i", "l", "o", "u", "é"] {
            assert!(format!("{}{look_alike}", &text[..text.len() - look_alike.len()]).parse::<AppId>().is_err());
        }
    }
}
