//! What is deleted in the background: rows that have expired, and those of deleted people and apps.

use std::time::Duration;

use kernel::Result;
use spine::{Job, Outbox, Runner, Worked};
use store::{Db, Tx, args};
use tenancy::{apps, members, purge::Purge, workspaces};

use crate::Identity;

pub(crate) fn register(identity: &Identity, outbox: &mut Outbox, runner: &Runner) {
    PURGES.iter().for_each(|purge| purge.register(outbox));
    outbox.consume_only("purge-identity-of-gone-people", &[members::DELETED], |tx, fact| {
        fact.data["userId"].as_str().map_or(Ok(()), |user| forget(tx, user))
    });
    runner.add(Sweeper(identity.tenancy.db.clone()));
}

const PURGES: &[Purge] = &[
    Purge {
        name: "purge-app-identity",
        after: &[apps::DELETED],
        statements: &[
            "DELETE FROM refresh_tokens WHERE id IN (SELECT id FROM refresh_tokens WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM refresh_families WHERE id IN (SELECT id FROM refresh_families WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM authorization_codes WHERE digest IN \
             (SELECT digest FROM authorization_codes WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM handover_codes WHERE digest IN \
             (SELECT digest FROM handover_codes WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM login_sessions WHERE id IN (SELECT id FROM login_sessions WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM browser_sessions WHERE id IN (SELECT id FROM browser_sessions WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM mfa_factors WHERE user_id IN (SELECT user_id FROM mfa_factors WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM passkeys WHERE id IN (SELECT id FROM passkeys WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM attempt_counters WHERE subject IN \
             (SELECT subject FROM attempt_counters WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM user_credentials WHERE user_id IN \
             (SELECT user_id FROM user_credentials WHERE app_id = $1 LIMIT 500)",
        ],
    },
    Purge { name: "purge-identity-of-gone-workspaces", after: &[workspaces::DELETED], statements: OF_GONE_PEOPLE },
];

/// What is kept of a person who is gone. One who is still a member elsewhere keeps it.
fn forget(tx: &mut Tx<'_>, user: &str) -> Result<()> {
    for statement in [
        "DELETE FROM user_credentials WHERE user_id = $1 AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = $1)",
        "DELETE FROM mfa_factors WHERE user_id = $1 AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = $1)",
        "DELETE FROM passkeys WHERE user_id = $1 AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = $1)",
        "DELETE FROM browser_sessions WHERE user_id = $1 AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = $1)",
    ] {
        tx.exec(statement, &args![user])?;
    }
    Ok(())
}

/// People go with their last workspace. `$2`, the workspace, has told enough by being gone.
const OF_GONE_PEOPLE: &[&str] = &[
    "DELETE FROM user_credentials WHERE user_id IN (SELECT user_id FROM user_credentials WHERE app_id = $1 \
     AND $2 <> '' AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = user_credentials.user_id) LIMIT 500)",
    "DELETE FROM mfa_factors WHERE user_id IN (SELECT user_id FROM mfa_factors WHERE app_id = $1 \
     AND $2 <> '' AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = mfa_factors.user_id) LIMIT 500)",
    "DELETE FROM passkeys WHERE id IN (SELECT id FROM passkeys WHERE app_id = $1 \
     AND $2 <> '' AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = passkeys.user_id) LIMIT 500)",
    "DELETE FROM browser_sessions WHERE id IN (SELECT id FROM browser_sessions WHERE app_id = $1 \
     AND $2 <> '' AND NOT EXISTS (SELECT 1 FROM users WHERE users.id = browser_sessions.user_id) LIMIT 500)",
];

/// Deletes what has expired. Late is harmless: every use looks at the time itself.
struct Sweeper(Db);

/// An access token may outlive the refresh token beside it, and needs its login as long.
const LONGEST_ACCESS: Duration = Duration::from_secs(31 * 24 * 3600);
/// A code that is replayed after its minute still tells of a theft.
const CODES_KEPT: Duration = Duration::from_secs(24 * 3600);

const BATCH: u64 = 500;

impl Sweeper {
    async fn delete(&self, sql: &'static str, kept: Duration) -> Result<bool> {
        let before = self.0.clock().now().minus(kept);
        Ok(self.0.exec_one(sql, &args![before]).await? >= BATCH)
    }
}

impl Job for Sweeper {
    fn name(&self) -> &'static str {
        "identity-sweep"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn run(&self) -> Result<Worked> {
        let mut more = false;
        for (sql, kept) in [
            (
                "DELETE FROM refresh_tokens WHERE id IN \
                 (SELECT id FROM refresh_tokens WHERE expires_at < $1 LIMIT 500)",
                LONGEST_ACCESS,
            ),
            (
                "DELETE FROM refresh_families WHERE id IN (SELECT id FROM refresh_families WHERE expires_at < $1 \
                 AND NOT EXISTS (SELECT 1 FROM refresh_tokens WHERE refresh_tokens.family_id = refresh_families.id) \
                 LIMIT 500)",
                LONGEST_ACCESS,
            ),
            (
                "DELETE FROM authorization_codes WHERE digest IN \
                 (SELECT digest FROM authorization_codes WHERE expires_at < $1 LIMIT 500)",
                CODES_KEPT,
            ),
            (
                "DELETE FROM handover_codes WHERE digest IN \
                 (SELECT digest FROM handover_codes WHERE expires_at < $1 LIMIT 500)",
                Duration::ZERO,
            ),
            (
                "DELETE FROM login_sessions WHERE id IN \
                 (SELECT id FROM login_sessions WHERE expires_at < $1 LIMIT 500)",
                Duration::ZERO,
            ),
            (
                "DELETE FROM browser_sessions WHERE id IN \
                 (SELECT id FROM browser_sessions WHERE expires_at < $1 LIMIT 500)",
                Duration::ZERO,
            ),
            (
                "DELETE FROM used_challenges WHERE digest IN \
                 (SELECT digest FROM used_challenges WHERE expires_at < $1 LIMIT 500)",
                Duration::ZERO,
            ),
            (
                "DELETE FROM attempt_counters WHERE subject IN \
                 (SELECT subject FROM attempt_counters WHERE expires_at < $1 LIMIT 500)",
                Duration::ZERO,
            ),
        ] {
            more |= self.delete(sql, kept).await?;
        }
        Ok(Worked::some_if(more))
    }
}
