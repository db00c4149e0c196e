//! Federation connections: the records by which members of a workspace sign in through their own identity provider.
//! What a record says is always complete enough to be used: one that signs its requests has a key and an algorithm.
//!
//! The request-signing key and the client secret go in and never come out again; they are sealed at rest.

mod details;
mod domains;
pub mod http;
mod provider;
mod rules;
mod store;

use std::time::Duration;

use ::store::{Tx, text_enum};
use kernel::{AppId, Code, Error, Page, Result, Secret, TenantId, Timestamp, UserId, email_key};
use schemars::JsonSchema;
use serde::Serialize;
use spine::emit;
use vault::{Keyring, Place};

pub use details::ConnectionDetails;
pub use domains::Domains;
pub use provider::Provider;
pub use rules::{ConnectionChange, NewConnection};

pub use crate::logins::ConnectionId;

use crate::{
    apps,
    facts::{Change, ConnectionChanged},
    locks::Lock,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    pub id: ConnectionId,
    #[serde(rename = "type")]
    pub protocol: Protocol,
    /// Shown to people when they sign in.
    pub name: String,
    /// The name by which the identity provider knows this service; `null`: the address of its metadata.
    pub client_id: Option<String>,
    /// Of SAML alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub login_url: String,
    /// The identity provider's certificates, PEM; of SAML alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub certificate: String,
    /// What the identity provider calls itself; of OpenID Connect alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// What it is asked for; of OpenID Connect alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<String>,
    pub request_method: RequestMethod,
    pub signed_request: bool,
    pub signed_request_algorithm: Option<SigningAlgorithm>,
    /// What the identity provider calls itself in its answers; `null`: the first accepted answer about an OWNER tells.
    pub idp_entity_id: Option<String>,
    /// Whether its word that two factors were shown counts.
    pub trust_mfa: bool,
    /// Addresses in these domains are sent here although nobody knows them yet.
    pub domains: Domains,
    pub created_at: Timestamp,
    #[serde(skip)]
    last_success_at: Option<Timestamp>,
    #[serde(skip)]
    last_failure_at: Option<Timestamp>,
    #[serde(skip)]
    last_failure_step: Option<String>,
    #[serde(skip)]
    sealed_private_key: Option<String>,
    #[serde(skip)]
    sealed_client_secret: Option<String>,
}

text_enum! {
    #[derive(Default)]
    #[schemars(rename = "FederationProtocol")]
    wire pub enum Protocol {
        #[default]
        Saml = "saml",
        Oidc = "oidc",
    }
}

text_enum! {
    /// How the sign-in request reaches the identity provider: by redirect or by a posted form.
    #[derive(Default)]
    wire pub enum RequestMethod {
        #[default]
        Get = "GET",
        Post = "POST",
    }
}

text_enum! {
    wire pub enum SigningAlgorithm {
        Sha256 = "sha256",
        Sha512 = "sha512",
    }
}

impl Connection {
    /// What the identity provider knows this service as.
    pub fn entity_id(&self, base_url: &str) -> String {
        self.client_id.clone().unwrap_or_else(|| self.metadata_url(base_url))
    }

    /// Where this service's SAML metadata is.
    pub fn metadata_url(&self, base_url: &str) -> String {
        format!("{base_url}/auth/federation/saml/{}/metadata", self.id)
    }

    /// Where an OpenID Connect provider's answers are taken.
    pub fn callback_url(&self, base_url: &str) -> String {
        format!("{base_url}/auth/federation/oidc/{}/callback", self.id)
    }

    /// Where its answers are taken.
    pub fn acs_url(&self, base_url: &str) -> String {
        format!("{base_url}/auth/federation/saml/{}/acs", self.id)
    }

    /// Whether it is known who answers: only then may somebody new come in.
    pub fn is_settled(&self) -> bool {
        self.protocol == Protocol::Oidc || self.idp_entity_id.is_some()
    }

    /// The key that signs requests, PEM.
    pub fn private_key(&self, keyring: &Keyring, app: AppId) -> Result<Option<Secret<Vec<u8>>>> {
        self.open(keyring, app, PRIVATE_KEY, self.sealed_private_key.as_deref())
    }

    /// What this service shows its OpenID Connect provider.
    pub fn client_secret(&self, keyring: &Keyring, app: AppId) -> Result<Option<Secret<String>>> {
        let opened = self.open(keyring, app, CLIENT_SECRET, self.sealed_client_secret.as_deref())?;
        let text = opened.map(|secret| String::from_utf8(secret.into_exposed())).transpose();
        Ok(text.map_err(|_| Error::internal("a client secret is not text"))?.map(Secret::new))
    }

