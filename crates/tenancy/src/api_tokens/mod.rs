//! API tokens: JWTs signed with the app's own secret, each backed by a record that is looked at on every call.
//!
//! A token does what its record says, as far as the app still defines those privileges, and nothing from the moment its
//! record, its secret or its app is gone. What a token made ends with it, and what a member made with the membership. The
//! token itself is shown once and never stored.

pub mod http;
mod maker;
mod rules;
mod secrets;
mod store;
mod uses;

use std::sync::Arc;

use ::store::{Db, Tx, args};
use kernel::{AppId, Error, MemberId, Result, TenantId, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::{Cached, News, Runner, emit};
use vault::{
    Keyring,
    jwt::{Unverified, sign_hs256},
};
use web::Scope;

pub use maker::{CreatedBy, MadeBy, Maker};
use rules::Measure;
pub use rules::NewApiToken;
pub(crate) use rules::earlier;
use secrets::Secrets;
pub use secrets::{SecretId, SecretRecord, create_secret};
use uses::{LastSeen, UseWriter, Uses};

use crate::{
    AppDirectory, Authority, apps,
    callers::{KeyCredential, KeyHolder},
    facts::{ApiTokenCreated, ApiTokenData, ApiTokenRevoked, AppDeleted, AppSecretRetired},
    roles::{self, PrivilegeRecord, Role},
};

id_kinds! {
    /// An API token's record.
    ApiTokenId(ApiToken) = "apitoken";
}

/// The `typ` of API tokens.
const TYP: &str = "JWT";
/// Their `type` claim.
const KIND: &str = "api";

/// A token's record as it is listed.
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
    /// `null` for a token that does not expire.
    pub expire_at: Option<Timestamp>,
    /// To the minute; `null` when it was never used.
    pub last_used_at: Option<Timestamp>,
    /// `null` for a token of a release that did not note it.
    #[serde(rename = "createdBy")]
    #[schemars(with = "Option<CreatedBy>")]
    pub made_by: MadeBy,
    pub created_at: Timestamp,
}

impl ApiTokenRecord {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expire_at.is_some_and(|at| at <= now)
    }

    fn claims(&self) -> ApiTokenClaims {
        ApiTokenClaims {
            sub: self.id,
            aid: self.app,
            tid: self.tenant_id,
            kind: KIND.to_owned(),
            privileges: self.privileges.to_vec(),
            iat: self.created_at.as_seconds(),
            exp: self.expire_at.map(Timestamp::as_seconds),
        }
    }

    /// What others are told of it.
    fn told(&self) -> ApiTokenData {
        ApiTokenData { token_id: self.id, name: self.name.clone(), privileges: self.privileges.to_vec() }
    }
}

