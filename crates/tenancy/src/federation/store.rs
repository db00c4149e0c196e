//! The SQL of federation connections.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Page, Result, TenantId, Timestamp, UserId};

use super::{Connection, ConnectionId, Protocol};

row! {
    Connection = "federation_connections" {
        id,
        protocol: "type",
        name,
        client_id,
        login_url,
        certificate,
        issuer,
        scopes,
        request_method,
        signed_request,
        signed_request_algorithm,
        idp_entity_id,
        trust_mfa,
        domains,
        created_at,
        last_success_at,
        last_failure_at,
        last_failure_step,
        sealed_private_key,
        sealed_client_secret,
    }
}

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Connection>> {
    tx.all(
        sql!(
            "SELECT ",
            Connection::COLUMNS,
            " FROM federation_connections WHERE app_id = $1 ORDER BY id DESC LIMIT $2 OFFSET $3"
        ),
        &args![app, page.limit_or_all(), page.offset()],
    )
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, id: ConnectionId) -> Result<Option<Connection>> {
    tx.opt(
        sql!("SELECT ", Connection::COLUMNS, " FROM federation_connections WHERE app_id = $1 AND id = $2"),
        &args![app, id],
    )
}

pub(super) fn insert(tx: &mut Tx<'_>, app: AppId, connection: &Connection) -> Result<()> {
    tx.run(
        "INSERT INTO federation_connections (id, app_id, type, name, client_id, login_url, certificate, \
         request_method, signed_request, signed_request_algorithm, sealed_private_key, created_at, idp_entity_id, trust_mfa, issuer, scopes, \
         sealed_client_secret, domains) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
        &args![
            connection.id,
            app,
            connection.protocol,
            connection.name,
            connection.client_id,
            connection.login_url,
            connection.certificate,
            connection.request_method,
            connection.signed_request,
            connection.signed_request_algorithm,
            connection.sealed_private_key,
            connection.created_at,
            connection.idp_entity_id,
            connection.trust_mfa,
            connection.issuer,
            connection.scopes,
            connection.sealed_client_secret,
            connection.domains
        ],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, connection: &Connection) -> Result<()> {
    tx.run(
        "UPDATE federation_connections SET name = $3, client_id = $4, login_url = $5, certificate = $6, \
         request_method = $7, signed_request = $8, signed_request_algorithm = $9, sealed_private_key = $10, \
         idp_entity_id = $11, trust_mfa = $12, issuer = $13, scopes = $14, sealed_client_secret = $15, domains = $16 \
         WHERE app_id = $1 AND id = $2",
        &args![
            app,
            connection.id,
            connection.name,
            connection.client_id,
            connection.login_url,
            connection.certificate,
            connection.request_method,
            connection.signed_request,
            connection.signed_request_algorithm,
            connection.sealed_private_key,
            connection.idp_entity_id,
            connection.trust_mfa,
            connection.issuer,
            connection.scopes,
            connection.sealed_client_secret,
            connection.domains
        ],
    )
}

/// Noted again only when the last time lies before `not_since`.
pub(super) fn note_success(tx: &mut Tx<'_>, app: AppId, id: ConnectionId, not_since: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE federation_connections SET last_success_at = $3 WHERE app_id = $1 AND id = $2 \
         AND (last_success_at IS NULL OR last_success_at <= $4)",
        &args![app, id, tx.now(), not_since],
    )
}

pub(super) fn note_failure(tx: &mut Tx<'_>, app: AppId, id: ConnectionId, step: &str) -> Result<()> {
    tx.run(
        "UPDATE federation_connections SET last_failure_at = $3, last_failure_step = $4 WHERE app_id = $1 AND id = $2",
        &args![app, id, tx.now(), step],
    )
}

/// App, name and certificates of all SAML connections, newest first.
pub(super) fn certificates(tx: &mut Tx<'_>) -> Result<Vec<(AppId, String, String)>> {
    tx.all(
        "SELECT app_id, name, certificate FROM federation_connections WHERE type = 'saml' ORDER BY id DESC LIMIT 1000",
        &args![],
    )
}

/// Id, type and name of the connections of all workspaces that a person may sign in to.
pub(super) fn of_user(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<(String, String, String)>> {
    tx.all(
        "SELECT DISTINCT federation_connections.id, federation_connections.type, federation_connections.name \
         FROM members JOIN tenants ON tenants.id = members.tenant_id \
         JOIN federation_connections ON federation_connections.id = tenants.federation_connection_id \
         WHERE members.app_id = $1 AND members.user_id = $2 AND members.enabled ORDER BY federation_connections.id",
        &args![app, user],
    )
}

pub(super) fn app_of(tx: &mut Tx<'_>, id: ConnectionId) -> Result<Option<AppId>> {
    let found: Option<(AppId,)> = tx.opt("SELECT app_id FROM federation_connections WHERE id = $1", &args![id])?;
    Ok(found.map(|(app,)| app))
}

pub(super) fn workspaces_of(tx: &mut Tx<'_>, app: AppId, id: ConnectionId) -> Result<Vec<(TenantId, bool)>> {
    tx.all(
        "SELECT id, jit_provisioning FROM tenants WHERE app_id = $1 AND federation_connection_id = $2 ORDER BY id LIMIT 100",
        &args![app, id],
    )
}

pub(super) fn first_of(tx: &mut Tx<'_>, app: AppId, protocol: Protocol) -> Result<Vec<Connection>> {
    tx.all(
        sql!(
            "SELECT ",
            Connection::COLUMNS,
            " FROM federation_connections WHERE app_id = $1 AND type = $2 ORDER BY id DESC LIMIT 2"
        ),
        &args![app, protocol],
    )
}

pub(super) fn any(tx: &mut Tx<'_>, app: AppId) -> Result<bool> {
    tx.exists("SELECT id FROM federation_connections WHERE app_id = $1 LIMIT 1", &args![app])
}

pub(super) fn learn_issuer(tx: &mut Tx<'_>, app: AppId, id: ConnectionId, issuer: &str) -> Result<()> {
    tx.run(
        "UPDATE federation_connections SET idp_entity_id = $3 WHERE app_id = $1 AND id = $2 AND idp_entity_id IS NULL",
        &args![app, id, issuer],
    )
}

/// A connection's id, type and name; all null where there is none.
type FoundWay = (Option<ConnectionId>, Option<Protocol>, Option<String>);

/// The connections of all workspaces that somebody with this address may sign in to; null for those without one.
pub(super) fn ways_in(tx: &mut Tx<'_>, app: AppId, email_key: &str) -> Result<Vec<FoundWay>> {
    tx.all(
        "SELECT DISTINCT federation_connections.id, federation_connections.type, federation_connections.name FROM members \
         JOIN users ON users.id = members.user_id JOIN tenants ON tenants.id = members.tenant_id \
         LEFT JOIN federation_connections ON federation_connections.id = tenants.federation_connection_id \
         WHERE members.app_id = $1 AND users.app_id = $1 AND users.email_key = $2 AND members.enabled \
         ORDER BY federation_connections.id NULLS LAST LIMIT 100",
        &args![app, email_key],
    )
}

/// Whether a workspace signs in through it.
pub(super) fn is_used(tx: &mut Tx<'_>, app: AppId, id: ConnectionId) -> Result<bool> {
    tx.exists("SELECT id FROM tenants WHERE app_id = $1 AND federation_connection_id = $2 LIMIT 1", &args![app, id])
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, id: ConnectionId) -> Result<()> {
    tx.run("DELETE FROM federation_connections WHERE app_id = $1 AND id = $2", &args![app, id])
}
