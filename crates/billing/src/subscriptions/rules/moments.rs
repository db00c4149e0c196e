//! When things happen: the same however often somebody looks, and at the hour that is counted out.

use proptest::prelude::*;

use super::{
    tests::{DAYS, begun, commands, pro, start},
    *,
};
use crate::subscriptions::Status;

const HOUR: Duration = Duration::from_hours(1);

/// What somebody does while a bill is open, so many hours after the first failure.
#[derive(Clone, Copy, Debug, Default)]
struct Troubles {
    paid: Option<u64>,
    given_up: Option<u64>,
    canceled: Option<u64>,
}

fn troubles() -> impl Strategy<Value = Troubles> {
    let hour = || prop::option::of(prop_oneof![Just(0), Just(14 * 24), 0u64..32 * 24]);
    (hour(), hour(), hour()).prop_map(|(paid, given_up, canceled)| Troubles { paid, given_up, canceled })
}

impl Troubles {
    fn at(self, hour: u64) -> impl Iterator<Item = Command> {
        let happens =
            [(self.given_up, Command::Exhaust), (self.canceled, Command::Cancel), (self.paid, Command::Renew)];
        happens.into_iter().filter(move |(at, _)| *at == Some(hour)).map(|(_, command)| command)
    }

    /// The status and whether the gate is engaged in that hour, from the words of the contract alone. The period ends 28 days
    /// after its start, and the first failure was three days in.
    fn expected(self, hour: u64) -> (Status, bool) {
        let before = |other: Option<u64>, limit: u64| other.is_some_and(|at| at < limit);
        let reached = |at: Option<u64>| at.is_some_and(|at| at <= hour);
        let period_end = 25 * 24;
        // What is over is over, whatever is asked for then.
        let ends = match self.canceled {
            Some(at) if at < period_end && !self.ended_before(at) => Some(period_end),
            Some(at) if !self.ended_before(at) => Some(period_end + 31 * 24),
            _ => None,
        };
        let unpaid_until = self.paid.filter(|paid| *paid < 30 * 24 && ends.is_none_or(|end| *paid < end));
        let dunned = if unpaid_until.is_none() { Some(30 * 24) } else { None };
        let over = ends.into_iter().chain(dunned).min().filter(|end| *end <= hour);
        let gate = |hour: u64| {
            unpaid_until.is_none_or(|paid| hour < paid) && (hour >= 14 * 24 || before(self.given_up, hour + 1))
        };
        match over {
            Some(end) => (Status::Canceled, gate(end - 1)),
            None if reached(self.canceled) && ends.is_some() => (Status::CancelAtPeriodEnd, gate(hour)),
            None if reached(unpaid_until) => (Status::Active, false),
            None => (Status::PastDue, gate(hour)),
        }
    }

    fn ended_before(self, hour: u64) -> bool {
        hour >= 30 * 24 && self.paid.is_none_or(|paid| paid >= 30 * 24)
    }
}

proptest! {
    /// Hour by hour over the weeks after a failed payment.
    #[test]
    fn dunning_runs_by_the_hour(troubles in troubles()) {
        let failed = start().plus(DAYS(3));
        let mut agreement = begun(pro(), Beginning::Paid).step(&Command::FailRenewal, failed).after;
        for hour in 0..33 * 24 {
            let now = failed.plus(HOUR * u32::try_from(hour).expect("a few"));
            agreement = agreement.step(&Command::Pass, now).after;
            for command in troubles.at(hour) {
                agreement = agreement.step(&command, now).after;
            }
            prop_assert_eq!((agreement.status(), agreement.gate_engaged), troubles.expected(hour), "hour {}", hour);
        }
    }

    /// Nobody has to look for something to happen at its moment: looking once and looking often come to the same.
    #[test]
    fn time_passes_the_same_however_often_one_looks(
        commands in prop::collection::vec((commands(), 0u64..20), 0..12), looks in prop::collection::vec(0u64..900, 0..20),
        paid: bool,
    ) {
        let mut now = start();
        let mut agreement = begun(pro(), if paid { Beginning::Paid } else { Beginning::Assigned });
        for (command, days) in commands {
            now = now.plus(DAYS(days));
            agreement = agreement.step(&Command::Pass, now).after.step(&command, now).after;
        }
        let mut looks = looks;
        looks.sort_unstable();
        let last = now.plus(HOUR * 900);
        let (mut often, mut told) = (agreement.clone(), Vec::new());
        for at in looks.into_iter().map(|hours| now.plus(HOUR * u32::try_from(hours).expect("a few"))).chain([last]) {
            let step = often.step(&Command::Pass, at);
            told.extend(step.told);
            often = step.after;
        }
        prop_assert_eq!(agreement.step(&Command::Pass, last), Step { after: often, told });
    }

    /// A trial lasts whole days from the instant at which it began, across the ends of months and in leap years.
    #[test]
    fn a_trial_lasts_its_days(begins in 0i64..4_000_000_000, days in 1u32..=3_650) {
        let begins = Timestamp::from_seconds(begins);
        let until = trial_end(begins, days);
        prop_assert_eq!(until.as_micros() - begins.as_micros(), i64::from(days) * 86_400_000_000);
        let trial = begin(pro(), Beginning::Trial { until }, begins).after;
        let status = |at| trial.step(&Command::Pass, at).after.status();
        let instant = Duration::from_micros(1);
        prop_assert_eq!([status(begins), status(until.minus(instant))], [Status::Trial; 2]);
        prop_assert_eq!([status(until), status(until.plus(DAYS(400)))], [Status::Canceled; 2]);
    }

    /// A free plan that waits begins at the very end of what was paid for, and nothing is due any more.
    #[test]
    fn what_waits_begins_when_the_paid_period_ends(days in 0u64..400) {
        let (paid, now) = (begun(pro(), Beginning::Paid), start().plus(DAYS(days)));
        let end = paid.period(now).end;
        let waits = paid.step(&Command::Schedule(super::tests::free().plan), now).after;
        let instant = Duration::from_micros(1);
        prop_assert_eq!(&waits.step(&Command::Pass, end.minus(instant)).after, &waits);
        let after = waits.step(&Command::Pass, end).after;
        prop_assert_eq!((after.bought.plan.key.as_str(), after.due(), after.status()), ("free", None, Status::Active));
    }
}
