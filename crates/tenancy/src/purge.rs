//! What follows a deletion: rows that are left behind are deleted in the background, a bounded batch at a time.
//!
//! A purge is a consumer of the outbox. Its statements take the app as `$1` and, after a fact about a workspace, that
//! workspace as `$2`; each deletes at most [`BATCH`] rows. While there is more to do, the purge tells itself so with a
//! fact of its own, so that it can be killed anywhere.

use ::store::{Tx, args};
use kernel::{AppId, Result, TenantId};
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
            Some(app) if self.is_meant_by(fact) => self.step(tx, app, fact.tenant),
            _ => Ok(()),
        });
    }

    fn is_meant_by(&self, fact: &Fact) -> bool {
        fact.kind != CONTINUED || fact.data["purge"] == self.name
    }

    fn step(&self, tx: &mut Tx<'_>, app: AppId, tenant: Option<TenantId>) -> Result<()> {
        for statement in self.statements {
            let deleted = match tenant {
                None => tx.exec(statement, &args![app])?,
                Some(tenant) => tx.exec(statement, &args![app, tenant])?,
            };
            if deleted >= BATCH {
                emit(tx, &NewFact { tenant, ..NewFact::new(CONTINUED, json!({ "purge": self.name })).app(app) })?;
                return Ok(());
            }
        }
        Ok(())
    }
}