/// What an API token says. Only `sub` and `aid` are believed; the rest is for whoever reads the token elsewhere.
#[derive(Serialize, Deserialize)]
struct ApiTokenClaims {
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

/// A token whose record exists, as it counts now.
pub struct LiveToken {
    pub record: ApiTokenRecord,
    /// The record's privileges that the app still defines.
    pub privileges: Arc<[String]>,
    seen: LastSeen,
}

impl LiveToken {
    fn new(record: ApiTokenRecord, privileges: Arc<[String]>) -> Self {
        Self { seen: LastSeen::new(record.last_used_at), record, privileges }
    }
}

/// A new token, shown this once.
#[derive(Serialize, JsonSchema)]
pub struct CreatedToken {
    pub token: String,
    pub record: ApiTokenRecord,
}

/// Makes a token of the whole app, or of one workspace.
pub fn create(
    tx: &mut Tx<'_>,
    keyring: &Keyring,
    app: AppId,
    tenant: Option<TenantId>,
    maker: &Maker,
    new: &NewApiToken,
) -> Result<CreatedToken> {
    // Not beside a deletion of the app or the workspace, which would leave the token behind, nor beside a retirement
    // of the secret that signs it.
    let profile = apps::locked(tx, app)?.profile;
    let workspace = tenant.or(maker.authority.workspace());
    if let Some(workspace) = workspace {
        crate::workspaces::lock(tx, workspace)?;
        if !store::has_workspace(tx, app, workspace)? {
            return Err(Error::not_found("workspace"));
        }
    }
    let origin = maker.still_there(tx, keyring, app, workspace)?;
    let defined = roles::defined_privileges(tx, app)?;
    let defined: Vec<&str> = defined.iter().map(|privilege| privilege.key.as_str()).collect();
    let allowed = profile.allowed_token_privileges.as_deref();
    let measure = Measure { defined: &defined, allowed, authority: &maker.authority, now: tx.now() };
    let record = ApiTokenRecord {
        privileges: measure.granted(new)?.into(),
        id: tx.new_id(),
        app,
        name: new.name.trim().to_owned(),
        tenant_id: tenant,
        expire_at: rules::earlier(new.expire_at, origin.expire_at),
        last_used_at: None,
        made_by: origin.made_by,
        created_at: tx.now(),
    };
    let secret = &origin.secret;
    let token = sign_hs256(&secret.key, &secret.id.to_string(), TYP, &record.claims())?;
    store::insert(tx, &record, secret.id)?;
    emit(tx, (app, tenant), &ApiTokenCreated(record.told()))?;
    Ok(CreatedToken { token, record })
}

/// Keeps a token that makes another credential from being revoked until the transaction ends; when it expires.
pub(crate) fn hold_as_parent(tx: &mut Tx<'_>, app: AppId, id: ApiTokenId) -> Result<Option<Timestamp>> {
    store::hold(tx, app, id)?.map(|parent| parent.expire_at).ok_or_else(unknown)
}

/// The privileges that this caller could put into a token.
pub fn grantable(tx: &mut Tx<'_>, app: AppId, authority: &Authority) -> Result<Vec<PrivilegeRecord>> {
    let profile = apps::get(tx, app)?.profile;
    let allowed = profile.allowed_token_privileges.as_deref();
    let measure = Measure { defined: &[], allowed, authority, now: tx.now() };
    let mut defined = roles::defined_privileges(tx, app)?;
    defined.retain(|privilege| measure.holds(&privilege.key) && measure.allows(&privilege.key));
    Ok(defined)
}

/// The token is refused from the next request on, on every node. With a workspace, only one of that workspace's tokens.
pub fn revoke(tx: &mut Tx<'_>, tokens: &ApiTokens, app: AppId, tenant: Option<TenantId>, id: ApiTokenId) -> Result<()> {
    let record = store::delete(tx, app, tenant, id)?.ok_or_else(|| Error::not_found("API token"))?;
    end(tx, tokens, app, vec![record])
}

/// Part of removing or disabling a member, under the workspace's lock.
pub(crate) fn revoke_of_member(tx: &mut Tx<'_>, tokens: &ApiTokens, app: AppId, member: MemberId) -> Result<()> {
    let made = store::delete_of_member(tx, app, member)?;
    end(tx, tokens, app, made)
}

/// Part of giving a member another role, under the workspace's lock: a token that they made ends when it may do what was
/// taken from them, so that nobody keeps it by a token.
pub(crate) fn revoke_beyond_role(
    tx: &mut Tx<'_>,
    tokens: &ApiTokens,
    app: AppId,
    member: MemberId,
    (before, after): (&Role, &Role),
) -> Result<()> {
    let made = store::made_by_member(tx, app, member)?;
    end_with(tx, tokens, app, made, &taken(before, after))
}

/// The same for everybody who holds a role, part of taking privileges from it.
pub(crate) fn revoke_beyond_changed_role(
    tx: &mut Tx<'_>,
    tokens: &ApiTokens,
    app: AppId,
    (before, after): (&Role, &Role),
) -> Result<()> {
    let made = store::made_by_role(tx, app, after.id)?;
    end_with(tx, tokens, app, made, &taken(before, after))
}

/// The keys of privileges that the one role has and the other one lacks.
fn taken<'a>(before: &'a Role, after: &Role) -> Vec<&'a str> {
    let is_kept = |key: &str| after.privileges.iter().any(|held| held.key == key);
    before.privileges.iter().map(|held| &*held.key).filter(|key| !is_kept(key)).collect()
}

fn end_with(
    tx: &mut Tx<'_>,
    tokens: &ApiTokens,
    app: AppId,
    made: Vec<ApiTokenRecord>,
    privileges: &[&str],
) -> Result<()> {
    let has = |key: &String| privileges.contains(&&**key);
    let with = made.into_iter().filter(|record| record.privileges.iter().any(has));
    let deleted = with.filter_map(|record| store::delete(tx, app, None, record.id).transpose());
    let deleted = deleted.collect::<Result<Vec<_>>>()?;
    end(tx, tokens, app, deleted)
}

/// Tells of tokens that were deleted, and ends what they had made, down to the last. Whoever makes a token by another one
/// holds that one's row, so that each round sees what was made until then.
fn end(tx: &mut Tx<'_>, tokens: &ApiTokens, app: AppId, mut ended: Vec<ApiTokenRecord>) -> Result<()> {
    while !ended.is_empty() {
        for record in &ended {
            emit(tx, (app, record.tenant_id), &ApiTokenRevoked(record.told()))?;
            let (tokens, id) = (tokens.clone(), record.id);
            tx.on_commit(move || tokens.forget(id));
        }
        let ids: Vec<ApiTokenId> = ended.iter().map(|record| record.id).collect();
        ended = store::delete_made_by(tx, app, &ids)?;
    }
    Ok(())
}

