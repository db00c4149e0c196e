//! From a first factor to a login session: which second factor it asks for is decided here, for every way of signing in.

use kernel::{Error, Result, Timestamp, UserId};
use store::Tx;
use tenancy::{App, standing};

use crate::{
    Identity, mfa,
    proof::{Method, MfaState},
    sessions::{self, BegunSession, NewSession},
};

/// Begins a session for a person who has proven a first factor; sends a code when one is wanted by SMS. Somebody who may
/// sign in nowhere is refused like somebody unknown.
pub fn begin(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    user: UserId,
    method: Method,
    strong: bool,
) -> Result<BegunSession> {
    try_begin(tx, identity, app, user, method, strong)?.ok_or_else(wrong_credentials)
}

/// The same; `None` for somebody who may sign in nowhere.
pub(crate) fn try_begin(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    user: UserId,
    method: Method,
    strong: bool,
) -> Result<Option<BegunSession>> {
    let standings = standing::of_user(tx, app.id, user)?;
    if standings.is_empty() {
        return Ok(None);
    }
    let factor = mfa::find_factor(tx, app.id, user)?;
    let asked_for = app.profile.mfa_enabled || standings.iter().any(|standing| standing.tenant_mfa) || factor.is_some();
    let mfa = match (strong, asked_for, &factor) {
        (true, ..) | (_, false, _) => MfaState::Disabled,
        (_, true, None) => MfaState::Setup,
        (_, true, Some(_)) => MfaState::Required,
    };
    let new = NewSession { app: app.id, user, mfa, method, strong, authenticated_at: tx.now() };
    let begun = sessions::start(tx, &new, &standings)?;
    if let (MfaState::Required, Some(factor)) = (mfa, &factor) {
        mfa::send_code(tx, identity, app, begun.id(), factor)?;
    }
    Ok(Some(begun))
}

/// Continues from an earlier login that proved one factor, to prove the second; `None` when there is none to prove:
/// setting one up takes a first factor that was proven just now.
pub(crate) fn step_up(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    user: UserId,
    method: Method,
    authenticated_at: Timestamp,
) -> Result<Option<BegunSession>> {
    let Some(factor) = mfa::find_factor(tx, app.id, user)? else { return Ok(None) };
    let standings = standing::of_user(tx, app.id, user)?;
    let new = NewSession { app: app.id, user, mfa: MfaState::Required, method, strong: false, authenticated_at };
    let begun = sessions::start(tx, &new, &standings)?;
    mfa::send_code(tx, identity, app, begun.id(), &factor)?;
    Ok(Some(begun))
}

pub(super) fn wrong_credentials() -> Error {
    Error::credential("Incorrect user name or password.")
}
