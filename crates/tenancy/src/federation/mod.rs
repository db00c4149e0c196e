//! Federation connections: the records by which members of a workspace sign in through their own identity provider.
//! What a record says is always complete enough to be used: one that signs its requests has a key and an algorithm.
//!
//! The request-signing key goes in and never comes out again; it is sealed at rest.

pub mod http;
mod rules;
mod store;

use ::store::{Tx, text_enum};
use kernel::{AppId, Code, Error, Page, Result, Secret, TenantId, Timestamp, UserId, email_key};
use schemars::JsonSchema;
use serde::Serialize;
use spine::emit;
use vault::{Keyring, Place};

pub use rules::{ConnectionChange, NewConnection};

pub use crate::logins::ConnectionId;

use crate::{
    apps,
    facts::{Change, ConnectionChanged},
    locks::Lock,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FederationConnection")]
pub struct Connection {
    pub id: ConnectionId,
    #[serde(rename = "type")]
    pub protocol: Protocol,
    /// Shown to people when they sign in.
    pub name: String,
    /// The name by which the identity provider knows this service; `null`: the address of its metadata.
    pub client_id: Option<String>,
    pub login_url: String,
    /// The identity provider's certificates, PEM.
    pub certificate: String,
    pub request_method: RequestMethod,
    pub signed_request: bool,
    pub signed_request_algorithm: Option<SigningAlgorithm>,
    /// What the identity provider calls itself in its answers; `null`: the first accepted answer about an OWNER tells.
    pub idp_entity_id: Option<String>,
    /// Whether its word that two factors were shown counts.
    pub trust_mfa: bool,
    pub created_at: Timestamp,
    #[serde(skip)]
    sealed_private_key: Option<String>,
}

text_enum! {
    #[derive(Default)]
    #[schemars(rename = "FederationProtocol")]
    wire pub enum Protocol {
        #[default]
        Saml = "saml",
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
        self.client_id.clone().unwrap_or_else(|| format!("{base_url}/auth/federation/saml/{}/metadata", self.id))
    }

    /// Where its answers are taken.
    pub fn acs_url(&self, base_url: &str) -> String {
        format!("{base_url}/auth/federation/saml/{}/acs", self.id)
    }

    /// The key that signs requests, PEM.
    pub fn private_key(&self, keyring: &Keyring, app: AppId) -> Result<Option<Secret<Vec<u8>>>> {
        let row = self.id.to_string();
        self.sealed_private_key.as_deref().map(|sealed| keyring.open(&place(&row, app), sealed)).transpose()
    }
}

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

/// Whether the app has any connection.
pub fn any(tx: &mut Tx<'_>, app: AppId) -> Result<bool> {
    store::any(tx, app)
}

/// Takes over what the identity provider calls itself, unless that is known.
pub fn learn_issuer(tx: &mut Tx<'_>, app: AppId, id: ConnectionId, issuer: &str) -> Result<()> {
    store::learn_issuer(tx, app, id, issuer)
}

/// How somebody with this address can sign in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaysIn {
    /// Connections of their workspaces, with their names.
    pub connections: Vec<(ConnectionId, String)>,
    /// Whether some workspace has no connection.
    pub others: bool,
}

pub fn ways_in(tx: &mut Tx<'_>, app: AppId, email: &str) -> Result<WaysIn> {
    let mut ways = WaysIn::default();
    for (connection, name) in store::ways_in(tx, app, &email_key(email))? {
        match connection.zip(name) {
            Some(known) => ways.connections.push(known),
            None => ways.others = true,
        }
    }
    Ok(ways)
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
        name: new.name.to_string(),
        client_id: new.client_id.clone().map(String::from),
        login_url: new.login_url.to_string(),
        certificate: new.certificate.trim().to_owned(),
        request_method: new.request_method.unwrap_or_default(),
        signed_request: new.signed_request.unwrap_or(false),
        signed_request_algorithm: new.signed_request_algorithm,
        idp_entity_id: new.idp_entity_id.clone().map(String::from),
        trust_mfa: new.trust_mfa.unwrap_or(true),
        created_at: tx.now(),
        sealed_private_key: new.key().map(|key| seal(keyring, app, id, key)),
    };
    store::insert(tx, app, &connection)?;
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
    let mut connection = change.applied_to(get(tx, app, id)?);
    let new_key = change.key().map(|key| seal(keyring, app, id, key));
    connection.sealed_private_key = new_key.apply(connection.sealed_private_key);
    rules::check_signing(&connection)?;
    store::update(tx, app, &connection)?;
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
    store::delete(tx, app, id)?;
    changed(tx, app, &connection, Change::Deleted)
}

fn changed(tx: &mut Tx<'_>, app: AppId, connection: &Connection, change: Change) -> Result<()> {
    emit(tx, app, &ConnectionChanged { connection_id: connection.id, name: connection.name.clone(), change })
}

fn seal(keyring: &Keyring, app: AppId, id: ConnectionId, key: &Secret<String>) -> String {
    keyring.seal(&place(&id.to_string(), app), key.expose().trim().as_bytes())
}

fn place(row: &str, app: AppId) -> Place<'_> {
    Place { table: "federation_connections", column: "sealed_private_key", row, app: Some(app) }
}
