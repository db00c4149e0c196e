//! What the room tells of logins, so that every way of signing in tells it alike.

use kernel::{Actor, AppId, Result, UserId};
use spine::emit;
use store::Tx;
use tenancy::{App, standing::Standing};

use crate::{
    facts::{FailureReason, LoginFailed, LoginSucceeded},
    proof::Method,
};

/// A login led to a token. `sid` is what the token calls it.
pub(crate) fn login_succeeded(
    tx: &mut Tx<'_>,
    app: &App,
    sid: &str,
    standing: &Standing,
    method: Method,
    mfa: bool,
) -> Result<()> {
    tx.acting_as(Actor::user(standing.user));
    let told = LoginSucceeded {
        user_id: standing.user,
        tenant_user_id: standing.member,
        workspace_id: standing.tenant,
        email: standing.email.clone(),
        session_id: sid.to_owned(),
        method,
        mfa,
    };
    emit(tx, (app.id, standing.tenant), &told)
}

/// `user` is `None` for an account that does not exist, whose name is nobody's business.
pub(crate) fn login_failed(tx: &mut Tx<'_>, app: AppId, user: Option<UserId>, reason: FailureReason) -> Result<()> {
    emit(tx, app, &LoginFailed { user_id: user, reason })
}
