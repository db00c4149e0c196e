//! What the planner knows about the tables. PostgreSQL measures them itself, but only a minute or more after they have filled. Until
//! then, statements that were planned for empty tables find one row by reading all rows of the app.

use kernel::Result;

use crate::Tx;

/// One statement for each table that has grown to several times what it was when it was last measured.
const GROWN: &str = "SELECT format('ANALYZE (SKIP_LOCKED) %I', stats.relname) AS statement \
     FROM pg_stat_user_tables AS stats JOIN pg_class ON pg_class.oid = stats.relid \
     WHERE stats.schemaname = current_schema() AND stats.n_mod_since_analyze >= 500 \
     AND stats.n_live_tup > 3 * greatest(pg_class.reltuples, 0)";

/// The statements that measure what has grown.
pub(crate) fn grown(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    let mut statements = Vec::new();
    tx.each_unrecorded(GROWN, &[], &mut |row| {
        statements.push(row.get("statement")?);
        Ok(())
    })?;
    Ok(statements)
}
