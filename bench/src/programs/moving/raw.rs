//! The rows of a filled store put into an empty one of the same form, with nothing around: what an import cannot do without.

use std::path::Path;

use bench::{Result, database::Database, process};
use rusqlite::{Connection, OpenFlags, params_from_iter, types::Value};

/// Rows that are committed together.
const TOGETHER: usize = 500;

pub struct Bare {
    pub tables: usize,
    pub rows: usize,
    /// In seconds.
    pub cpu: f64,
}

struct Filled {
    insert: String,
    rows: Vec<Vec<Value>>,
}

pub fn on_sqlite(file: &Path) -> Result<Bare> {
    let source = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let mut target = Connection::open(folder.path().join("bare.db"))?;
    target.pragma_update(None, "journal_mode", "WAL")?;
    // Indexes come after the tables that they are of.
    let of_form = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' \
                   AND type IN ('table', 'index') ORDER BY type DESC";
    let form: Vec<String> = source.prepare(of_form)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for sql in form {
        target.execute_batch(&sql)?;
    }
    let named = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let names: Vec<String> = source.prepare(named)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let filled: Vec<Filled> = names.iter().map(|name| filled(&source, name)).collect::<Result<_>>()?;

    let before = process::cpu_time(std::process::id())?;
    for Filled { insert, rows } in &filled {
        for rows in rows.chunks(TOGETHER) {
            let transaction = target.transaction()?;
            let mut statement = transaction.prepare_cached(insert)?;
            for row in rows {
                statement.execute(params_from_iter(row))?;
            }
            drop(statement);
            transaction.commit()?;
        }
    }
    let cpu = process::cpu_time(std::process::id())?.saturating_sub(before);
    let (tables, rows) = (filled.len(), filled.iter().map(|table| table.rows.len()).sum());
    Ok(Bare { tables, rows, cpu: cpu.as_secs_f64() })
}

fn filled(source: &Connection, name: &str) -> Result<Filled> {
    let mut statement = source.prepare(&format!("SELECT * FROM {name}"))?;
    let columns = statement.column_count();
    let read = |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
    let rows = statement.query_map([], read)?.collect::<Result<Vec<Vec<Value>>, _>>()?;
    let marks = vec!["?"; columns].join(", ");
    Ok(Filled { insert: format!("INSERT INTO {name} VALUES ({marks})"), rows })
}

pub async fn on_postgres(database: &Database) -> Result<Bare> {
    let (client, server) = (database.client().await?, database.main_process().await?);
    client.batch_execute("CREATE SCHEMA bare").await?;
    let named = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'";
    let names: Vec<String> = client.query(named, &[]).await?.iter().map(|row| row.get(0)).collect();
    let (mut batches, mut rows) = (Vec::new(), 0);
    for name in &names {
        client.batch_execute(&format!("CREATE TABLE bare.{name} (LIKE public.{name} INCLUDING ALL)")).await?;
        let sql = format!("SELECT row_to_json(one)::text FROM public.{name} AS one");
        let found: Vec<String> = client.query(&sql, &[]).await?.iter().map(|row| row.get(0)).collect();
        rows += found.len();
        let insert = format!(
            "INSERT INTO bare.{name} OVERRIDING SYSTEM VALUE \
             SELECT * FROM json_populate_recordset(NULL::bare.{name}, $1::text::json)"
        );
        let insert = client.prepare(&insert).await?;
        batches.extend(found.chunks(TOGETHER).map(|rows| (insert.clone(), format!("[{}]", rows.join(",")))));
    }
    let cpu = || Result::<_>::Ok(process::cpu_time(std::process::id())? + process::cpu_time_of_family(server)?);
    let before = cpu()?;
    for (insert, rows) in &batches {
        client.execute(insert, &[rows]).await?;
    }
    Ok(Bare { tables: names.len(), rows, cpu: cpu()?.saturating_sub(before).as_secs_f64() })
}
