//! Secrets at rest: AES-256-GCM under a key derived from the master key, bound to the place they are stored at.
//!
//! A sealed value copied to another table, column, row or app does not open, nor does one with any bit changed.
//! Each names the key that sealed it, so that the master key can be changed while the service runs.

use std::{fmt, sync::Arc};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::{AppId, Entropy, Error, Result, Secret};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    digest::same,
    jwt::{self, HmacKey, InvalidToken},
    master_key::{KeyPurpose, MasterKey},
};

const VERSION: &str = "s1";

/// Where a sealed value is stored. `app` is `None` only for what belongs to the whole installation.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub table: &'a str,
    pub column: &'a str,
    pub row: &'a str,
    pub app: Option<AppId>,
}

impl Place<'_> {
    /// Every part with its length before it, so that no two places share an encoding.
    fn associated_data(&self, key_id: &str) -> Vec<u8> {
        let app = self.app.map(|app| app.to_string()).unwrap_or_default();
        let mut encoded = Vec::with_capacity(128);
        for part in [VERSION, key_id, self.table, self.column, self.row, &app] {
            encoded.extend_from_slice(&(part.len() as u64).to_be_bytes());
            encoded.extend_from_slice(part.as_bytes());
        }
        encoded
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} of row {}", self.table, self.column, self.row)?;
        self.app.map_or(Ok(()), |app| write!(f, " of {app}"))
    }
}

/// The master key in use and, while a change of it is under way, a second one that still opens values.
///
/// To change the key of several nodes without a pause, first give all of them the new key as the previous one, then
/// swap the two everywhere; once everything is sealed again, drop the old one.
#[derive(Clone)]
pub struct Keyring(Arc<KeyringKeys>);

struct KeyringKeys {
    current: RingKey,
    previous: Option<RingKey>,
    entropy: Entropy,
}

struct RingKey {
    id: String,
    check_value: String,
    aead: LessSafeKey,
    /// Signs what only this service itself reads, and not for long.
    tokens: HmacKey,
    /// Seals what travels in the addresses of pages. Anybody can have any number of these made, so they share no key with
    /// what is stored.
    pages: LessSafeKey,
    backups: Secret<[u8; 32]>,
}

impl RingKey {
    fn new(master: &MasterKey) -> Self {
        let aead = |purpose| {
            let unbound = UnboundKey::new(&AES_256_GCM, &master.subkey(purpose));
            LessSafeKey::new(unbound.expect("AES-256 takes a key of 32 bytes"))
        };
        let tokens =
            HmacKey::new(&master.subkey(KeyPurpose::ShortLivedTokens)).expect("HS256 takes a secret of 32 bytes");
        Self {
            id: master.id(),
            check_value: master.check_value(),
            aead: aead(KeyPurpose::Seal),
            tokens,
            pages: aead(KeyPurpose::PageLinks),
            backups: Secret::new(master.subkey(KeyPurpose::Backups)),
        }
    }
}

impl Keyring {
    pub fn new(current: &MasterKey, previous: Option<&MasterKey>, entropy: Entropy) -> Self {
        Self(Arc::new(KeyringKeys { current: RingKey::new(current), previous: previous.map(RingKey::new), entropy }))
    }

    /// `s1.<key id>.<base64url of nonce, ciphertext and tag>`
    pub fn seal(&self, place: &Place<'_>, plaintext: &[u8]) -> String {
        self.seal_with(&self.0.current.aead, place, plaintext)
    }

    /// The same for what travels in the address of a page and is never stored.
    pub fn seal_for_page(&self, place: &Place<'_>, plaintext: &[u8]) -> String {
        self.seal_with(&self.0.current.pages, place, plaintext)
    }

