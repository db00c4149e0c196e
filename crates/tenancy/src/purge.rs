//! What follows a deletion: rows that are left behind are deleted in the background, a bounded batch at a time.
//!
//! A purge is a consumer of the outbox. Its statements take the app as `$1` and delete at most [`BATCH`] rows each; while
//! there is more to do, it tells itself so with a fact of its own, so that it can be killed anywhere.

use ::store::{Tx, args};
use kernel::{AppId, Result};
use serde_json::json;
use spine::{Fact, NewFact, Outbox, emit};

/// Rows that one step deletes at most: the `LIMIT` of every statement.
pub const BATCH: u64 = 500;

/// Says that a purge has more to do.
pub const CONTINUED: &str = "purge.continued";

/// Deletions that follow facts of one kind.
pub struct Purge {
    /// The consumer's name.
    pub name: &'static str,
    /// The kinds of facts that it follows, and [`CONTINUED`].
    pub after: &'static [&'static str],
    pub statements: &'static [&'static str],
}

impl Purge {
    pub fn register(&'static self, outbox: &mut Outbox) {
        outbox.consume_only(self.name, self.after, |tx, fact| match fact.app {
            Some(app) if self.is_meant_by(fact) => self.step(tx, app),
            _ => Ok(()),
        });
    }

    fn is_meant_by(&self, fact: &Fact) -> bool {
        fact.kind != CONTINUED || fact.data["purge"] == self.name
    }

    fn step(&self, tx: &mut Tx<'_>, app: AppId) -> Result<()> {
        for statement in self.statements {
            if tx.exec(statement, &args![app])? >= BATCH {
                emit(tx, &NewFact::new(CONTINUED, json!({ "purge": self.name })).app(app))?;
                return Ok(());
            }
        }
        Ok(())
    }
}
