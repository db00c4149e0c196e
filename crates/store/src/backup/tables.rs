//! The tables of a schema, found by asking the engine: nothing has to be listed twice.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use kernel::{Error, Result};

use crate::{ColumnType, EngineName, Row, Tx};

pub(crate) struct BackupTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<BackupColumn>,
}

pub(crate) struct BackupColumn {
    pub(crate) name: String,
    pub(crate) kind: ColumnType,
    /// PostgreSQL draws its values from a sequence.
    pub(super) numbered: bool,
}

const SQLITE_COLUMNS: &str = "SELECT tables.name, columns.name, columns.type, FALSE \
    FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns \
    WHERE tables.type = 'table' AND substr(tables.name, 1, 7) <> 'sqlite_' ORDER BY tables.name, columns.cid";

const POSTGRES_COLUMNS: &str = "SELECT CAST(columns.table_name AS TEXT), CAST(columns.column_name AS TEXT), \
    CAST(columns.data_type AS TEXT), columns.is_identity = 'YES' OR coalesce(columns.column_default LIKE 'nextval(%', FALSE) \
    FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name) \
    WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' AND is_generated = 'NEVER' \
    ORDER BY table_name, ordinal_position";

const POSTGRES_REFERENCES: &str = "SELECT CAST(child.relname AS TEXT), CAST(parent.relname AS TEXT) FROM pg_constraint \
    JOIN pg_class AS child ON child.oid = conrelid JOIN pg_class AS parent ON parent.oid = confrelid \
    WHERE contype = 'f' AND child.relnamespace = CAST(current_schema() AS regnamespace)";

const SQLITE_REFERENCES: &str = "SELECT tables.name, keys.\"table\" FROM sqlite_master AS tables \
    JOIN pragma_foreign_key_list(tables.name) AS keys WHERE tables.type = 'table'";

/// Tables with those that they refer to.
pub(crate) fn references(tx: &mut Tx<'_>, engine: EngineName) -> Result<Vec<(String, String)>> {
    let sql = match engine {
        EngineName::Sqlite => SQLITE_REFERENCES,
        EngineName::Postgres => POSTGRES_REFERENCES,
    };
    let mut references = Vec::new();
    tx.each_unrecorded(sql, &[], &mut |row| {
        references.push((row.at(0)?, row.at(1)?));
        Ok(())
    })?;
    Ok(references)
}

/// The names of all tables, whosever they are.
pub(super) fn names(tx: &mut Tx<'_>, engine: EngineName) -> Result<Vec<String>> {
    let sql = match engine {
        EngineName::Sqlite => {
            "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
        }
        EngineName::Postgres => {
            "SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = current_schema() \
             AND table_type = 'BASE TABLE' ORDER BY table_name"
        }
    };
    let mut names = Vec::new();
    tx.each_unrecorded(sql, &[], &mut |row| {
        names.push(row.at(0)?);
        Ok(())
    })?;
    Ok(names)
}

/// All tables, those that are referred to before those that refer to them.
pub(crate) fn of(tx: &mut Tx<'_>, engine: EngineName) -> Result<Vec<BackupTable>> {
    let mut tables: Vec<BackupTable> = Vec::new();
    let sql = match engine {
        EngineName::Sqlite => SQLITE_COLUMNS,
        EngineName::Postgres => POSTGRES_COLUMNS,
    };
    tx.each_unrecorded(sql, &[], &mut |row| {
        let table: String = row.at(0)?;
        if tables.last().is_none_or(|last| last.name != table) {
            tables.push(BackupTable { name: table, columns: Vec::new() });
        }
        let column = column_of(row)?;
        tables.last_mut().expect("a table was pushed above").columns.push(column);
        Ok(())
    })?;
    // SQLite checks references at commit when asked to; PostgreSQL does so only for constraints that allow it.
    if engine == EngineName::Postgres {
        let references = references(tx, engine)?;
        tables = parents_first(tables, &references);
    }
    Ok(tables)
}

fn column_of(row: &Row<'_>) -> Result<BackupColumn> {
    let (name, kind): (String, String) = (row.at(1)?, row.at(2)?);
    let kind = match kind.to_ascii_uppercase().as_str() {
        "INTEGER" | "BIGINT" | "INT" | "SMALLINT" => ColumnType::Int,
        "TEXT" | "CHARACTER VARYING" => ColumnType::Text,
        "BOOLEAN" => ColumnType::Bool,
        "BLOB" | "BYTEA" => ColumnType::Bytes,
        "REAL" | "DOUBLE PRECISION" => ColumnType::Real,
        other => return Err(Error::internal(format!("column {name} has the type {other}, unknown to backups"))),
    };
    Ok(BackupColumn { name, kind, numbered: row.at(3)? })
}

/// Where tables refer to each other in a circle, the circle stays as it is and its constraints must be deferrable.
fn parents_first(mut waiting: Vec<BackupTable>, references: &[(String, String)]) -> Vec<BackupTable> {
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let names: HashSet<String> = waiting.iter().map(|table| table.name.clone()).collect();
        let waits = |table: &BackupTable| {
            references.iter().any(|(child, parent)| *child == table.name && parent != child && names.contains(parent))
        };
        let (later, ready): (Vec<BackupTable>, Vec<BackupTable>) = waiting.into_iter().partition(waits);
        if ready.is_empty() {
            ordered.extend(later);
            return ordered;
        }
        ordered.extend(ready);
        waiting = later;
    }
    ordered
}

impl BackupTable {
    pub(crate) fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.column_list(), quoted(&self.name))
    }

    pub(crate) fn column_list(&self) -> String {
        self.columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
    }
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Statements are cached by their text's address, so texts must live on. There are a few per table, whatever the number
/// of backups: each is kept once.
pub(crate) fn interned(text: String) -> &'static str {
    static TEXTS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let texts = texts.get_or_insert_default();
    if let Some(known) = texts.get(text.as_str()) {
        return known;
    }
    let text: &'static str = text.leak();
    texts.insert(text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn referred_tables_come_first_and_circles_end() {
        let tables = ["a", "b", "c", "d", "e"].map(|name| BackupTable { name: name.into(), columns: Vec::new() });
        let refer = |child: &str, parent: &str| (child.to_owned(), parent.to_owned());
        let references = [refer("a", "b"), refer("b", "c"), refer("c", "c"), refer("d", "e"), refer("e", "d")];
        let ordered: Vec<_> = parents_first(tables.into(), &references).into_iter().map(|table| table.name).collect();
        assert_eq!(ordered, ["c", "b", "a", "d", "e"]);
    }
}
