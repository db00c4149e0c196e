//! How long events are kept, and how an entity leaves the log.

mod erasure;
mod http;
mod retention;

pub use erasure::ErasureId;
pub(crate) use erasure::{Eraser, release};
pub(crate) use http::routes;
pub(crate) use retention::EventRetention;

use std::time::Duration;

use kernel::{AppId, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Db, Tx, args};
use web::{Patch, Validate};

use crate::facts::EventSettingsChanged;

/// What the operator decided about an app's event log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventSettings {
    /// How many days events, journeys and audit entries are kept; `null` keeps them. Buckets stay.
    pub retention_days: Option<u32>,
}

/// The body of `PUT /admin/apps/{app_id}/events/settings`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventSettingsChange {
    /// `null` keeps events; what is left out stays as it is.
    #[serde(default)]
    #[schemars(range(min = 1, max = 36_500))]
    retention_days: Patch<u32>,
}

impl Validate for EventSettingsChange {}

const FIND: &str = "SELECT retention_days FROM event_settings WHERE app_id = $1";
const SAVE: &str = "INSERT INTO event_settings (app_id, retention_days) VALUES ($1, $2) \
                    ON CONFLICT (app_id) DO UPDATE SET retention_days = excluded.retention_days";

fn settings(tx: &mut Tx<'_>, app: AppId) -> Result<EventSettings> {
    let found = tx.opt::<(Option<u32>,)>(FIND, &args![app])?;
    Ok(EventSettings { retention_days: found.and_then(|(days,)| days) })
}

fn change(tx: &mut Tx<'_>, app: AppId, change: EventSettingsChange) -> Result<EventSettings> {
    let before = settings(tx, app)?;
    let after = EventSettings { retention_days: change.retention_days.apply(before.retention_days) };
    tx.run(SAVE, &args![app, after.retention_days])?;
    spine::emit(tx, app, &EventSettingsChanged { retention_days: after.retention_days })?;
    Ok(after)
}

const SWEPT: &str = "SELECT swept_before FROM event_settings WHERE app_id = $1";

/// Before which instant the retention may have deleted events.
pub(crate) fn swept_before(tx: &mut Tx<'_>, app: AppId) -> Result<Option<Timestamp>> {
    Ok(tx.opt::<(Option<Timestamp>,)>(SWEPT, &args![app])?.and_then(|(before,)| before))
}

/// The shortest retention.
const DAY: Duration = Duration::from_hours(24);

/// Events before this instant are not kept.
fn cutoff(days: u32, now: Timestamp) -> Timestamp {
    now.minus(DAY * days)
}

/// Before which instant the app takes no events: a repeat would not be recognised any more. Asked only for events that
/// are older than a day, since everything younger is kept.
pub(crate) async fn oldest_taken(db: &Db, app: AppId, oldest: Timestamp) -> Result<Option<Timestamp>> {
    let now = db.clock().now();
    if oldest >= now.minus(DAY) {
        return Ok(None);
    }
    let found = db.get_one::<(Option<u32>,)>(FIND, &args![app]).await?;
    Ok(found.and_then(|(days,)| days).map(|days| cutoff(days, now)))
}
