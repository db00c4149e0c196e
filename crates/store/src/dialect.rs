//! Everything in which the two engines' SQL differs, and nowhere else.
//!
//! Domains write one text with `$1` parameters and a few tokens; each connection translates a text once and keeps it.

use std::{borrow::Cow, fmt::Write as _};

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

/// The text of [`crate::Tx::insert_all`] on SQLite, which runs once for each row.
pub(crate) struct RowText {
    pub(crate) sql: String,
    /// The row's own columns that a row which was stored answers with, where the text does not return them itself.
    pub(crate) returned: Vec<usize>,
}

/// A table of one row; or, where a text only takes its rows over, `VALUES`: for what could fail halfway SQLite keeps a copy of
/// every page that it changes. `RETURNING` is such a thing too, and builds a table: what was stored is known already where
/// nothing else can be.
pub(crate) fn sqlite_rows(sql: &str, columns: &[(&str, ColumnType)]) -> RowText {
    if let Some(text) = sqlite_values(sql, columns) {
        return text;
    }
    let mut source = String::from("(SELECT ");
    for (index, (name, _)) in columns.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(source, "{separator}?{} AS {name}", index + 1);
    }
    source.push_str(") AS rows");
    RowText { sql: sqlite(sql).replace(ROWS, &source), returned: Vec::new() }
}

/// `INSERT INTO t (a, b) SELECT x, y FROM {rows} WHERE true …` with parameters in place of the rows' columns.
fn sqlite_values(sql: &str, columns: &[(&str, ColumnType)]) -> Option<RowText> {
    let (target, rest) = sql.strip_prefix("INSERT INTO ")?.split_once(") SELECT ")?;
    let (given, rest) = rest.split_once(" FROM {rows} WHERE true")?;
    let values = with_parameters(given, columns)?;
    // A statement has as many parameters as the highest of them says.
    if !values.contains(&format!("?{}", columns.len())) {
        return None;
    }
    let (conflict, returning) = match rest.trim().split_once("DO NOTHING RETURNING ") {
        // Commas within an expression would be taken for those between them.
        Some(_) if given.contains('(') => return None,
        Some((conflict, returning)) => (format!("{conflict}DO NOTHING"), returning),
        None if rest.contains("RETURNING") || !(rest.is_empty() || rest.starts_with(" ON CONFLICT ")) => return None,
        None => (rest.trim().to_owned(), ""),
    };
    let (_, stored) = target.split_once(" (")?;
    let taken_over = |name: &str| {
        let mut pairs = stored.split(", ").zip(given.split(", "));
        pairs.any(|pair| pair == (name, name)).then(|| columns.iter().position(|(column, _)| *column == name))?
    };
    let returned = returning.split(", ").filter(|name| !name.is_empty()).map(taken_over).collect::<Option<_>>()?;
    Some(RowText { sql: sqlite(format!("INSERT INTO {target}) VALUES ({values}) {conflict}").trim_end()), returned })
}

/// An expression over a row's columns, as one over parameters. `None` when it has words that are neither columns nor SQL's own,
/// which we write in capitals.
fn with_parameters(expression: &str, columns: &[(&str, ColumnType)]) -> Option<String> {
    let mut text = String::new();
    for (place, part) in expression.split('\'').enumerate() {
        if place % 2 == 1 {
            let _ = write!(text, "'{part}'");
            continue;
        }
        for word in part.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
            let name = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            match columns.iter().position(|(column, _)| *column == name) {
                Some(index) => {
                    let _ = write!(text, "?{}{}", index + 1, &word[name.len()..]);
                }
                None if name.contains(|letter: char| letter.is_ascii_lowercase()) => return None,
                None => text.push_str(word),
            }
        }
    }
    Some(text)
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

    #[test]
    fn rows_are_values_where_they_are_only_taken_over() {
        let columns: &[(&str, ColumnType)] = &[("a", ColumnType::Text), ("b", ColumnType::Int)];
        let translated = |sql: &str| {
            let RowText { sql, returned } = sqlite_rows(sql, columns);
            (sql, returned)
        };
        let cases = "INSERT INTO t (x, y, a) SELECT CASE WHEN b THEN 'a b' ELSE NULL END, -1, a FROM {rows} WHERE true \
                     ON CONFLICT (a) DO UPDATE SET y = t.y + excluded.y";
        assert_eq!(
            translated(cases).0,
            "INSERT INTO t (x, y, a) VALUES (CASE WHEN ?2 THEN 'a b' ELSE NULL END, -1, ?1) ON CONFLICT (a) \
             DO UPDATE SET y = t.y + excluded.y"
        );
        let new = "INSERT INTO t (a, b) SELECT a, b FROM {rows} WHERE true ON CONFLICT (a) DO NOTHING RETURNING b, a";
        let stored = "INSERT INTO t (a, b) VALUES (?1, ?2) ON CONFLICT (a) DO NOTHING".to_owned();
        assert_eq!(translated(new), (stored, vec![1, 0]));
    }

    #[test]
    fn other_rows_are_a_table() {
        let columns: &[(&str, ColumnType)] = &[("a", ColumnType::Text), ("b", ColumnType::Int)];
        let others = [
            "INSERT INTO t (a, b) SELECT a, b FROM {rows} WHERE EXISTS (SELECT 1 FROM u WHERE u.a = rows.a)",
            "INSERT INTO t (a, b) SELECT rows.a, b FROM {rows} WHERE true",
            "INSERT INTO t (a, b) SELECT a, b FROM {rows} WHERE true AND b > 1",
            "INSERT INTO t (a, b) SELECT a, b FROM {rows} WHERE true ON CONFLICT (a) DO UPDATE SET n = 1 RETURNING n",
            "INSERT INTO t (a, b) SELECT a, b FROM {rows} WHERE true ON CONFLICT (a) DO NOTHING RETURNING n",
            "INSERT INTO t (b, a) SELECT a, b FROM {rows} WHERE true ON CONFLICT (a) DO NOTHING RETURNING a",
            "INSERT INTO t (c, a) SELECT COALESCE(NULL, a, b), b FROM {rows} WHERE true ON CONFLICT (a) DO NOTHING RETURNING a",
            "INSERT INTO t (a) SELECT a FROM {rows} WHERE true",
            "UPDATE t SET b = rows.b FROM {rows} WHERE t.a = rows.a",
        ];
        for sql in others {
            let RowText { sql: text, returned } = sqlite_rows(sql, columns);
            assert_eq!(text, sql.replace(ROWS, "(SELECT ?1 AS a, ?2 AS b) AS rows"));
            assert!(returned.is_empty());
        }
    }
}
