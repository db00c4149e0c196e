//! The operator key: which ones open the operator API, by their digests. A key that was replaced may work on for a while;
//! it is remembered afterwards, so that whoever still has it can be told that it was replaced.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kernel::{Code, Error, Result, Timestamp};
use store::{Db, Tx, args};
use vault::{hash_token, same};

/// While the database does not answer, the key that was accepted last is believed, so that metrics can still be read.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whom the operator API believes. Asks the database, so that a change counts on every node at once. Cheap to clone.
#[derive(Clone)]
pub struct OperatorKey {
    db: Db,
    /// The digest of the key that was accepted last.
    accepted: Arc<Mutex<Option<String>>>,
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorKeyState {
    /// The present key.
    Present,
    /// Replaced; works until then.
    Replaced(Timestamp),
}

impl OperatorKey {
    pub fn new(db: Db) -> Self {
        Self { db, accepted: Arc::default() }
    }

    pub(crate) async fn accepts(&self, presented: &str) -> Result<bool> {
        let digest = hash_token(presented);
        let now = self.db.clock().now();
        let arguments = args![digest, now];
        let found = match tokio::time::timeout(PATIENCE, self.db.get_one::<(i64,)>(ACCEPTED, &arguments)).await {
            Ok(found) => found,
            Err(_) => Err(Error::new(Code::StorageUnavailable, "The database does not answer.")),
        };
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(Some(_)) => {
                *accepted = Some(digest);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => {
                let known = accepted.as_ref().is_some_and(|known| same(known.as_bytes(), digest.as_bytes()));
                if known && error.code() == Code::StorageUnavailable { Ok(true) } else { Err(error) }
            }
        }
    }
}

const ACCEPTED: &str =
    "SELECT CAST(1 AS BIGINT) FROM operator_keys WHERE digest = $1 AND (ends_at IS NULL OR ends_at > $2)";

/// Whether the store has an operator key at all.
pub fn any(tx: &mut Tx<'_>) -> Result<bool> {
    let found: Option<(i64,)> = tx.opt("SELECT CAST(1 AS BIGINT) FROM operator_keys LIMIT 1", &[])?;
    Ok(found.is_some())
}

/// What the store knows of this key.
pub fn standing(tx: &mut Tx<'_>, key: &str) -> Result<Option<OperatorKeyState>> {
    let found: Option<(Option<Timestamp>,)> =
        tx.opt("SELECT ends_at FROM operator_keys WHERE digest = $1", &args![hash_token(key)])?;
    Ok(found.map(|(ends_at,)| ends_at.map_or(OperatorKeyState::Present, OperatorKeyState::Replaced)))
}

/// Makes `key` the present one. Those before it end at `until`, unless they ended earlier.
pub fn replace(tx: &mut Tx<'_>, key: &str, until: Timestamp) -> Result<()> {
    tx.exec("UPDATE operator_keys SET ends_at = $1 WHERE ends_at IS NULL OR ends_at > $1", &args![until])?;
    tx.exec("INSERT INTO operator_keys (digest, created_at) VALUES ($1, $2)", &args![hash_token(key), tx.now()])?;
    Ok(())
}
