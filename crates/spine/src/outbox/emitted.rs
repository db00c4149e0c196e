//! What a transaction has emitted so far, for whoever drives others and reports what came of it.

use kernel::{Result, TenantId};
use store::{Tx, args};

use super::FactId;

/// A place in a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Mark(FactId);

impl Mark {
    pub fn set(tx: &Tx<'_>) -> Self {
        Self(tx.new_id())
    }

    /// The kinds of the facts about a workspace that were emitted behind the mark, in order. Hold the workspace's lock.
    pub fn emitted(self, tx: &mut Tx<'_>, tenant: TenantId) -> Result<Vec<String>> {
        let kinds: Vec<(String,)> =
            tx.all("SELECT kind FROM outbox WHERE id > $1 AND tenant_id = $2 ORDER BY id", &args![self.0, tenant])?;
        Ok(kinds.into_iter().map(|(kind,)| kind).collect())
    }
}
