//! The SQL of federation connections.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Page, Result, TenantId, UserId};

use super::{Connection, ConnectionId};

row! {
    Connection = "federation_connections" {
        id,
        protocol: "type",
        name,
        client_id,
        login_url,
        certificate,
        request_method,
        signed_request,
        signed_request_algorithm,
        idp_entity_id,
        trust_mfa,
        created_at,
        sealed_private_key,
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
         request_method, signed_request, signed_request_algorithm, sealed_private_key, created_at, idp_entity_id, trust_mfa) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
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
            connection.trust_mfa
        ],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, connection: &Connection) -> Result<()> {
    tx.run(
        "UPDATE federation_connections SET type = $3, name = $4, client_id = $5, login_url = $6, certificate = $7, \
         request_method = $8, signed_request = $9, signed_request_algorithm = $10, sealed_private_key = $11, \
         idp_entity_id = $12, trust_mfa = $13 WHERE app_id = $1 AND id = $2",
        &args![
            app,
            connection.id,
            connection.protocol,
            connection.name,
            connection.client_id,
            connection.login_url,
            connection.certificate,
            connection.request_method,
            connection.signed_request,
            connection.signed_request_algorithm,
            connection.sealed_private_key,
            connection.idp_entity_id,
            connection.trust_mfa
        ],
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

pub(super) fn any(tx: &mut Tx<'_>, app: AppId) -> Result<bool> {
    tx.exists("SELECT id FROM federation_connections WHERE app_id = $1 LIMIT 1", &args![app])
}

pub(super) fn learn_issuer(tx: &mut Tx<'_>, app: AppId, id: ConnectionId, issuer: &str) -> Result<()> {
    tx.run(
        "UPDATE federation_connections SET idp_entity_id = $3 WHERE app_id = $1 AND id = $2 AND idp_entity_id IS NULL",
        &args![app, id, issuer],
    )
}

/// The connections of all workspaces that somebody with this address may sign in to; null for those without one.
pub(super) fn ways_in(
    tx: &mut Tx<'_>,
    app: AppId,
    email_key: &str,
) -> Result<Vec<(Option<ConnectionId>, Option<String>)>> {
    tx.all(
        "SELECT DISTINCT federation_connections.id, federation_connections.name FROM members \
         JOIN users ON users.id = members.user_id JOIN tenants ON tenants.id = members.tenant_id \
         LEFT JOIN federation_connections ON federation_connections.id = tenants.federation_connection_id \
         WHERE members.app_id = $1 AND users.email_key = $2 AND members.enabled \
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
