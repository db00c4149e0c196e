//! What is known of an OpenID Connect provider: its discovery document, kept for an hour, and its keys, read again when a token
//! names one that is not among them, but not more often than every five minutes.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use kernel::{Clock, Timestamp};
use serde::Deserialize;
use spine::outbound::{Outbound, Url};
use vault::{ForeignKeys, ForeignRefusal};

use super::{
    OidcFailure,
    call::{self, Call},
};

const KEPT: Duration = Duration::from_secs(3600);
const READ_AGAIN: Duration = Duration::from_secs(5 * 60);
/// Customers name providers: no more than these are remembered.
const MOST: usize = 1_000;

/// Where a provider is asked, and how.
#[derive(Clone, Debug)]
pub(in crate::federation) struct ProviderMetadata {
    /// `None` where the operator's settings name only endpoints.
    pub(super) issuer: Option<String>,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) userinfo_endpoint: Option<Url>,
    pub(super) emails_endpoint: Option<Url>,
    pub(super) jwks_uri: Option<Url>,
    pub(super) client_authentication: ClientAuthentication,
    /// Whether its answers name it (RFC 9207).
    pub(super) names_itself: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAuthentication {
    Basic,
    Post,
    /// The provider asks for no secret: the code's challenge has to do.
    Public,
}

/// The document as far as it matters here.
#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    userinfo_endpoint: Option<String>,
    jwks_uri: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Document {
    fn read(self, issuer: &str, secure_only: bool) -> Result<ProviderMetadata, OidcFailure> {
        let wrong = |reason: &str| OidcFailure::unavailable("discovery", reason);
        if self.issuer != issuer {
            return Err(wrong("the document names another issuer"));
        }
        let url = |text: &str| address(text, secure_only).ok_or_else(|| wrong("an endpoint is not a web address"));
        // OpenID Connect Discovery 1.0 §3: without a list it is basic authentication.
        let offers = |method: &str| {
            self.token_endpoint_auth_methods_supported.as_ref().map(|list| list.iter().any(|known| known == method))
        };
        let offers = |method: &str| offers(method).unwrap_or(method == "client_secret_basic");
        let client_authentication = match () {
            () if offers("client_secret_basic") => ClientAuthentication::Basic,
            () if offers("client_secret_post") => ClientAuthentication::Post,
            () if offers("none") => ClientAuthentication::Public,
            () => return Err(wrong("it takes no client secret")),
        };
        Ok(ProviderMetadata {
            authorization_endpoint: url(&self.authorization_endpoint)?,
            token_endpoint: url(&self.token_endpoint)?,
            userinfo_endpoint: self.userinfo_endpoint.as_deref().map(url).transpose()?,
            emails_endpoint: None,
            jwks_uri: Some(url(&self.jwks_uri)?),
            client_authentication,
            names_itself: self.authorization_response_iss_parameter_supported,
            issuer: Some(self.issuer),
        })
    }
}

/// An absolute web address; with encryption, unless this service has none itself.
pub(super) fn address(text: &str, secure_only: bool) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_fit = url.scheme() == "https" || (!secure_only && url.scheme() == "http");
    (is_fit && url.has_host() && url.fragment().is_none()).then_some(url)
}

/// Asks providers, and remembers what they said. One per node.
pub(in crate::federation) struct Directory {
    outbound: Outbound,
    clock: Clock,
    secure_only: bool,
    documents: Mutex<HashMap<String, (Timestamp, Arc<ProviderMetadata>)>>,
    keys: Mutex<HashMap<Url, KnownKeys>>,
}

#[derive(Clone)]
struct KnownKeys {
    /// With the instant at which they were asked for.
    keys: Option<(Arc<ForeignKeys>, Timestamp)>,
    /// When they were last asked for, whether that brought any or not.
    asked_at: Timestamp,
    reading: Reading,
}

/// Keys on their way: whoever needs them meanwhile waits for the same answer.
type Reading = Shared<BoxFuture<'static, Result<Arc<ForeignKeys>, OidcFailure>>>;

impl Directory {
    pub(in crate::federation) fn new(outbound: Outbound, clock: Clock, base_url: &str) -> Self {
        let secure_only = base_url.starts_with("https:");
        Self { outbound, clock, secure_only, documents: Mutex::default(), keys: Mutex::default() }
    }

    pub(super) fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    pub(super) fn address(&self, text: &str) -> Option<Url> {
        address(text, self.secure_only)
    }

