//! SCIM tokens: `scim_` and 43 random characters, with which a workspace's directory provisions its people. Only the SHA-256
//! is stored. Such a token is good for `/scim/v2` and for nothing else, acts in its workspace alone, gives no role beyond
//! what its maker held, and ends with the token that made it.

pub mod http;
mod store;

use std::{sync::Arc, time::Duration};

use ::store::{Tx, args};
use kernel::{AppId, Error, KeyId, Name, Page, Result, TenantId, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use spine::emit;
use vault::hash_token;
use web::Validate;

use crate::{
    Authority, Tenancy,
    api_tokens::{self, ApiTokenId, CreatedBy},
    apps,
    callers::{KeyCredential, KeyHolder},
    facts::{ScimTokenCreated, ScimTokenRevoked},
    workspaces,
};

id_kinds! {
    /// A SCIM token's record.
    ScimTokenId(ScimTokenKind) = "scimtoken";
}

const PREFIX: &str = "scim_";
/// 43 characters of base62 hold 256 bits.
const RANDOM_LENGTH: usize = 43;
/// How often it is noted that a token was used.
const NOTED_EVERY: Duration = Duration::from_secs(60);

/// A token's record as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScimTokenRecord {
    pub id: ScimTokenId,
    #[serde(skip)]
    pub app: AppId,
    pub name: String,
    pub tenant_id: TenantId,
    /// `null` for a token that does not expire.
    pub expire_at: Option<Timestamp>,
    /// To the minute; `null` when it was never used.
    pub last_used_at: Option<Timestamp>,
    #[serde(rename = "createdBy")]
    #[schemars(with = "CreatedBy")]
    pub(crate) origin: ScimTokenOrigin,
    pub created_at: Timestamp,
    /// What its maker held; `None` for everything.
    #[serde(skip)]
    privileges: Option<Arc<[String]>>,
}

/// Who made a token, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScimTokenOrigin {
    key: Option<KeyId>,
    token: Option<ApiTokenId>,
}

/// As `createdBy` on the wire.
impl Serialize for ScimTokenOrigin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let token = self.token.map(CreatedBy::token);
        token.or(self.key.map(CreatedBy::key)).serialize(serializer)
    }
}

/// The body of `POST /account/scim/token`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewScimToken {
    pub name: Name,
    /// Left out or `null`: the token does not expire.
    #[serde(default)]
    pub expire_at: Option<Timestamp>,
}

impl Validate for NewScimToken {}

/// A new token, shown this once.
#[derive(Serialize, JsonSchema)]
pub struct CreatedScimToken {
    pub token: String,
    pub record: ScimTokenRecord,
}

pub fn create(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    maker: &KeyCredential,
    new: &NewScimToken,
) -> Result<CreatedScimToken> {
    // Not beside a deletion of the app or the workspace, which would leave the token behind.
    apps::locked(tx, app)?;
    workspaces::lock(tx, tenant)?;
    workspaces::get(tx, app, tenant)?;
    if new.expire_at.is_some_and(|at| at <= tx.now()) {
        return Err(Error::invalid("expireAt", "must be in the future"));
    }
    let (origin, bound) = match maker.holder {
        KeyHolder::AppKey(id) => (ScimTokenOrigin { key: Some(id), token: None }, None),
        KeyHolder::ApiToken(id) => {
            (ScimTokenOrigin { key: None, token: Some(id) }, api_tokens::hold_as_parent(tx, app, id)?)
        }
    };
    let token = format!("{PREFIX}{}", tx.entropy().base62(RANDOM_LENGTH));
    let record = ScimTokenRecord {
        id: tx.new_id(),
        app,
        name: new.name.trim().to_owned(),
        tenant_id: tenant,
        expire_at: api_tokens::earlier(new.expire_at, bound),
        last_used_at: None,
        origin,
        created_at: tx.now(),
        privileges: (!maker.unrestricted).then(|| Arc::clone(&maker.privileges)),
    };
    store::insert(tx, &record, &hash_token(&token))?;
    emit(tx, (app, tenant), &ScimTokenCreated { token_id: record.id, name: record.name.clone() })?;
    Ok(CreatedScimToken { token, record })
}

/// Those that still count, newest first.
pub fn list(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, page: Page) -> Result<Vec<ScimTokenRecord>> {
    store::list(tx, app, tenant, page)
}

/// The token is refused from the next request on, on every node.
pub fn revoke(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: ScimTokenId) -> Result<()> {
    let name = store::delete(tx, app, tenant, id)?.ok_or_else(|| Error::not_found("SCIM token"))?;
    emit(tx, (app, tenant), &ScimTokenRevoked { token_id: id, name })
}

/// The record of a presented token, when it is known, not expired, and its workspace and the token that made it are there. Notes
/// that it was used.
pub(crate) async fn find(tenancy: &Tenancy, presented: &str) -> Result<ScimTokenRecord> {
    // Anything of another form cannot be a token: spare the database.
    let random = presented.strip_prefix(PREFIX).unwrap_or_default();
    if random.len() != RANDOM_LENGTH || !random.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(unknown());
    }
    let now = tenancy.db.clock().now();
    let found: Option<ScimTokenRecord> = tenancy.db.get_one(store::FIND, &args![hash_token(presented)]).await?;
    let record = found.filter(|record| record.expire_at.is_none_or(|at| at > now)).ok_or_else(unknown)?;
    let not_since = now.minus(NOTED_EVERY);
    if record.last_used_at.is_none_or(|at| at <= not_since) {
        let (app, id) = (record.app, record.id);
        tenancy.db.write(move |tx| store::used(tx, app, id, not_since)).await?;
    }
    Ok(record)
}

impl ScimTokenRecord {
    /// What the token may hand out, in its workspace.
    pub fn authority(&self) -> Authority {
        Authority::of_scim_token(self.privileges.clone(), self.tenant_id)
    }
}

fn unknown() -> Error {
    Error::credential("The SCIM token is unknown, expired or has been revoked.")
}
