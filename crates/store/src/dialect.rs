//! Everything in which the two engines' SQL differs, and nowhere else.
//!
//! Domains write one text with `$1` parameters and a few tokens; each connection translates a text once and keeps it.

mod rows;

use std::{borrow::Cow, fmt::Write as _};

pub(crate) use rows::{RowText, sqlite_rows};

use crate::ColumnType;

/// Leases compare with this clock, which no test clock moves: the database's own.
const DB_NOW: &str = "{db_now}";
/// At the end of a SELECT: take the rows for this transaction, skip those that somebody else holds.
const CLAIM: &str = "{claim}";
/// The input table of [`crate::Tx::insert_all`].
const ROWS: &str = "{rows}";

pub(crate) fn postgres(sql: &str) -> Cow<'_, str> {
    if !sql.contains('{') {
        return Cow::Borrowed(sql);
    }
    sql.replace(DB_NOW, "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")
        .replace(CLAIM, "FOR UPDATE SKIP LOCKED")
        .into()
}

/// The text of [`crate::Tx::insert_all`] on PostgreSQL: the rows arrive as one array per column.
pub(crate) fn postgres_rows(sql: &str, columns: &[(&str, ColumnType)]) -> String {
    let mut source = String::from("unnest(");
    for (index, (_, column_type)) in columns.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let array = match column_type {
            ColumnType::Text => "TEXT[]",
            ColumnType::Int => "BIGINT[]",
            ColumnType::Real => "DOUBLE PRECISION[]",
            ColumnType::Bool => "BOOLEAN[]",
            ColumnType::Bytes => "BYTEA[]",
        };
        let _ = write!(source, "{separator}CAST(${} AS {array})", index + 1);
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let _ = write!(source, ") AS rows({})", names.join(", "));
    postgres(sql).replace(ROWS, &source)
}

/// SQLite would number `$1` by its first occurrence; `?1` is a position. Lists become a JSON array.
pub(crate) fn sqlite(sql: &str) -> String {
    let mut text = sql
        .replace(DB_NOW, "CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)")
        .replace(CLAIM, "")
        .replace('$', "?");
    while let Some(start) = text.find("= ANY(?") {
        let open = start + "= ANY(".len();
        let Some(length) = text[open..].find(')') else { break };
        let parameter = text[open..open + length].to_owned();
        text.replace_range(start..=open + length, &format!("IN (SELECT value FROM json_each({parameter}))"));
    }
    text
}

/// The columns of `{rows}` written into the text, for the record of statements.
#[cfg(feature = "testing")]
pub(crate) fn name_columns(sql: &str, columns: &[(&str, ColumnType)]) -> String {
    let named: Vec<String> = columns.iter().map(|(name, kind)| format!("{name} {kind:?}")).collect();
    sql.replace(ROWS, &format!("{{rows: {}}}", named.join(", ")))
}

/// A recorded text as the engine reads it.
#[cfg(feature = "testing")]
pub(crate) fn recorded(sql: &str, engine: crate::EngineName) -> String {
    let (sql, columns) = match sql.split_once("{rows: ") {
        Some((before, rest)) => {
            let (columns, after) = rest.split_once('}').expect("the token ends");
            (format!("{before}{ROWS}{after}"), columns)
        }
        None => (sql.to_owned(), ""),
    };
    let columns: Vec<(&str, ColumnType)> =
        columns.split(", ").filter_map(|column| column.split_once(' ')).map(named).collect();
    match engine {
        crate::EngineName::Sqlite => sqlite_rows(&sql, &columns).sql,
        crate::EngineName::Postgres => postgres_rows(&sql, &columns),
    }
}

#[cfg(feature = "testing")]
fn named<'a>((name, kind): (&'a str, &str)) -> (&'a str, ColumnType) {
    let kinds = [ColumnType::Text, ColumnType::Int, ColumnType::Real, ColumnType::Bool, ColumnType::Bytes];
    let known = kinds.into_iter().find(|known| format!("{known:?}") == kind);
    (name, known.expect("a recorded type is known"))
}

/// The column types of migrations.
pub(crate) fn migration(sql: &str, engine: crate::EngineName) -> String {
    let types = match engine {
        crate::EngineName::Sqlite => [
            ("{int}", "INTEGER"),
            ("{bool}", "INTEGER"),
            ("{bytes}", "BLOB"),
            ("{real}", "REAL"),
            ("{key}", "TEXT"),
            ("{strict}", "STRICT"),
        ],
        // Text keys sort by bytes whatever the database's own collation is.
        crate::EngineName::Postgres => [
            ("{int}", "BIGINT"),
            ("{bool}", "BOOLEAN"),
            ("{bytes}", "BYTEA"),
            ("{real}", "DOUBLE PRECISION"),
            ("{key}", "TEXT COLLATE \"C\""),
            ("{strict}", ""),
        ],
    };
    types.iter().fold(sql.to_owned(), |text, (token, column_type)| text.replace(token, column_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_positions_on_sqlite() {
        assert_eq!(sqlite("SELECT a FROM t WHERE b = $2 AND c = $1"), "SELECT a FROM t WHERE b = ?2 AND c = ?1");
    }

    #[test]
    fn lists_become_json_on_sqlite() {
        assert_eq!(
            sqlite("DELETE FROM t WHERE id = ANY($1) AND x = ANY($12)"),
            "DELETE FROM t WHERE id IN (SELECT value FROM json_each(?1)) AND x IN (SELECT value FROM json_each(?12))"
        );
    }

    #[test]
    fn claims_lock_rows_only_where_there_are_other_writers() {
        let sql = "SELECT id FROM jobs WHERE due < {db_now} LIMIT 5 {claim}";
        assert!(postgres(sql).ends_with("LIMIT 5 FOR UPDATE SKIP LOCKED"));
        assert!(sqlite(sql).trim_end().ends_with("LIMIT 5"));
    }

    #[test]
    fn many_rows_are_one_table() {
        let columns: &[(&str, ColumnType)] = &[("a", ColumnType::Text), ("b", ColumnType::Int)];
        let sql = "INSERT INTO t (a, b) SELECT a, b FROM {rows} WHERE true";
        assert_eq!(
            postgres_rows(sql, columns),
            "INSERT INTO t (a, b) SELECT a, b FROM unnest(CAST($1 AS TEXT[]), CAST($2 AS BIGINT[])) AS rows(a, b) WHERE true"
        );
        assert_eq!(sqlite_rows(sql, columns).sql, "INSERT INTO t (a, b) VALUES (?1, ?2)");
    }
}
