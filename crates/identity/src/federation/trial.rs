//! A sign-in that only shows what an identity provider says and what would become of it: for whoever sets a connection up.
//! Nobody is signed in by it, and nothing is kept.

use std::sync::{Arc, Mutex, PoisonError};

use ::store::Tx;
use http::StatusCode;
use kernel::{Code, Error, Result, TenantId};
use schemars::JsonSchema;
use serde::Serialize;
use tenancy::{
    App,
    callers::{AppCaller, AppWrite},
    federation::{self, Connection, ConnectionId},
    members::{self, MemberRef},
    paths, people, workspaces,
};
use web::{Json, Path, Routes, State};

use super::{Asserted, PendingFederation, Via, entry, refused, take};
use crate::{
    Identity,
    authorize::LoginRequest,
    hosted::{Reply, Visit},
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::new("Federation")
        .post("/account/federation/connection/{connection_id}/test", begin, "Try out a federation connection")
        .description(
            "Open the address in a browser and sign in at the identity provider: the page that follows shows what it said \
             and what would become of it. Nothing is changed. The address works for ten minutes.",
        )
        .answers(404, "There is no such connection")
        .answers(409, "The app has no redirect URI yet")
}

/// Where a connection is tried out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct TrialStart {
    url: String,
}

async fn begin(
    caller: AppCaller<AppWrite>,
    State(identity): State<Identity>,
    Path(id): Path<ConnectionId>,
) -> Result<Json<TrialStart>> {
    let app = Arc::clone(&caller.app);
    let connection = identity.tenancy.db.read(move |tx| federation::get(tx, app.id, id)).await?;
    let now = identity.tenancy.db.clock().now();
    let request = LoginRequest::to_try(&caller.app, &connection, now).ok_or_else(|| {
        Error::new(Code::Conflict, "The app has no redirect URI yet. Register one, then try the connection.")
    })?;
    let path = paths::connection_login(connection.protocol.as_str(), id);
    let url = format!("{}{}", identity.tenancy.base_url, request.path(&identity.tenancy, &path)?);
    Ok(Json(TrialStart { url }))
}

/// The page at the end, for an answer that was accepted.
pub(super) async fn show(identity: &Identity, visit: &Visit, pending: PendingFederation) -> Result<Reply> {
    let Via::Connection(id) = pending.via else { return Err(refused()) };
    let used = pending.clone();
    let said = identity.tenancy.db.write(move |tx| take(tx, &used)).await?;
    let outcome = outcome(identity, visit, id, &said).await?;
    let page = visit
        .page("Connection test")
        .notice("Your identity provider’s answer was accepted. Nobody was signed in, and nothing was changed.")
        .heading("What it said")
        .block(&told(&said))
        .heading("What a sign-in would lead to")
        .block(&outcome);
    Ok(visit.show(page))
}

/// The page at the end, for an answer that was refused.
pub(super) fn show_refusal(visit: &Visit, step: &str, cause: &str) -> Reply {
    let page = visit
        .page("Connection test")
        .status(StatusCode::BAD_REQUEST)
        .alert("Your identity provider’s answer was refused. Nobody was signed in, and nothing was changed.")
        .block(&format!("Step: {step}\nReason: {cause}"));
    visit.show(page)
}

fn told(said: &Asserted) -> String {
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".to_owned());
    let mut lines = vec![
        format!("Issuer: {}", said.issuer),
        format!("Subject: {}", said.subject),
        format!("Email: {}", or_none(&said.email)),
        format!("First name: {}", or_none(&said.first_name)),
        format!("Last name: {}", or_none(&said.last_name)),
        format!("Two factors: {}", if said.two_factors { "yes" } else { "no" }),
    ];
    if let Some(end) = said.session_ends_at {
        lines.push(format!("Session ends: {end}"));
    }
    lines.join("\n")
}

/// What admitting them would do, found out by doing it in a transaction that is taken back.
async fn outcome(identity: &Identity, visit: &Visit, id: ConnectionId, said: &Asserted) -> Result<String> {
    let found = Arc::new(Mutex::new(None));
    let (room, app, said, place) = (identity.clone(), Arc::clone(&visit.app), said.clone(), Arc::clone(&found));
    let tried = identity.tenancy.db.write(move |tx| -> Result<()> {
        let connection = federation::find(tx, app.id, id)?.ok_or_else(refused)?;
        let outcome = admit(tx, &room, &app, &connection, &said)?;
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        Err(Error::internal("a trial is taken back"))
    });
    let failed = tried.await;
    match (found.lock().unwrap_or_else(PoisonError::into_inner).take(), failed) {
        (Some(outcome), _) => Ok(outcome),
        (None, Err(error)) if error.code() == Code::FederationDenied => Ok(format!("Refused: {}", error.public())),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Err(Error::internal("a trial had no outcome")),
    }
}

fn admit(tx: &mut Tx<'_>, identity: &Identity, app: &App, connection: &Connection, said: &Asserted) -> Result<String> {
    let email = said.email.as_deref().unwrap_or_default();
    let using = federation::workspaces_of(tx, app.id, connection.id)?;
    let mut belonged = Vec::new();
    for (tenant, _) in &using {
        if role_in(tx, app, *tenant, email)?.is_some() {
            belonged.push(*tenant);
        }
    }
    entry::admit(tx, identity, app, connection, said)?;
    let mut lines = Vec::new();
    for (tenant, _) in using {
        let Some(role) = role_in(tx, app, tenant, email)? else { continue };
        let name = workspaces::get(tx, app.id, tenant)?.name;
        lines.push(match belonged.contains(&tenant) {
            true => format!("{name}: signs in as {role}"),
            false => format!("{name}: joins as {role}"),
        });
    }
    Ok(lines.join("\n"))
}

fn role_in(tx: &mut Tx<'_>, app: &App, tenant: TenantId, email: &str) -> Result<Option<String>> {
    let Some(person) = people::find_by_email(tx, app.id, email)? else { return Ok(None) };
    Ok(members::find(tx, app.id, tenant, MemberRef::User(person.id))?.map(|member| member.role))
}
