//! The SQL of ceremonies: which of their challenges were used.

use ::store::{Tx, args};
use kernel::{AppId, Result, Timestamp};

/// False when it was used before; of several callers at once exactly one is told true.
pub(super) fn use_challenge(tx: &mut Tx<'_>, app: AppId, digest: &str, expires_at: Timestamp) -> Result<bool> {
    tx.changes_one(
        "INSERT INTO used_challenges (digest, app_id, expires_at) VALUES ($1, $2, $3) ON CONFLICT (digest) DO NOTHING",
        &args![digest, app, expires_at],
    )
}