    fn seal_with(&self, aead: &LessSafeKey, place: &Place<'_>, plaintext: &[u8]) -> String {
        let id = &self.0.current.id;
        let nonce: [u8; NONCE_LEN] = self.0.entropy.bytes();
        let mut ciphertext = plaintext.to_vec();
        aead.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(place.associated_data(id)),
            &mut ciphertext,
        )
        .expect("AES-GCM seals anything below 64 GiB");
        let sealed = [nonce.as_slice(), &ciphertext].concat();
        format!("{}{}", self.current_prefix(), BASE64_URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Fails with an internal error whose source names the place and the key, and never holds any of the plaintext.
    pub fn open(&self, place: &Place<'_>, sealed: &str) -> Result<Secret<Vec<u8>>> {
        self.open_with(|key| &key.aead, place, sealed)
    }

    /// Opens what [`Keyring::seal_for_page`] sealed, and nothing else.
    pub fn open_from_page(&self, place: &Place<'_>, sealed: &str) -> Result<Secret<Vec<u8>>> {
        self.open_with(|key| &key.pages, place, sealed)
    }

    fn open_with(
        &self,
        aead: fn(&RingKey) -> &LessSafeKey,
        place: &Place<'_>,
        sealed: &str,
    ) -> Result<Secret<Vec<u8>>> {
        let fail = |why: String| Error::internal(format!("cannot open the sealed {place}: {why}"));
        let (key_id, body) = split(sealed).ok_or_else(|| fail("it is not a sealed value".into()))?;
        let key = self.key(key_id).ok_or_else(|| {
            fail(format!(
                "it was sealed with master key {key_id}, but the keys at hand are {}; was a previous master key left out?",
                self.ids()
            ))
        })?;
        let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(body).map_err(|_| fail("it is not base64url".into()))?;
        let (nonce, ciphertext) =
            bytes.split_at_mut_checked(NONCE_LEN).ok_or_else(|| fail("it is too short".into()))?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| fail("its nonce is malformed".into()))?;
        let aad = Aad::from(place.associated_data(&key.id));
        let plaintext = aead(key)
            .open_in_place(nonce, aad, ciphertext)
            .map_err(|_| fail("it was altered, or sealed for another place".into()))?;
        Ok(Secret::new(plaintext.to_vec()))
    }

    /// Whether the value was sealed with another key than the current one.
    pub fn needs_reseal(&self, sealed: &str) -> bool {
        !sealed.starts_with(self.current_prefix().as_str())
    }

    /// The same secret under the current key; `None` when it already is.
    pub fn reseal(&self, place: &Place<'_>, sealed: &str) -> Result<Option<String>> {
        if !self.needs_reseal(sealed) {
            return Ok(None);
        }
        Ok(Some(self.seal(place, self.open(place, sealed)?.expose())))
    }

    /// How every value sealed with the current key begins, for finding the others in a table.
    pub fn current_prefix(&self) -> String {
        format!("{VERSION}.{}.", self.0.current.id)
    }

    /// What the store keeps so that a start with a wrong master key is refused.
    pub fn check_value(&self) -> &str {
        &self.0.current.check_value
    }

    /// Whether the current or the previous key is the one that `stored` was made from.
    pub fn matches_check_value(&self, stored: &str) -> bool {
        self.keys().any(|key| same(key.check_value.as_bytes(), stored.as_bytes()))
    }

    /// What the checksum of a backup is made with: the current key's, and for reading the previous one's too.
    pub fn backup_keys(&self) -> Vec<Secret<[u8; 32]>> {
        self.keys().map(|key| key.backups.clone()).collect()
    }

    /// What the checksum of a new backup is made with.
    pub fn backup_key(&self) -> &Secret<[u8; 32]> {
        &self.0.current.backups
    }

    /// Signs a token that only this service reads (HS256), such as a login session's. Every node can verify it.
    pub fn sign_token<C: Serialize>(&self, typ: &str, claims: &C) -> Result<String> {
        jwt::sign_hs256(&self.0.current.tokens, &self.0.current.id, typ, claims)
    }

    /// The claims of a token signed under the current or the previous key. Expiry is the caller's to judge.
    pub fn verify_token<C: DeserializeOwned>(&self, token: &str, typ: &str) -> Result<C, InvalidToken> {
        jwt::verify_hs256(token, typ, |kid| self.key(kid).map(|key| &key.tokens))
    }

