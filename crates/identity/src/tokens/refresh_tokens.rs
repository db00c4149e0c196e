//! Refresh tokens, which descend from a login. One works once; a moment later it still gets another successor, because
//! parallel tabs must not sign people out; after that it ends the whole login.

use std::{collections::HashMap, time::Duration};

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

/// The refresh tokens of one login that work at a time; one more ends the oldest.
const WORKING: i64 = 20;
/// How long the records of others are kept, unless a login has more of them. One whose record is gone is known by its login.
const KEPT: Duration = Duration::from_secs(24 * 3600);
const MOST_KEPT: i64 = 190;
/// After so many further ones a login's records are looked through.
const LOOK_EVERY: i64 = 20;

/// Those of these logins that have tokens of the membership.
pub(crate) fn with_tokens_of(
    tx: &mut Tx<'_>,
    app: AppId,
    logins: &[LoginId],
    member: MemberId,
) -> Result<Vec<LoginId>> {
    store::with_tokens_of(tx, app, logins, member)
}

/// Until when each of these logins can be refreshed; those that cannot are left out.
pub(crate) fn ends(tx: &mut Tx<'_>, app: AppId, logins: &[LoginId]) -> Result<HashMap<LoginId, Timestamp>> {
    Ok(store::ends(tx, app, logins)?.into_iter().collect())
}

/// What a refresh token is good for.
#[derive(Clone, Debug)]
pub struct RefreshRecord {
    pub login: LoginId,
    pub member: MemberId,
    pub granted: Granted,
    pub(super) rotated_at: Option<Timestamp>,
    pub(super) expires_at: Timestamp,
}

impl RefreshRecord {
    fn gets_successors(&self, now: Timestamp) -> bool {
        self.rotated_at.is_none_or(|rotated_at| now.since(rotated_at) <= REUSE_GRACE)
    }
}

/// The record of a refresh token that was not used yet.
pub(super) fn find_unused(tx: &mut Tx<'_>, app: AppId, id: RefreshId) -> Result<RefreshRecord> {
    let now = tx.now();
    let unused = |record: &RefreshRecord| record.rotated_at.is_none() && record.expires_at > now;
    store::find_refresh_token(tx, app, id)?.filter(unused).ok_or_else(ended)
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
    let others = store::insert_refresh_token(tx, app.id, id, (login, member), granted, expires_at)?;
    if others.working >= WORKING {
        store::end_oldest(tx, app.id, login, WORKING)?;
    }
    if others.all > WORKING && others.all % LOOK_EVERY == 0 {
        store::forget_old(tx, app.id, login, tx.now().minus(KEPT), MOST_KEPT)?;
    }
    Ok((id, expires_at))
}

/// What became of a refresh token that was shown.
#[derive(Debug)]
pub enum RefreshOutcome {
    Good(RefreshRecord),
    /// It was rotated long ago: the login is revoked now. Must be committed, so this is not an error.
    Reused,
}

/// Uses a refresh token up. Of several callers at once one rotates it and the others are within the grace. `login` is what
/// the token itself names: it ends when a token comes back whose record is gone.
pub fn rotate(tx: &mut Tx<'_>, app: AppId, id: RefreshId, login: LoginId) -> Result<RefreshOutcome> {
    if let Some(record) = store::rotate(tx, app, id)? {
        return Ok(RefreshOutcome::Good(record));
    }
    let known = store::find_refresh_token(tx, app, id)?;
    let tenant_user_id = known.as_ref().map(|record| record.member);
    match known {
        // It was not used, but ended: by newer ones of its login, or by its time.
        Some(record) if record.rotated_at.is_none() => return Err(ended()),
        Some(record) if record.gets_successors(tx.now()) => return Ok(RefreshOutcome::Good(record)),
        Some(_) | None => {}
    }
    if logins::revoke(tx, app, login)? {
        emit(tx, app, &RefreshReused { session_id: login, tenant_user_id })?;
    }
    Ok(RefreshOutcome::Reused)
}

/// Whether a refresh token still gets successors.
pub(super) fn is_current(tx: &mut Tx<'_>, app: AppId, id: RefreshId) -> Result<bool> {
    let known = store::find_refresh_token(tx, app, id)?;
    Ok(known.is_some_and(|record| record.gets_successors(tx.now()) && record.expires_at > tx.now()))
}
