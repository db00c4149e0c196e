//! The life of the RSA keys that sign users' tokens: published first, active later, retired when nothing they signed
//! can still be valid.
//!
//! Signing, verifying and the JWKS use a snapshot in memory and never touch the database. The node that commits a
//! rotation swaps its snapshot before the write answers; the others call [`SigningKeys::reload`].

mod rows;
mod snapshot;
#[cfg(test)]
mod tests;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use kernel::{Clock, Error, Id, IdKind, Result, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use store::{Db, Tx};

use self::snapshot::{LoadedKey, Snapshot};
use crate::{
    jwks::Jwks,
    jwt::{self, InvalidToken},
    rsa::PrivateKey,
    seal::Keyring,
};

/// How long clients and proxies may keep the JWKS: its `Cache-Control: max-age`.
pub const JWKS_MAX_AGE: Duration = Duration::from_secs(300);

/// How long a new key is published before it signs: every cached JWKS has expired by then, with time to spare for
/// clients that fetch late and nodes whose clocks differ.
pub const PUBLICATION_DELAY: Duration = Duration::from_secs(600);

#[doc(hidden)]
pub enum SigningKeyKind {}
impl IdKind for SigningKeyKind {
    const PREFIX: &'static str = "sigkey";
}
/// A signing key's `kid`.
pub type SigningKeyId = Id<SigningKeyKind>;

/// What anybody may know of a signing key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SigningKey {
    pub kid: SigningKeyId,
    pub created_at: Timestamp,
    /// Signs from this moment on, until a later key takes over.
    pub active_from: Timestamp,
    /// Verifies nothing from this moment on; `null` while no successor is known.
    pub retires_at: Option<Timestamp>,
}

impl SigningKey {
    fn is_retired(&self, now: Timestamp) -> bool {
        self.retires_at.is_some_and(|retires_at| retires_at <= now)
    }
}

/// A key made and sealed before the transaction that may publish it.
#[derive(Clone)]
pub struct NewKey {
    kid: SigningKeyId,
    private: Arc<PrivateKey>,
    sealed: String,
}

impl NewKey {
    fn seal(kid: SigningKeyId, private: Arc<PrivateKey>, keyring: &Keyring) -> Result<Self> {
        let sealed = keyring.seal(&rows::place(&kid.to_string()), private.to_pkcs8()?.expose());
        Ok(Self { kid, private, sealed })
    }
}

/// What came of asking for a rotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Rotation {
    /// The key that will sign next.
    pub key: SigningKey,
    /// False when an earlier rotation is still under way; `key` is then that one's.
    pub started: bool,
}

/// What came of a revocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Revocation {
    /// The key that signs next: now, or once it is known where only its predecessor-to-be was revoked.
    pub key: SigningKey,
    /// Whether it was made in the place of the revoked one.
    pub made: bool,
}

/// The signing keys of this installation, as this node knows them. Cheap to clone.
#[derive(Clone)]
pub struct SigningKeys(Arc<Inner>);

struct Inner {
    keyring: Keyring,
    clock: Clock,
    snapshot: ArcSwap<Snapshot>,
    /// Counts rotations committed here. Guards every replacement of the snapshot, so that a reload that read before
    /// such a commit cannot undo it.
    generation: Mutex<u64>,
    /// One reload at a time, so that the later reader is also the later writer.
    reloading: tokio::sync::Mutex<()>,
}

