//! Signing in through a workspace's own identity provider, by SAML or OpenID Connect, and through providers of the app.
//!
//! A login on its way there and back is a row: it lives ten minutes, is answered once and belongs to the browser that began it. The
//! provider's answer may come without cookies, so it is judged and kept, and the browser fetches the outcome with a handle. From
//! there it continues like every login, with the reach of the connection.

mod done;
mod encryption_keys;
mod entry;
pub mod http;
pub(crate) mod identities;
mod metadata;
mod oidc;
pub mod providers;
mod sign_up;
mod social;
mod sp;
mod store;
mod trial;
mod via;

use std::{sync::Arc, time::Duration};

use ::store::Tx;
use kernel::{AppId, Code, Error, Result, Timestamp, UserId};
use saml::Statement;
use serde::{Deserialize, Serialize};
use spine::{emit, outbound::Outbound};
use tenancy::{Tenancy, federation};

pub use providers::{ProviderSettings, Providers, ResponseMode};
pub use sign_up::ProviderSignUpPage;
pub use social::Newcomer;
use via::Via;

use crate::{
    facts::{FailureReason, LoginFailed},
    login,
};

/// What logins through others work with. Cheap to clone.
#[derive(Clone)]
pub struct Federation {
    pub(crate) providers: Providers,
    directory: Arc<oidc::Directory>,
    opened_keys: encryption_keys::OpenedKeys,
}

impl Federation {
    pub fn new(tenancy: &Tenancy, outbound: Outbound, providers: Providers) -> Self {
        let directory = oidc::Directory::new(outbound, tenancy.db.clock().clone(), &tenancy.base_url);
        Self { providers, directory: Arc::new(directory), opened_keys: encryption_keys::OpenedKeys::default() }
    }
}

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
    via: Via,
    /// What only the browser that began can show.
    browser: String,
    /// The login request, sealed.
    request: String,
    authenticated_since: Option<Timestamp>,
    message: Option<String>,
    statement: Option<String>,
    handle: Option<String>,
    answered_at: Option<Timestamp>,
    used_at: Option<Timestamp>,
    created_at: Timestamp,
}

/// What is kept of an accepted answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Asserted {
    issuer: String,
    subject: String,
    email: Option<String>,
    /// Whether a provider of the app calls the address verified; a connection's word on it does not count.
    #[serde(default)]
    email_verified: bool,
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
            email_verified: false,
            first_name: said.first_name,
            last_name: said.last_name,
            session_ends_at: said.session_ends_at,
            two_factors,
        }
    }
}

/// Takes away whatever proved a person's former address, which a provider or a directory has replaced.
pub fn forget_former_address(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    login::forget_all_proofs(tx, app, user)?;
    identities::unlink_all(tx, app, user)
}

/// What begins a login at an identity provider.
struct NewPending<'a> {
    app: AppId,
    via: Via,
    browser: &'a str,
    request: &'a str,
    authenticated_since: Option<Timestamp>,
}

/// Remembers that somebody is on their way; the id goes along as RelayState or `state`.
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
    let known = store::find(tx, pending.via, &pending.id)?.ok_or_else(refused)?;
    known.repeated(message, tx.now()).map(str::to_owned).ok_or_else(refused)
}

impl PendingFederation {
    /// The handle, for the message that it answered a moment ago.
    fn repeated(&self, message: &str, now: Timestamp) -> Option<&str> {
        let is_same = self.message.as_deref() == Some(message);
        let is_recent = self.answered_at.is_some_and(|at| at.plus(REPEATS) > now);
        self.handle.as_deref().filter(|_| is_same && is_recent)
    }

    /// Whether the outcome still waits for its browser.
    fn waits(&self, now: Timestamp) -> bool {
        self.used_at.is_none() && self.answered_at.is_some_and(|at| at.plus(OUTCOME_LIFETIME) > now)
    }
}

/// Uses an outcome up: of several callers at once, one gets it.
fn take(tx: &mut Tx<'_>, pending: &PendingFederation) -> Result<Asserted> {
    if !store::take(tx, pending)? {
        return Err(refused());
    }
    serde_json::from_str(pending.statement.as_deref().unwrap_or_default()).map_err(Error::internal)
}

fn failed(tx: &mut Tx<'_>, app: AppId, via: Via, step: &str, cause: &str) -> Result<()> {
    let failed = LoginFailed {
        user_id: None,
        reason: FailureReason::Federation,
        connection_id: via.connection(),
        provider: via.provider(),
        step: Some(step.to_owned()),
        cause: Some(cause.to_owned()),
    };
    emit(tx, app, &failed)?;
    match via.connection() {
        Some(id) => federation::note_failure(tx, app, id, step),
        None => Ok(()),
    }
}

/// The one answer to whatever is wrong with an identity provider's message: the audit trail knows more.
fn refused() -> Error {
    Error::new(
        Code::FederationRefused,
        "The answer of your identity provider could not be accepted. Sign in again; if it keeps failing, tell your administrator.",
    )
}

/// A provider that does not answer, or not as it should.
fn unavailable() -> Error {
    Error::new(
        Code::ProviderFailed,
        "Your identity provider cannot be reached at the moment, or is not set up correctly. Try again later, or sign in another way.",
    )
}

/// A good answer about somebody who may not come in.
fn denied(message: &'static str) -> Error {
    Error::new(Code::FederationDenied, message)
}