/// Part of deleting a workspace, while its members are still there: its tokens are refused at once, and so are those of
/// the whole app that its members made. The caller emits the fact of the workspace's.
pub fn revoke_of_workspace(tx: &mut Tx<'_>, tokens: &ApiTokens, app: AppId, tenant: TenantId) -> Result<()> {
    store::delete_of_workspace(tx, app, tenant)?;
    let of_the_app = store::delete_of_members(tx, app, tenant)?;
    end(tx, tokens, app, of_the_app)?;
    tokens.forget_all_on_commit(tx);
    Ok(())
}

/// Checks tokens: the signature in memory, the record in memory where this process is the only one, else in the
/// database, so that a revocation counts at once on every node.
#[derive(Clone)]
pub struct ApiTokens {
    db: Db,
    apps: AppDirectory,
    secrets: Secrets,
    records: Cached<ApiTokenId, Option<Arc<LiveToken>>>,
    uses: Uses,
}

const REMEMBERED: usize = 100_000;

impl ApiTokens {
    pub(crate) fn new(db: Db, apps: AppDirectory, keyring: Keyring) -> Self {
        let secrets = Secrets::new(db.clone(), keyring);
        Self { secrets, db, apps, records: Cached::new(REMEMBERED), uses: Uses::default() }
    }

    pub(crate) fn register(&self, runner: &Runner) {
        runner.add(UseWriter { db: self.db.clone(), uses: self.uses.clone() });
    }

    /// The token, when it is genuine, known and not expired. Notes that it was used.
    pub async fn find(&self, token: &str) -> Result<Arc<LiveToken>> {
        let unverified = Unverified::parse(token)?;
        let secret_id: SecretId = unverified.kid().parse().map_err(|_| unknown())?;
        let secret = self.secrets.find(secret_id).await?.ok_or_else(unknown)?;
        let claims: ApiTokenClaims = unverified.verify_hs256(TYP, &secret.key)?;
        if claims.aid != secret.app || claims.kind != KIND {
            return Err(unknown());
        }
        let live = if self.db.is_single_node() {
            self.records.get_or_read(claims.sub, |id| self.read(id, secret.app, secret.id)).await?
        } else {
            self.read(claims.sub, secret.app, secret.id).await?
        };
        let now = self.db.clock().now();
        let live = live.filter(|live| !live.record.is_expired(now)).ok_or_else(unknown)?;
        self.uses.note(live.record.id, &live.seen, now);
        Ok(live)
    }

    pub(crate) async fn authenticate(&self, token: &str, scope: &Arc<Scope>) -> Result<KeyCredential> {
        let live = self.find(token).await?;
        let app = self.apps.find(live.record.app).await?.ok_or_else(unknown)?;
        Ok(KeyCredential {
            app,
            holder: KeyHolder::ApiToken(live.record.id),
            tenant: live.record.tenant_id,
            privileges: live.privileges.clone(),
            unrestricted: false,
            member: live.record.made_by.member,
            scope: Arc::clone(scope),
        })
    }

    async fn read(&self, id: ApiTokenId, app: AppId, secret: SecretId) -> Result<Option<Arc<LiveToken>>> {
        Ok(self.db.get_one::<LiveToken>(store::FIND_LIVE, &args![id, app, secret]).await?.map(Arc::new))
    }

    /// A record is gone.
    fn forget(&self, id: ApiTokenId) {
        self.records.invalidate(&id);
    }

    pub(crate) fn forget_all(&self) {
        self.records.flush();
        self.secrets.forget_all();
    }

    /// For whatever changes what many tokens may do: a privilege that is deleted or gets another key, a workspace
    /// that is deleted.
    pub fn forget_all_on_commit(&self, tx: &mut Tx<'_>) {
        let tokens = self.clone();
        tx.on_commit(move || tokens.forget_all());
    }

    pub(crate) fn hear(&self, news: News<'_>) {
        match news {
            News::Fact(fact) => match fact.read::<ApiTokenRevoked>() {
                Ok(Some(ApiTokenRevoked(token))) => self.forget(token.token_id),
                Ok(None) if !fact.is::<AppSecretRetired>() && !fact.is::<AppDeleted>() => {}
                Ok(None) | Err(_) => self.forget_all(),
            },
            News::Gap => self.forget_all(),
        }
    }
}

fn unknown() -> Error {
    Error::credential("The API token is unknown, expired or has been revoked.")
}
