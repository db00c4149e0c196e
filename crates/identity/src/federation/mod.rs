//! Signing in through a workspace's own identity provider, by SAML.
//!
//! A login on its way there and back is a row: it lives ten minutes, is answered once and belongs to the browser that began it. The
//! provider's answer comes without cookies, so it is judged and kept, and the browser fetches the outcome with a handle. From
//! there it continues like every login, with the reach of the connection.

mod entry;
pub mod http;
mod sp;
mod store;

use std::time::Duration;

use ::store::Tx;
use kernel::{AppId, Code, Error, Result, Timestamp};
use saml::Statement;
use serde::{Deserialize, Serialize};
use spine::emit;
use tenancy::federation::ConnectionId;

use crate::facts::FederationFailed;

/// How long somebody may take at the identity provider.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// How long the outcome waits for the browser.
const OUTCOME_LIFETIME: Duration = Duration::from_secs(60);
/// A browser that sends the answer twice gets the same handle.
const REPEATS: Duration = Duration::from_secs(30);
const ID_LENGTH: usize = 43;

/// A login on its way to an identity provider.
#[derive(Clone, Debug)]
struct PendingFederation {
    id: String,
    app: AppId,
    connection: ConnectionId,
    /// What only the browser that began can show.
    browser: String,
    /// The login request, sealed.
    request: String,
    authenticated_since: Option<Timestamp>,
    message: Option<String>,
    statement: Option<String>,
    handle: Option<String>,
    answered_at: Option<Timestamp>,
}

/// What is kept of an accepted answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Asserted {
    issuer: String,
    subject: String,
    email: Option<String>,
    first_name: Option<String>,
    last_name: Option<String>,
    session_ends_at: Option<Timestamp>,
    two_factors: bool,
}

impl From<Statement> for Asserted {
    fn from(said: Statement) -> Self {
        let two_factors = said.two_factors();
        Self {
            issuer: said.issuer,
            subject: said.subject.value,
            email: said.email,
            first_name: said.first_name,
            last_name: said.last_name,
            session_ends_at: said.session_ends_at,
            two_factors,
        }
    }
}

/// What begins a login at an identity provider.
struct NewPending<'a> {
    app: AppId,
    connection: ConnectionId,
    browser: &'a str,
    request: &'a str,
    authenticated_since: Option<Timestamp>,
}

/// Remembers that somebody is on their way; the id goes along as RelayState.
fn begin(tx: &mut Tx<'_>, new: &NewPending<'_>) -> Result<String> {
    let id = tx.entropy().base62(ID_LENGTH);
    store::insert(tx, &id, new, tx.now().plus(LIFETIME))?;
    Ok(id)
}

/// The `ID` of the request of a pending login.
fn request_id(id: &str) -> String {
    format!("_{id}")
}

/// Keeps an accepted answer; the handle to fetch it with. The same message again within half a minute gets the same one.
fn answer(tx: &mut Tx<'_>, pending: &PendingFederation, message: &str, said: &Asserted) -> Result<String> {
    let statement = serde_json::to_string(said).map_err(Error::internal)?;
    let handle = tx.entropy().base62(ID_LENGTH);
    if store::answer(tx, pending, message, &statement, &handle)? {
        return Ok(handle);
    }
    let known = store::find(tx, pending.app, pending.connection, &pending.id)?.ok_or_else(refused)?;
    let repeated =
        known.message.as_deref() == Some(message) && known.answered_at.is_some_and(|at| at.plus(REPEATS) > tx.now());
    known.handle.filter(|_| repeated).ok_or_else(refused)
}

/// Uses an outcome up: of several callers at once, one gets it.
fn take(tx: &mut Tx<'_>, pending: &PendingFederation) -> Result<Asserted> {
    if !store::take(tx, pending)? {
        return Err(refused());
    }
    serde_json::from_str(pending.statement.as_deref().unwrap_or_default()).map_err(Error::internal)
}

fn failed(tx: &mut Tx<'_>, app: AppId, connection: ConnectionId, step: &str, reason: &str) -> Result<()> {
    emit(tx, app, &FederationFailed { connection_id: connection, step: step.to_owned(), reason: reason.to_owned() })
}

/// The one answer to whatever is wrong with an identity provider's message: the audit trail knows more.
fn refused() -> Error {
    Error::new(
        Code::FederationRefused,
        "The answer of your identity provider could not be accepted. Sign in again; if it keeps failing, tell your administrator.",
    )
}

/// A good answer about somebody who may not come in.
fn denied(message: &'static str) -> Error {
    Error::new(Code::FederationDenied, message)
}
