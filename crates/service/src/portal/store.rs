//! The SQL of portal codes and portal sessions.

use ::store::{FromRow, Json, Row, Tx, args};
use kernel::{Actor, AppId, Error, Result, TenantId, Timestamp};

use super::{Holder, PortalSession};

pub(super) fn insert_code(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    digest: &str,
    actor: &Actor,
    expires_at: Timestamp,
) -> Result<()> {
    tx.run(
        "INSERT INTO portal_codes (digest, app_id, tenant_id, actor, expires_at) VALUES ($1, $2, $3, $4, $5)",
        &args![digest, app, tenant, Json(actor), expires_at],
    )
}

struct KeyCode(AppId, TenantId, Actor);

impl FromRow for KeyCode {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self(row.get("app_id")?, row.get("tenant_id")?, row.get::<Json<Actor>>("actor")?.0))
    }
}

/// By the code alone, which its app is read from. Of several callers at once exactly one gets it.
pub(super) fn redeem_code(tx: &mut Tx<'_>, digest: &str) -> Result<Option<(AppId, TenantId, Actor)>> {
    let found: Option<KeyCode> = tx.opt(
        "UPDATE portal_codes SET used_at = $2 WHERE digest = $1 AND used_at IS NULL AND expires_at > $2 \
         RETURNING app_id, tenant_id, actor",
        &args![digest, tx.now()],
    )?;
    Ok(found.map(|KeyCode(app, tenant, actor)| (app, tenant, actor)))
}

pub(super) fn insert_session(tx: &mut Tx<'_>, digest: &str, session: &PortalSession) -> Result<()> {
    let PortalSession { app, tenant, code_digest, holder, expires_at } = session;
    let (member, login, privileges, actor) = match holder {
        Holder::Member { member, login, privileges } => (Some(*member), Some(*login), privileges.clone(), None),
        Holder::Key(actor) => (None, None, None, Some(Json(actor))),
    };
    tx.run(
        "INSERT INTO portal_sessions (digest, app_id, tenant_id, code_digest, member_id, family_id, privileges, actor, \
         expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &args![digest, *app, *tenant, code_digest, member, login, privileges, actor, *expires_at],
    )
}

impl FromRow for PortalSession {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let actor = row.get::<Option<Json<Actor>>>("actor")?;
        let holder = match (actor, row.get("member_id")?, row.get("family_id")?) {
            (Some(Json(actor)), ..) => Holder::Key(actor),
            (None, Some(member), Some(login)) => Holder::Member { member, login, privileges: row.get("privileges")? },
            (None, ..) => return Err(Error::internal("a portal session without a holder")),
        };
        Ok(Self {
            app: row.get("app_id")?,
            tenant: row.get("tenant_id")?,
            code_digest: row.get("code_digest")?,
            holder,
            expires_at: row.get("expires_at")?,
        })
    }
}

pub(super) fn session(tx: &mut Tx<'_>, app: AppId, digest: &str) -> Result<Option<PortalSession>> {
    tx.opt(
        "SELECT app_id, tenant_id, code_digest, member_id, family_id, privileges, actor, expires_at \
         FROM portal_sessions WHERE app_id = $1 AND digest = $2 AND expires_at > $3",
        &args![app, digest, tx.now()],
    )
}