    fn open(
        &self,
        keyring: &Keyring,
        app: AppId,
        column: &'static str,
        sealed: Option<&str>,
    ) -> Result<Option<Secret<Vec<u8>>>> {
        let row = self.id.to_string();
        sealed.map(|sealed| keyring.open(&place(column, &row, app), sealed)).transpose()
    }
}

const PRIVATE_KEY: &str = "sealed_private_key";
const CLIENT_SECRET: &str = "sealed_client_secret";

/// Newest first.
pub fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Connection>> {
    store::list(tx, app, page)
}

pub fn find(tx: &mut Tx<'_>, app: AppId, id: ConnectionId) -> Result<Option<Connection>> {
    store::find(tx, app, id)
}

/// A connection by its id alone, with its app: for addresses that name nothing else.
pub fn by_id(tx: &mut Tx<'_>, id: ConnectionId) -> Result<Option<(AppId, Connection)>> {
    let Some(app) = store::app_of(tx, id)? else { return Ok(None) };
    Ok(find(tx, app, id)?.map(|connection| (app, connection)))
}

/// The workspaces that use a connection, and whether they take newcomers; at most a hundred.
pub fn workspaces_of(tx: &mut Tx<'_>, app: AppId, id: ConnectionId) -> Result<Vec<(TenantId, bool)>> {
    store::workspaces_of(tx, app, id)
}

/// The connections of one type, newest first; at most two.
pub fn first_of(tx: &mut Tx<'_>, app: AppId, protocol: Protocol) -> Result<Vec<Connection>> {
    store::first_of(tx, app, protocol)
}

/// Whether the app has any connection.
pub fn any(tx: &mut Tx<'_>, app: AppId) -> Result<bool> {
    store::any(tx, app)
}

/// Takes over what the identity provider calls itself, unless that is known.
pub fn learn_issuer(tx: &mut Tx<'_>, app: AppId, id: ConnectionId, issuer: &str) -> Result<()> {
    store::learn_issuer(tx, app, id, issuer)
}

/// A connection that somebody can sign in through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WayIn {
    pub id: ConnectionId,
    pub protocol: Protocol,
    pub name: String,
}

/// How somebody with this address can sign in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaysIn {
    /// Connections of their workspaces.
    pub connections: Vec<WayIn>,
    /// Whether some workspace has no connection.
    pub others: bool,
}

pub fn ways_in(tx: &mut Tx<'_>, app: AppId, email: &str) -> Result<WaysIn> {
    let mut ways = WaysIn::default();
    for (id, protocol, name) in store::ways_in(tx, app, &email_key(email))? {
        match (id, protocol, name) {
            (Some(id), Some(protocol), Some(name)) => ways.connections.push(WayIn { id, protocol, name }),
            _ => ways.others = true,
        }
    }
    if ways == WaysIn::default() {
        ways.connections.extend(domains::way_of(tx, app, email)?);
    }
    Ok(ways)
}

/// The connection that has the domain of this address.
pub(crate) fn connection_of_domain(tx: &mut Tx<'_>, app: AppId, email: &str) -> Result<Option<ConnectionId>> {
    Ok(domains::way_of(tx, app, email)?.map(|way| way.id))
}

/// How often it is noted that somebody came in: to the minute is all that anybody wants to know.
const NOTED_EVERY: Duration = Duration::from_secs(60);

/// Notes that somebody came in through a connection.
pub fn note_success(tx: &mut Tx<'_>, app: AppId, id: ConnectionId) -> Result<()> {
    store::note_success(tx, app, id, tx.now().minus(NOTED_EVERY))
}

/// Notes the step at which a login through a connection was refused.
pub fn note_failure(tx: &mut Tx<'_>, app: AppId, id: ConnectionId, step: &str) -> Result<()> {
    store::note_failure(tx, app, id, step)
}

/// A certificate of some connection that is not valid much longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndingCertificate {
    pub app: AppId,
    pub connection: String,
    pub valid_until: Timestamp,
}

/// Certificates that end before an instant, of at most a thousand connections.
pub fn ending_certificates(tx: &mut Tx<'_>, before: Timestamp) -> Result<Vec<EndingCertificate>> {
    let mut ending = Vec::new();
    for (app, connection, pem) in store::certificates(tx)? {
        let dates = saml::Certificates::describe(&pem)?;
        let soon = dates.iter().map(|one| one.valid_until).filter(|until| *until < before);
        ending.extend(soon.map(|valid_until| EndingCertificate { app, connection: connection.clone(), valid_until }));
    }
    Ok(ending)
}

