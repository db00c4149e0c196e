//! Leases: one node at a time does a thing, and when it dies another may after a while.
//!
//! Ends are compared on the database's clock, which no test clock moves and all nodes share. A lease keeps nodes out of
//! each other's way; it is no proof of exclusion, so what must happen once is settled by the transaction itself.

use std::time::Duration;

use kernel::{Entropy, Result};
use store::{Db, Tx, args};

/// Names this process in the leases it holds.
pub fn new_owner(entropy: &Entropy) -> String {
    format!("node_{}", entropy.base62(16))
}

const TAKE: &str = "INSERT INTO leases (name, owner, until) VALUES ($1, $2, {db_now} + $3) \
                    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until \
                    WHERE leases.owner = excluded.owner OR leases.until < {db_now}";
const RELEASE: &str = "DELETE FROM leases WHERE name = $1 AND owner = $2";

/// Takes or renews the lease; `false` when somebody else holds it.
pub fn take(tx: &mut Tx<'_>, name: &str, owner: &str, length: Duration) -> Result<bool> {
    tx.changes_one(TAKE, &args![name, owner, micros(length)])
}

/// Gives the lease back; one that was lost meanwhile stays with its new holder.
pub fn release(tx: &mut Tx<'_>, name: &str, owner: &str) -> Result<()> {
    tx.run(RELEASE, &args![name, owner])
}

const FREE: [&str; 4] = [
    "DELETE FROM leases",
    "UPDATE outbox_cursors SET lease_owner = NULL, lease_until = NULL WHERE lease_owner IS NOT NULL",
    "UPDATE mail_outbox SET lease_owner = NULL, lease_until = NULL WHERE lease_owner IS NOT NULL",
    "UPDATE sms_outbox SET lease_owner = NULL, lease_until = NULL WHERE lease_owner IS NOT NULL",
];

/// Ends all leases. Safe only where no other process can hold one.
pub fn free_all(tx: &mut Tx<'_>) -> Result<()> {
    FREE.iter().try_for_each(|sql| tx.run(sql, &[]))
}

/// To be called at start. A process on SQLite is alone (it holds the data folder), so any lease is of a process that died.
pub async fn free_after_restart(db: &Db) -> Result<()> {
    if db.is_single_node() { db.write(free_all).await } else { Ok(()) }
}

pub(crate) fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}
