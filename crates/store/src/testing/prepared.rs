//! Whether statements that were recorded once still suit a database's schema.

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

fn failures(
    statements: &[String],
    engine: EngineName,
    mut prepare: impl FnMut(&str) -> Result<(), String>,
) -> Vec<String> {
    let failed = |sql: &String| prepare(&dialect::recorded(sql, engine)).err().map(|why| format!("{why}: {sql}"));
    statements.iter().filter_map(failed).collect()
}
