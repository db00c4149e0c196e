//! Events that are rows.

use ::store::{Tx, args, sql};
use kernel::{AppId, Result, Timestamp};

use super::{KeptEvent, LogPlace, Series};
use crate::LoggedEventId;

const AFTER: &str = sql!(
    "SELECT ",
    KeptEvent::COLUMNS,
    " FROM event_rows WHERE app_id = $1 AND name_id = $2 AND (happened_at, id) > ($3, $4) AND happened_at <= $5 \
      ORDER BY happened_at, id LIMIT $6"
);
const BEFORE: &str = sql!(
    "SELECT ",
    KeptEvent::COLUMNS,
    " FROM event_rows WHERE app_id = $1 AND name_id = $2 AND (happened_at, id) < ($3, $4) AND happened_at >= $5 \
      ORDER BY happened_at DESC, id DESC LIMIT $6"
);
const AUDITED_OF_NAME: &str = sql!(
    "SELECT ",
    KeptEvent::COLUMNS,
    " FROM event_rows WHERE app_id = $1 AND audited AND name_id = $2 AND (happened_at, id) < ($3, $4) \
      AND happened_at >= $5 ORDER BY happened_at DESC, id DESC LIMIT $6"
);
const AUDITED: &str = sql!(
    "SELECT ",
    KeptEvent::COLUMNS,
    " FROM event_rows WHERE app_id = $1 AND audited AND (happened_at, id) < ($2, $3) AND happened_at >= $4 \
      ORDER BY happened_at DESC, id DESC LIMIT $5"
);
const ANY: &str = "SELECT 1 FROM event_rows WHERE app_id = $1 AND name_id = $2 \
                   AND happened_at >= $3 AND happened_at < $4 LIMIT 1";
const FIND: &str = sql!("SELECT ", KeptEvent::COLUMNS, " FROM event_rows WHERE app_id = $1 AND id = $2");

/// Later ones, oldest first.
pub fn after(
    tx: &mut Tx<'_>,
    Series { app, name }: Series,
    LogPlace { at, id }: &LogPlace,
    until: Timestamp,
    most: i64,
) -> Result<Vec<KeptEvent>> {
    tx.all(AFTER, &args![app, name, *at, *id, until, most])
}

/// Earlier ones, newest first.
pub fn before(
    tx: &mut Tx<'_>,
    Series { app, name }: Series,
    LogPlace { at, id }: &LogPlace,
    since: Timestamp,
    most: i64,
) -> Result<Vec<KeptEvent>> {
    tx.all(BEFORE, &args![app, name, *at, *id, since, most])
}

/// Those of the audit trail, of one name or of all.
pub fn audited_before(
    tx: &mut Tx<'_>,
    (app, name): (AppId, Option<i64>),
    LogPlace { at, id }: &LogPlace,
    since: Timestamp,
    most: i64,
) -> Result<Vec<KeptEvent>> {
    match name {
        Some(name) => tx.all(AUDITED_OF_NAME, &args![app, name, *at, *id, since, most]),
        None => tx.all(AUDITED, &args![app, *at, *id, since, most]),
    }
}

/// Whether there are any from the first instant to before the last.
pub fn any(tx: &mut Tx<'_>, Series { app, name }: Series, (from, to): (i64, i64)) -> Result<bool> {
    tx.exists(ANY, &args![app, name, from, to])
}

pub fn find(tx: &mut Tx<'_>, app: AppId, id: LoggedEventId) -> Result<Option<KeptEvent>> {
    tx.opt(FIND, &args![app, id])
}
