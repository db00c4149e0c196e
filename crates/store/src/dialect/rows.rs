//! The texts of [`crate::Tx::insert_all`] on SQLite, which run once for each row: with a table of one row, or, where that is the
//! same, with the row's values as parameters.

use std::fmt::Write as _;

use super::{ROWS, sqlite};
use crate::ColumnType;

type Columns<'a> = [(&'a str, ColumnType)];

/// A text that runs once for each row.
pub(crate) struct RowText {
    pub(crate) sql: String,
    /// The row's own columns that each row which was stored or changed answers with, where the text does not return them itself.
    pub(crate) returned: Vec<usize>,
}

/// Parameters cost less than a table: for what could fail halfway SQLite keeps a copy of every page that it changes.
/// `RETURNING` is such a thing too, and builds a table: what was given is known already.
pub(crate) fn sqlite_rows(sql: &str, columns: &Columns<'_>) -> RowText {
    let text = sqlite_values(sql, columns).or_else(|| sqlite_update(sql, columns));
    // A statement has as many parameters as the highest of them says.
    let highest = format!("?{}", columns.len());
    text.filter(|text| text.sql.contains(&highest)).unwrap_or_else(|| sqlite_table(sql, columns))
}

/// With a table of one row.
fn sqlite_table(sql: &str, columns: &Columns<'_>) -> RowText {
    let mut source = String::from("(SELECT ");
    for (index, (name, _)) in columns.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(source, "{separator}?{} AS {name}", index + 1);
    }
    source.push_str(") AS rows");
    RowText { sql: sqlite(sql).replace(ROWS, &source), returned: Vec::new() }
}

/// `INSERT INTO t (a, b) SELECT x, y FROM {rows} WHERE true …` with parameters in place of the rows' columns.
fn sqlite_values(sql: &str, columns: &Columns<'_>) -> Option<RowText> {
    let (target, rest) = sql.strip_prefix("INSERT INTO ")?.split_once(") SELECT ")?;
    let (given, rest) = rest.split_once(" FROM {rows} WHERE true")?;
    let values = with_parameters(given, columns)?;
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
        pairs.any(|pair| pair == (name, name)).then(|| position(name, columns))?
    };
    let returned = returning.split(", ").filter(|name| !name.is_empty()).map(taken_over).collect::<Option<_>>()?;
    Some(RowText { sql: sqlite(format!("INSERT INTO {target}) VALUES ({values}) {conflict}").trim_end()), returned })
}

/// `UPDATE t SET a = x FROM {rows} WHERE t.id = y …` with parameters in place of the rows' columns. What it returns are columns of
/// the rows: SQLite would return none of these by itself.
fn sqlite_update(sql: &str, columns: &Columns<'_>) -> Option<RowText> {
    let (target, rest) = sql.strip_prefix("UPDATE ")?.split_once(" SET ")?;
    let (set, rest) = rest.split_once(" FROM {rows} WHERE ")?;
    let (condition, returning) = rest.split_once(" RETURNING ").unwrap_or((rest, ""));
    // In there, names could be those of another table.
    if sql.contains("SELECT") {
        return None;
    }
    let own = |name: &str| position(name.strip_prefix("rows.").unwrap_or(name), columns);
    let returned = returning.split(", ").filter(|name| !name.is_empty()).map(own).collect::<Option<_>>()?;
    let (set, condition) = (with_given(set, columns)?, with_given(condition, columns)?);
    Some(RowText { sql: sqlite(&format!("UPDATE {target} SET {set} WHERE {condition}")), returned })
}

fn position(name: &str, columns: &Columns<'_>) -> Option<usize> {
    columns.iter().position(|(column, _)| *column == name)
}

/// An expression over a row's columns, as one over parameters. `None` when it has words that are neither columns, nor tokens such
/// as `{db_now}`, nor SQL's own, which we write in capitals.
fn with_parameters(expression: &str, columns: &Columns<'_>) -> Option<String> {
    let pieces = pieces(expression);
    let is_token = |place: usize| place > 0 && pieces[place - 1].ends_with('{');
    let parameter = |(place, piece): (usize, &&str)| match position(piece, columns) {
        _ if is_token(place) => Some((*piece).to_owned()),
        Some(index) => Some(format!("?{}", index + 1)),
        None if is_word(piece) && piece.contains(|letter: char| letter.is_ascii_lowercase()) => None,
        None => Some((*piece).to_owned()),
    };
    pieces.iter().enumerate().map(parameter).collect()
}

/// An expression over the columns of a row and of a table, as one over parameters and the table's columns. What is assigned to
/// keeps its name. `None` when it names a column that the row does not have.
fn with_given(expression: &str, columns: &Columns<'_>) -> Option<String> {
    let pieces = pieces(expression);
    let is_assigned_to = |place: usize| {
        let begins = place == 0 || pieces[place - 1] == ", ";
        begins && pieces.get(place + 1) == Some(&" = ")
    };
    let given = |(place, piece): (usize, &&str)| {
        let index = match piece.strip_prefix("rows.") {
            Some(name) => Some(position(name, columns)?),
            None if is_assigned_to(place) => None,
            None => position(piece, columns),
        };
        Some(index.map_or_else(|| (*piece).to_owned(), |index| format!("?{}", index + 1)))
    };
    pieces.iter().enumerate().map(given).collect()
}

