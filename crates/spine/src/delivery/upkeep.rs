//! What operators need of the message tables: how much is stuck.

use kernel::{Result, Timestamp};
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

/// What waits to be sent over one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub channel: &'static str,
    pub count: i64,
    pub oldest: Option<Timestamp>,
}

pub fn waiting(tx: &mut Tx<'_>) -> Result<[Waiting; 2]> {
    let (mails, oldest_mail) =
        tx.one("SELECT count(*), min(created_at) FROM mail_outbox WHERE state = 'waiting'", &[])?;
    let (texts, oldest_text) =
        tx.one("SELECT count(*), min(created_at) FROM sms_outbox WHERE state = 'waiting'", &[])?;
    Ok([
        Waiting { channel: "mail", count: mails, oldest: oldest_mail },
        Waiting { channel: "sms", count: texts, oldest: oldest_text },
    ])
}
