//! The rows of messages. Mail and SMS have a table each, with the same columns.

use std::time::Duration;

use kernel::{AppId, Result, Timestamp};
use store::{Db, FromRow, Row, Tx, args};

use crate::lease;

/// The statements on one table; made by `statements!`.
pub(crate) struct Sql {
    pub(crate) sweep_name: &'static str,
    pub(crate) insert: &'static str,
    pub(crate) next_due: &'static str,
    pub(crate) claim: &'static str,
    pub(crate) lease: &'static str,
    pub(crate) sent: &'static str,
    pub(crate) again: &'static str,
    pub(crate) given_up: &'static str,
    pub(crate) sweep: &'static str,
}

macro_rules! statements {
    ($table:literal) => {
        &$crate::delivery::Sql {
            sweep_name: concat!($table, "-sweep"),
            insert: concat!(
                "INSERT INTO ", $table, " (id, app_id, recipient, sealed, state, next_attempt_at, created_at) ",
                "VALUES ($1, $2, $3, $4, 'waiting', $5, $5)"
            ),
            next_due: concat!("SELECT min(next_attempt_at) FROM ", $table, " WHERE state = 'waiting'"),
            claim: concat!(
                "SELECT id, app_id, recipient, sealed, attempts, created_at FROM ", $table, " ",
                "WHERE state = 'waiting' AND next_attempt_at <= $1 AND (lease_until IS NULL OR lease_until < {db_now}) ",
                "ORDER BY next_attempt_at LIMIT $2 {claim}"
            ),
            lease: concat!(
                "UPDATE ", $table, " SET lease_owner = $1, lease_until = {db_now} + $2 WHERE id = ANY($3)"
            ),
            // Whoever holds the lease: what was sent is sent.
            sent: concat!(
                "UPDATE ", $table, " SET state = 'sent', sealed = '', attempts = attempts + 1, finished_at = $2, ",
                "lease_owner = NULL, lease_until = NULL, last_error = NULL WHERE id = $1"
            ),
            again: concat!(
                "UPDATE ", $table, " SET attempts = attempts + 1, next_attempt_at = $3, last_error = $4, ",
                "lease_owner = NULL, lease_until = NULL WHERE id = $1 AND lease_owner = $2 AND state = 'waiting'"
            ),
            given_up: concat!(
                "UPDATE ", $table, " SET state = 'failed', sealed = '', attempts = attempts + 1, finished_at = $3, ",
                "last_error = $4, lease_owner = NULL, lease_until = NULL ",
                "WHERE id = $1 AND lease_owner = $2 AND state = 'waiting'"
            ),
            sweep: concat!(
                "DELETE FROM ", $table, " WHERE id IN (SELECT id FROM ", $table, " ",
                "WHERE state <> 'waiting' AND finished_at < $1 LIMIT 500)"
            ),
        }
    };
}
pub(crate) use statements;

/// A message that this node took in order to send it.
pub(super) struct Claimed {
    pub(super) id: String,
    pub(super) app: Option<AppId>,
    pub(super) recipient: String,
    pub(super) sealed: String,
    pub(super) attempts: i64,
    pub(super) created_at: Timestamp,
}

impl FromRow for Claimed {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            app: row.get("app_id")?,
            recipient: row.get("recipient")?,
            sealed: row.get("sealed")?,
            attempts: row.get("attempts")?,
            created_at: row.get("created_at")?,
        })
    }
}

/// What became of an attempt.
pub(super) enum DeliveryOutcome {
    Sent,
    Again(Duration, String),
    GivenUp(String),
}

impl DeliveryOutcome {
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Again(..) => "retried",
            Self::GivenUp(_) => "failed",
        }
    }

    /// The row is not called `message` here: that is the name of the line's own text.
    pub(super) fn log(&self, channel: &str, id: &str, attempts: i64) {
        match self {
            Self::Sent => {}
            Self::Again(pause, reason) => {
                tracing::warn!(channel, id, attempts, reason, again_in_s = pause.as_secs(), "message not sent");
            }
            Self::GivenUp(reason) => tracing::error!(channel, id, attempts, reason, "message given up"),
        }
    }
}

pub(super) fn insert(
    tx: &mut Tx<'_>,
    sql: &Sql,
    id: &str,
    app: Option<AppId>,
    recipient: &str,
    sealed: &str,
) -> Result<()> {
    tx.run(sql.insert, &args![id, app, recipient, sealed, tx.now()])
}

pub(super) async fn next_due(db: &Db, sql: &Sql) -> Result<Option<Timestamp>> {
    let row: Option<(Option<Timestamp>,)> = db.get_one(sql.next_due, &[]).await?;
    Ok(row.and_then(|(due,)| due))
}

pub(super) async fn claim(
    db: &Db,
    sql: &'static Sql,
    owner: &str,
    limit: usize,
    length: Duration,
) -> Result<Vec<Claimed>> {
    let (owner, limit) = (owner.to_owned(), i64::try_from(limit).unwrap_or(i64::MAX));
    db.write(move |tx| {
        let claimed: Vec<Claimed> = tx.all(sql.claim, &args![tx.now(), limit])?;
        let ids: Vec<String> = claimed.iter().map(|message| message.id.clone()).collect();
        tx.exec(sql.lease, &args![owner, lease::micros(length), ids])?;
        Ok(claimed)
    })
    .await
}

pub(super) async fn finish(
    db: &Db,
    sql: &'static Sql,
    id: String,
    owner: String,
    outcome: DeliveryOutcome,
) -> Result<()> {
    db.write(move |tx| {
        let now = tx.now();
        match &outcome {
            DeliveryOutcome::Sent => tx.exec(sql.sent, &args![id, now])?,
            DeliveryOutcome::Again(pause, reason) => tx.exec(sql.again, &args![id, owner, now.plus(*pause), reason])?,
            DeliveryOutcome::GivenUp(reason) => tx.exec(sql.given_up, &args![id, owner, now, reason])?,
        };
        Ok(())
    })
    .await
}

pub(super) async fn sweep(db: &Db, sql: &'static Sql, before: Timestamp) -> Result<u64> {
    db.exec_one(sql.sweep, &args![before]).await
}
