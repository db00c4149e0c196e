//! Logins and the refresh tokens that descend from them. A refresh token works once; a moment later it still gets
//! another successor, because parallel tabs must not sign people out; after that it ends the whole login.

use std::time::Duration;

use kernel::{AppId, Code, Error, MemberId, Result, Timestamp, UserId, id_kinds};
use serde_json::json;
use spine::{NewFact, emit};
use store::{FromRow, Row, Tx, args};
use tenancy::App;

use super::Granted;
use crate::hosted::browser_sessions::BrowserSessionId;

id_kinds! {
    /// A login; `sid` in tokens.
    FamilyId(Family) = "sid";
    /// One refresh token's record.
    RefreshId(Refresh) = "refresh";
}

/// Emitted when a refresh token was used again after its time: somebody else may have it.
pub const REUSED: &str = "refresh.reused";

/// How long a rotated refresh token still gets successors.
const REUSE_GRACE: Duration = Duration::from_secs(30);

/// A login that goes on.
#[derive(Clone, Copy, Debug)]
pub struct Login {
    pub id: FamilyId,
    pub user: UserId,
    /// Whether more than one factor was shown.
    pub mfa: bool,
    pub authenticated_at: Timestamp,
}

impl FromRow for Login {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            user: row.get("user_id")?,
            mfa: row.get("mfa")?,
            authenticated_at: row.get("authenticated_at")?,
        })
    }
}

/// What a refresh token is good for.
#[derive(Clone, Debug)]
pub struct Record {
    pub family: FamilyId,
    pub member: MemberId,
    pub granted: Granted,
    rotated_at: Option<Timestamp>,
}

impl FromRow for Record {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (oidc, privileges): (String, Option<String>) = (row.get("oidc_scope")?, row.get("privileges")?);
        Ok(Self {
            family: row.get("family_id")?,
            member: row.get("member_id")?,
            granted: Granted::read(&oidc, privileges.as_deref()),
            rotated_at: row.get("rotated_at")?,
        })
    }
}

/// Begins a login. One that began in a browser ends with the sign-in there.
pub fn start(
    tx: &mut Tx<'_>,
    app: &App,
    user: UserId,
    mfa: bool,
    authenticated_at: Timestamp,
    browser: Option<BrowserSessionId>,
) -> Result<Login> {
    let login = Login { id: tx.new_id(), user, mfa, authenticated_at };
    tx.exec(
        "INSERT INTO refresh_families (id, app_id, user_id, mfa, authenticated_at, expires_at, created_at, \
         browser_session_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &args![login.id, app.id, user, mfa, authenticated_at, expiry(tx.now(), app), tx.now(), browser],
    )?;
    Ok(login)
}

fn expiry(now: Timestamp, app: &App) -> Timestamp {
    now.plus(Duration::from_secs(app.profile.refresh_token_ttl.into()))
}

/// The login, unless it was revoked or all of the person's sessions were ended since it began.
pub fn live(tx: &mut Tx<'_>, app: AppId, id: FamilyId) -> Result<Login> {
    let login = tx.opt(
        "SELECT refresh_families.id, refresh_families.user_id, refresh_families.mfa, \
         refresh_families.authenticated_at FROM refresh_families \
         JOIN users ON users.id = refresh_families.user_id WHERE refresh_families.app_id = $1 \
         AND refresh_families.id = $2 AND refresh_families.revoked_at IS NULL \
         AND (users.sessions_ended_at IS NULL OR refresh_families.authenticated_at > users.sessions_ended_at)",
        &args![app, id],
    )?;
    login.ok_or_else(ended)
}

/// Adds a refresh token to the login; its id and when it expires.
pub fn add_token(
    tx: &mut Tx<'_>,
    app: &App,
    family: FamilyId,
    member: MemberId,
    granted: &Granted,
) -> Result<(RefreshId, Timestamp)> {
    let (id, expires_at): (RefreshId, _) = (tx.new_id(), expiry(tx.now(), app));
    tx.exec(
        "INSERT INTO refresh_tokens (id, app_id, family_id, member_id, oidc_scope, privileges, expires_at, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &args![id, app.id, family, member, granted.oidc_text(), granted.privileges_text(), expires_at, tx.now()],
    )?;
    Ok((id, expires_at))
}

/// What became of a refresh token that was shown.
#[derive(Debug)]
pub enum Shown {
    Good(Record),
    /// It was rotated long ago: the login is revoked now. Must be committed, so this is no error.
    Reused,
}

/// Uses a refresh token up. Of several callers at once one rotates it and the others are within the grace.
pub fn rotate(tx: &mut Tx<'_>, app: AppId, id: RefreshId) -> Result<Shown> {
    let now = tx.now();
    let rotated = tx.opt(
        "UPDATE refresh_tokens SET rotated_at = $3 WHERE app_id = $1 AND id = $2 AND rotated_at IS NULL \
         RETURNING family_id, member_id, oidc_scope, privileges, rotated_at",
        &args![app, id, now],
    )?;
    if let Some(record) = rotated {
        return Ok(Shown::Good(record));
    }
    let known: Option<Record> = tx.opt(
        "SELECT family_id, member_id, oidc_scope, privileges, rotated_at FROM refresh_tokens \
         WHERE app_id = $1 AND id = $2 AND rotated_at IS NOT NULL",
        &args![app, id],
    )?;
    let record = known.ok_or_else(ended)?;
    if record.rotated_at.is_some_and(|rotated_at| now.since(rotated_at) <= REUSE_GRACE) {
        return Ok(Shown::Good(record));
    }
    if revoke(tx, app, record.family)? {
        let about = json!({ "sessionId": record.family, "tenantUserId": record.member });
        emit(tx, &NewFact::new(REUSED, about).app(app))?;
    }
    Ok(Shown::Reused)
}

/// Whether a refresh token still gets successors.
pub(super) fn is_current(tx: &mut Tx<'_>, app: AppId, id: RefreshId) -> Result<bool> {
    let rotated: Option<(Option<Timestamp>,)> =
        tx.opt("SELECT rotated_at FROM refresh_tokens WHERE app_id = $1 AND id = $2", &args![app, id])?;
    Ok(rotated.is_some_and(|(at,)| at.is_none_or(|rotated_at| tx.now().since(rotated_at) <= REUSE_GRACE)))
}

/// Ends a login; false when it had ended before.
pub fn revoke(tx: &mut Tx<'_>, app: AppId, id: FamilyId) -> Result<bool> {
    let revoked = tx.exec(
        "UPDATE refresh_families SET revoked_at = $3 WHERE app_id = $1 AND id = $2 AND revoked_at IS NULL",
        &args![app, id, tx.now()],
    )?;
    Ok(revoked == 1)
}

/// The one answer to whatever is wrong with a login, so that nobody learns from it.
pub fn ended() -> Error {
    Error::new(Code::InvalidCredential, "This session has ended. Sign in again.")
}
