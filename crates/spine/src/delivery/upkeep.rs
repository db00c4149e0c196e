//! What operators need of the message tables: how much is stuck.

use kernel::Result;
use store::Tx;

/// Messages that did not leave at the first attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Given up.
    pub failed: i64,
    /// Tried without success, and being tried again.
    pub retrying: i64,
}

const BACKLOG: &str = "SELECT count(*) FILTER (WHERE state = 'failed'), \
                       count(*) FILTER (WHERE state = 'waiting' AND attempts > 0) \
                       FROM (SELECT state, attempts FROM mail_outbox UNION ALL \
                       SELECT state, attempts FROM sms_outbox) AS messages";

pub fn backlog(tx: &mut Tx<'_>) -> Result<Backlog> {
    let (failed, retrying) = tx.one(BACKLOG, &[])?;
    Ok(Backlog { failed, retrying })
}
