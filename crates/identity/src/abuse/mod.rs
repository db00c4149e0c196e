//! Guessing and flooding. An attempt is taken before it is judged, so that no number of guesses at once gets past a limit
//! and the right one is refused like any other; a success gives it back. Beyond a few in a minute each further attempt
//! doubles the wait.
//!
//! Nobody keeps anybody out: what counts against somebody is what came from their own network, or from their own browser
//! once they have signed in with it. Failures from elsewhere only slow an account down, and a mailed link always works.

mod addresses;
mod attempts;
mod gates;
mod store;
mod streak;

use std::time::Duration;

use ::store::Tx;
use kernel::{AppId, Error, Result, email_key};
use vault::hash_token;

pub use addresses::Addresses;
pub(crate) use attempts::{Attempt, AttemptSource, KnownBrowser, account_name, person_name};
pub(crate) use gates::Gates;

/// For the documentation of routes that answer 429.
pub const LIMITED: &str = "Too many attempts; try again after the seconds in Retry-After";

/// How many failures cost nothing; 0 for no limit.
#[derive(Clone, Copy, Debug)]
pub struct LoginLimits {
    /// Per minute, account and address network.
    pub per_account: u32,
    /// Per minute and address network.
    pub per_address: u32,
}

impl Default for LoginLimits {
    fn default() -> Self {
        Self { per_account: 10, per_address: 100 }
    }
}

/// Mails and SMS to one recipient.
const MESSAGES: i64 = 10;
const MESSAGE_WINDOW: Duration = Duration::from_secs(15 * 60);

/// What is counted under a name. As a digest: names of any length come from outside, and addresses need not stand in yet
/// another table.
fn subject(app: AppId, name: &str) -> String {
    hash_token(&format!("{app}:{name}"))
}

/// Counts a message to somebody; 429 when there were too many of late.
pub fn count_message(tx: &mut Tx<'_>, app: AppId, to: &str) -> Result<()> {
    let (subject, now) = (subject(app, &format!("to:{}", email_key(to.trim()))), tx.now());
    let (count, started_at) = store::count_message(tx, app, &subject, MESSAGE_WINDOW)?;
    if count <= MESSAGES { Ok(()) } else { Err(too_many("recipient", started_at.plus(MESSAGE_WINDOW).since(now))) }
}

fn too_many(class: &'static str, wait: Duration) -> Error {
    web::limited(class, "Too many attempts. Try again after the number of seconds in Retry-After.", wait)
}