impl SigningKeys {
    /// Knows no key yet: call [`SigningKeys::ensure_first`].
    pub fn new(keyring: Keyring, clock: Clock) -> Self {
        let snapshot = ArcSwap::from_pointee(Snapshot::new(Vec::new(), clock.now()));
        let (generation, reloading) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Inner { keyring, clock, snapshot, generation, reloading }))
    }

    /// Signs with the active key. Costs about 0.4 ms of CPU.
    pub fn sign<C: Serialize>(&self, typ: &str, claims: &C) -> Result<String> {
        let snapshot = self.0.snapshot.load();
        let key = snapshot
            .active(self.0.clock.now())
            .ok_or_else(|| Error::internal("no signing key is loaded; none was made at start"))?;
        jwt::sign_ps256(&key.private, &key.about.kid.to_string(), typ, claims)
    }

    /// The claims of a token that one of the unretired keys signed. Expiry is the caller's to judge.
    pub fn verify<C: DeserializeOwned>(&self, token: &str, typ: &str) -> Result<C, InvalidToken> {
        let snapshot = self.0.snapshot.load();
        jwt::verify_ps256(token, typ, |kid| snapshot.verifier(kid, self.0.clock.now()))
    }

    /// Every unretired public key.
    pub fn jwks(&self) -> Arc<Jwks> {
        let now = self.0.clock.now();
        let snapshot = self.0.snapshot.load();
        if !snapshot.is_outdated(now) {
            return Arc::clone(&snapshot.jwks);
        }
        drop(snapshot);
        let _guard = self.generation();
        let current = Arc::new(self.0.snapshot.load().without_retired(now));
        self.0.snapshot.store(Arc::clone(&current));
        Arc::clone(&current.jwks)
    }

    /// Makes the first key of a new installation, once however many nodes start together, and loads what there is.
    pub async fn ensure_first(&self, db: &Db) -> Result<()> {
        if !db.read(rows::any).await? {
            let new = self.prepare(db).await?;
            db.write(move |tx| publish_first(tx, &new)).await?;
        }
        self.reload(db).await
    }

    /// Reads the keys again, after another node changed them. On failure the known ones stay in use.
    pub async fn reload(&self, db: &Db) -> Result<()> {
        let _turn = self.0.reloading.lock().await;
        loop {
            let generation = *self.generation();
            let stored = db.read(rows::unretired).await?;
            if self.replace(generation, stored)? {
                return Ok(());
            }
        }
    }

    /// Generates and seals a key, off the threads that serve requests.
    pub async fn prepare(&self, db: &Db) -> Result<NewKey> {
        let kid = db.ids().next();
        let keyring = self.0.keyring.clone();
        let work = move || NewKey::seal(kid, Arc::new(PrivateKey::generate()?), &keyring);
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
    }

    /// Publishes `new`, to sign after [`PUBLICATION_DELAY`], and has the present keys retire once the last token they
    /// may sign until then has expired. While an earlier rotation is under way it changes nothing.
    pub fn rotate_in(&self, tx: &mut Tx<'_>, new: &NewKey, longest_lifetime: Duration) -> Result<Rotation> {
        rows::lock(tx)?;
        if let Some(key) = rows::pending(tx)? {
            return Ok(Rotation { key, started: false });
        }
        let now = tx.now();
        let key =
            SigningKey { kid: new.kid, created_at: now, active_from: now.plus(PUBLICATION_DELAY), retires_at: None };
        let others_retire_at = key.active_from.plus(longest_lifetime);
        rows::retire_all(tx, others_retire_at)?;
        rows::insert(tx, &key, &new.sealed)?;

        let loaded = LoadedKey { about: key.clone(), private: Arc::clone(&new.private) };
        let keys = self.clone();
        tx.on_commit(move || keys.swap_after_rotation(loaded, others_retire_at));
        Ok(Rotation { key, started: true })
    }

    /// [`SigningKeys::rotate_in`] in a transaction of its own. `announce` runs in it when the rotation starts, so that
    /// the other nodes learn of it exactly when it commits.
    pub async fn rotate<F>(&self, db: &Db, longest_lifetime: Duration, announce: F) -> Result<Rotation>
    where
        F: Fn(&mut Tx<'_>, &SigningKey) -> Result<()> + Send + 'static,
    {
        if let Some(key) = db.read(rows::pending).await? {
            return Ok(Rotation { key, started: false });
        }
        let new = self.prepare(db).await?;
        let keys = self.clone();
        db.write(move |tx| {
            let rotation = keys.rotate_in(tx, &new, longest_lifetime)?;
            if rotation.started {
                announce(tx, &rotation.key)?;
            }
            Ok(rotation)
        })
        .await
    }

    /// Ends a key at once: it leaves the JWKS, and what it signed is void. `new` takes the place of the newest
    /// key, and signs at once where that was signing; a key that was only waiting for its time signs at once instead.
    /// 404 when there is no such key.
    pub fn revoke_in(&self, tx: &mut Tx<'_>, kid: SigningKeyId, new: &NewKey) -> Result<Revocation> {
        rows::lock(tx)?;
        let (now, keys) = (tx.now(), rows::list(tx)?);
        let revoked = keys.iter().find(|key| key.kid == kid).ok_or_else(|| Error::not_found("signing key"))?;
        let signs = keys.iter().rfind(|key| key.active_from <= now).is_none_or(|key| key.kid == kid);
        let waiting = keys.iter().any(|key| key.kid != kid && key.active_from > now);
        let made = revoked.retires_at.is_none() || (signs && !waiting);
        rows::delete(tx, kid)?;
        if made {
            let active_from = if signs { now } else { now.plus(PUBLICATION_DELAY) };
            let key = SigningKey { kid: new.kid, created_at: now, active_from, retires_at: None };
            rows::insert(tx, &key, &new.sealed)?;
        } else if signs {
            rows::activate_newest(tx)?;
        }
        let left = rows::list(tx)?;
        let key = left.last().cloned().ok_or_else(|| Error::internal("no signing key was left"))?;
        let (keys, new) = (self.clone(), new.clone());
        tx.on_commit(move || keys.swap_after_revocation(left, &new));
        Ok(Revocation { key, made })
    }

    /// [`SigningKeys::revoke_in`] in a transaction of its own; `announce` runs in it, as for [`SigningKeys::rotate`].
    pub async fn revoke<F>(&self, db: &Db, kid: SigningKeyId, announce: F) -> Result<Revocation>
    where
        F: Fn(&mut Tx<'_>) -> Result<()> + Send + 'static,
    {
        let new = self.prepare(db).await?;
        let keys = self.clone();
        db.write(move |tx| {
            let revocation = keys.revoke_in(tx, kid, &new)?;
            announce(tx)?;
            Ok(revocation)
        })
        .await
    }

    /// Every key in the database, in the order in which they become active.
    pub fn list(tx: &mut Tx<'_>) -> Result<Vec<SigningKey>> {
        rows::list(tx)
    }

    /// Deletes retired keys; how many. Other nodes need not be told, since none uses a retired key.
    pub async fn prune(&self, db: &Db) -> Result<u64> {
        db.write(rows::delete_retired).await
    }

    /// Seals again what a previous master key had sealed, a bounded batch per transaction; how many keys.
    pub async fn reseal(&self, db: &Db) -> Result<usize> {
        let mut total = 0;
        loop {
            let keyring = self.0.keyring.clone();
            let resealed = db.write(move |tx| rows::reseal_some(tx, &keyring)).await?;
            total += resealed;
            if resealed == 0 {
                return Ok(total);
            }
        }
    }

    fn generation(&self) -> MutexGuard<'_, u64> {
        self.0.generation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Swaps in what was read at `generation`; false, and nothing done, when a rotation has committed here since.
    fn replace(&self, generation: u64, stored: Vec<rows::StoredKey>) -> Result<bool> {
        let keys = stored.into_iter().map(|key| self.load(key)).collect::<Result<Vec<_>>>()?;
        let current = self.generation();
        if *current != generation {
            return Ok(false);
        }
        self.0.snapshot.store(Arc::new(Snapshot::new(keys, self.0.clock.now())));
        Ok(true)
    }

    /// Opens and parses a stored key, unless the snapshot already holds it.
    fn load(&self, stored: rows::StoredKey) -> Result<LoadedKey> {
        if let Some(known) = self.0.snapshot.load().get(stored.about.kid) {
            return Ok(LoadedKey { about: stored.about, private: Arc::clone(&known.private) });
        }
        let der = self.0.keyring.open(&rows::place(&stored.about.kid.to_string()), &stored.sealed)?;
        Ok(LoadedKey { about: stored.about, private: Arc::new(PrivateKey::from_pkcs8(&der)?) })
    }

    /// A key that another node published a moment ago is not known here; the announcement has it loaded.
    fn swap_after_revocation(&self, left: Vec<SigningKey>, new: &NewKey) {
        let mut generation = self.generation();
        *generation += 1;
        let known = self.0.snapshot.load();
        let private = |kid| match known.get(kid) {
            Some(key) => Some(Arc::clone(&key.private)),
            None => (kid == new.kid).then(|| Arc::clone(&new.private)),
        };
        let keys = left.into_iter().filter_map(|about| Some(LoadedKey { private: private(about.kid)?, about }));
        self.0.snapshot.store(Arc::new(Snapshot::new(keys.collect(), self.0.clock.now())));
    }

    fn swap_after_rotation(&self, new: LoadedKey, others_retire_at: Timestamp) {
        let mut generation = self.generation();
        *generation += 1;
        let rotated = self.0.snapshot.load().rotated(new, others_retire_at, self.0.clock.now());
        self.0.snapshot.store(Arc::new(rotated));
    }
}

/// Stores `new` if there is no key yet. Nobody can have cached a JWKS without it, so it signs at once.
fn publish_first(tx: &mut Tx<'_>, new: &NewKey) -> Result<()> {
    rows::lock(tx)?;
    if rows::any(tx)? {
        return Ok(());
    }
    let (created_at, active_from) = (tx.now(), tx.now());
    rows::insert(tx, &SigningKey { kid: new.kid, created_at, active_from, retires_at: None }, &new.sealed)
}
