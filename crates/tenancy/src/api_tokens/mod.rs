//! API tokens: JWTs signed with the app's own secret, each backed by a record that is looked at on every call.

mod secrets;
mod store;

use std::sync::Arc;

use ::store::{Db, args};
use kernel::{AppId, Code, Error, Result, TenantId, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::{Cached, News};
use vault::{Keyring, jwt::Unverified};

use secrets::Secrets;
pub use secrets::{SecretId, create_secret};

use crate::{
    AppDirectory, apps,
    callers::{KeyCredential, KeyHolder},
};

id_kinds! {
    /// An API token's record.
    ApiTokenId(ApiToken) = "apitoken";
}

/// Emitted when tokens are revoked.
pub const REVOKED: &str = "api_token.revoked";

/// The `typ` of API tokens.
const TYP: &str = "JWT";

/// A token's record as it is listed. The token itself is shown once and never stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiTokenRecord {
    pub id: ApiTokenId,
    #[serde(skip)]
    pub app: AppId,
    pub name: String,
    pub privileges: Arc<[String]>,
    /// `null` for a token of the whole app.
    pub tenant_id: Option<TenantId>,
    pub expire_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl ApiTokenRecord {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expire_at.is_some_and(|at| at <= now)
    }
}

/// What an API token says. Only `sub` and `aid` are believed; the rest is for whoever reads the token elsewhere.
#[derive(Serialize, Deserialize)]
struct Claims {
    sub: ApiTokenId,
    aid: AppId,
    tid: Option<TenantId>,
    #[serde(rename = "type")]
    kind: String,
    privileges: Vec<String>,
    iat: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
}

/// Checks tokens: the signature in memory, the record in memory where this process is the only one, else in the
/// database, so that a revocation counts at once on every node.
#[derive(Clone)]
pub struct ApiTokens {
    db: Db,
    apps: AppDirectory,
    secrets: Secrets,
    records: Cached<ApiTokenId, Option<Arc<ApiTokenRecord>>>,
}

const REMEMBERED: usize = 100_000;

impl ApiTokens {
    pub(crate) fn new(db: Db, apps: AppDirectory, keyring: Keyring) -> Self {
        Self { secrets: Secrets::new(db.clone(), keyring), db, apps, records: Cached::new(REMEMBERED) }
    }

    /// The record behind a token that is genuine, known and not expired.
    pub async fn find(&self, token: &str) -> Result<Arc<ApiTokenRecord>> {
        let unverified = Unverified::parse(token)?;
        let secret_id: SecretId = unverified.kid().parse().map_err(|_| unknown())?;
        let secret = self.secrets.find(secret_id).await?.ok_or_else(unknown)?;
        let claims: Claims = unverified.verify_hs256(TYP, &secret.key)?;
        let record = if self.db.is_single_node() {
            self.records.get_or_read(claims.sub, |id| self.read(id)).await?
        } else {
            self.read(claims.sub).await?
        };
        let record = record.ok_or_else(unknown)?;
        if record.app != secret.app || claims.aid != secret.app || record.is_expired(self.db.clock().now()) {
            return Err(unknown());
        }
        Ok(record)
    }

    pub(crate) async fn authenticate(&self, token: &str) -> Result<KeyCredential> {
        let record = self.find(token).await?;
        let app = self.apps.find(record.app).await?.ok_or_else(unknown)?;
        Ok(KeyCredential {
            app,
            holder: KeyHolder::ApiToken(record.id),
            tenant: record.tenant_id,
            privileges: record.privileges.clone(),
        })
    }

    async fn read(&self, id: ApiTokenId) -> Result<Option<Arc<ApiTokenRecord>>> {
        Ok(self.db.get_one::<ApiTokenRecord>(store::FIND, &args![id]).await?.map(Arc::new))
    }

    /// A record changed or is gone.
    pub(crate) fn forget(&self, id: ApiTokenId) {
        self.records.invalidate(&id);
    }

    pub(crate) fn forget_all(&self) {
        self.records.flush();
        self.secrets.forget_all();
    }

    pub(crate) fn hear(&self, news: News<'_>) {
        match news {
            News::Fact(fact) if fact.kind == REVOKED || fact.kind == apps::DELETED => self.forget_all(),
            News::Fact(_) => {}
            News::Gap => self.forget_all(),
        }
    }
}

fn unknown() -> Error {
    Error::new(Code::InvalidCredential, "The API token is unknown, expired or has been revoked.")
}