    /// The provider that calls itself this.
    pub(super) async fn discover(&self, issuer: &str) -> Result<Arc<ProviderMetadata>, OidcFailure> {
        let now = self.clock.now();
        let known = self.documents.lock().unwrap_or_else(PoisonError::into_inner).get(issuer).cloned();
        if let Some((_, known)) = known.filter(|(at, _)| at.plus(KEPT) > now) {
            return Ok(known);
        }
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let url = self
            .address(&url)
            .ok_or_else(|| OidcFailure::unavailable("discovery", "the issuer is not a web address"))?;
        let document: Document = call::json(&self.outbound, Call::get(url), "discovery").await?;
        let read = Arc::new(document.read(issuer, self.secure_only)?);
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        make_room(&mut documents, |(at, _)| *at);
        documents.insert(issuer.to_owned(), (now, Arc::clone(&read)));
        Ok(read)
    }

    /// The claims of a token that the provider signed.
    pub(super) async fn verify<C: serde::de::DeserializeOwned>(
        &self,
        jwks_uri: &Url,
        token: &str,
    ) -> Result<C, OidcFailure> {
        let tried = self.known(jwks_uri);
        if let Some(keys) = &tried {
            match keys.verify(token) {
                Err(ForeignRefusal::UnknownKey) => {}
                settled => return settled.map_err(|_| bad_token("the signature is not valid")),
            }
        }
        let Some((reading, asked_at)) = self.reading(jwks_uri, tried.as_ref()) else {
            return Err(bad_token("no key of the provider is the one that it names"));
        };
        let keys = reading.await?;
        self.remember(jwks_uri, &keys, asked_at);
        keys.verify(token).map_err(|_| bad_token("no key of the provider verifies it"))
    }

    /// Keys that are not too old.
    fn known(&self, jwks_uri: &Url) -> Option<Arc<ForeignKeys>> {
        let known = self.keys.lock().unwrap_or_else(PoisonError::into_inner).get(jwks_uri)?.keys.clone();
        known.filter(|(_, read_at)| read_at.plus(KEPT) > self.clock.now()).map(|(keys, _)| keys)
    }

    fn remember(&self, jwks_uri: &Url, keys: &Arc<ForeignKeys>, asked_at: Timestamp) {
        let mut known = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get_mut(jwks_uri).filter(|known| known.asked_at == asked_at) {
            known.keys = Some((Arc::clone(keys), asked_at));
        }
    }

    /// Other keys than those that were tried, which are on their way or have just come; asks for them if it is time to.
    fn reading(&self, jwks_uri: &Url, tried: Option<&Arc<ForeignKeys>>) -> Option<(Reading, Timestamp)> {
        let mut all = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        if let Some(known) = all.get(jwks_uri) {
            let is_recent = known.asked_at.plus(READ_AGAIN) > now;
            let is_other = match known.reading.peek() {
                None => true,
                Some(Ok(keys)) => is_recent && tried.is_none_or(|tried| !Arc::ptr_eq(tried, keys)),
                Some(Err(_)) => false,
            };
            if is_other {
                return Some((known.reading.clone(), known.asked_at));
            }
            // Without any keys the next login may try again: its start is limited.
            if known.keys.is_some() && is_recent {
                return None;
            }
        }
        let reading = read_keys(self.outbound.clone(), jwks_uri.clone()).boxed().shared();
        let keys = all.get(jwks_uri).and_then(|known| known.keys.clone());
        make_room(&mut all, |known| known.asked_at);
        all.insert(jwks_uri.clone(), KnownKeys { keys, asked_at: now, reading: reading.clone() });
        Some((reading, now))
    }
}

async fn read_keys(outbound: Outbound, jwks_uri: Url) -> Result<Arc<ForeignKeys>, OidcFailure> {
    let keys = call::bytes(&outbound, Call::get(jwks_uri), "keys").await?;
    let keys = ForeignKeys::from_json(&keys);
    Ok(Arc::new(keys.map_err(|_| OidcFailure::unavailable("keys", "this is not a set of keys"))?))
}

fn bad_token(reason: &str) -> OidcFailure {
    OidcFailure::refused("id_token", reason)
}

/// Forgets the oldest when there are too many.
fn make_room<K: Clone + Eq + Hash, V>(known: &mut HashMap<K, V>, at: impl Fn(&V) -> Timestamp) {
    if known.len() >= MOST
        && let Some(oldest) = known.iter().min_by_key(|(_, value)| at(value)).map(|(key, _)| key.clone())
    {
        known.remove(&oldest);
    }
}
