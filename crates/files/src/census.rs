//! Rows and bytes held against each other, for the operator: neither should be without the other.

use std::collections::HashSet;

use kernel::Result;

use crate::{FileId, Files, store, sweep};

/// How many files are looked at, on either side: an answer is due within a request.
const LOOKED_AT: usize = 100_000;
/// Missing ones that are counted: more say nothing more, and each is asked for by itself.
const COUNTED: usize = 1_000;
/// Keys that are named.
const NAMED: usize = 10;

/// What was found.
#[derive(Debug, Default)]
pub struct Census {
    /// Files whose bytes are here.
    pub whole: usize,
    /// Files whose bytes are missing.
    pub without_bytes: usize,
    /// The first of them.
    pub missing: Vec<FileId>,
    /// Bytes of no file. The sweep removes them when two of its runs found them so.
    pub without_row: usize,
}

impl Files {
    /// Looks at the files of all apps, up to 100,000 of them.
    pub async fn census(&self) -> Result<Census> {
        let (mut census, db) = (Census::default(), &self.tenancy.db);
        let (mut objects, mut listed) = (self.storage.objects().await?, HashSet::new());
        while listed.len() < LOOKED_AT {
            let some = objects.next(sweep::AT_ONCE).await?;
            if some.is_empty() {
                break;
            }
            listed.extend(some.iter().cloned());
            census.without_row += sweep::without_row(db, some).await?.len();
        }
        let mut after = String::new();
        while census.whole + census.without_bytes < LOOKED_AT && census.without_bytes < COUNTED {
            let from = after.clone();
            let some = db.read(move |tx| store::with_bytes(tx, &from, sweep::AT_ONCE)).await?;
            let Some((last, _)) = some.last() else { break };
            after = last.to_string();
            for (id, object) in some {
                // To ask a storage elsewhere for each would take hours. What is not in the list may have come since.
                let is_listed = self.storage.is_remote() && listed.contains(&object);
                if is_listed || self.storage.has(&object).await? {
                    census.whole += 1;
                    continue;
                }
                census.without_bytes += 1;
                if census.missing.len() < NAMED {
                    census.missing.push(id);
                }
            }
        }
        Ok(census)
    }
}
