//! The schema as the engine itself tells it, for tests that must not forget a table.

use crate::{ColumnType, Db, EngineName, backup::tables};

/// A table with its columns in order.
#[derive(Clone, Debug)]
pub struct SchemaTable {
    pub name: String,
    pub columns: Vec<(String, ColumnType)>,
}

impl SchemaTable {
    pub fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|(name, _)| name == column)
    }
}

/// Every table but the record of migrations.
pub async fn schema(db: &Db) -> Vec<SchemaTable> {
    let engine = db.engine();
    let tables = db.read(move |tx| tables::of(tx, engine)).await.expect("the schema can be read");
    let columns = |table: &tables::BackupTable| table.columns.iter().map(|it| (it.name.clone(), it.kind)).collect();
    tables
        .iter()
        .filter(|table| table.name != "schema_migrations")
        .map(|table| SchemaTable { name: table.name.clone(), columns: columns(table) })
        .collect()
}

/// An index, primary keys and unique constraints among them, with its columns.
#[derive(Clone, Debug)]
pub struct SchemaIndex {
    pub name: String,
    pub table: String,
    pub columns: Vec<String>,
}

const SQLITE_INDEXES: &str = "SELECT tables.name, indexes.name, columns.name FROM sqlite_master AS tables \
    JOIN pragma_index_list(tables.name) AS indexes JOIN pragma_index_info(indexes.name) AS columns \
    WHERE tables.type = 'table' ORDER BY tables.name, indexes.name, columns.seqno";

const POSTGRES_INDEXES: &str = "SELECT CAST(tables.relname AS TEXT), CAST(indexes.relname AS TEXT), CAST(attname AS TEXT) \
    FROM pg_index JOIN pg_class AS tables ON tables.oid = indrelid JOIN pg_class AS indexes ON indexes.oid = indexrelid \
    JOIN pg_attribute ON attrelid = indexrelid WHERE tables.relnamespace = CAST(current_schema() AS regnamespace) \
    ORDER BY tables.relname, indexes.relname, attnum";

pub async fn indexes(db: &Db) -> Vec<SchemaIndex> {
    let sql = match db.engine() {
        EngineName::Sqlite => SQLITE_INDEXES,
        EngineName::Postgres => POSTGRES_INDEXES,
    };
    let read = db.read(move |tx| {
        let mut indexes: Vec<SchemaIndex> = Vec::new();
        tx.each_unrecorded(sql, &[], &mut |row| {
            let (table, name, column): (String, String, String) = (row.at(0)?, row.at(1)?, row.at(2)?);
            match indexes.last_mut() {
                Some(last) if last.table == table && last.name == name => last.columns.push(column),
                _ => indexes.push(SchemaIndex { name, table, columns: vec![column] }),
            }
            Ok(())
        })?;
        Ok(indexes)
    });
    read.await.expect("the schema can be read")
}

/// A statement that a test puts together for each table: texts live as long as the process.
pub fn statement(text: String) -> &'static str {
    tables::interned(text)
}
