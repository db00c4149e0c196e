//! `/auth/federation/saml/…`: to a SAML identity provider and back.

use http::{HeaderValue, header};
use kernel::{AppId, Code, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{
    federation::{self, Connection, ConnectionId, Protocol, RequestMethod},
    paths,
};
use vault::sha256_hex;
use web::{Form, LimitClass, Params, Path, Routes, Scope, State, pages::PostForm};

use super::{
    NewPending, Via, answer, begin, done::refuse, encryption_keys, refused, request_id, sp::Party, store, trial,
};
use crate::{
    Identity,
    abuse::LIMITED,
    authorize::{Forced, LoginRequest},
    browser::{ForRequest, Request},
    hosted::{Guest, Reply, Visit},
};

pub fn routes() -> Routes<Identity> {
    Routes::new("Federated login")
        .get("/auth/federation/saml/{connection_id}/login", start, "Sign in through a SAML identity provider")
        .page()
        .limited(LimitClass::Start)
        .answers(404, "There is no such connection")
        .post("/auth/federation/saml/{connection_id}/acs", acs, "Take a SAML response")
        .body_limit(BODY_LIMIT)
        .page()
        .answers(404, "There is no such connection")
        .answers(429, LIMITED)
        .get("/auth/federation/saml/{connection_id}/metadata", metadata, "Get the SAML metadata of this service")
        .answers(404, "There is no such connection")
        .merge(super::metadata::routes())
        .merge(super::oidc::http::routes())
        .merge(super::done::routes())
        .merge(super::trial::routes())
        .merge(super::encryption_keys::http::routes())
        .merge(super::sign_up::routes())
}

/// A response of the longest kind in a form, where every character may take three.
const BODY_LIMIT: usize = 3 * saml::MAX_ENCODED + 4096;

/// A connection of this type, with its app.
pub(super) async fn connection(
    identity: &Identity,
    id: ConnectionId,
    protocol: Protocol,
) -> Result<(AppId, Connection)> {
    let found = identity.tenancy.db.read(move |tx| federation::by_id(tx, id)).await?;
    found.filter(|(_, found)| found.protocol == protocol).ok_or_else(|| Error::not_found("federation connection"))
}

/// The login request that this belongs to; without one, the app's own start.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct StartQuery {
    pub(super) r: Option<String>,
}

/// What the app of a connection asked for.
pub(super) fn asked_of(
    identity: &Identity,
    request: &Request,
    app: AppId,
    connection: ConnectionId,
    r: Option<&str>,
) -> Result<LoginRequest> {
    let asked = match r {
        Some(sealed) => LoginRequest::open_federated(&identity.tenancy, sealed)?,
        None => LoginRequest::to_default(identity.app(request, app)?.as_ref()).ok_or_else(|| {
            Error::invalid(
                "r",
                "is required, because this app begins each login itself. Go to the app and sign in there",
            )
        })?,
    };
    let is_of_this = |forced| matches!(forced, Some(Forced::Connection(forced, _)) if forced == connection);
    if asked.app == app && (!asked.trial || is_of_this(asked.forced)) {
        Ok(asked)
    } else {
        Err(Error::not_found("federation connection"))
    }
}

async fn start(
    request: Request,
    ForRequest(identity): ForRequest,
    Path(id): Path<ConnectionId>,
    Params(StartQuery { r }): Params<StartQuery>,
) -> Result<Reply> {
    let (app, connection) = connection(&identity, id, Protocol::Saml).await?;
    let asked = asked_of(&identity, &request, app, id, r.as_deref())?;
    let visit = Visit::for_request(&identity, &request, asked).await?;
    let (sealed, browser) = (visit.request.seal(&identity.tenancy)?, visit.browser());
    let since = visit.request.not_before;
    let begun = identity.tenancy.db.write(move |tx| {
        let new = NewPending {
            app,
            via: Via::Connection(id),
            browser: &browser,
            request: &sealed,
            authenticated_since: since,
        };
        begin(tx, &new)
    });
    let pending = begun.await?;
    let party = Party::new(&identity.tenancy, app, &connection);
    let (request_id, now) = (request_id(&pending), identity.tenancy.db.clock().now());
    let asks = party.request(&request_id, &pending, now, since.is_some(), visit.request.username.as_deref());
    let key = party.request_key()?;
    match connection.request_method {
        RequestMethod::Get => Ok(visit.carry(Reply::found(asks.redirect(key.as_ref())?))),
        RequestMethod::Post => {
            let sent = asks.form(key.as_ref())?;
            let form = PostForm::new(&sent.action)
                .hidden("SAMLRequest", &sent.saml_request)
                .hidden("RelayState", &sent.relay_state)
                .data("leads-on", "")
                .button(&visit.say("Continue"));
            let page = visit.page("Continue to your identity provider").form_target(&sent.action).form(&form).link(
                "",
                &visit.say("Sign in another way"),
                &visit.path(paths::IDENTIFIER)?,
            );
            Ok(visit.show(page))
        }
    }
}

