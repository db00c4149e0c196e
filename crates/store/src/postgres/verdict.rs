//! The fate of a transaction whose connection broke while it committed, looked up on a new connection.
//!
//! The server knows it by the transaction's number. There is one trap: a number that was handed out but did not reach
//! the disk before the server crashed is handed out again afterwards, so that "committed" may be said of somebody else's
//! transaction. A crash resets the server's statistics, which a clean restart keeps; so after a crash "committed" is
//! taken for "unknown", while "aborted" is still true of both.

use std::time::Duration;

use kernel::Ticker;

use super::{
    connection::{PgConnection, TransactionId},
    connector::{Greeting, pause},
};
use crate::fault::Fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitVerdict {
    Committed,
    /// Nothing of it remains, nor ever will.
    Aborted,
    Unknown,
}

/// A commit that is under way is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// After this long the server has most likely not noticed that its client is gone.
const END_AFTER: Duration = Duration::from_secs(1);
const ASK_EVERY: Duration = Duration::from_millis(20);

pub(super) fn look_up(
    connection: &mut PgConnection,
    id: TransactionId,
    before: &Greeting,
) -> Result<CommitVerdict, Fault> {
    let crashed = connection.greeting().since_crash != before.since_crash;
    if crashed && !was_handed_out(connection, id)? {
        return Ok(CommitVerdict::Aborted);
    }
    let started = Ticker.now();
    loop {
        match status(connection, id)?.as_deref() {
            Some("committed") if crashed => return Ok(CommitVerdict::Unknown),
            Some("committed") => return Ok(CommitVerdict::Committed),
            Some("aborted") => return Ok(CommitVerdict::Aborted),
            // No session survives a crash: this is somebody else's transaction under a number that ours lost.
            Some("in progress") if crashed => return Ok(CommitVerdict::Aborted),
            Some("in progress") if Ticker.since(started) < PATIENCE => {
                if Ticker.since(started) > END_AFTER {
                    end_session_of(connection, id)?;
                }
                pause(ASK_EVERY);
            }
            _ => return Ok(CommitVerdict::Unknown),
        }
    }
}

fn status(connection: &mut PgConnection, TransactionId(id): TransactionId) -> Result<Option<String>, Fault> {
    connection.ask(&format!("SELECT pg_xact_status(CAST('{id}' AS xid8))"))
}

/// A number that the server has yet to hand out was lost in the crash together with its transaction.
fn was_handed_out(connection: &mut PgConnection, TransactionId(id): TransactionId) -> Result<bool, Fault> {
    let next = connection.ask("SELECT pg_current_xact_id()")?;
    Ok(next.and_then(|next| next.parse().ok()).is_none_or(|next: u64| id < next))
}

/// The session is idle in its transaction, waiting for a COMMIT that was lost on the way. Ending it settles the matter.
fn end_session_of(connection: &mut PgConnection, TransactionId(id): TransactionId) -> Result<(), Fault> {
    connection
        .ask(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'transactionid' \
             AND mode = 'ExclusiveLock' AND granted AND transactionid = CAST(CAST('{id}' AS xid8) AS xid)"
        ))
        .map(|_| ())
}