    /// What the database keeps of a value too short for a plain digest, such as a six-digit code: useless to whoever
    /// reads it there without the master key. `context` keeps equal values of different rows apart.
    pub fn fingerprint(&self, context: &str, value: &str) -> String {
        self.0.current.tokens.tag_hex(format!("{}:{context}:{value}", context.len()).as_bytes())
    }

    /// Whether the fingerprint is this value's, made under the current or the previous key: a change of the key must not
    /// spoil a code that is out. Takes as long whatever differs.
    pub fn matches_fingerprint(&self, context: &str, value: &str, fingerprint: &str) -> bool {
        let text = format!("{}:{context}:{value}", context.len());
        let fits = |key: &RingKey| same(key.tokens.tag_hex(text.as_bytes()).as_bytes(), fingerprint.as_bytes());
        self.keys().map(fits).fold(false, |any, fits| any | fits)
    }

    fn keys(&self) -> impl Iterator<Item = &RingKey> {
        std::iter::once(&self.0.current).chain(&self.0.previous)
    }

    fn key(&self, id: &str) -> Option<&RingKey> {
        self.keys().find(|key| key.id == id)
    }

    fn ids(&self) -> String {
        self.keys().map(|key| key.id.as_str()).collect::<Vec<_>>().join(" and ")
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({})", self.ids())
    }
}

