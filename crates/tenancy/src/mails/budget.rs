//! How many mails one address gets because others want it to: invitations and links that a workspace asks for, samples of
//! templates, questions to senders. The mails of a person's own logins are counted with those, so that nobody uses up both.

use std::time::Duration;

use ::store::{Tx, args};
use kernel::{AppId, Result, Timestamp};
use web::limited;

use crate::links::recipient;

/// For the documentation of routes that answer [`count`]'s 429.
pub(crate) const TOO_MANY_MAILS: &str = "Too many emails to this address; try again after the seconds in Retry-After";

const MOST: i64 = 10;
const WINDOW: Duration = Duration::from_secs(15 * 60);

/// Counts a mail to an address; 429 when there were too many of late.
pub(crate) fn count(tx: &mut Tx<'_>, app: AppId, to: &str) -> Result<()> {
    let (recipient, now) = (recipient(app, to), tx.now());
    let (sent, since): (i64, Timestamp) = tx.one(
        "INSERT INTO mail_counts (recipient, app_id, sent, since, expires_at) VALUES ($1, $2, 1, $3, $4) \
         ON CONFLICT (recipient) DO UPDATE SET \
         sent = CASE WHEN mail_counts.since <= $5 THEN 1 ELSE mail_counts.sent + 1 END, \
         since = CASE WHEN mail_counts.since <= $5 THEN excluded.since ELSE mail_counts.since END, \
         expires_at = excluded.expires_at RETURNING sent, since",
        &args![recipient, app, now, now.plus(WINDOW), now.minus(WINDOW)],
    )?;
    if sent <= MOST {
        return Ok(());
    }
    let message = "This address has been sent too many emails. Try again after the seconds in Retry-After.";
    Err(limited("recipient", message, since.plus(WINDOW).since(now)))
}
