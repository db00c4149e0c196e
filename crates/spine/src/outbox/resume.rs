//! Facts that are told once more: to somebody who was away for a while, or to check what became of them.

use kernel::{Result, Timestamp};
use store::{Tx, args};

use super::{Fact, fact::AFTER_OF};

const HEAD: &str = "SELECT last_position FROM outbox_head WHERE id = 1";
const TOLD_AT: &str = "SELECT created_at FROM outbox WHERE position = $1";
const OLDEST: &str = "SELECT position FROM outbox WHERE position IS NOT NULL ORDER BY position LIMIT 1";

/// The position of the last fact.
pub fn last_position(tx: &mut Tx<'_>) -> Result<i64> {
    let (head,): (i64,) = tx.one(HEAD, &[])?;
    Ok(head)
}

/// When the fact at a position was told, while it is kept.
pub fn told_at(tx: &mut Tx<'_>, position: i64) -> Result<Option<Timestamp>> {
    Ok(tx.opt::<(Timestamp,)>(TOLD_AT, &args![position])?.map(|(at,)| at))
}

/// The facts of some kinds after one position and up to another, in order. `None` when some of them may be gone, when there
/// are more than `most`, and when no fact has had the first position yet. To be called in a snapshot.
pub fn since(tx: &mut Tx<'_>, after: i64, until: i64, kinds: &[&str], most: i64) -> Result<Option<Vec<Fact>>> {
    let head = last_position(tx)?;
    if after > head {
        return Ok(None);
    }
    if after >= until {
        return Ok(Some(Vec::new()));
    }
    let oldest: Option<(i64,)> = tx.opt(OLDEST, &[])?;
    if oldest.is_none_or(|(oldest,)| oldest > after + 1) {
        return Ok(None);
    }
    let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let facts: Vec<Fact> = tx.all(AFTER_OF, &args![after, until, kinds, most + 1])?;
    Ok(Some(facts).filter(|facts| i64::try_from(facts.len()).unwrap_or(i64::MAX) <= most))
}

/// The facts of some kinds that a consumer has passed and that are still kept, in order; of the last `most` positions.
pub fn passed_by(tx: &mut Tx<'_>, consumer: &str, kinds: &[&str], most: i64) -> Result<Vec<Fact>> {
    const PASSED: &str = "SELECT position FROM outbox_cursors WHERE name = $1";
    let Some((passed,)) = tx.opt::<(i64,)>(PASSED, &args![consumer])? else { return Ok(Vec::new()) };
    let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    tx.all(AFTER_OF, &args![passed - most, passed, kinds, most])
}
