//! Every column of this room that holds sealed secrets, for sealing them anew after a change of the master key.
//!
//! Rooms above have a list of their own. Whoever seals into a new column adds a row to it; a test seals, changes the key and opens each of them.

use ::store::{Db, Tx, args};
use kernel::{AppId, Result};
use vault::{Keyring, Place};

/// A column of sealed values. A row is named by one column beside its app, as in its [`Place`].
pub struct SealedColumn {
    pub table: &'static str,
    pub column: &'static str,
    #[doc(hidden)]
    pub find: &'static str,
    #[doc(hidden)]
    pub replace: &'static str,
}

/// Table, the column that names a row within its app, and the sealed column.
#[macro_export]
macro_rules! sealed_column {
    ($table:literal, $row:literal, $column:literal) => {
        $crate::sealed::SealedColumn {
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
    sealed_column!("app_secrets", "id", "sealed"),
    sealed_column!("app_credentials", "name", "sealed"),
    sealed_column!("federation_connections", "id", "sealed_private_key"),
];

/// Seals anew what a previous master key had sealed, a bounded batch per transaction; how many values.
pub async fn reseal(db: &Db, keyring: &Keyring, columns: &'static [SealedColumn]) -> Result<usize> {
    let mut total = 0;
    for column in columns {
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
