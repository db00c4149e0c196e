//! The secrets that sign an app's API tokens. A token names its secret by `kid`, so that secrets can be rotated.

use std::sync::Arc;

use ::store::{Db, FromRow, Row, Tx, args};
use kernel::{AppId, Error, Result, id_kinds};
use spine::Cached;
use vault::{Keyring, Place, jwt::HmacKey};

id_kinds! {
    /// The `kid` of an app's API tokens.
    SecretId(AppSecretKind) = "secret";
}

/// A secret, opened and ready to sign and verify.
pub(super) struct AppSecret {
    pub(super) id: SecretId,
    pub(super) app: AppId,
    pub(super) key: HmacKey,
}

#[derive(Clone)]
pub(super) struct Secrets {
    db: Db,
    keyring: Keyring,
    by_id: Cached<SecretId, Option<Arc<AppSecret>>>,
}

struct Sealed {
    id: SecretId,
    app: AppId,
    sealed: String,
}

impl FromRow for Sealed {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self { id: row.get("id")?, app: row.get("app_id")?, sealed: row.get("sealed")? })
    }
}

const FIND: &str = "SELECT id, app_id, sealed FROM app_secrets WHERE id = $1 AND retired_at IS NULL";
const NEWEST: &str =
    "SELECT id, app_id, sealed FROM app_secrets WHERE app_id = $1 AND retired_at IS NULL ORDER BY id DESC LIMIT 1";
const INSERT: &str = "INSERT INTO app_secrets (id, app_id, sealed, created_at) VALUES ($1, $2, $3, $4)";

/// Makes the secret of a new app, or a further one, which signs from then on.
pub fn create_secret(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId) -> Result<SecretId> {
    let id: SecretId = tx.new_id();
    let sealed = keyring.seal(&place(&id.to_string(), app), &tx.entropy().bytes::<32>());
    tx.exec(INSERT, &args![id, app, sealed, tx.now()])?;
    Ok(id)
}

/// The secret that signs an app's new tokens.
pub(super) fn newest(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId) -> Result<AppSecret> {
    let sealed: Sealed = tx.one(NEWEST, &args![app])?;
    open(keyring, &sealed)
}

impl Secrets {
    pub(super) fn new(db: Db, keyring: Keyring) -> Self {
        Self { db, keyring, by_id: Cached::new(10_000) }
    }

    pub(super) async fn find(&self, id: SecretId) -> Result<Option<Arc<AppSecret>>> {
        self.by_id.get_or_read(id, |id| self.read(id)).await
    }

    async fn read(&self, id: SecretId) -> Result<Option<Arc<AppSecret>>> {
        let sealed: Option<Sealed> = self.db.get_one(FIND, &args![id]).await?;
        sealed.map(|sealed| open(&self.keyring, &sealed).map(Arc::new)).transpose()
    }

    pub(super) fn forget_all(&self) {
        self.by_id.flush();
    }
}

fn open(keyring: &Keyring, sealed: &Sealed) -> Result<AppSecret> {
    let secret = keyring.open(&place(&sealed.id.to_string(), sealed.app), &sealed.sealed)?;
    let key = HmacKey::new(secret.expose()).map_err(Error::internal)?;
    Ok(AppSecret { id: sealed.id, app: sealed.app, key })
}

fn place(id: &str, app: AppId) -> Place<'_> {
    Place { table: "app_secrets", column: "sealed", row: id, app: Some(app) }
}
