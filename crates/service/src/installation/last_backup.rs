//! When the last backup was made, so that somebody notices that there is none.

use ::store::{Db, Tx};
use kernel::{Result, Timestamp};

use super::store;

const LAST_BACKUP: &str = "last_backup";

pub(crate) async fn note_backup(db: &Db) -> Result<()> {
    db.write(|tx| store::put(tx, LAST_BACKUP, &tx.now().as_micros().to_string())).await
}

pub(crate) fn last_backup(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    let noted = store::find(tx, LAST_BACKUP)?.and_then(|micros| micros.parse().ok());
    Ok(noted.map(Timestamp::from_micros))
}
