//! `/auth/federation/oidc/…` and `/auth/federation/{provider}/…`: to an OpenID Connect or OAuth provider and back.

use std::{sync::Arc, time::Duration};

use kernel::{AppId, Code, Error, Page, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::federation::{self, ConnectionId, Protocol, Provider};
use vault::sha256_hex;
use web::{Form, Json, LimitClass, Params, Path, Routes, State};

use super::{Asks, Begun, LoginSecrets, OidcFailure, OpenIdClient, error_name};
use crate::{
    Identity,
    abuse::LIMITED,
    authorize::LoginRequest,
    browser::{ForRequest, Request},
    federation::{
        Asserted, NewPending, PendingFederation, Via, answer as keep, begin,
        done::{self, refuse, refuse_with},
        http::{StartQuery, asked_of, connection, counted, unasked},
        refused, store, trial,
    },
    hosted::{PageQuery, Reply, Visit},
};

pub(in crate::federation) fn routes() -> Routes<Identity> {
    Routes::new("Federated login")
        .get(
            "/auth/federation/oidc/{connection_id}/login",
            start_connection,
            "Sign in through an OpenID Connect provider",
        )
        .page()
        .limited(LimitClass::Start)
        .answers(404, "There is no such connection")
        .answers(502, OUTAGE)
        .get("/auth/federation/oidc/{connection_id}/callback", connection_callback, "Take a provider's answer")
        .page()
        .answers(404, "There is no such connection")
        .answers(429, LIMITED)
        .answers(502, OUTAGE)
        .post("/auth/federation/oidc/{connection_id}/callback", connection_form, "Take a provider's answer from a form")
        .page()
        .answers(404, "There is no such connection")
        .answers(429, LIMITED)
        .answers(502, OUTAGE)
        .get("/auth/federation/{provider}/login", start_provider, "Sign in with a provider of the app")
        .page()
        .limited(LimitClass::Start)
        .answers(502, OUTAGE)
        .get("/auth/federation/{provider}/callback", provider_callback, "Take a provider's answer")
        .page()
        .answers(429, LIMITED)
        .answers(502, OUTAGE)
        .post("/auth/federation/{provider}/callback", provider_form, "Take a provider's answer from a form")
        .page()
        .answers(429, LIMITED)
        .answers(502, OUTAGE)
        .get("/auth/federation/providers/{app_id}", offered, "List the providers that a login page may offer")
        .answers(404, "There is no such app")
}

const OUTAGE: &str = "The provider cannot be reached, or does not answer as it should";
/// How often somebody looks whether the same answer has been dealt with: for 20 seconds.
const PATIENCE: u32 = 400;
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A provider that a login page may offer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct OfferedProvider {
    /// As in `force_federation`.
    id: Provider,
    name: String,
}

async fn offered(
    request: Request,
    State(identity): State<Identity>,
    Path(app): Path<AppId>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<OfferedProvider>>> {
    let (app, room) = (identity.app(&request, app)?, identity.clone());
    let offered =
        identity.tenancy.db.read(move |tx| room.federation.providers.offered(tx, &room.tenancy, &app)).await?;
    Ok(Json(page.of(offered.into_iter().map(|(id, name)| OfferedProvider { id, name }))))
}

async fn start_connection(
    request: Request,
    ForRequest(identity): ForRequest,
    Path(id): Path<ConnectionId>,
    Params(StartQuery { r }): Params<StartQuery>,
) -> Result<Reply> {
    let (app, _) = connection(&identity, id, Protocol::Oidc).await?;
    let asked = asked_of(&identity, &request, app, id, r.as_deref())?;
    start(&identity, &request, Via::Connection(id), asked).await
}

async fn start_provider(
    request: Request,
    ForRequest(identity): ForRequest,
    Path(provider): Path<Provider>,
    Params(PageQuery { r }): Params<PageQuery>,
) -> Result<Reply> {
    let asked = LoginRequest::open(&identity.tenancy, &r)?;
    start(&identity, &request, Via::Provider(provider), asked).await
}

/// This service as the provider of a login knows it; `None` when the provider was turned off or its settings are gone.
async fn party(identity: &Identity, visit: &Visit, via: Via) -> Result<Option<OpenIdClient>> {
    let (room, app) = (identity.clone(), visit.app.clone());
    let found = identity.tenancy.db.read(move |tx| match via {
        Via::Connection(id) => {
            let Some(connection) = federation::find(tx, app.id, id)? else { return Ok(None) };
            let tenancy = &room.tenancy;
            OpenIdClient::of_connection(&tenancy.keyring, &tenancy.base_url, app.id, &connection)
        }
        Via::Provider(provider) => {
            let client = room.federation.providers.client(tx, &room.tenancy, &app, provider)?;
            let settings = room.federation.providers.get(provider);
            let party = |(settings, client)| OpenIdClient::of_provider(&room.tenancy.base_url, via, settings, client);
            Ok(settings.zip(client).map(party))
        }
    });
    found.await
}

async fn start(identity: &Identity, request: &Request, via: Via, asked: LoginRequest) -> Result<Reply> {
    let visit = Visit::for_request(identity, request, asked).await?;
    let app = visit.app.id;
    let Some(party) = party(identity, &visit, via).await? else {
        return refuse_with(identity, app, via, "settings", "the provider is turned off", turned_off()).await;
    };
    let metadata = match party.metadata(&identity.federation.directory).await {
        Ok(metadata) => metadata,
        Err(failure) => return give_up(identity, app, via, failure).await,
    };
    let (sealed, browser, since) = (visit.request.seal(&identity.tenancy)?, visit.browser(), visit.request.not_before);
    let begun = identity.tenancy.db.write(move |tx| {
        begin(tx, &NewPending { app, via, browser: &browser, request: &sealed, authenticated_since: since })
    });
    let state = begun.await?;
    let asks = Asks {
        state: &state,
        secrets: LoginSecrets::of(&identity.tenancy.keyring, &state),
        now: identity.tenancy.db.clock().now(),
        authenticated_since: since,
        is_fresh: visit.request.fresh,
        login_hint: visit.request.username.as_deref(),
    };
    Ok(visit.carry(Reply::found(party.address(&metadata, &asks))))
}

fn turned_off() -> Error {
    Error::new(Code::FederationRefused, "This way to sign in is not available. Sign in another way.")
}

async fn give_up(identity: &Identity, app: AppId, via: Via, failure: OidcFailure) -> Result<Reply> {
    let OidcFailure { step, reason, .. } = failure.clone();
    refuse_with(identity, app, via, step, &reason, failure.into()).await
}

/// What a provider sends back, in the query or in a form.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct ProviderAnswer {
    #[serde(default)]
    state: String,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

async fn connection_callback(
    request: Request,
    ForRequest(identity): ForRequest,
    Path(id): Path<ConnectionId>,
    Params(answer): Params<ProviderAnswer>,
) -> Result<Reply> {
    connection(&identity, id, Protocol::Oidc).await?;
    Callback { identity, request, via: Via::Connection(id), has_cookies: true }.take(answer).await
}

async fn connection_form(
    request: Request,
    ForRequest(identity): ForRequest,
    Path(id): Path<ConnectionId>,
    Form(answer): Form<ProviderAnswer>,
) -> Result<Reply> {
    connection(&identity, id, Protocol::Oidc).await?;
    Callback { identity, request, via: Via::Connection(id), has_cookies: false }.take(answer).await
}

async fn provider_callback(
    request: Request,
    ForRequest(identity): ForRequest,
    Path(provider): Path<Provider>,
    Params(answer): Params<ProviderAnswer>,
) -> Result<Reply> {
    Callback { identity, request, via: Via::Provider(provider), has_cookies: true }.take(answer).await
}

async fn provider_form(
    request: Request,
    ForRequest(identity): ForRequest,
    Path(provider): Path<Provider>,
    Form(answer): Form<ProviderAnswer>,
) -> Result<Reply> {
    Callback { identity, request, via: Via::Provider(provider), has_cookies: false }.take(answer).await
}

/// A provider's answer on its way in.
struct Callback {
    identity: Identity,
    request: Request,
    via: Via,
    /// A form from another site brings none: the browser is looked at when it fetches the outcome, and only there.
    has_cookies: bool,
}

impl Callback {
    async fn take(self, answer: ProviderAnswer) -> Result<Reply> {
        let scope = Arc::clone(&self.request.scope);
        counted(&scope, self.judge(answer).await)
    }

    async fn judge(self, answer: ProviderAnswer) -> Result<Reply> {
        let Self { identity, request, via, has_cookies } = self;
        let state = answer.state.clone();
        let found = identity.tenancy.db.read(move |tx| store::find(tx, via, &state)).await?;
        let Some(pending) = found else {
            let Via::Connection(id) = via else { return Err(refused()) };
            let (app, _) = connection(&identity, id, Protocol::Oidc).await?;
            return Err(unasked(&identity, &request, app, id, Protocol::Oidc).await?);
        };
        // For the page of whoever is refused: in the app's looks, with the way back to its login.
        let asked = LoginRequest::open_federated(&identity.tenancy, &pending.request)?;
        let visit = Visit::for_request(&identity, &request, asked).await?;
        let app = pending.app;
        if has_cookies && !visit.is_browser(&pending.browser) {
            return refuse(&identity, app, via, "browser", "another browser began this login").await;
        }
        let code = match (&answer.error, answer.code.filter(|code| !code.is_empty())) {
            (None, Some(code)) => code,
            (error, _) => {
                let cause = error.as_ref().map_or_else(|| "there is no code".to_owned(), |error| error_name(error));
                if visit.request.trial {
                    return Ok(trial::show_refusal(&visit, "answer", &cause));
                }
                return refuse(&identity, app, via, "answer", &cause).await;
            }
        };
        // Before the code is taken in hand, so that whoever sends it again is not kept waiting for what nobody does.
        let Some(party) = party(&identity, &visit, via).await? else {
            return refuse_with(&identity, app, via, "settings", "the provider is turned off", turned_off()).await;
        };
        let message = sha256_hex(code.as_bytes());
        let (claimed, digest) = (pending.clone(), message.clone());
        if !identity.tenancy.db.write(move |tx| store::claim(tx, &claimed, &digest)).await? {
            return again(&identity, via, &pending.id, &message).await;
        }
        // A task of its own: the code works once, and a browser that asks again hangs up on the first.
        let exchange = Exchange { identity: identity.clone(), pending, party, code, iss: answer.iss, message };
        let outcome = tokio::spawn(exchange.run()).await.map_err(Error::internal)?;
        match outcome? {
            Ok(handle) => Ok(Reply::see(done::path(&handle))),
            Err(failure) if visit.request.trial => Ok(trial::show_refusal(&visit, failure.step, &failure.reason)),
            Err(failure) => give_up(&identity, app, via, failure).await,
        }
    }
}

/// A code that is exchanged, once.
struct Exchange {
    identity: Identity,
    pending: PendingFederation,
    party: OpenIdClient,
    code: String,
    iss: Option<String>,
    message: String,
}

impl Exchange {
    /// The handle under which the outcome is kept.
    async fn run(self) -> Result<Result<String, OidcFailure>> {
        let said = self.redeem().await;
        let Self { identity, pending, message, .. } = self;
        let kept = identity.tenancy.db.write(move |tx| match &said {
            Ok(said) => keep(tx, &pending, &message, said).map(Ok),
            Err(failure) => {
                store::give_up(tx, &pending)?;
                Ok(Err(failure.clone()))
            }
        });
        kept.await
    }

    async fn redeem(&self) -> Result<Asserted, OidcFailure> {
        let (tenancy, directory) = (&self.identity.tenancy, &self.identity.federation.directory);
        let metadata = self.party.metadata(directory).await?;
        self.party.check_issuer(&metadata, self.iss.as_deref())?;
        let begun = Begun {
            secrets: &self.pending.secrets(&tenancy.keyring),
            begun_at: self.pending.created_at,
            authenticated_since: self.pending.authenticated_since,
            now: tenancy.db.clock().now(),
        };
        self.party.redeem(directory, &metadata, &self.code, &begun).await
    }
}

/// The same answer again: the outcome of the first, as soon as there is one.
async fn again(identity: &Identity, via: Via, state: &str, message: &str) -> Result<Reply> {
    for _ in 0..PATIENCE {
        let asked = state.to_owned();
        let found = identity.tenancy.db.read(move |tx| store::find(tx, via, &asked)).await?;
        let Some(pending) = found else { break };
        if let Some(handle) = pending.repeated(message, identity.tenancy.db.clock().now()) {
            return Ok(Reply::see(done::path(handle)));
        }
        let in_hand = pending.answered_at.is_none() && pending.used_at.is_none();
        if !in_hand || pending.message.as_deref() != Some(message) {
            return refuse(identity, pending.app, via, "replay", "the login was answered before").await;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Err(refused())
}
