//! What the planner is told about the tables. Without it, SQLite takes any two equalities for equally good, and looks for a person's
//! rows by walking through all of the app's. Measuring (`ANALYZE`) would make plans depend on what happened to be stored
//! that day; these are the same everywhere.

use kernel::Result;

use crate::{Tx, args};

/// Rows of a table.
const ROWS: u64 = 1_000_000;
/// Rows with the same value, by the columns that say whose they are; few enough that an index is still better than none.
const OF_AN_APP: u64 = 20_000;
const OF_A_WORKSPACE: u64 = 1_000;
/// Events of one name: most of an app's may have the same.
const OF_A_NAME: u64 = 5_000;
const OF_ANYTHING_ELSE: u64 = 10;

/// Every column of every index that begins with whose the rows are, in order.
const COLUMNS: &str = "SELECT tables.name AS table_name, indexes.name AS index_name, indexes.\"unique\" AS is_unique, \
     coalesce(columns.name, '') AS column_name FROM sqlite_master AS tables JOIN pragma_index_list(tables.name) AS indexes \
     JOIN pragma_index_info(indexes.name) AS columns WHERE tables.type = 'table' AND substr(tables.name, 1, 7) <> 'sqlite_' \
     AND (SELECT name FROM pragma_index_info(indexes.name) WHERE seqno = 0) IN ('app_id', 'app_number', 'tenant_id') \
     ORDER BY tables.name, indexes.name, columns.seqno";
const HAS_ESTIMATES: &str = "SELECT 1 AS found FROM sqlite_master WHERE name = 'sqlite_stat1'";
const TOLD: &str =
    "SELECT tbl, coalesce(idx, '') AS idx, coalesce(stat, '') AS stat FROM sqlite_stat1 ORDER BY tbl, idx";
const TELL: &str = "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ($1, $2, $3)";

#[derive(Debug, PartialEq, Eq)]
struct Estimate {
    table: String,
    index: String,
    /// Rows in all, then rows that are alike in the first column, in the first two, and so on.
    rows: String,
}

/// Tells the planner of the indexes there are, unless it knows. Every connection reads it again, since the table is new.
pub(crate) fn tell(tx: &mut Tx<'_>) -> Result<()> {
    let estimates = estimates(tx)?;
    if told(tx)? == estimates {
        return Ok(());
    }
    // Only `ANALYZE` makes the table. Somebody with a shell may have measured, too.
    tx.script(
        "DROP TABLE IF EXISTS sqlite_stat1; DROP TABLE IF EXISTS sqlite_stat4; ANALYZE schema_migrations; \
         DELETE FROM sqlite_stat1;",
    )?;
    for Estimate { table, index, rows } in &estimates {
        tx.each_unrecorded(TELL, &args![table, index, rows], &mut |_| Ok(()))?;
    }
    tx.script("ANALYZE sqlite_schema")
}

fn told(tx: &mut Tx<'_>) -> Result<Vec<Estimate>> {
    let (mut is_there, mut told) = (false, Vec::new());
    tx.each_unrecorded(HAS_ESTIMATES, &[], &mut |_| {
        is_there = true;
        Ok(())
    })?;
    if is_there {
        tx.each_unrecorded(TOLD, &[], &mut |row| {
            told.push(Estimate { table: row.get("tbl")?, index: row.get("idx")?, rows: row.get("stat")? });
            Ok(())
        })?;
    }
    Ok(told)
}

fn estimates(tx: &mut Tx<'_>) -> Result<Vec<Estimate>> {
    let mut indexes: Vec<((String, String), bool, Vec<String>)> = Vec::new();
    tx.each_unrecorded(COLUMNS, &[], &mut |row| {
        let index = (row.get("table_name")?, row.get("index_name")?);
        let (is_unique, column) = (row.get("is_unique")?, row.get("column_name")?);
        match indexes.last_mut().filter(|(last, ..)| *last == index) {
            Some((.., columns)) => columns.push(column),
            None => indexes.push((index, is_unique, vec![column])),
        }
        Ok(())
    })?;
    let estimate = |((table, index), is_unique, columns): ((String, String), bool, Vec<String>)| {
        let rows = rows(&columns, is_unique);
        Estimate { table, index, rows }
    };
    Ok(indexes.into_iter().map(estimate).collect())
}

fn rows(columns: &[String], is_unique: bool) -> String {
    let mut alike = ROWS;
    let mut written = ROWS.to_string();
    for (place, column) in columns.iter().enumerate() {
        let of_one = match column.as_str() {
            "app_id" | "app_number" => OF_AN_APP,
            "tenant_id" => OF_A_WORKSPACE,
            "name_id" => OF_A_NAME,
            _ => OF_ANYTHING_ELSE,
        };
        alike = if is_unique && place + 1 == columns.len() { 1 } else { alike.min(of_one) };
        written.push_str(&format!(" {alike}"));
    }
    // Otherwise a statement that does not name the app may look up the rest of the index in every app, one by one.
    written.push_str(" noskipscan");
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_is_said_the_fewer_rows_are_alike() {
        let told = |columns: &[&str], is_unique| {
            rows(&columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), is_unique)
        };
        assert_eq!(told(&["app_id"], false), "1000000 20000 noskipscan");
        assert_eq!(told(&["app_id", "tenant_id", "external_id"], false), "1000000 20000 1000 10 noskipscan");
        assert_eq!(told(&["app_number", "name_id"], false), "1000000 20000 5000 noskipscan");
        assert_eq!(told(&["tenant_id", "user_id"], true), "1000000 1000 1 noskipscan");
        assert_eq!(told(&["tenant_id", "app_id"], false), "1000000 1000 1000 noskipscan");
    }
}
