//! The steps of a second factor, the same for the JSON flows and the hosted pages. A wrong code counts against the
//! client's address too.

use std::{net::IpAddr, sync::Arc};

use kernel::{Code, Result};
use tenancy::App;

use super::{NewSecret, SecondFactor, Setup, Stage};
use crate::{
    Identity,
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
    client: IpAddr,
    session: LoginClaims,
    code: String,
) -> Result<(SessionAnswer, String)> {
    identity.addresses.check(client)?;
    let room = identity.clone();
    let finished = identity.tenancy.db.write(move |tx| super::finish_setup(tx, &room, &session, &code)).await?;
    let (begun, backup_code) = counted(identity, client, finished.settled())?;
    Ok((begun.sign(&identity.tenancy)?, backup_code))
}

/// Sends a fresh code for the factor that is asked for.
pub(crate) async fn challenge(identity: &Identity, app: &Arc<App>, session: LoginClaims) -> Result<SecondFactor> {
    let (room, app) = (identity.clone(), Arc::clone(app));
    identity.tenancy.db.write(move |tx| super::challenge(tx, &room, &app, &session)).await
}

/// Shows the second factor.
pub(crate) async fn commit(
    identity: &Identity,
    client: IpAddr,
    session: LoginClaims,
    code: String,
) -> Result<SessionAnswer> {
    identity.addresses.check(client)?;
    let room = identity.clone();
    let committed = identity.tenancy.db.write(move |tx| super::commit(tx, &room, &session, &code)).await?;
    counted(identity, client, committed.settled())?.sign(&identity.tenancy)
}

/// Takes the factor away with the backup code.
pub(crate) async fn reset(
    identity: &Identity,
    client: IpAddr,
    session: LoginClaims,
    backup_code: String,
) -> Result<SessionAnswer> {
    identity.addresses.check(client)?;
    let reset = identity.tenancy.db.write(move |tx| super::reset(tx, &session, &backup_code)).await?;
    counted(identity, client, reset.settled())?.sign(&identity.tenancy)
}

fn counted<T>(identity: &Identity, client: IpAddr, outcome: Result<T>) -> Result<T> {
    outcome.inspect_err(|error| {
        if error.code() == Code::WrongCode {
            identity.addresses.fail(client);
        }
    })
}
