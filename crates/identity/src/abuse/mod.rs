//! Guessing and flooding. Failures are counted, successes are not: per account in rows that all nodes share, per address
//! in this node's memory. Beyond a few in a minute each further failure doubles the wait.

mod addresses;
mod store;
mod streak;

use std::time::Duration;

use ::store::Tx;
use kernel::{AppId, Code, Error, Result, UserId, email_key};
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

/// 429 while the subject has to wait.
pub fn check(tx: &mut Tx<'_>, subject: &Subject) -> Result<()> {
    match store::find(tx, &subject.key)?.and_then(|streak| streak.wait(tx.now())) {
        Some(wait) => Err(too_many(wait)),
        None => Ok(()),
    }
}

/// Counts a failure. Those of one subject are counted one after the other.
pub fn fail(tx: &mut Tx<'_>, subject: &Subject) -> Result<()> {
    tx.lock(&Lock::Attempts(subject.key.clone()))?;
    let now = tx.now();
    let before = store::find(tx, &subject.key)?.unwrap_or_else(|| Streak::new(now));
    let after = before.failed(subject.rule, now);
    let (kind, locked) = (subject.kind, after.wait(now).is_some());
    tx.on_commit(move || {
        metrics::counter!("tenantry_login_failures_total", "kind" => kind).increment(1);
        if locked {
            metrics::counter!("tenantry_lockouts_total", "kind" => kind).increment(1);
        }
    });
    store::put(tx, subject.app, &subject.key, &after, after.forgotten_at(subject.rule))
}

/// The right answer, unless the subject has to wait by now: guesses that were under way together count too. What was
/// counted is forgotten.
pub fn succeed(tx: &mut Tx<'_>, subject: &Subject) -> Result<()> {
    tx.lock(&Lock::Attempts(subject.key.clone()))?;
    check(tx, subject)?;
    store::delete(tx, &subject.key)
}

/// Counts a message to somebody; 429 when there were too many of late.
pub fn count_message(tx: &mut Tx<'_>, app: AppId, to: &str) -> Result<()> {
    let (subject, now) = (Subject::recipient(app, to), tx.now());
    let (count, started_at) = store::count_message(tx, app, &subject.key, MESSAGE_WINDOW)?;
    if count <= MESSAGES { Ok(()) } else { Err(too_many(started_at.plus(MESSAGE_WINDOW).since(now))) }
}

fn too_many(wait: Duration) -> Error {
    Error::new(Code::RateLimited, "Too many attempts. Try again after the number of seconds in Retry-After.")
        .with_retry_after(wait)
}