pub fn get(tx: &mut Tx<'_>, app: AppId, id: ConnectionId) -> Result<Connection> {
    find(tx, app, id)?.ok_or_else(|| Error::not_found("federation connection"))
}

/// How a person can sign in through their workspaces' own identity providers: id, type and name of each.
pub fn of_user(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<(String, String, String)>> {
    store::of_user(tx, app, user)
}

/// Checks that a workspace may be given this connection and keeps it from being deleted until this transaction ends.
pub fn assign(tx: &mut Tx<'_>, app: AppId, id: &str) -> Result<()> {
    let unknown = || Error::invalid("federationConnection", "must be the id of a federation connection of this app");
    let id: ConnectionId = id.parse().map_err(|_| unknown())?;
    tx.lock(&Lock::WorkspacesOfConnection(id.to_string()))?;
    find(tx, app, id)?.map(|_| ()).ok_or_else(unknown)
}

pub fn create(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId, new: &NewConnection) -> Result<Connection> {
    apps::hold(tx, app)?;
    let id: ConnectionId = tx.new_id();
    let connection = Connection {
        id,
        protocol: new.protocol.unwrap_or_default(),
        name: new.name.clone().map(String::from).unwrap_or_default(),
        client_id: new.client_id.clone().map(String::from),
        login_url: new.login_url.clone().map(String::from).unwrap_or_default(),
        certificate: new.certificate.as_deref().unwrap_or_default().trim().to_owned(),
        issuer: new.issuer.clone().map(String::from),
        scopes: new.scopes(),
        request_method: new.request_method.unwrap_or_default(),
        signed_request: new.signed_request.unwrap_or(false),
        signed_request_algorithm: new.signed_request_algorithm,
        idp_entity_id: new.idp_entity_id.clone().map(String::from),
        trust_mfa: new.trust_mfa.unwrap_or(true),
        domains: Domains::of(new.domains.as_deref().unwrap_or_default()),
        created_at: tx.now(),
        last_success_at: None,
        last_failure_at: None,
        last_failure_step: None,
        sealed_private_key: new.key().map(|key| seal(keyring, PRIVATE_KEY, app, id, key.expose())),
        sealed_client_secret: new.client_secret.as_ref().map(|key| seal(keyring, CLIENT_SECRET, app, id, key.expose())),
    };
    store::insert(tx, app, &connection)?;
    domains::set(tx, app, id, &connection.domains)?;
    changed(tx, app, &connection, Change::Created)?;
    Ok(connection)
}

pub fn update(
    tx: &mut Tx<'_>,
    keyring: &Keyring,
    app: AppId,
    id: ConnectionId,
    change: &ConnectionChange,
) -> Result<Connection> {
    apps::hold(tx, app)?;
    let before = get(tx, app, id)?;
    rules::check_type(&before, change)?;
    let mut connection = change.applied_to(before);
    let new_key = change.key().map(|key| seal(keyring, PRIVATE_KEY, app, id, key.expose()));
    connection.sealed_private_key = new_key.apply(connection.sealed_private_key);
    if let Some(secret) = change.client_secret.value() {
        connection.sealed_client_secret = Some(seal(keyring, CLIENT_SECRET, app, id, secret.expose()));
    }
    rules::check_signing(&connection)?;
    store::update(tx, app, &connection)?;
    domains::set(tx, app, id, &connection.domains)?;
    changed(tx, app, &connection, Change::Updated)?;
    Ok(connection)
}

pub fn delete(tx: &mut Tx<'_>, app: AppId, id: ConnectionId) -> Result<()> {
    apps::hold(tx, app)?;
    tx.lock(&Lock::WorkspacesOfConnection(id.to_string()))?;
    let connection = get(tx, app, id)?;
    if store::is_used(tx, app, id)? {
        let message = "Workspaces still use this connection to sign in: remove it from them first.";
        return Err(Error::new(Code::ConnectionInUse, message));
    }
    domains::clear(tx, app, id)?;
    store::delete(tx, app, id)?;
    changed(tx, app, &connection, Change::Deleted)
}

fn changed(tx: &mut Tx<'_>, app: AppId, connection: &Connection, change: Change) -> Result<()> {
    emit(tx, app, &ConnectionChanged { connection_id: connection.id, name: connection.name.clone(), change })
}

fn seal(keyring: &Keyring, column: &'static str, app: AppId, id: ConnectionId, secret: &str) -> String {
    keyring.seal(&place(column, &id.to_string(), app), secret.trim().as_bytes())
}

fn place<'a>(column: &'static str, row: &'a str, app: AppId) -> Place<'a> {
    Place { table: "federation_connections", column, row, app: Some(app) }
}
