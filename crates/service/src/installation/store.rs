//! The SQL of what the installation knows about itself.

use ::store::{Tx, args};
use kernel::Result;

pub(super) fn find(tx: &mut Tx<'_>, name: &str) -> Result<Option<String>> {
    let found: Option<(String,)> = tx.opt("SELECT value FROM installation WHERE name = $1", &args![name])?;
    Ok(found.map(|(value,)| value))
}

/// False when the value exists already; it is left as it is.
pub(super) fn insert(tx: &mut Tx<'_>, name: &str, value: &str) -> Result<bool> {
    tx.changes_one(
        "INSERT INTO installation (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
        &args![name, value, tx.now()],
    )
}

pub(super) fn put(tx: &mut Tx<'_>, name: &str, value: &str) -> Result<()> {
    tx.exec(
        "INSERT INTO installation (name, value, created_at) VALUES ($1, $2, $3) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        &args![name, value, tx.now()],
    )
    .map(|_| ())
}

pub(super) fn replace(tx: &mut Tx<'_>, name: &str, value: &str) -> Result<()> {
    tx.run("UPDATE installation SET value = $2 WHERE name = $1", &args![name, value])
}

pub(super) fn remove(tx: &mut Tx<'_>, name: &str) -> Result<()> {
    tx.run("DELETE FROM installation WHERE name = $1", &args![name])
}
