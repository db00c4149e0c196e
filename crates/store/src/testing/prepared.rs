//! Whether statements that were recorded once still suit a database's schema.

use std::path::Path;

use postgres::{Client, NoTls};
use rusqlite::{Connection, OpenFlags};

use super::templates::on_own_thread;
use crate::{DatabaseUrl, EngineName, dialect};

/// Prepares each of the statements, as the record has them, and runs none. The ones that cannot be, each with the
/// engine's reason.
pub fn unprepared(url: &DatabaseUrl, statements: &[String]) -> Vec<String> {
    match url {
        DatabaseUrl::Sqlite(path) => {
            let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("it opens");
            failures(statements, EngineName::Sqlite, |sql| match connection.prepare(sql) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            })
        }
        DatabaseUrl::Postgres(url) => on_own_thread(|| {
            let mut client = Client::connect(url.expose(), NoTls).expect("the server is there");
            failures(statements, EngineName::Postgres, |sql| match client.prepare(sql) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)),
            })
        }),
    }
}

/// How SQLite would go about each of the statements, as the record has them: the steps of its plan in one text.
pub fn sqlite_plans(path: &Path, statements: &[String]) -> Vec<String> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("it opens");
    let plan = |sql: &String| {
        let sql = format!("EXPLAIN QUERY PLAN {}", dialect::recorded(sql, EngineName::Sqlite));
        let mut explained = connection.prepare(&sql).expect("it can be prepared");
        let mut steps = explained.raw_query();
        let mut plan = String::new();
        while let Some(step) = steps.next().expect("it can be explained") {
            plan.push_str(&step.get::<_, String>("detail").expect("a text"));
            plan.push('\n');
        }
        plan
    };
    statements.iter().map(plan).collect()
}

fn failures(
    statements: &[String],
    engine: EngineName,
    mut prepare: impl FnMut(&str) -> Result<(), String>,
) -> Vec<String> {
    let failed = |sql: &String| prepare(&dialect::recorded(sql, engine)).err().map(|why| format!("{why}: {sql}"));
    statements.iter().filter_map(failed).collect()
}
