//! Refresh tokens, which descend from a login. One works once; a moment later it still gets another successor, because
//! parallel tabs must not sign people out; after that it ends the whole login.

use std::time::Duration;

use kernel::{AppId, MemberId, Result, Timestamp, id_kinds};
use spine::emit;
use store::{FromRow, Row, Tx, args};
use tenancy::{
    App,
    logins::{self, LoginId, ended, expiry},
};

use super::Granted;
use crate::facts::RefreshReused;

id_kinds! {
    /// One refresh token's record.
    RefreshId(Refresh) = "refresh";
}

/// How long a rotated refresh token still gets successors.
const REUSE_GRACE: Duration = Duration::from_secs(30);

/// What a refresh token is good for.
#[derive(Clone, Debug)]
pub struct RefreshRecord {
    pub login: LoginId,
    pub member: MemberId,
    pub granted: Granted,
    rotated_at: Option<Timestamp>,
}

impl FromRow for RefreshRecord {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (oidc, privileges): (String, Option<String>) = (row.get("oidc_scope")?, row.get("privileges")?);
        Ok(Self {
            login: row.get("family_id")?,
            member: row.get("member_id")?,
            granted: Granted::read(&oidc, privileges.as_deref()),
            rotated_at: row.get("rotated_at")?,
        })
    }
}

/// Adds a refresh token to the login; its id and when it expires.
pub fn add(
    tx: &mut Tx<'_>,
    app: &App,
    login: LoginId,
    member: MemberId,
    granted: &Granted,
) -> Result<(RefreshId, Timestamp)> {
    let (id, expires_at): (RefreshId, _) = (tx.new_id(), expiry(tx.now(), app));
    tx.exec(
        "INSERT INTO refresh_tokens (id, app_id, family_id, member_id, oidc_scope, privileges, expires_at, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &args![id, app.id, login, member, granted.oidc_text(), granted.privileges_text(), expires_at, tx.now()],
    )?;
    Ok((id, expires_at))
}

/// What became of a refresh token that was shown.
#[derive(Debug)]
pub enum RefreshOutcome {
    Good(RefreshRecord),
    /// It was rotated long ago: the login is revoked now. Must be committed, so this is not an error.
    Reused,
}

/// Uses a refresh token up. Of several callers at once one rotates it and the others are within the grace.
pub fn rotate(tx: &mut Tx<'_>, app: AppId, id: RefreshId) -> Result<RefreshOutcome> {
    let now = tx.now();
    let rotated = tx.opt(
        "UPDATE refresh_tokens SET rotated_at = $3 WHERE app_id = $1 AND id = $2 AND rotated_at IS NULL \
         RETURNING family_id, member_id, oidc_scope, privileges, rotated_at",
        &args![app, id, now],
    )?;
    if let Some(record) = rotated {
        return Ok(RefreshOutcome::Good(record));
    }
    let known: Option<RefreshRecord> = tx.opt(
        "SELECT family_id, member_id, oidc_scope, privileges, rotated_at FROM refresh_tokens \
         WHERE app_id = $1 AND id = $2 AND rotated_at IS NOT NULL",
        &args![app, id],
    )?;
    let record = known.ok_or_else(ended)?;
    if record.rotated_at.is_some_and(|rotated_at| now.since(rotated_at) <= REUSE_GRACE) {
        return Ok(RefreshOutcome::Good(record));
    }
    if logins::revoke(tx, app, record.login)? {
        let (session_id, tenant_user_id) = (record.login, record.member);
        emit(tx, app, &RefreshReused { session_id, tenant_user_id })?;
    }
    Ok(RefreshOutcome::Reused)
}

/// Whether a refresh token still gets successors.
pub(super) fn is_current(tx: &mut Tx<'_>, app: AppId, id: RefreshId) -> Result<bool> {
    let rotated: Option<(Option<Timestamp>,)> =
        tx.opt("SELECT rotated_at FROM refresh_tokens WHERE app_id = $1 AND id = $2", &args![app, id])?;
    Ok(rotated.is_some_and(|(at,)| at.is_none_or(|rotated_at| tx.now().since(rotated_at) <= REUSE_GRACE)))
}