fn is_word(piece: &str) -> bool {
    piece.starts_with(is_letter)
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '.'
}

/// Words with what qualifies them, literals, and what stands between them.
fn pieces(expression: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), expression);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' => rest[1..].find('\'').map(|end| end + 2),
            first => rest.find(|letter: char| letter == '\'' || is_letter(letter) != is_letter(first)),
        };
        let (piece, behind) = rest.split_at(length.unwrap_or(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: &Columns<'static> = &[("a", ColumnType::Text), ("b", ColumnType::Int)];

    fn translated(sql: &str) -> (String, Vec<usize>) {
        let RowText { sql, returned } = sqlite_rows(sql, COLUMNS);
        (sql, returned)
    }

    #[test]
    fn rows_are_values_where_they_are_only_taken_over() {
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
        let (stamped, _) = translated("INSERT INTO t (a, b, at) SELECT a, b, {db_now} FROM {rows} WHERE true");
        assert!(stamped.starts_with("INSERT INTO t (a, b, at) VALUES (?1, ?2, CAST(unixepoch("), "{stamped}");
    }

    #[test]
    fn changes_take_rows_as_parameters() {
        let (known_by_table, known_by_name) = (
            "UPDATE t SET b = rows.b, n = t.b + 1 FROM {rows} WHERE t.a = rows.a AND n < {db_now} RETURNING rows.b, a",
            "UPDATE t SET x = CASE WHEN b = 2 THEN 'a, b = b' ELSE x END, y = -b FROM {rows} WHERE id = a AND t.a = 'a'",
        );
        let (changed, returned) = translated(known_by_table);
        assert!(
            changed.starts_with("UPDATE t SET b = ?2, n = t.b + 1 WHERE t.a = ?1 AND n < CAST(unixepoch("),
            "{changed}"
        );
        assert_eq!(returned, [1, 0]);
        let plain = "UPDATE t SET x = CASE WHEN ?2 = 2 THEN 'a, b = b' ELSE x END, y = -?2 WHERE id = ?1 AND t.a = 'a'";
        assert_eq!(translated(known_by_name), (plain.to_owned(), vec![]));
    }

    #[test]
    fn other_rows_are_a_table() {
        let others = [
            "INSERT INTO t (a, b) SELECT a, b FROM {rows} WHERE EXISTS (SELECT 1 FROM u WHERE u.a = rows.a)",
            "INSERT INTO t (a, b) SELECT rows.a, b FROM {rows} WHERE true",
            "INSERT INTO t (a, b) SELECT a, b FROM {rows} WHERE true AND b > 1",
            "INSERT INTO t (a, b) SELECT a, b FROM {rows} WHERE true ON CONFLICT (a) DO UPDATE SET n = 1 RETURNING n",
            "INSERT INTO t (a, b) SELECT a, b FROM {rows} WHERE true ON CONFLICT (a) DO NOTHING RETURNING n",
            "INSERT INTO t (b, a) SELECT a, b FROM {rows} WHERE true ON CONFLICT (a) DO NOTHING RETURNING a",
            "INSERT INTO t (c, a) SELECT COALESCE(NULL, a, b), b FROM {rows} WHERE true ON CONFLICT (a) DO NOTHING RETURNING a",
            "INSERT INTO t (a) SELECT a FROM {rows} WHERE true",
            "UPDATE t SET b = (SELECT max(b) FROM u) FROM {rows} WHERE t.a = rows.a AND t.b = rows.b",
            "UPDATE t SET b = rows.c FROM {rows} WHERE t.a = rows.a AND t.b = rows.b",
            "UPDATE t SET c = rows.b FROM {rows} WHERE t.a = rows.a RETURNING c",
            "UPDATE t SET b = 1 FROM {rows} WHERE t.a = rows.a",
        ];
        for sql in others {
            let (text, returned) = translated(sql);
            assert_eq!(text, sql.replace(ROWS, "(SELECT ?1 AS a, ?2 AS b) AS rows"));
            assert!(returned.is_empty());
        }
    }

    proptest! {
        #[test]
        fn a_text_consists_of_its_pieces(text in "[ab_.,= '()?é]{0,20}|\\PC{0,20}") {
            prop_assert_eq!(pieces(&text).concat(), text);
        }

        /// Whatever names no column of the rows stays as it is, and what stands in quotes in any case.
        #[test]
        fn only_the_rows_columns_are_replaced(text in "[c-z_.,=()+ ]{0,20}('[ab ,=.]{0,9}'[c-z_,=()+ ]{0,20}){0,3}") {
            prop_assume!(!text.contains("rows."));
            prop_assert_eq!(with_given(&text, COLUMNS), Some(text));
        }
    }
}
