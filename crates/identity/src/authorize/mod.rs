//! What an app asks for when it sends somebody here to sign in, checked once at the start. From then on it travels
//! sealed through the pages, so that nobody can change it on the way and it needs no row until the login succeeds.

pub mod redirects;
mod request;

use std::time::Duration;

use kernel::{AppId, Error, Result, Timestamp};
use serde::{Deserialize, Serialize};
use store::Tx;
use tenancy::{
    App, Tenancy,
    federation::{self, Connection, ConnectionId, Protocol, Provider},
    logins::Reach,
};
use vault::Place;

use crate::{proof::Method, tokens::DEFAULT_SCOPE};
pub(crate) use request::{AuthorizationRequest, AuthorizeRefusal, MAX_TEXT, Prompt};

/// How the app wants to hear of the login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseType {
    /// A code in the query, to be exchanged for tokens.
    Code,
    /// An ID token in the fragment.
    IdToken,
}

/// What somebody who signs up starts with: a plan and its price.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignUpPreferences {
    pub plan: Option<String>,
    pub currency: Option<String>,
    pub interval: Option<String>,
}

/// What a login has to come through, because the app asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forced {
    Connection(ConnectionId, Protocol),
    /// One of this type, of the person's own workspace.
    AnyOf(Protocol),
    Provider(Provider),
}

/// A checked request of an app to sign somebody in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginRequest {
    pub app: AppId,
    /// One that the app registered.
    pub redirect_uri: String,
    pub response_type: ResponseType,
    pub scope: String,
    pub state: Option<String>,
    pub nonce: Option<String>,
    /// PKCE, S256.
    pub code_challenge: Option<String>,
    /// A login before this instant does not count.
    pub not_before: Option<Timestamp>,
    /// Whether the person has to prove again who they are, however short ago they did.
    #[serde(default)]
    pub fresh: bool,
    /// The address that was typed or hinted at.
    pub username: Option<String>,
    /// Present when the person came to sign up.
    pub sign_up: Option<SignUpPreferences>,
    /// The token of an invitation that the person is about to accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invitation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<Forced>,
    /// Whether this only tries out a connection: nobody is signed in by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trial: bool,
}

/// How long the address of a page works. Longer than a sign-up's link, which leads back to one.
const LIFETIME: Duration = Duration::from_secs(48 * 3600);

/// How long a connection can be tried out by one address.
const TRIAL_LIFETIME: Duration = Duration::from_secs(10 * 60);

const PLACE: Place<'static> = Place { table: "login_requests", column: "url", row: "", app: None };

impl LoginRequest {
    /// For somebody who followed a mailed link that no app asked for: back to the app's own start. `None` when the app
    /// has none, or insists on PKCE: then only the app itself can begin a login.
    pub fn to_default(app: &App) -> Option<Self> {
        if app.profile.require_pkce { None } else { Self::bare(app) }
    }

    /// For somebody who tries out a connection. `None` when the app has no address to begin from.
    pub(crate) fn to_try(app: &App, connection: &Connection, now: Timestamp) -> Option<Self> {
        let forced = Some(Forced::Connection(connection.id, connection.protocol));
        // What the provider remembers is not what is to be seen.
        Some(Self { forced, trial: true, fresh: true, not_before: Some(now), ..Self::bare(app)? })
    }

    fn bare(app: &App) -> Option<Self> {
        let profile = &app.profile;
        let uri = profile.default_callback_uri.as_ref().or_else(|| profile.redirect_uris.first())?;
        Some(Self {
            app: app.id,
            redirect_uri: uri.clone(),
            response_type: ResponseType::Code,
            scope: DEFAULT_SCOPE.to_owned(),
            state: None,
            nonce: None,
            code_challenge: None,
            not_before: None,
            fresh: false,
            username: None,
            sign_up: None,
            invitation: None,
            forced: None,
            trial: false,
        })
    }

    /// Whether a login by this method, of this reach, is what the app asked for.
    pub fn is_met(&self, tx: &mut Tx<'_>, reach: Reach, method: Method) -> Result<bool> {
        Ok(match self.forced {
            None => true,
            Some(Forced::Connection(wanted, _)) => reach.connection == Some(wanted),
            Some(Forced::Provider(wanted)) => method.provider() == Some(wanted),
            Some(Forced::AnyOf(protocol)) => match reach.connection {
                Some(id) => federation::find(tx, self.app, id)?.is_some_and(|known| known.protocol == protocol),
                None => false,
            },
        })
    }

    /// As it stands in the addresses of pages.
    pub fn seal(&self, tenancy: &Tenancy) -> Result<String> {
        let until = tenancy.db.clock().now().plus(if self.trial { TRIAL_LIFETIME } else { LIFETIME });
        let json = serde_json::to_vec(&(until, self)).map_err(Error::internal)?;
        Ok(tenancy.keyring.seal_for_page(&PLACE, &json))
    }

    /// The address of a page for it.
    pub(crate) fn path(&self, tenancy: &Tenancy, page: &str) -> Result<String> {
        Ok(format!("{page}?r={}", self.seal(tenancy)?))
    }

    /// 400 unless this service sealed it, and not too long ago. A trial leads to no page but those of its connection.
    pub fn open(tenancy: &Tenancy, sealed: &str) -> Result<Self> {
        let request = Self::open_federated(tenancy, sealed)?;
        if request.trial { Err(broken()) } else { Ok(request) }
    }

    /// The same for the way to a connection's identity provider and back.
    pub(crate) fn open_federated(tenancy: &Tenancy, sealed: &str) -> Result<Self> {
        let json = tenancy.keyring.open_from_page(&PLACE, sealed).map_err(|_| broken())?;
        let (until, request): (Timestamp, Self) = serde_json::from_slice(json.expose()).map_err(|_| broken())?;
        if until > tenancy.db.clock().now() { Ok(request) } else { Err(broken()) }
    }

    /// Where the person is sent with the answer.
    pub fn answered(&self, issuer: &str, parameters: &[(&str, &str)]) -> String {
        let state = self.state.as_deref().map(|state| ("state", state));
        let parameters: Vec<_> = parameters.iter().copied().chain(state).chain([("iss", issuer)]).collect();
        match self.response_type {
            ResponseType::Code => redirects::with_query(&self.redirect_uri, &parameters),
            ResponseType::IdToken => redirects::with_fragment(&self.redirect_uri, &parameters),
        }
    }
}

fn broken() -> Error {
    Error::invalid("r", "is not valid. Go back to the app and sign in again")
}
