//! The SQL of deliveries that people look at, repeat and keep. The sender has its own.

use std::time::Duration;

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Page, Result, TenantId, Timestamp};
use spine::FactId;

use super::{DeliveryId, DeliveryRow, DeliveryStatus};
use crate::endpoints::EndpointId;

/// A delivery to be made.
pub(crate) struct Unsent<'a> {
    pub(crate) app: AppId,
    pub(crate) tenant: Option<TenantId>,
    pub(crate) endpoint: EndpointId,
    /// False where the endpoint is disabled: then it is kept for a replay. Otherwise it is sent as soon as it is committed.
    pub(crate) due: bool,
    pub(crate) event_id: String,
    pub(crate) event_type: &'a str,
    pub(crate) position: i64,
    pub(crate) fact: Option<FactId>,
    pub(crate) target_url: String,
    pub(crate) payload: String,
}

const INSERT: &str = "INSERT INTO webhook_deliveries (id, app_id, tenant_id, endpoint_id, event_id, event_type, position, \
     fact_id, target_url, payload, status, attempt, made, attempts, last_error, next_attempt_at, finished_at, created_at) \
     SELECT id, app_id, tenant_id, endpoint_id, event_id, event_type, position, fact_id, target_url, payload, \
     CASE WHEN due THEN 'pending' ELSE 'dlq' END, 1, 0, '[]', \
     CASE WHEN due THEN NULL ELSE 'webhook_disabled' END, CASE WHEN due THEN created_at ELSE NULL END, \
     CASE WHEN due THEN NULL ELSE created_at END, created_at FROM {rows} WHERE true";

/// Their ids, in order.
pub(crate) fn insert(tx: &mut Tx<'_>, unsent: &[Unsent<'_>]) -> Result<Vec<DeliveryId>> {
    let now = tx.now();
    let ids: Vec<DeliveryId> = unsent.iter().map(|_| tx.new_id()).collect();
    let rows = unsent.iter().zip(&ids).map(|(one, id)| {
        let Unsent { app, tenant, endpoint, due, event_type, position, fact, .. } = *one;
        let (event, url, payload) = (one.event_id.as_str(), one.target_url.as_str(), one.payload.as_str());
        (*id, app, tenant, endpoint, event, event_type, position, fact, url, payload, due, now)
    });
    let rows: Vec<_> = rows.collect();
    let names = [
        "id",
        "app_id",
        "tenant_id",
        "endpoint_id",
        "event_id",
        "event_type",
        "position",
        "fact_id",
        "target_url",
        "payload",
        "due",
        "created_at",
    ];
    tx.insert_all(INSERT, names, &rows)?;
    Ok(ids)
}

/// Which deliveries are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) status: Option<DeliveryStatus>,
    pub(crate) event_type: Option<String>,
    pub(crate) tenant: Option<TenantId>,
    pub(crate) endpoint: Option<EndpointId>,
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Option<Timestamp>,
}

/// How many are listed when nobody says.
const LISTED: u32 = 20;

const LIST: &str = sql!(
    "SELECT ",
    DeliveryRow::COLUMNS,
    " FROM webhook_deliveries WHERE app_id = $1 AND ($2 = '' OR status = $2) AND ($3 = '' OR event_type = $3) \
     AND ($4 = '' OR endpoint_id = $4) AND created_at >= $5 AND created_at <= $6 ORDER BY id DESC LIMIT $7 OFFSET $8"
);
/// With an index of its own.
const LIST_OF_TENANT: &str = sql!(
    "SELECT ",
    DeliveryRow::COLUMNS,
    " FROM webhook_deliveries WHERE app_id = $1 AND ($2 = '' OR status = $2) AND ($3 = '' OR event_type = $3) \
     AND ($4 = '' OR endpoint_id = $4) AND created_at >= $5 AND created_at <= $6 AND tenant_id = $9 \
     ORDER BY id DESC LIMIT $7 OFFSET $8"
);

