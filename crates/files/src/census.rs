//! Rows and bytes held against each other, for the operator: neither should be without the other.

use kernel::Result;

use crate::{FileId, Files, store, sweep};

/// How many files are looked at, on either side: an answer is due within a request.
const LOOKED_AT: usize = 100_000;
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
        let mut after = String::new();
        while census.whole + census.without_bytes < LOOKED_AT {
            let from = after.clone();
            let some = db.read(move |tx| store::with_bytes(tx, &from, sweep::AT_ONCE)).await?;
            let Some((last, _)) = some.last() else { break };
            after = last.to_string();
            for (id, object) in some {
                if self.storage.has(&object).await? {
                    census.whole += 1;
                    continue;
                }
                census.without_bytes += 1;
                if census.missing.len() < NAMED {
                    census.missing.push(id);
                }
            }
        }
        let (mut objects, mut seen) = (self.storage.objects().await?, 0);
        while seen < LOOKED_AT {
            let some = objects.next(sweep::AT_ONCE).await?;
            if some.is_empty() {
                break;
            }
            seen += some.len();
            census.without_row += sweep::without_row(db, some).await?.len();
        }
        Ok(census)
    }
}
