//! Makes the changes of one step.

use std::collections::HashMap;

use kernel::Result;
use store::{Json, Tx, args};

use super::{
    Erasure,
    search::{Found, FoundRow},
};
use crate::{
    audit, fold,
    grain::Grain,
    storage::{self, Series},
};

const REWRITE: &str = "UPDATE event_rows SET parameters = $4 WHERE app_id = $1 AND id = $2 AND parameters = $3";
const FORGET_FIRST: &str = "DELETE FROM event_firsts WHERE app_number = $1 AND entity_digest = $2 AND name_id = $3";
const NOTE: &str = "UPDATE event_erasures SET place = $3 WHERE app_id = $1 AND id = $2";
const FINISH: &str = "UPDATE event_erasures SET finished_at = $3, place = NULL, entity_value = '' \
                      WHERE app_id = $1 AND id = $2";

/// In the transaction that notes how far the erasure is.
pub fn make(tx: &mut Tx<'_>, erasure: &Erasure, found: &Found) -> Result<()> {
    let Erasure { id, app, entity_value: value, .. } = erasure;
    if !found.is_empty() {
        // First of all, as the fold does: what it has worked out from the counters so far is not written any more.
        fold::move_on(tx, *app)?;
    }
    let (mut sums, mut erased) = (HashMap::new(), HashMap::new());
    if let Some(block) = &found.block {
        // Somebody else has changed it: it is looked at once more.
        if !storage::rewrite(tx, &block.before, Some(&block.after))? {
            return Ok(());
        }
        block.rows.iter().for_each(|row| take_numbers(row, &mut sums, &mut erased));
    }
    if let Some(row) = found.rows.first() {
        storage::rows_rewritten(tx, Series { app: *app, name: row.name })?;
    }
    for row in &found.rows {
        if tx.changes_one(REWRITE, &args![*app, row.id, row.before, row.after])? {
            take_numbers(row, &mut sums, &mut erased);
            audit::erase_from_chain(tx, *app, &row.id, &row.values)?;
        }
    }
    fold::add_sums(tx, *app, &sums)?;
    fold::erase_counters(tx, *app, value, &found.counters, erased)?;
    for (entity, name) in &found.firsts {
        tx.run(FORGET_FIRST, &args![app.number(), entity, *name])?;
    }
    match &found.next {
        Some(next) => tx.run(NOTE, &args![*app, *id, Json(next.clone())]),
        None => tx.run(FINISH, &args![*app, *id, tx.now()]),
    }
}

/// Numbers were summed; what stands in their place is counted.
fn take_numbers(
    row: &FoundRow,
    sums: &mut HashMap<(fold::Bucket, i64), f64>,
    erased: &mut HashMap<(fold::Bucket, i64), i64>,
) {
    for (parameter, number) in &row.numbers {
        for grain in Grain::ALL {
            let bucket = (row.name, grain.number(), grain.start(row.at));
            *sums.entry((bucket, *parameter)).or_default() -= number;
            *erased.entry((bucket, *parameter)).or_default() += 1;
        }
    }
}
