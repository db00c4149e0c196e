//! Guessing and flooding. Failures are counted, successes are not: per account in rows that all nodes share, per address
//! in this node's memory. Beyond a few in a minute each further failure doubles the wait.

mod addresses;
mod streak;

use std::time::Duration;

use kernel::{AppId, Code, Error, Result, Timestamp, UserId, email_key};
use store::{FromRow, Row, Tx, args};
use tenancy::locks::Lock;
use vault::hash_token;

pub use addresses::Addresses;
use streak::{Rule, Streak};

/// For the documentation of routes that answer 429.
pub(crate) const LIMITED: &str = "Too many attempts; try again after the seconds in Retry-After";

const MINUTE: Duration = Duration::from_secs(60);

/// Per account.
const ACCOUNT: Rule = Rule { free: 10, window: MINUTE };
/// Second factors, per person: six digits are soon guessed by somebody who knows the password and has all day.
const SECOND_FACTOR: Rule = Rule { free: 10, window: Duration::from_secs(3600) };
/// Per address.
const ADDRESS: Rule = Rule { free: 100, window: MINUTE };

/// Mails and SMS to one recipient.
const MESSAGES: i64 = 10;
const MESSAGE_WINDOW: Duration = Duration::from_secs(15 * 60);

/// Whose failures are counted together. The account need not exist: an unknown one is treated alike.
#[derive(Clone, Debug)]
pub struct Subject {
    app: AppId,
    key: String,
    rule: Rule,
    /// As in the metrics.
    kind: &'static str,
}

impl Subject {
    /// As a digest: names of any length come from outside, and addresses need not stand in yet another table.
    fn new(app: AppId, name: &str, rule: Rule, kind: &'static str) -> Self {
        Self { app, key: hash_token(&format!("{app}:{name}")), rule, kind }
    }

    /// Passwords tried for an address.
    pub fn account(app: AppId, username: &str) -> Self {
        Self::new(app, &format!("account:{}", email_key(username.trim())), ACCOUNT, "password")
    }

    /// Codes tried for a person, over all of their sessions.
    pub fn second_factor(app: AppId, user: UserId) -> Self {
        Self::new(app, &format!("mfa:{user}"), SECOND_FACTOR, "second_factor")
    }

    /// Messages to an address or a phone number.
    fn recipient(app: AppId, to: &str) -> Self {
        Self::new(app, &format!("to:{}", email_key(to.trim())), ACCOUNT, "message")
    }
}

impl FromRow for Streak {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            failures: row.get("attempts")?,
            window_started_at: row.get("window_started_at")?,
            blocked_until: row.get("blocked_until")?,
        })
    }
}

const FIND: &str = "SELECT attempts, window_started_at, blocked_until FROM attempt_counters WHERE subject = $1";

/// 429 while the subject has to wait.
pub fn check(tx: &mut Tx<'_>, subject: &Subject) -> Result<()> {
    match tx.opt::<Streak>(FIND, &args![subject.key])?.and_then(|streak| streak.wait(tx.now())) {
        Some(wait) => Err(too_many(wait)),
        None => Ok(()),
    }
}

/// Counts a failure. Those of one subject are counted one after the other.
pub fn fail(tx: &mut Tx<'_>, subject: &Subject) -> Result<()> {
    tx.lock(&Lock::Attempts(subject.key.clone()))?;
    let now = tx.now();
    let before: Streak = tx.opt(FIND, &args![subject.key])?.unwrap_or_else(|| Streak::new(now));
    let after = before.failed(subject.rule, now);
    let (kind, locked) = (subject.kind, after.wait(now).is_some());
    tx.on_commit(move || {
        metrics::counter!("tenantry_login_failures_total", "kind" => kind).increment(1);
        if locked {
            metrics::counter!("tenantry_lockouts_total", "kind" => kind).increment(1);
        }
    });
    tx.exec(
        "INSERT INTO attempt_counters (subject, app_id, attempts, window_started_at, blocked_until, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (subject) DO UPDATE SET attempts = excluded.attempts, \
         window_started_at = excluded.window_started_at, blocked_until = excluded.blocked_until, \
         expires_at = excluded.expires_at",
        &args![
            subject.key,
            subject.app,
            after.failures,
            after.window_started_at,
            after.blocked_until,
            after.forgotten_at(subject.rule)
        ],
    )
    .map(|_| ())
}

/// The right answer, unless the subject has to wait by now: guesses that were under way together count too. What was
/// counted is forgotten.
pub fn succeed(tx: &mut Tx<'_>, subject: &Subject) -> Result<()> {
    tx.lock(&Lock::Attempts(subject.key.clone()))?;
    check(tx, subject)?;
    tx.exec("DELETE FROM attempt_counters WHERE subject = $1", &args![subject.key]).map(|_| ())
}

/// Counts a message to somebody; 429 when there were too many of late.
pub fn count_message(tx: &mut Tx<'_>, app: AppId, to: &str) -> Result<()> {
    let (subject, now) = (Subject::recipient(app, to), tx.now());
    let (count, started_at): (i64, Timestamp) = tx.one(
        "INSERT INTO attempt_counters (subject, app_id, attempts, window_started_at, expires_at) \
         VALUES ($1, $2, 1, $3, $4) ON CONFLICT (subject) DO UPDATE SET \
         attempts = CASE WHEN attempt_counters.window_started_at <= $5 THEN 1 ELSE attempt_counters.attempts + 1 END, \
         window_started_at = CASE WHEN attempt_counters.window_started_at <= $5 THEN excluded.window_started_at \
         ELSE attempt_counters.window_started_at END, expires_at = excluded.expires_at \
         RETURNING attempts, window_started_at",
        &args![subject.key, app, now, now.plus(MESSAGE_WINDOW), now.minus(MESSAGE_WINDOW)],
    )?;
    if count <= MESSAGES { Ok(()) } else { Err(too_many(started_at.plus(MESSAGE_WINDOW).since(now))) }
}

fn too_many(wait: Duration) -> Error {
    Error::new(Code::RateLimited, "Too many attempts. Try again after the number of seconds in Retry-After.")
        .with_retry_after(wait)
}
