//! Attempts to prove who one is, counted in rows that all nodes share.

use std::{net::IpAddr, time::Duration};

use ::store::Tx;
use kernel::{AppId, Result, Timestamp, UserId, email_key};
use tenancy::locks::Lock;

use super::{
    LoginLimits,
    addresses::network,
    store,
    streak::{FIRST_DELAY, LONGEST_DELAY, Rule, Streak},
    subject, too_many,
};

const MINUTE: Duration = Duration::from_secs(60);
/// Six digits are soon guessed by somebody who knows the password and has all day.
const CODE_WINDOW: Duration = Duration::from_secs(3600);
/// How long a network from which somebody signed in is remembered.
const TRUSTED_FOR: Duration = Duration::from_secs(90 * 24 * 3600);

/// A browser in which people have signed in before.
#[derive(Clone, Debug)]
pub(crate) struct KnownBrowser {
    pub(crate) id: String,
    /// Their names, as [`account_name`] and [`person_name`] write them.
    pub(crate) names: Vec<String>,
}

/// Where an attempt comes from.
#[derive(Clone, Debug)]
pub(crate) struct AttemptSource {
    pub(crate) client: IpAddr,
    pub(crate) browser: Option<KnownBrowser>,
}

impl AttemptSource {
    /// A call that brings no cookies.
    pub(crate) fn address(client: IpAddr) -> Self {
        Self { client, browser: None }
    }
}

/// The account of an address, whether it exists or not: an unknown one is treated alike.
pub(crate) fn account_name(username: &str) -> String {
    format!("account:{}", email_key(username.trim()))
}

/// A person's second factor, over all of their sessions.
pub(crate) fn person_name(user: UserId) -> String {
    format!("mfa:{user}")
}

/// One attempt. It counts against its source; and, as long as nobody has signed in from there, against all such sources
/// together.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    app: AppId,
    /// As in the metrics.
    kind: &'static str,
    account: String,
    source: String,
    /// Under which it is kept that somebody signed in from there.
    trusted: String,
    rule: Rule,
    from_strangers: Rule,
    /// A browser in which this person has signed in.
    pub(crate) is_known: bool,
    pub(crate) client: IpAddr,
}

impl Attempt {
    fn new(
        app: AppId,
        kind: &'static str,
        name: &str,
        source: &AttemptSource,
        rule: Rule,
        from_strangers: Rule,
    ) -> Self {
        let known = source.browser.as_ref().filter(|browser| browser.names.iter().any(|known| known == name));
        let place = match known {
            Some(browser) => format!("browser:{}", browser.id),
            None => format!("network:{}", network(source.client)),
        };
        let (account, source_key) = (subject(app, name), subject(app, &format!("{name}:{place}")));
        let trusted = format!("{source_key}:trusted");
        let (is_known, client) = (known.is_some(), source.client);
        Self { app, kind, account, source: source_key, trusted, rule, from_strangers, is_known, client }
    }

    /// A password for an address. From networks without a success one in 15 seconds is judged, once there were too many.
    pub(crate) fn password(app: AppId, username: &str, source: &AttemptSource, limits: LoginLimits) -> Self {
        let rule = Rule { free: limits.per_account.into(), window: MINUTE, longest: Some(LONGEST_DELAY) };
        let from_strangers = Rule { longest: Some(FIRST_DELAY), ..rule };
        Self::new(app, "password", &account_name(username), source, rule, from_strangers)
    }

    /// A code of a person: so many in any hour. Strangers here know the password: they wait as long as anybody.
    pub(crate) fn second_factor(app: AppId, user: UserId, source: &AttemptSource, limits: LoginLimits) -> Self {
        let rule = Rule { free: limits.per_account.into(), window: CODE_WINDOW, longest: None };
        Self::new(app, "second_factor", &person_name(user), source, rule, rule)
    }

    /// A backup code of a person, which wrong codes do not keep anybody from. Nobody guesses a hundred bits: strangers slow
    /// it down, as they do with passwords, and never close this way out.
    pub(crate) fn backup_code(app: AppId, user: UserId, source: &AttemptSource, limits: LoginLimits) -> Self {
        let rule = Rule { free: limits.per_account.into(), window: CODE_WINDOW, longest: Some(LONGEST_DELAY) };
        let from_strangers = Rule { longest: Some(FIRST_DELAY), ..rule };
        let of_codes = Self::new(app, "backup_code", &person_name(user), source, rule, from_strangers);
        let apart = |key: &str| format!("{key}:backup");
        Self { account: apart(&of_codes.account), source: apart(&of_codes.source), ..of_codes }
    }