/// Newest first.
pub(crate) fn list(tx: &mut Tx<'_>, app: AppId, wanted: &Wanted, page: Page) -> Result<Vec<DeliveryRow>> {
    let limit = i64::from(page.limit.unwrap_or(LISTED));
    let status = wanted.status.map_or("", DeliveryStatus::as_str);
    let event_type = wanted.event_type.as_deref().unwrap_or_default();
    let endpoint = wanted.endpoint.map(|id| id.to_string()).unwrap_or_default();
    let (from, to) = (wanted.from.unwrap_or(Timestamp::MIN), wanted.to.map_or(Timestamp::MAX, to_the_millisecond));
    match wanted.tenant {
        None => tx.all(LIST, &args![app, status, event_type, endpoint, from, to, limit, page.offset()]),
        Some(tenant) => {
            tx.all(LIST_OF_TENANT, &args![app, status, event_type, endpoint, from, to, limit, page.offset(), tenant])
        }
    }
}

/// Times are shown to the millisecond: whoever asks up to one that they saw means all of it.
fn to_the_millisecond(shown: Timestamp) -> Timestamp {
    shown.plus(Duration::from_micros(999))
}

const FIND: &str = sql!("SELECT ", DeliveryRow::COLUMNS, " FROM webhook_deliveries WHERE app_id = $1 AND id = $2");

pub(crate) fn delivery_of(tx: &mut Tx<'_>, app: AppId, id: DeliveryId) -> Result<Option<DeliveryRow>> {
    tx.opt(FIND, &args![app, id])
}

const REPLAYED: &str = "UPDATE webhook_deliveries SET replayed_as = $3 WHERE app_id = $1 AND id = $2";

pub(super) fn note_replay(tx: &mut Tx<'_>, app: AppId, id: DeliveryId, replay: DeliveryId) -> Result<()> {
    tx.run(REPLAYED, &args![app, id, replay])
}

/// What did not arrive, to be repeated.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    /// Empty for all.
    pub(super) types: Vec<String>,
}

const LOST: &str = sql!(
    "SELECT ",
    DeliveryRow::COLUMNS,
    " FROM webhook_deliveries WHERE app_id = $1 AND id > $2 AND status = 'dlq' AND replayed_as IS NULL \
     AND created_at >= $3 AND created_at <= $4 AND endpoint_id = ANY($5) AND ($6 OR event_type = ANY($7)) \
     ORDER BY id LIMIT $8"
);

/// A batch after a place, oldest first. What was replayed before is left out: its replay stands for it.
pub(super) fn lost(
    tx: &mut Tx<'_>,
    app: AppId,
    after: &str,
    lost: &Lost,
    endpoints: &[EndpointId],
    limit: i64,
) -> Result<Vec<DeliveryRow>> {
    let all_types = lost.types.is_empty();
    tx.all(
        LOST,
        &args![app, after, lost.since, to_the_millisecond(lost.until), endpoints, all_types, lost.types, limit],
    )
}

const SWEEP: &str = "DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries \
                     WHERE status = $1 AND finished_at IS NOT NULL AND finished_at < $2 LIMIT $3)";

/// Deletes a batch of what ended before; how many.
pub(super) fn sweep(tx: &mut Tx<'_>, status: DeliveryStatus, before: Timestamp, limit: i64) -> Result<u64> {
    tx.exec(SWEEP, &args![status, before, limit])
}

/// What waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    pub waiting: i64,
    /// Since when the oldest of them has been due.
    pub oldest_due: Option<Timestamp>,
}

row! { Backlog = "webhook_deliveries" { waiting = "count(*)", oldest_due = "min(next_attempt_at)" } }

pub fn backlog(tx: &mut Tx<'_>) -> Result<Backlog> {
    const BACKLOG: &str = sql!(
        "SELECT ",
        Backlog::COLUMNS,
        " FROM webhook_deliveries WHERE lease_owner IS NULL AND next_attempt_at IS NOT NULL"
    );
    tx.one(BACKLOG, &[])
}
