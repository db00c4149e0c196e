//! A change of the master key: what this room keeps sealed is sealed anew.

use kernel::{AppId, Result};
use store::{Db, Tx, args};
use vault::{Keyring, Place};

/// A column of sealed values, in a table whose rows have an id, and the statements that find and replace them.
struct Sealed {
    table: &'static str,
    column: &'static str,
    find: &'static str,
    replace: &'static str,
}

macro_rules! sealed {
    ($table:literal, $column:literal) => {
        Sealed {
            table: $table,
            column: $column,
            find: concat!(
                "SELECT id, app_id, ",
                $column,
                " FROM ",
                $table,
                " WHERE substr(",
                $column,
                ", 1, length($1)) <> $1 ORDER BY id LIMIT 100"
            ),
            replace: concat!("UPDATE ", $table, " SET ", $column, " = $3 WHERE id = $1 AND ", $column, " = $2"),
        }
    };
}

const COLUMNS: [Sealed; 2] =
    [sealed!("app_secrets", "sealed"), sealed!("federation_connections", "sealed_private_key")];

/// Seals anew what a previous master key had sealed, a bounded batch per transaction; how many values.
pub async fn reseal(db: &Db, keyring: &Keyring) -> Result<usize> {
    let mut total = 0;
    for column in &COLUMNS {
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

fn reseal_some(tx: &mut Tx<'_>, keyring: &Keyring, sealed: &Sealed) -> Result<usize> {
    let rows: Vec<(String, AppId, String)> = tx.all(sealed.find, &args![keyring.current_prefix()])?;
    for (id, app, old) in &rows {
        let place = Place { table: sealed.table, column: sealed.column, row: id, app: Some(*app) };
        if let Some(new) = keyring.reseal(&place, old)? {
            // Not if it was replaced meanwhile: then it is sealed with the present key already.
            tx.exec(sealed.replace, &args![id, old, new])?;
        }
    }
    Ok(rows.len())
}
