//! The keys that identity providers encrypt assertions for: one for the installation, and a second one while it is being
//! replaced. Made when the first connection's metadata is fetched.

pub(super) mod http;
mod store;

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ::store::Tx;
use kernel::{Error, Result, Secret, Timestamp, id_kinds};
use saml::{DecryptionKey, RequestHash, RequestKey, metadata::self_signed};
use schemars::JsonSchema;
use serde::Serialize;
use spine::{Installation, emit};
use tenancy::Tenancy;
use vault::{Keyring, Place, PrivateKey};

pub(super) use store::unretired;

use crate::facts::SamlKeyRotated;

id_kinds! {
    /// A key that assertions are encrypted for.
    SamlKeyId(SamlKeyKind) = "samlkey";
}

/// How long identity providers have to fetch the metadata again.
const OVERLAP: Duration = Duration::from_secs(30 * 24 * 3600);

/// What operators see of a key that assertions are encrypted for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SamlKey {
    id: SamlKeyId,
    created_at: Timestamp,
    /// Opens nothing from this moment on; `null` while it has no successor.
    retires_at: Option<Timestamp>,
}

/// A key with its private half still sealed.
#[derive(Clone, Debug)]
pub(super) struct SealedKey {
    about: SamlKey,
    sealed: String,
}

/// What came of asking for a rotation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct SamlKeyRotation {
    /// The newest key.
    key: SamlKey,
    /// False when an earlier rotation is still under way; `key` is then that one's.
    started: bool,
}

fn place(id: &str) -> Place<'_> {
    Place { table: "saml_keys", column: "sealed_key", row: id, app: None }
}

impl SealedKey {
    fn open(&self, keyring: &Keyring) -> Result<Secret<Vec<u8>>> {
        keyring.open(&place(&self.about.id.to_string()), &self.sealed)
    }

    /// The certificate that metadata has of it, the same every time.
    fn certificate(&self, tenancy: &Tenancy) -> Result<Vec<u8>> {
        let key = RequestKey::from_pkcs8(&self.open(&tenancy.keyring)?, RequestHash::Sha256)?;
        let host = tenancy.base_url.split("://").nth(1).unwrap_or_default();
        self_signed(&key, host, self.about.created_at)
    }
}

/// Certificates of the keys that there are, the newest first; makes the first one.
pub(super) async fn certificates(tenancy: &Tenancy) -> Result<Vec<Vec<u8>>> {
    let mut keys = tenancy.db.read(unretired).await?;
    if keys.is_empty() {
        let new = generate(tenancy).await?;
        keys = tenancy
            .db
            .write(move |tx| {
                ensure(tx, &new)?;
                unretired(tx)
            })
            .await?;
    }
    keys.iter().map(|key| key.certificate(tenancy)).collect()
}

/// Off the threads that serve requests.
async fn generate(tenancy: &Tenancy) -> Result<SealedKey> {
    let (id, now, keyring) = (tenancy.db.ids().next(), tenancy.db.clock().now(), tenancy.keyring.clone());
    let work = move || {
        let sealed = keyring.seal(&place(&SamlKeyId::to_string(&id)), PrivateKey::generate()?.to_pkcs8()?.expose());
        Ok(SealedKey { about: SamlKey { id, created_at: now, retires_at: None }, sealed })
    };
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
}

/// Stores the first key, once however many nodes are asked for it at the same time.
fn ensure(tx: &mut Tx<'_>, new: &SealedKey) -> Result<()> {
    store::lock(tx)?;
    if unretired(tx)?.is_empty() { store::insert(tx, new) } else { Ok(()) }
}

/// Publishes another key; the one before retires when every provider had time to learn of it.
fn rotate(tx: &mut Tx<'_>, new: &SealedKey) -> Result<SamlKeyRotation> {
    store::lock(tx)?;
    let keys = unretired(tx)?;
    if let [newest, _, ..] = keys.as_slice() {
        return Ok(SamlKeyRotation { key: newest.about.clone(), started: false });
    }
    store::retire_all(tx, tx.now().plus(OVERLAP))?;
    store::insert(tx, new)?;
    emit(tx, Installation, &SamlKeyRotated { id: new.about.id.to_string() })?;
    Ok(SamlKeyRotation { key: new.about.clone(), started: true })
}

/// Keys that were opened and parsed before, since that costs more than using them. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct OpenedKeys(Arc<Mutex<HashMap<SamlKeyId, Arc<DecryptionKey>>>>);

impl OpenedKeys {
    pub(super) fn of(&self, keyring: &Keyring, keys: &[SealedKey]) -> Result<Vec<Arc<DecryptionKey>>> {
        let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|id, _| keys.iter().any(|key| key.about.id == *id));
        for key in keys {
            if let Entry::Vacant(missing) = opened.entry(key.about.id) {
                missing.insert(Arc::new(DecryptionKey::from_pkcs8(&key.open(keyring)?)?));
            }
        }
        Ok(opened.values().map(Arc::clone).collect())
    }
}