/// The key id and the encoded body.
fn split(sealed: &str) -> Option<(&str, &str)> {
    sealed.strip_prefix(VERSION)?.strip_prefix('.')?.split_once('.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn master(seed: u64) -> MasterKey {
        MasterKey::generate(&Entropy::seeded_for_tests(seed))
    }

    fn ring(current: u64, previous: Option<u64>) -> Keyring {
        Keyring::new(&master(current), previous.map(master).as_ref(), Entropy::os())
    }

    const PLACE: Place<'static> = Place { table: "apps", column: "secret", row: "1", app: Some(AppId::from_u128(1)) };

    #[test]
    fn values_are_never_sealed_alike_and_show_nothing() {
        let ring = ring(1, None);
        let (one, other) = (ring.seal(&PLACE, b"hunter2"), ring.seal(&PLACE, b"hunter2"));
        assert_ne!(one, other);
        assert!(one.starts_with(&format!("s1.{}.", master(1).id())), "{one}");
        assert!(!one.contains("hunter2"));
    }

    #[test]
    fn what_is_sealed_for_a_page_and_what_is_stored_do_not_open_as_each_other() {
        let (stored, shown) = (ring(1, None).seal(&PLACE, b"x"), ring(1, None).seal_for_page(&PLACE, b"x"));
        let changed = ring(2, Some(1));
        assert!(changed.open(&PLACE, &stored).is_ok() && changed.open_from_page(&PLACE, &shown).is_ok());
        assert!(changed.open(&PLACE, &shown).is_err() && changed.open_from_page(&PLACE, &stored).is_err());
    }

    #[test]
    fn a_new_master_key_opens_and_reseals_what_the_previous_one_sealed() {
        let old = ring(1, None).seal(&PLACE, b"hunter2");
        let changed = ring(2, Some(1));
        assert_eq!(changed.open(&PLACE, &old).expect("opens").expose(), b"hunter2");
        assert!(changed.needs_reseal(&old));
        let new = changed.reseal(&PLACE, &old).expect("opens").expect("needed");
        assert_eq!(changed.reseal(&PLACE, &new).expect("opens"), None);
        assert_eq!(ring(2, None).open(&PLACE, &new).expect("opens").expose(), b"hunter2");
    }

    #[test]
    fn a_missing_key_is_named_and_the_secret_is_not() {
        let sealed = ring(1, None).seal(&PLACE, b"hunter2");
        let error = ring(2, None).open(&PLACE, &sealed).expect_err("another key");
        let log = format!("{error:?}");
        assert!(log.contains(&master(1).id()) && log.contains(&master(2).id()) && log.contains("apps.secret"), "{log}");
        assert!(!log.contains("hunter2"), "{log}");
        assert_eq!(error.code(), kernel::Code::Internal);
    }

    #[test]
    fn the_check_value_knows_the_current_and_the_previous_key() {
        let stored = ring(1, None).check_value().to_owned();
        assert!(ring(1, None).matches_check_value(&stored));
        assert!(ring(2, Some(1)).matches_check_value(&stored));
        assert!(!ring(2, None).matches_check_value(&stored));
        assert!(!ring(1, None).matches_check_value(""));
    }

    #[test]
    fn a_fingerprint_is_known_by_the_current_and_the_previous_key() {
        let made = ring(1, None).fingerprint("device", "x");
        assert!(ring(1, None).matches_fingerprint("device", "x", &made));
        assert!(ring(2, Some(1)).matches_fingerprint("device", "x", &made));
        assert!(!ring(2, None).matches_fingerprint("device", "x", &made));
        for (context, value) in [("device", "y"), ("other", "x"), ("devic", "e:x")] {
            assert!(!ring(1, None).matches_fingerprint(context, value, &made), "{context} {value}");
        }
    }

    #[test]
    fn moving_a_character_between_parts_is_another_place() {
        let ring = ring(1, None);
        let sealed = ring.seal(&Place { table: "ab", column: "c", row: "d", app: None }, b"x");
        assert!(ring.open(&Place { table: "a", column: "bc", row: "d", app: None }, &sealed).is_err());
        assert!(ring.open(&Place { table: "ab", column: "cd", row: "", app: None }, &sealed).is_err());
        assert!(
            ring.open(&Place { table: "ab", column: "c", row: "d", app: Some(AppId::from_u128(0)) }, &sealed).is_err()
        );
    }

    fn place() -> impl Strategy<Value = (String, String, String, Option<u128>)> {
        ("[ab]{0,3}", "[ab]{0,3}", "[ab]{0,3}", prop::option::of(0..3u128))
    }

    fn at((table, column, row, app): &(String, String, String, Option<u128>)) -> Place<'_> {
        Place { table, column, row, app: app.map(AppId::from_u128) }
    }

    proptest! {
        #[test]
        fn what_was_sealed_opens_at_its_place_only(
            here in place(),
            elsewhere in place(),
            secret in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let ring = ring(1, None);
            let sealed = ring.seal(&at(&here), &secret);
            prop_assert_eq!(ring.open(&at(&here), &sealed).expect("opens").into_exposed(), secret);
            prop_assert_eq!(ring.open(&at(&elsewhere), &sealed).is_ok(), here == elsewhere);
        }

        #[test]
        fn no_changed_bit_opens(secret in prop::collection::vec(any::<u8>(), 0..40), at in any::<prop::sample::Index>(), bit in 0..8u8) {
            let ring = ring(1, Some(2));
            let sealed = ring.seal(&PLACE, &secret);
            let (head, body) = sealed.rsplit_once('.').expect("three parts");
            let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(body).expect("base64url");
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let changed = format!("{head}.{}", BASE64_URL_SAFE_NO_PAD.encode(bytes));
            prop_assert!(ring.open(&PLACE, &changed).is_err());
        }

        #[test]
        fn no_changed_character_opens(at in any::<prop::sample::Index>(), other in any::<char>()) {
            let ring = ring(1, Some(2));
            let sealed = ring.seal(&PLACE, b"hunter2");
            let mut characters: Vec<char> = sealed.chars().collect();
            let at = at.index(characters.len());
            prop_assume!(characters[at] != other);
            characters[at] = other;
            prop_assert!(ring.open(&PLACE, &String::from_iter(characters)).is_err());
        }

        #[test]
        fn junk_never_opens_nor_panics(junk in any::<String>(), body in "[A-Za-z0-9_-]{0,60}") {
            let ring = ring(1, None);
            prop_assert!(ring.open(&PLACE, &junk).is_err());
            let forged = ring.current_prefix() + &body;
            prop_assert!(ring.open(&PLACE, &forged).is_err());
        }
    }
}
