//! What operators need of the message tables: how much is stuck, and sealing waiting messages under a new master key.

use kernel::{AppId, Result};
use store::{Db, Tx, args};
use vault::{Keyring, Place};

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

/// The statements that find and replace sealed contents in one table.
struct Sealed {
    table: &'static str,
    find: &'static str,
    replace: &'static str,
}

macro_rules! sealed {
    ($table:literal) => {
        Sealed {
            table: $table,
            find: concat!(
                "SELECT id, app_id, sealed FROM ",
                $table,
                " WHERE state = 'waiting' AND substr(sealed, 1, length($1)) <> $1 ORDER BY id LIMIT 100"
            ),
            replace: concat!("UPDATE ", $table, " SET sealed = $3 WHERE id = $1 AND sealed = $2"),
        }
    };
}

const TABLES: [Sealed; 2] = [sealed!("mail_outbox"), sealed!("sms_outbox")];

/// Seals anew what waits under a previous master key, a bounded batch per transaction; how many messages.
pub async fn reseal_messages(db: &Db, keyring: &Keyring) -> Result<usize> {
    let mut total = 0;
    for table in &TABLES {
        loop {
            let keyring = keyring.clone();
            let resealed = db.write(move |tx| reseal_some(tx, &keyring, table)).await?;
            total += resealed;
            if resealed == 0 {
                break;
            }
        }
    }
    Ok(total)
}

fn reseal_some(tx: &mut Tx<'_>, keyring: &Keyring, sealed: &Sealed) -> Result<usize> {
    let rows: Vec<(String, Option<AppId>, String)> = tx.all(sealed.find, &args![keyring.current_prefix()])?;
    for (id, app, old) in &rows {
        let place = Place { table: sealed.table, column: "sealed", row: id, app: *app };
        if let Some(new) = keyring.reseal(&place, old)? {
            // Not if it was sent meanwhile: its content is erased then.
            tx.exec(sealed.replace, &args![id, old, new])?;
        }
    }
    Ok(rows.len())
}
