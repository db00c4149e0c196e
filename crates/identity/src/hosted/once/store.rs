//! The SQL of forms that were sent.

use ::store::{Tx, args};
use kernel::{Result, Timestamp};

/// True for the first; also when the one before it is long over.
pub(super) fn claim(tx: &mut Tx<'_>, digest: &str, expires_at: Timestamp) -> Result<bool> {
    tx.changes_one(
        "INSERT INTO sent_forms (digest, expires_at) VALUES ($1, $2) ON CONFLICT (digest) DO UPDATE SET reply = NULL, \
         expires_at = excluded.expires_at WHERE sent_forms.expires_at <= $3",
        &args![digest, expires_at, tx.now()],
    )
}

/// The sealed answer, if there is one yet; `None` when there is no such form.
pub(super) fn find(tx: &mut Tx<'_>, digest: &str) -> Result<Option<Option<String>>> {
    let row: Option<(Option<String>,)> = tx.opt("SELECT reply FROM sent_forms WHERE digest = $1", &args![digest])?;
    Ok(row.map(|(reply,)| reply))
}

pub(super) fn answer(tx: &mut Tx<'_>, digest: &str, sealed: &str) -> Result<()> {
    tx.run("UPDATE sent_forms SET reply = $2 WHERE digest = $1", &args![digest, sealed])
}

pub(super) fn forget(tx: &mut Tx<'_>, digest: &str) -> Result<()> {
    tx.run("DELETE FROM sent_forms WHERE digest = $1", &args![digest])
}
