//! The secrets that sign an app's API tokens. A token names its secret by `kid`: the newest one signs, and those before
//! it keep verifying until they are retired, because tokens may have no expiry.

use std::sync::Arc;

use ::store::{Db, Owner, Tx, args, row, sql};
use kernel::{AppId, Code, Error, Result, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::Serialize;
use spine::{Cached, emit, purge};
use vault::{Keyring, Place, jwt::HmacKey};

use super::ApiTokens;
use crate::facts::{AppSecretRetired, AppSecretRotated};

id_kinds! {
    /// The `kid` of an app's API tokens.
    SecretId(AppSecretKind) = "secret";
}

/// Secrets that verify at a time; whoever rotates more often retires old ones.
const MOST: usize = 20;

/// A secret, opened and ready to sign and verify.
pub(super) struct AppSecret {
    pub(super) id: SecretId,
    pub(super) app: AppId,
    pub(super) key: HmacKey,
}

/// What may be known of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRecord {
    /// The `kid` of the tokens that it signed.
    pub id: SecretId,
    /// Whether new tokens are signed with it.
    pub signs: bool,
    /// How many tokens stop working when it is retired.
    #[schemars(range(min = 0))]
    pub tokens: i64,
    pub created_at: Timestamp,
    /// Since when it verifies nothing; `null` while it does.
    pub retired_at: Option<Timestamp>,
}

row! {
    SecretRecord = "app_secrets" {
        id,
        tokens = "(SELECT count(*) FROM api_tokens WHERE api_tokens.app_id = $1 AND api_tokens.secret_id = app_secrets.id)",
        created_at,
        retired_at,
    }
    signs: false,
}

struct Sealed {
    id: SecretId,
    app: AppId,
    sealed: String,
}

row! { Sealed = "app_secrets" { id, app: "app_id", sealed } }

const FIND: &str = sql!("SELECT ", Sealed::COLUMNS, " FROM app_secrets WHERE id = $1 AND retired_at IS NULL");
const GET: &str =
    sql!("SELECT ", Sealed::COLUMNS, " FROM app_secrets WHERE app_id = $1 AND id = $2 AND retired_at IS NULL");
const NEWEST: &str = sql!(
    "SELECT ",
    Sealed::COLUMNS,
    " FROM app_secrets WHERE app_id = $1 AND retired_at IS NULL ORDER BY id DESC LIMIT 1"
);
const INSERT: &str = "INSERT INTO app_secrets (id, app_id, sealed, created_at) VALUES ($1, $2, $3, $4)";
const LIST: &str = sql!("SELECT ", SecretRecord::COLUMNS, " FROM app_secrets WHERE app_id = $1 ORDER BY id DESC");
/// What the secret was is of no use to anybody any more.
const RETIRE: &str =
    "UPDATE app_secrets SET retired_at = $3, sealed = '' WHERE app_id = $1 AND id = $2 AND retired_at IS NULL";

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

/// A secret that was not retired.
pub(super) fn get(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId, id: SecretId) -> Result<Option<AppSecret>> {
    let sealed: Option<Sealed> = tx.opt(GET, &args![app, id])?;
    sealed.map(|sealed| open(keyring, &sealed)).transpose()
}

/// Newest first.
pub fn list(tx: &mut Tx<'_>, app: AppId) -> Result<Vec<SecretRecord>> {
    let mut secrets: Vec<SecretRecord> = tx.all(LIST, &args![app])?;
    if let Some(newest) = secrets.iter_mut().find(|secret| secret.retired_at.is_none()) {
        newest.signs = true;
    }
    Ok(secrets)
}

/// A new secret signs from now on; the ones before it still verify. The caller holds the app's lock.
pub fn rotate(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId) -> Result<SecretRecord> {
    if list(tx, app)?.iter().filter(|secret| secret.retired_at.is_none()).count() >= MOST {
        let message = format!("This app already has {MOST} secrets. Retire the ones that are no longer used.");
        return Err(Error::new(Code::TooManySecrets, message));
    }
    let id = create_secret(tx, keyring, app)?;
    emit(tx, app, &AppSecretRotated { secret_id: id })?;
    Ok(SecretRecord { id, signs: true, tokens: 0, created_at: tx.now(), retired_at: None })
}

/// Every token that the secret signed is refused from the next request on, on every node. The caller holds the app's lock.
pub fn retire(tx: &mut Tx<'_>, tokens: &ApiTokens, app: AppId, id: SecretId) -> Result<()> {
    let known = list(tx, app)?.into_iter().find(|secret| secret.id == id && secret.retired_at.is_none());
    let secret = known.ok_or_else(|| Error::not_found("secret"))?;
    if secret.signs {
        let message = "This secret signs new API tokens. Rotate first, then retire it.";
        return Err(Error::new(Code::SecretStillSigns, message));
    }
    tx.exec(RETIRE, &args![app, id, tx.now()])?;
    purge::remember(tx, app, Owner::Secret, &[id])?;
    emit(tx, app, &AppSecretRetired { secret_id: id })?;
    let tokens = tokens.clone();
    tx.on_commit(move || tokens.forget_all());
    Ok(())
}

/// Secrets in memory, opened. Whether one has been retired meanwhile is read with the token's record.
#[derive(Clone)]
pub(super) struct Secrets {
    db: Db,
    keyring: Keyring,
    by_id: Cached<SecretId, Option<Arc<AppSecret>>>,
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
