//! The steps of a second factor, the same for the JSON flows and the hosted pages. A wrong code counts against the
//! client's address too.

use std::sync::Arc;

use kernel::Result;
use store::Tx;
use tenancy::{App, people};

use super::{NewSecret, SecondFactor, Setup, Stage};
use crate::{
    Identity,
    abuse::{Attempt, AttemptSource},
    sessions::{LoginClaims, SessionAnswer},
};

/// What the login waits for.
pub(crate) async fn stage(identity: &Identity, app: &Arc<App>, session: LoginClaims) -> Result<Stage> {
    let (room, app) = (identity.clone(), Arc::clone(app));
    identity.tenancy.db.read(move |tx| super::stage(tx, &room, &app, &session)).await
}

/// Begins to set a factor up.
pub(crate) async fn start_setup(
    identity: &Identity,
    app: &Arc<App>,
    session: LoginClaims,
    setup: Setup,
) -> Result<Option<NewSecret>> {
    let (room, app) = (identity.clone(), Arc::clone(app));
    identity.tenancy.db.write(move |tx| super::start_setup(tx, &room, &app, &session, &setup)).await
}

/// Finishes setting a factor up: the session, completed, and the backup code.
pub(crate) async fn finish_setup(
    identity: &Identity,
    source: &AttemptSource,
    session: LoginClaims,
    code: String,
) -> Result<(SessionAnswer, String)> {
    let room = identity.clone();
    let attempt = Attempt::second_factor(session.aid, session.sub, source, identity.limits);
    let (begun, backup_code) = judged(identity, source, attempt, session, move |tx, session, attempt| {
        super::finish_setup(tx, &room, session, attempt, &code)
    })
    .await?;
    Ok((begun.sign(&identity.tenancy)?, backup_code))
}

/// Sends a fresh code for the factor that is asked for.
pub(crate) async fn challenge(identity: &Identity, app: &Arc<App>, session: LoginClaims) -> Result<SecondFactor> {
    let (room, app) = (identity.clone(), Arc::clone(app));
    identity.tenancy.db.write(move |tx| super::challenge(tx, &room, &app, &session)).await
}

/// Verifies the second factor.
pub(crate) async fn commit(
    identity: &Identity,
    source: &AttemptSource,
    session: LoginClaims,
    code: String,
) -> Result<SessionAnswer> {
    let room = identity.clone();
    let attempt = Attempt::second_factor(session.aid, session.sub, source, identity.limits);
    let committed = judged(identity, source, attempt, session, move |tx, session, attempt| {
        super::commit(tx, &room, session, attempt, &code)
    });
    committed.await?.sign(&identity.tenancy)
}

/// Takes the factor away with the backup code.
pub(crate) async fn reset(
    identity: &Identity,
    source: &AttemptSource,
    session: LoginClaims,
    backup_code: String,
) -> Result<SessionAnswer> {
    let room = identity.clone();
    let codes = Attempt::second_factor(session.aid, session.sub, source, identity.limits);
    let attempt = Attempt::backup_code(session.aid, session.sub, source, identity.limits);
    let reset = judged(identity, source, attempt, session, move |tx, session, attempt| {
        super::reset(tx, &room, session, attempt, &codes, &backup_code)
    });
    reset.await?.sign(&identity.tenancy)
}

/// One transaction for an attempt. A wrong one is committed, and counts against the client's address too.
async fn judged<T: Send + 'static>(
    identity: &Identity,
    source: &AttemptSource,
    attempt: Attempt,
    session: LoginClaims,
    judge: impl Fn(&mut Tx<'_>, &LoginClaims, &Attempt) -> Result<super::Judged<T>> + Send + 'static,
) -> Result<T> {
    let is_known = attempt.is_known;
    let judged = identity.tenancy.db.write(move |tx| {
        // As whoever begins to sign in: the session is replaced by the next one.
        people::hold(tx, session.aid, session.sub)?;
        judge(tx, &session, &attempt)
    });
    let outcome = async { judged.await?.settled() };
    if is_known { outcome.await } else { identity.addresses.judge(source.client, outcome).await }
}
