//! Sealing again after a change of the master key, for every sealed column that the rooms' registers name.

use kernel::{AppId, Result};
use store::{Db, SealedColumn, Table, Tx, args};

use crate::{Keyring, Place};

/// Seals again what a previous master key had sealed, a bounded batch per transaction; how many values.
pub async fn reseal(db: &Db, keyring: &Keyring, tables: impl IntoIterator<Item = &'static Table>) -> Result<usize> {
    let mut total = 0;
    for column in tables.into_iter().flat_map(|table| table.sealed) {
        loop {
            let keyring = keyring.clone();
            let resealed = db.write(move |tx| reseal_some(tx, &keyring, column)).await?;
            total += resealed;
            if resealed == 0 {
                break;
            }
        }
    }
    Ok(total)
}

fn reseal_some(tx: &mut Tx<'_>, keyring: &Keyring, column: &SealedColumn) -> Result<usize> {
    let rows: Vec<(String, Option<AppId>, String)> = tx.all(column.find, &args![keyring.current_prefix()])?;
    for (row, app, old) in &rows {
        let place = Place { table: column.table, column: column.column, row, app: *app };
        if let Some(new) = keyring.reseal(&place, old)? {
            tx.run(column.replace, &args![*app, row, old, new])?;
        }
    }
    Ok(rows.len())
}
