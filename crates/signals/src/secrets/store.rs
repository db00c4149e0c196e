//! The SQL of signing secrets.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, Timestamp};

use super::WebhookSecretId;
use crate::endpoints::EndpointId;

pub(super) struct SealedSecret {
    pub(super) id: WebhookSecretId,
    pub(super) app: AppId,
    pub(super) endpoint: EndpointId,
    pub(super) sealed: String,
    pub(super) created_at: Timestamp,
}

row! { SealedSecret = "webhook_secrets" { id, app: "app_id", endpoint: "endpoint_id", sealed, created_at } }

const CURRENT: &str = sql!(
    "SELECT ",
    SealedSecret::COLUMNS,
    " FROM webhook_secrets WHERE app_id = $1 AND endpoint_id = $2 AND expires_at IS NULL"
);
const SIGNING: &str = sql!(
    "SELECT ",
    SealedSecret::COLUMNS,
    " FROM webhook_secrets WHERE endpoint_id = ANY($1) AND (expires_at IS NULL OR expires_at > $2) ORDER BY id DESC"
);
/// Two who make the first secret at once make one.
const INSERT: &str = "INSERT INTO webhook_secrets (id, app_id, endpoint_id, sealed, created_at) \
                      VALUES ($1, $2, $3, $4, $5) ON CONFLICT (endpoint_id) WHERE expires_at IS NULL DO NOTHING";
const REPLACE: &str = "UPDATE webhook_secrets SET expires_at = $3 \
                       WHERE app_id = $1 AND endpoint_id = $2 AND expires_at IS NULL";
const DELETE: &str = "DELETE FROM webhook_secrets WHERE app_id = $1 AND endpoint_id = $2";

pub(super) fn current(tx: &mut Tx<'_>, app: AppId, endpoint: EndpointId) -> Result<Option<SealedSecret>> {
    tx.opt(CURRENT, &args![app, endpoint])
}

/// Newest first.
pub(super) fn signing(tx: &mut Tx<'_>, endpoints: &[EndpointId]) -> Result<Vec<SealedSecret>> {
    tx.all(SIGNING, &args![endpoints, tx.now()])
}

pub(super) fn insert(
    tx: &mut Tx<'_>,
    id: WebhookSecretId,
    app: AppId,
    endpoint: EndpointId,
    sealed: &str,
) -> Result<()> {
    tx.run(INSERT, &args![id, app, endpoint, sealed, tx.now()])
}

pub(super) fn replace(tx: &mut Tx<'_>, app: AppId, endpoint: EndpointId, until: Timestamp) -> Result<()> {
    tx.run(REPLACE, &args![app, endpoint, until])
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, endpoint: EndpointId) -> Result<()> {
    tx.run(DELETE, &args![app, endpoint])
}

/// Which of these endpoints have no secret.
pub(crate) fn without_secret(tx: &mut Tx<'_>, endpoints: &[EndpointId]) -> Result<Vec<EndpointId>> {
    const WITH: &str = "SELECT endpoint_id FROM webhook_secrets WHERE endpoint_id = ANY($1) AND expires_at IS NULL";
    let with: Vec<(EndpointId,)> = tx.all(WITH, &args![endpoints])?;
    let with: std::collections::HashSet<EndpointId> = with.into_iter().map(|(endpoint,)| endpoint).collect();
    Ok(endpoints.iter().copied().filter(|endpoint| !with.contains(endpoint)).collect())
}
