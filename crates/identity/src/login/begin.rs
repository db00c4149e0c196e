//! From a first factor to a login session: which second factor it asks for is decided here, for every way of signing in.

use kernel::{Error, Result, Timestamp, UserId};
use store::Tx;
use tenancy::{
    App,
    logins::Reach,
    people,
    standing::{self, Standing},
};

use crate::{
    Identity,
    mfa::{self, Enrolled},
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
    let first = FirstFactor { user, method, strong, authenticated_at: tx.now(), reach: Reach::EVERYTHING };
    try_begin(tx, identity, app, first)?.ok_or_else(wrong_credentials)
}

/// Who has shown a first factor, and how far that reaches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstFactor {
    pub(crate) user: UserId,
    pub(crate) method: Method,
    /// Whether it counts as two.
    pub(crate) strong: bool,
    pub(crate) authenticated_at: Timestamp,
    pub(crate) reach: Reach,
}

/// The same; `None` for somebody who may sign in nowhere.
pub(crate) fn try_begin(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    first: FirstFactor,
) -> Result<Option<BegunSession>> {
    let FirstFactor { user, method, strong, authenticated_at, reach } = first;
    // Whoever ends the person's sign-ins waits for this one and ends it too, or has changed the standing by now.
    people::hold(tx, app.id, user)?;
    let standings = standing::of_user(tx, app.id, user, reach)?;
    if standings.is_empty() {
        return Ok(None);
    }
    let enrolled = mfa::enrolled(tx, app, user)?;
    // A passkey alone, where nobody asks for a second factor, does not make passwords ask for it.
    // Nor does a workspace that they have never come to themselves, before they do.
    let asks = |standing: &Standing| standing.tenant_mfa && !(standing.vouched && reach.is_everything());
    let asked_for = app.profile.mfa_enabled || standings.iter().any(asks) || enrolled.factor.is_some();
    let mfa = match (strong || !asked_for, enrolled.is_any()) {
        (true, _) => MfaState::Disabled,
        (false, false) => MfaState::Setup,
        (false, true) => MfaState::Required,
    };
    let new = NewSession { app: app.id, user, mfa, method, strong, backed_up: false, authenticated_at, reach };
    let begun = sessions::start(tx, &new, &standings)?;
    if mfa == MfaState::Required { ask_for(tx, identity, app, begun, &enrolled).map(Some) } else { Ok(Some(begun)) }
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
    reach: Reach,
) -> Result<Option<BegunSession>> {
    let enrolled = mfa::enrolled(tx, app, user)?;
    if !enrolled.is_any() {
        return Ok(None);
    }
    let standings = standing::of_user(tx, app.id, user, reach)?;
    let (mfa, strong, backed_up) = (MfaState::Required, false, false);
    let new = NewSession { app: app.id, user, mfa, method, strong, backed_up, authenticated_at, reach };
    let begun = sessions::start(tx, &new, &standings)?;
    ask_for(tx, identity, app, begun, &enrolled).map(Some)
}

fn ask_for(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    begun: BegunSession,
    enrolled: &Enrolled,
) -> Result<BegunSession> {
    if let Some(factor) = &enrolled.factor {
        mfa::send_code(tx, identity, app, begun.id(), factor)?;
    }
    Ok(begun.asking_for(enrolled.methods()))
}

pub(super) fn wrong_credentials() -> Error {
    Error::credential("Incorrect user name or password.")
}
