//! This service as a client of an OpenID Connect provider, or of an OAuth provider that has no ID tokens: where it sends people, and
//! what it makes of the code that comes back. All calls happen between transactions.

mod call;
pub(super) mod http;
mod id_token;
mod metadata;
mod person;

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::{AppId, Error, Result, Secret, Timestamp};
use serde::Deserialize;
use spine::outbound::{Answer, Failure};
use tenancy::{credentials::ProviderClient, federation::Connection};
use vault::{Keyring, sha256_bytes};

use super::{
    Asserted, PendingFederation, Via,
    providers::{ProviderSettings, ResponseMode},
};
use call::Call;
use id_token::{Expectation, IdTokenClaims};
pub(super) use metadata::Directory;
use metadata::{ClientAuthentication, ProviderMetadata};

/// Why a login through a provider came to nothing. The reason is for the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OidcFailure {
    pub(super) step: &'static str,
    pub(super) reason: String,
    /// The provider cannot be asked; otherwise what it said is not accepted.
    pub(super) is_outage: bool,
}

impl OidcFailure {
    fn refused(step: &'static str, reason: &str) -> Self {
        Self { step, reason: reason.to_owned(), is_outage: false }
    }

    fn unavailable(step: &'static str, reason: &str) -> Self {
        Self { step, reason: reason.to_owned(), is_outage: true }
    }
}

/// This service towards one provider.
pub(super) struct OpenIdClient {
    client_id: String,
    client_secret: Secret<String>,
    scopes: String,
    redirect_uri: String,
    response_mode: ResponseMode,
    /// The claim by which the provider calls an address verified; `None` where the reach of a connection bounds its word.
    verified_claim: Option<String>,
    source: Source,
}

/// Where the provider's endpoints are known from.
enum Source {
    Issuer(String),
    Settings(Box<ProviderSettings>),
}

impl OpenIdClient {
    /// A connection's; `None` for one of another type.
    pub(super) fn of_connection(
        keyring: &Keyring,
        base_url: &str,
        app: AppId,
        connection: &Connection,
    ) -> Result<Option<Self>> {
        let secret = connection.client_secret(keyring, app)?;
        let (Some(issuer), Some(client_id), Some(client_secret)) =
            (connection.issuer.clone(), connection.client_id.clone(), secret)
        else {
            return Ok(None);
        };
        Ok(Some(Self {
            client_id,
            client_secret,
            scopes: connection.scopes.clone().unwrap_or_default(),
            redirect_uri: connection.callback_url(base_url),
            response_mode: ResponseMode::Query,
            verified_claim: None,
            source: Source::Issuer(issuer),
        }))
    }

    /// An app's with a social or directory provider.
    pub(super) fn of_provider(base_url: &str, via: Via, settings: &ProviderSettings, client: ProviderClient) -> Self {
        let source = match settings.issuer_for(&client).filter(|_| settings.authorization_endpoint.is_none()) {
            Some(issuer) => Source::Issuer(issuer),
            None => Source::Settings(Box::new(settings.clone())),
        };
        Self {
            client_id: client.id,
            client_secret: client.secret,
            scopes: settings.scopes.clone(),
            redirect_uri: format!("{base_url}/auth/federation/{via}/callback"),
            response_mode: settings.response_mode,
            verified_claim: Some(settings.verified_claim.clone()),
            source,
        }
    }

    pub(super) async fn metadata(&self, directory: &Directory) -> Result<Arc<ProviderMetadata>, OidcFailure> {
        let settings = match &self.source {
            Source::Issuer(issuer) => return directory.discover(issuer).await,
            Source::Settings(settings) => settings,
        };
        let wrong = || OidcFailure::unavailable("settings", "an endpoint is missing, or is not a web address");
        let optional = |text: &Option<String>| match text {
            Some(text) => directory.address(text).map(Some).ok_or_else(wrong),
            None => Ok(None),
        };
        Ok(Arc::new(ProviderMetadata {
            issuer: settings.issuer.clone(),
            authorization_endpoint: optional(&settings.authorization_endpoint)?.ok_or_else(wrong)?,
            token_endpoint: optional(&settings.token_endpoint)?.ok_or_else(wrong)?,
            userinfo_endpoint: optional(&settings.userinfo_endpoint)?,
            emails_endpoint: optional(&settings.emails_endpoint)?,
            jwks_uri: optional(&settings.jwks_uri)?,
            client_authentication: ClientAuthentication::Post,
            names_itself: false,
        }))
    }

