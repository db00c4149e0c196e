//! What the room tells of logins and credentials, so that every way of signing in tells it alike. A change of how somebody
//! signs in is told to them by mail too: it may not have been them.

use kernel::{Actor, AppId, Result, UserId};
use spine::emit;
use store::Tx;
use tenancy::{
    App, Tenancy,
    logins::Reach,
    mails::{self, AppMail},
    people,
    standing::Standing,
};

use crate::{
    facts::{FactorChange, FactorChanged, FailureReason, LoginFailed, LoginSucceeded, PasswordChanged, SsoBypassed},
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
    reach: Reach,
) -> Result<()> {
    tx.acting_as(Actor::user(standing.user));
    sso_bypassed(tx, app.id, standing, Some(method), reach)?;
    let told = LoginSucceeded {
        user_id: standing.user,
        tenant_user_id: standing.member,
        workspace_id: standing.tenant,
        email: standing.email.clone(),
        session_id: sid.to_owned(),
        method: method.kind(),
        mfa,
        connection_id: reach.connection,
        provider: method.provider(),
    };
    emit(tx, (app.id, standing.tenant), &told)
}

/// Whoever comes into a workspace by another way than its identity provider, where that is the way in, is told of.
pub(crate) fn sso_bypassed(
    tx: &mut Tx<'_>,
    app: AppId,
    standing: &Standing,
    method: Option<Method>,
    reach: Reach,
) -> Result<()> {
    if !standing.sso_required || !reach.is_everything() {
        return Ok(());
    }
    let bypassed = SsoBypassed {
        user_id: standing.user,
        tenant_user_id: standing.member,
        workspace_id: standing.tenant,
        method: method.map(Method::kind),
    };
    emit(tx, (app, standing.tenant), &bypassed)
}

/// `user` is `None` for an account that does not exist, whose name is nobody's business.
pub(crate) fn login_failed(tx: &mut Tx<'_>, app: AppId, user: Option<UserId>, reason: FailureReason) -> Result<()> {
    let failed = LoginFailed { user_id: user, reason, connection_id: None, provider: None, step: None, cause: None };
    emit(tx, app, &failed)
}

/// A person chose a password; `again` when they had one before.
pub(crate) fn password_changed(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: AppId,
    user: UserId,
    again: bool,
) -> Result<()> {
    emit(tx, app, &PasswordChanged { user_id: user })?;
    if again { tell_person(tx, tenancy, app, user, &AppMail::PasswordChanged) } else { Ok(()) }
}

/// A second factor or a passkey came or went.
pub(crate) fn factor_changed(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: AppId,
    user: UserId,
    change: FactorChange,
) -> Result<()> {
    emit(tx, app, &FactorChanged { user_id: user, change })?;
    let mail = match change {
        FactorChange::SetUp => AppMail::FactorSetUp,
        FactorChange::Reset | FactorChange::Cleared | FactorChange::TurnedOff => AppMail::FactorRemoved,
        FactorChange::PasskeyAdded => AppMail::PasskeyAdded,
        FactorChange::PasskeyRemoved => AppMail::PasskeyRemoved,
    };
    tell_person(tx, tenancy, app, user, &mail)
}

/// Not counted among the mails that others can ask for: whoever got this far is in the account already.
fn tell_person(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, user: UserId, mail: &AppMail) -> Result<()> {
    let (Some(app), Some(person)) = (tenancy.apps.get(app), people::find(tx, app, user)?) else { return Ok(()) };
    mails::queue(tx, tenancy, &app, &person.email, mail)
}