/// What an identity provider posts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SamlAnswer {
    #[serde(rename = "SAMLResponse", default)]
    #[schemars(length(max = 262_144))]
    response: String,
    #[serde(rename = "RelayState", default)]
    relay_state: String,
}

async fn acs(
    request: Request,
    ForRequest(identity): ForRequest,
    Path(id): Path<ConnectionId>,
    Form(form): Form<SamlAnswer>,
) -> Result<Reply> {
    counted(&request.scope, take_saml(&identity, &request, id, form).await)
}

/// A refused answer counts against the address that it came from, like any wrong credential: 429 after too many. A good one never
/// does, however many people sit behind one address.
pub(super) fn counted(scope: &Scope, outcome: Result<Reply>) -> Result<Reply> {
    if let Err(error) = &outcome
        && error.code() == Code::FederationRefused
    {
        scope.credential_failed()?;
    }
    outcome
}

/// An answer to no login that is under way: nobody asked for it, or too long ago. The page is in the app's looks, with the way to the
/// start of the app's own login through this connection, or else to the app itself.
pub(super) async fn unasked(
    identity: &Identity,
    request: &Request,
    app: AppId,
    connection: ConnectionId,
    protocol: Protocol,
) -> Result<Error> {
    let app = identity.app(request, app)?;
    let start = paths::connection_login(protocol.as_str(), connection);
    let own = || app.profile.ui_url.as_ref().or(app.profile.website_url.as_ref()).map(ToString::to_string);
    let way_back = LoginRequest::to_default(&app).map(|_| start).or_else(own);
    Guest::of(identity, request, app, way_back).await?;
    Ok(refused())
}

async fn take_saml(identity: &Identity, request: &Request, id: ConnectionId, form: SamlAnswer) -> Result<Reply> {
    let (app, connection) = connection(identity, id, Protocol::Saml).await?;
    request.scope.set_app(app);
    let (via, relay_state) = (Via::Connection(id), form.relay_state);
    let found = identity.tenancy.db.read(move |tx| {
        let pending = store::find(tx, via, &relay_state)?;
        pending.map(|pending| Ok((pending, encryption_keys::unretired(tx)?))).transpose()
    });
    // Nobody asked for this answer, or too long ago. That is not worth a line in the trail, which anybody could fill.
    let Some((pending, keys)) = found.await? else {
        return Err(unasked(identity, request, app, id, Protocol::Saml).await?);
    };
    // For the page of whoever is refused: in the app's looks, with the way back to its login.
    let asked = LoginRequest::open_federated(&identity.tenancy, &pending.request)?;
    let visit = Visit::for_request(identity, request, asked).await?;
    let party = Party::new(&identity.tenancy, app, &connection);
    let keys = identity.federation.opened_keys.of(&identity.tenancy.keyring, &keys)?;
    let said = match party.judge(&pending, &form.response, &keys, identity.tenancy.db.clock().now())? {
        Ok(said) => said.into(),
        Err(refusal) if visit.request.trial => {
            return Ok(trial::show_refusal(&visit, refusal.step.name(), refusal.reason));
        }
        Err(refusal) => return refuse(identity, app, via, refusal.step.name(), refusal.reason).await,
    };
    let message = sha256_hex(form.response.as_bytes());
    let kept = identity.tenancy.db.write(move |tx| answer(tx, &pending, &message, &said)).await;
    match kept {
        Ok(handle) => Ok(Reply::see(format!("{}?handle={handle}", paths::FEDERATION_DONE))),
        Err(error) if error.code() == Code::FederationRefused => {
            refuse(identity, app, via, "replay", "the login was answered before").await
        }
        Err(error) => Err(error),
    }
}

async fn metadata(State(identity): State<Identity>, Path(id): Path<ConnectionId>) -> Result<Metadata> {
    let (app, connection) = connection(&identity, id, Protocol::Saml).await?;
    let encryption = encryption_keys::certificates(&identity.tenancy).await?;
    Ok(Metadata(Party::new(&identity.tenancy, app, &connection).metadata(&encryption)?))
}

/// An XML document.
struct Metadata(String);

impl axum::response::IntoResponse for Metadata {
    fn into_response(self) -> axum::response::Response {
        let kind = HeaderValue::from_static(saml::metadata::CONTENT_TYPE);
        ([(header::CONTENT_TYPE, kind)], self.0).into_response()
    }
}

impl web::Describe for Metadata {
    fn describe(operation: &mut web::Operation) {
        operation.raw_answer(http::StatusCode::OK, saml::metadata::CONTENT_TYPE);
    }
}