    /// What those that are under way together share.
    pub(super) fn key(&self) -> &str {
        &self.source
    }

    fn is_limited(&self) -> bool {
        self.rule.free > 0
    }

    /// The counters of the attempt, for the rest of the transaction its own. All of an account wait for each other here.
    fn counters(&self, tx: &mut Tx<'_>) -> Result<Vec<(&str, Rule, Streak)>> {
        tx.lock(&Lock::Attempts(self.account.clone()))?;
        let mut keys = vec![(self.source.as_str(), self.rule)];
        if !self.is_known && !store::is_trusted(tx, &self.trusted)? {
            keys.push((self.account.as_str(), self.from_strangers));
        }
        let now = tx.now();
        let found = keys.into_iter().map(|(key, rule)| {
            let streak = store::find(tx, key)?.unwrap_or_else(|| Streak::new(now));
            Ok((key, rule, streak))
        });
        found.collect()
    }

    /// Takes the attempt before it is judged; 429 while there were too many.
    pub(crate) fn take(&self, tx: &mut Tx<'_>) -> Result<()> {
        if !self.is_limited() {
            return Ok(());
        }
        let (counters, now) = (self.counters(tx)?, tx.now());
        if let Some(wait) = counters.iter().filter_map(|(_, _, streak)| streak.wait(now)).max() {
            return Err(too_many("account", wait));
        }
        for (key, rule, streak) in counters {
            let after = match rule.longest {
                Some(_) => streak.failed(rule, now),
                None => self.looking_back(tx, key, rule, streak.remembered(rule, now))?,
            };
            self.put(tx, key, rule, &after)?;
        }
        Ok(())
    }

    /// One more where each failure is kept for as long as it counts. They are numbered; as many places as are free are used
    /// over and over, so that the place after the newest has the earliest of them. A place may still have one of an
    /// earlier round or streak, which its number tells.
    fn looking_back(&self, tx: &mut Tx<'_>, key: &str, rule: Rule, streak: Streak) -> Result<Streak> {
        let (now, number) = (tx.now(), streak.failures);
        let place = |number: i64| format!("{key}:{}", number % rule.free);
        let kept = Streak { failures: number, ..Streak::new(now) };
        store::put(tx, self.app, &place(number), &kept, now.plus(rule.window))?;
        let earliest = number + 1 - rule.free;
        let kept = store::find(tx, &place(number + 1))?.filter(|kept| kept.failures == earliest);
        Ok(streak.failed_looking_back(rule, now, kept.map(|kept| kept.window_started_at)))
    }

    fn put(&self, tx: &mut Tx<'_>, key: &str, rule: Rule, streak: &Streak) -> Result<()> {
        store::put(tx, self.app, key, streak, streak.forgotten_at(rule))
    }

    /// Tells of an attempt that was taken and turned out to be wrong.
    pub(crate) fn failed(&self, tx: &mut Tx<'_>) -> Result<()> {
        let now = tx.now();
        let (kind, locked) =
            (self.kind, store::find(tx, &self.source)?.is_some_and(|streak| streak.wait(now).is_some()));
        tx.on_commit(move || {
            metrics::counter!("tenantry_login_failures_total", "kind" => kind).increment(1);
            if locked {
                metrics::counter!("tenantry_lockouts_total", "kind" => kind).increment(1);
            }
        });
        Ok(())
    }

    /// Gives an attempt back that could not be judged.
    pub(crate) fn give_back(&self, tx: &mut Tx<'_>) -> Result<()> {
        if !self.is_limited() {
            return Ok(());
        }
        for (key, rule, streak) in self.counters(tx)? {
            self.put(tx, key, rule, &streak.forgiven(rule))?;
        }
        Ok(())
    }

    /// Nothing counts against it any more: there is nothing left to be guessed.
    pub(crate) fn forget(&self, tx: &mut Tx<'_>) -> Result<()> {
        store::delete(tx, &self.source)?;
        store::delete(tx, &self.account)
    }

    /// The right one: what was counted against its source is forgotten, and the source is trusted from now on.
    pub(crate) fn succeeded(&self, tx: &mut Tx<'_>) -> Result<()> {
        if !self.is_limited() {
            return Ok(());
        }
        self.give_back(tx)?;
        store::delete(tx, &self.source)?;
        if self.is_known {
            return Ok(());
        }
        let until: Timestamp = tx.now().plus(TRUSTED_FOR);
        store::trust(tx, self.app, &self.trusted, until)
    }
}