    /// Where the browser is sent.
    pub(super) fn address(&self, metadata: &ProviderMetadata, asks: &Asks<'_>) -> String {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(sha256_bytes(asks.secrets.verifier.as_bytes()));
        let mut url = metadata.authorization_endpoint.clone();
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("scope", &self.scopes)
            .append_pair("state", asks.state)
            .append_pair("nonce", &asks.secrets.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        if self.response_mode == ResponseMode::FormPost {
            query.append_pair("response_mode", "form_post");
        }
        if asks.is_fresh {
            query.append_pair("prompt", "login").append_pair("max_age", "0");
        } else if let Some(since) = asks.authenticated_since {
            let age = asks.now.as_seconds() - since.as_seconds();
            query.append_pair("max_age", &age.max(0).to_string());
        }
        if let Some(hint) = asks.login_hint {
            query.append_pair("login_hint", hint);
        }
        drop(query);
        url.into()
    }

    /// RFC 9207: whoever answers says who they are, where that was promised.
    pub(super) fn check_issuer(&self, metadata: &ProviderMetadata, iss: Option<&str>) -> Result<(), OidcFailure> {
        let fits = match iss {
            Some(iss) => metadata.issuer.as_deref() == Some(iss),
            None => !metadata.names_itself,
        };
        if fits {
            Ok(())
        } else {
            Err(OidcFailure::refused("iss", "another provider answered, or none said who it is"))
        }
    }

    /// Exchanges the code; what the provider says about the person.
    pub(super) async fn redeem(
        &self,
        directory: &Directory,
        metadata: &ProviderMetadata,
        code: &str,
        login: &Begun<'_>,
    ) -> Result<Asserted, OidcFailure> {
        let tokens = self.exchange(directory, metadata, code, &login.secrets.verifier).await?;
        let claims = match (&tokens.id_token, &metadata.jwks_uri) {
            (Some(token), Some(jwks_uri)) => {
                let claims: IdTokenClaims = directory.verify(jwks_uri, token).await?;
                let expected = Expectation {
                    issuer: metadata.issuer.as_deref(),
                    client_id: &self.client_id,
                    nonce: &login.secrets.nonce,
                    now: login.now,
                    begun_at: login.begun_at,
                    authenticated_since: login.authenticated_since,
                };
                if let Some(problem) = claims.problem(&expected) {
                    return Err(OidcFailure::refused("id_token", problem));
                }
                Some(claims)
            }
            (None, Some(_)) => return Err(OidcFailure::refused("token", "the provider sent no ID token")),
            // Nothing says then when the person signed in there.
            (_, None) if login.authenticated_since.is_some() => {
                return Err(OidcFailure::refused("auth_time", "the provider does not tell when somebody signed in"));
            }
            (_, None) => None,
        };
        person::of(directory, metadata, self.verified_claim.as_deref(), claims, tokens.access_token.as_deref()).await
    }

    async fn exchange(
        &self,
        directory: &Directory,
        metadata: &ProviderMetadata,
        code: &str,
        verifier: &str,
    ) -> Result<TokenAnswer, OidcFailure> {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.redirect_uri.as_str()),
            ("code_verifier", verifier),
        ];
        let url = metadata.token_endpoint.clone();
        let call = match metadata.client_authentication {
            ClientAuthentication::Basic => Call::form(url, &fields).basic(&self.client_id, &self.client_secret),
            ClientAuthentication::Public => {
                fields.push(("client_id", self.client_id.as_str()));
                Call::form(url, &fields)
            }
            ClientAuthentication::Post => {
                fields.extend([("client_id", self.client_id.as_str()), ("client_secret", self.client_secret.expose())]);
                Call::form(url, &fields)
            }
        };
        let answer = call::send(directory.outbound(), call, "token").await?;
        match answer.status.as_u16() {
            200 => {}
            400..500 => return Err(OidcFailure::refused("token", &refusal(&answer.body))),
            status => return Err(OidcFailure::unavailable("token", &format!("the provider answered {status}"))),
        }
        let tokens: TokenAnswer = serde_json::from_slice(&answer.body)
            .map_err(|_| OidcFailure::unavailable("token", "the answer is not what it should be"))?;
        // Some providers refuse with 200.
        if tokens.error.is_some() {
            return Err(OidcFailure::refused("token", &refusal(&answer.body)));
        }
        Ok(tokens)
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: Option<String>,
    id_token: Option<String>,
    error: Option<serde_json::Value>,
}

/// The name of the error in a refusal; nothing else of what strangers write is kept.
fn refusal(body: &[u8]) -> String {
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    error_name(json["error"].as_str().unwrap_or_default())
}

/// An error's name as RFC 6749 writes them.
fn error_name(text: &str) -> String {
    let is_name = !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    format!("the provider refused: {}", if is_name { text } else { "without a known reason" })
}

/// What a login asks a provider for.
pub(super) struct Asks<'a> {
    pub(super) state: &'a str,
    pub(super) secrets: LoginSecrets,
    pub(super) now: Timestamp,
    pub(super) authenticated_since: Option<Timestamp>,
    /// Whether the person has to sign in there again.
    pub(super) is_fresh: bool,
    pub(super) login_hint: Option<&'a str>,
}

/// The login that a code answers.
pub(super) struct Begun<'a> {
    pub(super) secrets: &'a LoginSecrets,
    pub(super) begun_at: Timestamp,
    pub(super) authenticated_since: Option<Timestamp>,
    pub(super) now: Timestamp,
}

/// What binds the answer to the login: made of its id by the installation's key, so that the database holds neither.
#[derive(Clone)]
pub(super) struct LoginSecrets {
    nonce: String,
    verifier: String,
}

impl LoginSecrets {
    pub(super) fn of(keyring: &Keyring, state: &str) -> Self {
        Self {
            nonce: keyring.fingerprint("federation-nonce", state),
            verifier: keyring.fingerprint("federation-verifier", state),
        }
    }
}

/// A document that an operator names.
pub(super) async fn fetch(directory: &Directory, url: &str) -> Result<Answer, Failure> {
    let url = directory.address(url).ok_or(Failure::Refused)?;
    call::ask(directory.outbound(), Call::get(url)).await
}

/// A digest of the subject, which means nothing without its issuer and, for a provider of several apps, the app.
pub(super) fn subject_digest(app: AppId, issuer: &str, subject: &str) -> String {
    vault::sha256_hex(format!("{app}\n{issuer}\n{subject}").as_bytes())
}

impl From<OidcFailure> for Error {
    /// For the person: that it failed, and never why.
    fn from(failure: OidcFailure) -> Self {
        if failure.is_outage { super::unavailable() } else { super::refused() }
    }
}

impl PendingFederation {
    fn secrets(&self, keyring: &Keyring) -> LoginSecrets {
        LoginSecrets::of(keyring, &self.id)
    }
}
