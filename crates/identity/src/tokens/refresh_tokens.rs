//! Refresh tokens, which descend from a login. One works once; a moment later it still gets another successor, because
//! parallel tabs must not sign people out; after that it ends the whole login.

use std::time::Duration;

use ::store::Tx;
use kernel::{AppId, MemberId, Result, Timestamp, id_kinds};
use spine::emit;
use tenancy::{
    App,
    logins::{self, LoginId, ended, expiry},
};

use super::{Granted, store};
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
    pub(super) rotated_at: Option<Timestamp>,
}

impl RefreshRecord {
    fn gets_successors(&self, now: Timestamp) -> bool {
        self.rotated_at.is_none_or(|rotated_at| now.since(rotated_at) <= REUSE_GRACE)
    }
}

/// The record of a refresh token that was not used yet.
pub(super) fn find_unused(tx: &mut Tx<'_>, app: AppId, id: RefreshId) -> Result<RefreshRecord> {
    store::find_refresh_token(tx, app, id)?.filter(|record| record.rotated_at.is_none()).ok_or_else(ended)
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
    store::insert_refresh_token(tx, app.id, id, (login, member), granted, expires_at)?;
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
    if let Some(record) = store::rotate(tx, app, id)? {
        return Ok(RefreshOutcome::Good(record));
    }
    let record = store::find_refresh_token(tx, app, id)?.filter(|record| record.rotated_at.is_some());
    let record = record.ok_or_else(ended)?;
    if record.gets_successors(tx.now()) {
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
    let known = store::find_refresh_token(tx, app, id)?;
    Ok(known.is_some_and(|record| record.gets_successors(tx.now())))
}
