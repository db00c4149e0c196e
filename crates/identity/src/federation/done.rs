//! `/auth/federation/done`: the browser that began a login fetches what the provider said, and continues like after any credential.

use kernel::{AppId, Code, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{federation, paths};
use web::{Params, Routes};

use super::{PendingFederation, Via, entry, failed, refused, sign_up, social, store, take, trial};
use crate::{
    Identity,
    authorize::LoginRequest,
    browser::{ForRequest, Request},
    hosted::{Reply, Visit, go_on},
    sessions::BegunSession,
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login").get(
        paths::FEDERATION_DONE,
        done,
        "Continue a login that an identity provider has answered",
    )
}

/// Where the browser fetches an outcome.
pub(super) fn path(handle: &str) -> String {
    format!("{}?handle={handle}", paths::FEDERATION_DONE)
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Handle {
    handle: String,
}

/// Who comes in.
pub(super) enum Admitted {
    In(BegunSession),
    /// Somebody whom nobody knows yet, and who may sign up.
    Newcomer(social::Newcomer),
}

async fn done(
    request: Request,
    ForRequest(identity): ForRequest,
    Params(Handle { handle }): Params<Handle>,
) -> Result<Reply> {
    let found = identity.tenancy.db.read(move |tx| store::by_handle(tx, &handle)).await?;
    let pending: PendingFederation = found.ok_or_else(refused)?;
    let asked = LoginRequest::open_federated(&identity.tenancy, &pending.request)?;
    let visit = Visit::for_request(&identity, &request, asked).await?;
    let is_waiting = pending.waits(identity.tenancy.db.clock().now());
    if !visit.is_browser(&pending.browser) {
        return match is_waiting {
            true => refuse(&identity, pending.app, pending.via, "browser", "another browser began this login").await,
            false => Err(refused()),
        };
    }
    if !is_waiting {
        // Fetched before, or too late: the page has the looks of the app and the way back to its login.
        return Err(refused());
    }
    if visit.request.trial {
        return trial::show(&identity, &visit, pending).await;
    }
    let (room, app) = (identity.clone(), visit.app.clone());
    let (app_id, via) = (pending.app, pending.via);
    let admitted = identity.tenancy.db.write(move |tx| {
        let said = take(tx, &pending)?;
        match via {
            // As it is now: it may have been changed or deleted since.
            Via::Connection(id) => {
                let connection = federation::find(tx, app.id, id)?.ok_or_else(refused)?;
                entry::admit(tx, &room, &app, &connection, &said).map(Admitted::In)
            }
            Via::Provider(provider) => social::admit(tx, &room, &app, provider, &said),
        }
    });
    match admitted.await {
        Ok(Admitted::In(begun)) => go_on(&visit, begun.sign(&identity.tenancy)?).await,
        Ok(Admitted::Newcomer(newcomer)) => Ok(Reply::see(sign_up::path(&visit, &newcomer)?)),
        Err(error) if error.code() == Code::FederationDenied => {
            let reason = error.public().to_owned();
            identity.tenancy.db.write(move |tx| failed(tx, app_id, via, "entry", &reason)).await?;
            Err(error)
        }
        Err(error) => Err(error),
    }
}

/// Tells the audit trail what was wrong, and the person that something was.
pub(super) async fn refuse(
    identity: &Identity,
    app: AppId,
    via: Via,
    step: &'static str,
    cause: &str,
) -> Result<Reply> {
    refuse_with(identity, app, via, step, cause, refused()).await
}

pub(super) async fn refuse_with(
    identity: &Identity,
    app: AppId,
    via: Via,
    step: &'static str,
    cause: &str,
    error: Error,
) -> Result<Reply> {
    let cause = cause.to_owned();
    identity.tenancy.db.write(move |tx| failed(tx, app, via, step, &cause)).await?;
    Err(error)
}
