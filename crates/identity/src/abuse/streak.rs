//! How failures add up. Pure.

use std::time::Duration;

use kernel::Timestamp;

pub(super) const FIRST_DELAY: Duration = Duration::from_secs(15);
pub(super) const LONGEST_DELAY: Duration = Duration::from_secs(15 * 60);

/// How many failures within which time cost nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) free: i64,
    pub(super) window: Duration,
    /// What the wait doubles up to. Without one, failures are looked back at one by one: nothing is judged while as many as
    /// are free lie within the window.
    pub(super) longest: Option<Duration>,
}

/// The failures of late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Streak {
    pub(super) failures: i64,
    pub(super) window_started_at: Timestamp,
    pub(super) blocked_until: Option<Timestamp>,
}

impl Streak {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { failures: 0, window_started_at: now, blocked_until: None }
    }

    /// How long until the next attempt may be made.
    pub(super) fn wait(&self, now: Timestamp) -> Option<Duration> {
        self.blocked_until.map(|until| until.since(now)).filter(|wait| !wait.is_zero())
    }

    /// The streak is over by then, if nothing fails meanwhile.
    pub(super) fn forgotten_at(&self, rule: Rule) -> Timestamp {
        match self.blocked_until {
            Some(until) => until.plus(rule.window.max(LONGEST_DELAY)),
            None => self.window_started_at.plus(rule.window),
        }
    }

    /// A new one when it is over.
    pub(super) fn remembered(self, rule: Rule, now: Timestamp) -> Self {
        if now >= self.forgotten_at(rule) { Self::new(now) } else { self }
    }

    pub(super) fn failed(self, rule: Rule, now: Timestamp) -> Self {
        let current = self.remembered(rule, now);
        let longest = rule.longest.unwrap_or(LONGEST_DELAY);
        let failures = current.failures.saturating_add(1);
        let blocked_until = (failures >= rule.free).then(|| now.plus(delay(failures - rule.free).min(longest)));
        Self { failures, blocked_until, ..current }
    }

    /// The same where failures are looked back at: as many as are free, the earliest of them at `earliest`, close the way
    /// until that one is older than the window. Here `window_started_at` is when the latest failed.
    pub(super) fn failed_looking_back(self, rule: Rule, now: Timestamp, earliest: Option<Timestamp>) -> Self {
        let blocked_until = earliest.map(|at| at.plus(rule.window)).filter(|until| *until > now);
        Self { failures: self.failures.saturating_add(1), window_started_at: now, blocked_until }
    }

    /// One failure less: it turned out to be none.
    pub(super) fn forgiven(self, rule: Rule) -> Self {
        let failures = (self.failures - 1).max(0);
        // Where failures are looked back at, the way was open before this one: else it had not been judged.
        let stays = rule.longest.is_some() && failures >= rule.free;
        let blocked_until = self.blocked_until.filter(|_| stays);
        Self { failures, blocked_until, ..self }
    }
}

/// 15 s, 30 s, 1 min, … 15 min.
fn delay(doublings: i64) -> Duration {
    let doublings = u32::try_from(doublings).unwrap_or(u32::MAX).min(16);
    FIRST_DELAY.saturating_mul(1 << doublings).min(LONGEST_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { free: 3, window: Duration::from_secs(60), longest: Some(LONGEST_DELAY) };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(1_000_000 + seconds)
    }

    fn failing(times: &[i64]) -> Streak {
        times.iter().fold(Streak::new(at(times[0])), |streak, time| streak.failed(RULE, at(*time)))
    }

    #[test]
    fn a_few_cost_nothing_and_then_the_wait_doubles_up_to_a_quarter_of_an_hour() {
        assert_eq!(failing(&[0, 1]).wait(at(1)), None);
        assert_eq!(failing(&[0, 1, 2]).wait(at(2)), Some(Duration::from_secs(15)));
        assert_eq!(failing(&[0, 1, 2, 20]).wait(at(20)), Some(Duration::from_secs(30)));
        assert_eq!(failing(&[0; 40]).wait(at(0)), Some(LONGEST_DELAY));
        assert_eq!(failing(&[0, 1, 2]).wait(at(17)), None);
    }

    #[test]
    fn what_is_forgiven_blocks_nobody() {
        assert_eq!(failing(&[0, 1, 2]).forgiven(RULE).wait(at(2)), None);
        assert_eq!(failing(&[0, 1, 2]).forgiven(RULE).failed(RULE, at(3)).wait(at(3)), Some(FIRST_DELAY));
        assert_eq!(Streak::new(at(0)).forgiven(RULE), Streak::new(at(0)));
        let slowed = Rule { longest: Some(FIRST_DELAY), ..RULE };
        let many = (0..9).fold(Streak::new(at(0)), |streak, _| streak.failed(slowed, at(0)));
        assert_eq!(many.wait(at(0)), Some(FIRST_DELAY), "slowed down, not kept out");
    }

    #[test]
    fn looked_back_at_the_earliest_closes_the_way_until_it_is_older_than_the_window() {
        let streak = failing(&[0, 1]).failed_looking_back(RULE, at(30), Some(at(0)));
        assert_eq!((streak.failures, streak.wait(at(30))), (3, Some(Duration::from_secs(30))));
        assert_eq!(streak.wait(at(60)), None);
        let slow = failing(&[0, 1]).failed_looking_back(RULE, at(70), Some(at(0)));
        assert_eq!((slow.blocked_until, slow.forgotten_at(RULE)), (None, at(130)));
        let looking_back = Rule { longest: None, ..RULE };
        let many = Streak { failures: 9, ..streak };
        assert_eq!(many.forgiven(looking_back).wait(at(30)), None, "it was judged, so the way was open");
    }

    #[test]
    fn slow_failures_never_add_up_and_a_long_pause_forgets() {
        assert_eq!(failing(&[0, 40, 80, 120, 160]).wait(at(160)), None);
        let waited = failing(&[0, 1, 2]).forgotten_at(RULE);
        assert_eq!(waited, at(17 + 900));
        assert_eq!(failing(&[0, 1, 2]).failed(RULE, waited).failures, 1);
    }
}
