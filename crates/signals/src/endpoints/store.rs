//! The SQL of endpoints beside that of the profile.

use ::store::{Json, Tx, args, sql};
use kernel::{AppId, Error, Page, Result};

use super::{Endpoint, EndpointId};

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Endpoint>> {
    const LIST: &str = sql!(
        "SELECT ",
        Endpoint::COLUMNS,
        " FROM webhook_endpoints WHERE app_id = $1 ORDER BY id DESC LIMIT $2 OFFSET $3"
    );
    tx.all(LIST, &args![app, page.limit_or_all(), page.offset()])
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, id: EndpointId) -> Result<Option<Endpoint>> {
    const FIND: &str = sql!("SELECT ", Endpoint::COLUMNS, " FROM webhook_endpoints WHERE app_id = $1 AND id = $2");
    tx.opt(FIND, &args![app, id])
}

pub(super) fn count(tx: &mut Tx<'_>, app: AppId) -> Result<usize> {
    let (count,): (i64,) = tx.one("SELECT count(*) FROM webhook_endpoints WHERE app_id = $1", &args![app])?;
    usize::try_from(count).map_err(Error::internal)
}

pub(super) fn insert(tx: &mut Tx<'_>, app: AppId, endpoint: &Endpoint) -> Result<()> {
    let Endpoint { id, url, enabled, events, description, created_at } = endpoint;
    tx.run(
        "INSERT INTO webhook_endpoints (id, app_id, url, enabled, events, description, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &args![*id, app, url, *enabled, Json(events), description, *created_at],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, endpoint: &Endpoint) -> Result<()> {
    let Endpoint { id, url, enabled, events, description, .. } = endpoint;
    tx.run(
        "UPDATE webhook_endpoints SET url = $3, enabled = $4, events = $5, description = $6 \
         WHERE app_id = $1 AND id = $2",
        &args![app, *id, url, *enabled, Json(events), description],
    )
}

/// False when there was none.
pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, id: EndpointId) -> Result<bool> {
    tx.changes_one("DELETE FROM webhook_endpoints WHERE app_id = $1 AND id = $2", &args![app, id])
}
