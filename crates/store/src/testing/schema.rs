//! The schema as the engine itself tells it, for tests that must not forget a table.

use crate::{ColumnType, Db, backup::tables};

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

/// A statement that a test puts together for each table: texts live as long as the process.
pub fn statement(text: String) -> &'static str {
    tables::interned(text)
}
