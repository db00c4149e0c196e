//! The SQL of counters, which all nodes share.

use std::time::Duration;

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, Timestamp};

use super::streak::Streak;

row! { Streak = "attempt_counters" { failures: "attempts", window_started_at, blocked_until } }

pub(super) fn find(tx: &mut Tx<'_>, subject: &str) -> Result<Option<Streak>> {
    tx.opt(sql!("SELECT ", Streak::COLUMNS, " FROM attempt_counters WHERE subject = $1"), &args![subject])
}

pub(super) fn put(tx: &mut Tx<'_>, app: AppId, subject: &str, streak: &Streak, expires_at: Timestamp) -> Result<()> {
    tx.run(
        "INSERT INTO attempt_counters (subject, app_id, attempts, window_started_at, blocked_until, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (subject) DO UPDATE SET attempts = excluded.attempts, \
         window_started_at = excluded.window_started_at, blocked_until = excluded.blocked_until, \
         expires_at = excluded.expires_at",
        &args![subject, app, streak.failures, streak.window_started_at, streak.blocked_until, expires_at],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, subject: &str) -> Result<()> {
    tx.run("DELETE FROM attempt_counters WHERE subject = $1", &args![subject])
}

/// Counts one more in the window; how many there are now, and since when.
pub(super) fn count_message(tx: &mut Tx<'_>, app: AppId, subject: &str, window: Duration) -> Result<(i64, Timestamp)> {
    let now = tx.now();
    tx.one(
        "INSERT INTO attempt_counters (subject, app_id, attempts, window_started_at, expires_at) \
         VALUES ($1, $2, 1, $3, $4) ON CONFLICT (subject) DO UPDATE SET \
         attempts = CASE WHEN attempt_counters.window_started_at <= $5 THEN 1 ELSE attempt_counters.attempts + 1 END, \
         window_started_at = CASE WHEN attempt_counters.window_started_at <= $5 THEN excluded.window_started_at \
         ELSE attempt_counters.window_started_at END, expires_at = excluded.expires_at \
         RETURNING attempts, window_started_at",
        &args![subject, app, now, now.plus(window), now.minus(window)],
    )
}

/// Whether somebody signed in from there.
pub(super) fn is_trusted(tx: &mut Tx<'_>, key: &str) -> Result<bool> {
    tx.exists("SELECT 1 FROM attempt_counters WHERE subject = $1 AND expires_at > $2", &args![key, tx.now()])
}

pub(super) fn trust(tx: &mut Tx<'_>, app: AppId, key: &str, until: Timestamp) -> Result<()> {
    tx.run(
        "INSERT INTO attempt_counters (subject, app_id, attempts, window_started_at, expires_at) \
         VALUES ($1, $2, 0, $3, $4) ON CONFLICT (subject) DO UPDATE SET expires_at = excluded.expires_at",
        &args![key, app, tx.now(), until],
    )
}
