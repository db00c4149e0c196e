//! Every column of this room that holds sealed secrets, for sealing them anew after a change of the master key.
//!
//! A room that seals into a new column adds a row to [`COLUMNS`]; a test seals, changes the key and opens each of them.

use ::store::{Db, Tx, args};
use kernel::{AppId, Result};
use vault::{Keyring, Place};

/// A column of sealed values. A row is named by one column beside its app, as in its [`Place`].
pub struct SealedColumn {
    pub table: &'static str,
    pub column: &'static str,
    find: &'static str,
    replace: &'static str,
}

macro_rules! sealed {
    ($table:literal, $row:literal, $column:literal) => {
        SealedColumn {
            table: $table,
            column: $column,
            find: concat!(
                "SELECT ",
                $row,
                ", app_id, ",
                $column,
                " FROM ",
                $table,
                " ",
                "WHERE ",
                $column,
                " <> '' AND substr(",
                $column,
                ", 1, length($1)) <> $1 LIMIT 100"
            ),
            // Not if it was changed meanwhile: what was written then is sealed with the present key.
            replace: concat!(
                "UPDATE ",
                $table,
                " SET ",
                $column,
                " = $4 WHERE app_id = $1 AND ",
                $row,
                " = $2 AND ",
                $column,
                " = $3"
            ),
        }
    };
}

/// Table, the column that names a row within its app, and the sealed column.
pub const COLUMNS: &[SealedColumn] = &[
    sealed!("app_secrets", "id", "sealed"),
    sealed!("app_credentials", "name", "sealed"),
    sealed!("federation_connections", "id", "sealed_private_key"),
];

/// Seals anew what a previous master key had sealed, a bounded batch per transaction; how many values.
pub async fn reseal(db: &Db, keyring: &Keyring) -> Result<usize> {
    let mut total = 0;
    for column in COLUMNS {
        loop {
            let keyring = keyring.clone();
            let resealed = db.write(move |tx| column.reseal_some(tx, &keyring)).await?;
            total += resealed;
            if resealed == 0 {
                break;
            }
        }
    }
    Ok(total)
}

impl SealedColumn {
    fn reseal_some(&self, tx: &mut Tx<'_>, keyring: &Keyring) -> Result<usize> {
        let rows: Vec<(String, AppId, String)> = tx.all(self.find, &args![keyring.current_prefix()])?;
        for (row, app, old) in &rows {
            let place = Place { table: self.table, column: self.column, row, app: Some(*app) };
            if let Some(new) = keyring.reseal(&place, old)? {
                tx.exec(self.replace, &args![*app, row, old, new])?;
            }
        }
        Ok(rows.len())
    }
}
