//! Every row of the table of states, and that no sequence of commands leaves it.

use std::collections::BTreeSet;

use proptest::prelude::*;

use kernel::Money;

use super::*;
use crate::{
    catalog::Interval,
    subscriptions::{BoughtPrice, Status},
};

pub(super) const DAYS: fn(u64) -> Duration = |days| Duration::from_hours(24 * days);

pub(super) fn start() -> Timestamp {
    "2026-01-31T10:00:00Z".parse().expect("a timestamp")
}

pub(super) fn bought(key: &str, cents: i64, interval: Interval) -> Purchase {
    let currency = "EUR".parse().expect("a currency");
    let price = (cents > 0).then(|| BoughtPrice { amount: Money::from_minor(cents, currency), interval });
    Purchase { plan: BoughtPlan { key: key.into(), name: key.into(), free: cents == 0 }, price }
}

pub(super) fn free() -> Purchase {
    bought("free", 0, Interval::Month)
}

pub(super) fn pro() -> Purchase {
    bought("pro", 2_900, Interval::Month)
}

pub(super) fn begun(bought: Purchase, how: Beginning) -> Agreement {
    begin(bought, how, start()).after
}

fn trial() -> Agreement {
    begun(pro(), Beginning::Trial { until: trial_end(start(), 14) })
}

/// The status, what is told, when it ends and whether the gate is engaged.
fn seen(step: &Step) -> (Status, &[Told], Option<Timestamp>, bool) {
    (step.after.status(), &step.told, step.after.ends_at(), step.after.gate_engaged)
}

#[test]
fn a_start_is_told_as_created_and_a_trials_as_started_too() {
    let until = trial_end(start(), 14);
    let step = begin(pro(), Beginning::Trial { until }, start());
    assert_eq!(seen(&step), (Status::Trial, &[Told::Created, Told::TrialStarted][..], Some(until), false));
    let step = begin(free(), Beginning::Assigned, start());
    assert_eq!(seen(&step), (Status::Active, &[Told::Created][..], None, false));
    let step = begun(free(), Beginning::Assigned).step(&Command::StartTrial(pro(), until), start());
    let told = [Told::PlanChanged { from: "free".into() }, Told::TrialStarted];
    assert_eq!(seen(&step), (Status::Trial, &told[..], Some(until), false));
}

#[test]
fn a_trial_ends_canceled_and_gated_unless_it_is_paid_for() {
    let until = trial_end(start(), 14);
    assert_eq!(seen(&trial().step(&Command::Pass, until.minus(DAYS(1)))), (Status::Trial, &[][..], Some(until), false));
    let ended = trial().step(&Command::Pass, until.plus(DAYS(9)));
    assert_eq!(seen(&ended), (Status::Canceled, &[Told::TrialEnded][..], Some(until), true));
    let now = start().plus(DAYS(3));
    let paid = trial().step(&Command::Pay(pro()), now);
    assert_eq!(seen(&paid), (Status::Active, &[][..], None, false));
    assert_eq!((paid.after.anchor, paid.after.due()), (now, None));
}

#[test]
fn canceling_keeps_what_is_left_and_reactivating_gives_it_back() {
    let now = start().plus(DAYS(3));
    let canceled = begun(pro(), Beginning::Paid).step(&Command::Cancel, now);
    let end: Timestamp = "2026-02-28T10:00:00Z".parse().expect("a timestamp");
    assert_eq!(seen(&canceled), (Status::CancelAtPeriodEnd, &[Told::Canceled][..], Some(end), false));
    assert_eq!(canceled.after.step(&Command::Cancel, now).told, []);
    let again = canceled.after.step(&Command::Reactivate { must_pay: true }, now);
    assert_eq!(seen(&again), (Status::Active, &[Told::Reactivated][..], None, false));
    let over = canceled.after.step(&Command::Pass, end);
    assert_eq!(seen(&over), (Status::Canceled, &[][..], Some(end), false));
    for command in [Command::Cancel, Command::Reactivate { must_pay: false }, Command::Pass, Command::Assign(free())] {
        assert_eq!(over.after.step(&command, end), Step { after: over.after.clone(), told: vec![] }, "{command:?}");
    }
}

#[test]
fn a_canceled_trial_ends_with_the_trial_and_comes_back_as_one_where_payment_is_due() {
    let (now, until) = (start().plus(DAYS(3)), trial_end(start(), 14));
    let canceled = trial().step(&Command::Cancel, now);
    assert_eq!(seen(&canceled), (Status::CancelAtPeriodEnd, &[Told::Canceled][..], Some(until), false));
    let must_pay = canceled.after.step(&Command::Reactivate { must_pay: true }, now);
    assert_eq!(seen(&must_pay), (Status::Trial, &[Told::Reactivated][..], Some(until), false));
    let without = canceled.after.step(&Command::Reactivate { must_pay: false }, now);
    assert_eq!(seen(&without), (Status::Active, &[Told::Reactivated][..], None, false));
    assert_eq!(seen(&canceled.after.step(&Command::Pass, until)), (Status::Canceled, &[][..], Some(until), false));
}

#[test]
fn a_failed_payment_gates_after_14_days_and_cancels_after_30() {
    let failed = begun(pro(), Beginning::Paid).step(&Command::FailRenewal, start());
    assert_eq!(seen(&failed), (Status::PastDue, &[Told::PastDue][..], None, false));
    let again = failed.after.step(&Command::FailRenewal, start().plus(DAYS(3)));
    assert_eq!(seen(&again), (Status::PastDue, &[][..], None, false));
    assert_eq!(again.after.dunning(), Some(Dunning { since: start(), attempts: 2 }));
    let gated = again.after.step(&Command::Pass, start().plus(DAYS(14)));
    assert_eq!(seen(&gated), (Status::PastDue, &[][..], None, true));
    let paid = gated.after.step(&Command::Renew, start().plus(DAYS(15)));
    assert_eq!(seen(&paid), (Status::Active, &[][..], None, false));
    let end = start().plus(DAYS(30));
    assert_eq!(
        seen(&gated.after.step(&Command::Pass, end)),
        (Status::Canceled, &[Told::Canceled][..], Some(end), true)
    );
    assert_eq!(again.after.step(&Command::Exhaust, start()).after.due(), Some(end));
}

#[test]
fn canceling_and_reactivating_does_not_pay_a_bill() {
    let failed = begun(pro(), Beginning::Paid).step(&Command::FailRenewal, start()).after;
    let back = failed.step(&Command::Cancel, start()).after.step(&Command::Reactivate { must_pay: true }, start());
    assert_eq!(back.after.state, State::PastDue(Dunning { since: start(), attempts: 1 }));
}

#[test]
fn a_free_plan_waits_for_the_end_of_the_paid_period() {
    let paid = begun(pro(), Beginning::Paid);
    let end = paid.period(start()).end;
    let waiting = paid.step(&Command::Schedule(free().plan), start());
    assert_eq!(seen(&waiting), (Status::Active, &[][..], None, false));
    assert_eq!(waiting.after.due(), Some(end));
    for command in [Command::Cancel, Command::Reactivate { must_pay: true }] {
        assert_eq!(waiting.after.step(&command, start()).after.scheduled, None, "{command:?}");
    }
    let ending = paid.step(&Command::Cancel, start()).after;
    let waiting_too = ending.step(&Command::Schedule(free().plan), start()).after;
    assert!(waiting_too.scheduled.is_some());
    assert_eq!(waiting_too.step(&Command::Cancel, start()), Step { after: ending, told: vec![] });
    let changed = waiting.after.step(&Command::Pass, end);
    assert_eq!(seen(&changed), (Status::Active, &[Told::PlanChanged { from: "pro".into() }][..], None, false));
    assert!(!changed.after.renewed_by_provider && changed.after.anchor == start());
}

#[test]
fn another_interval_begins_another_period() {
    let now = start().plus(DAYS(40));
    let yearly = bought("pro", 29_000, Interval::Year);
    let dearer = bought("max", 9_900, Interval::Month);
    assert_eq!(begun(pro(), Beginning::Assigned).step(&Command::Assign(dearer), now).after.anchor, start());
    assert_eq!(begun(pro(), Beginning::Assigned).step(&Command::Assign(yearly), now).after.anchor, now);
}

pub(super) fn commands() -> impl Strategy<Value = Command> {
    prop_oneof![
        Just(Command::Assign(free())),
        Just(Command::Assign(pro())),
        Just(Command::Schedule(free().plan)),
        Just(Command::StartTrial(pro(), trial_end(start(), 14))),
        Just(Command::Cancel),
        any::<bool>().prop_map(|must_pay| Command::Reactivate { must_pay }),
        Just(Command::Pay(pro())),
        Just(Command::ChangePaid(bought("max", 9_900, Interval::Year))),
        Just(Command::Renew),
        Just(Command::FailRenewal),
        Just(Command::Exhaust),
        Just(Command::EndAtProvider),
        Just(Command::EndPeriod),
        Just(Command::Pass),
    ]
}

/// What each command may do to a status; everything else leaves it as it is.
fn allowed(command: &Command) -> &'static [(Status, Status)] {
    use Status::{Active, CancelAtPeriodEnd as Ending, Canceled, PastDue, Trial};
    match command {
        Command::Assign(_) => &[(Trial, Active), (PastDue, Active), (Ending, Active), (Ending, PastDue)],
        Command::StartTrial(..) => &[(Active, Trial), (PastDue, Trial), (Ending, Trial)],
        Command::Cancel => &[(Trial, Ending), (Active, Ending), (PastDue, Ending)],
        Command::Reactivate { .. } => &[(Ending, Active), (Ending, Trial), (Ending, PastDue)],
        Command::Pay(_) => &[(Trial, Active), (PastDue, Active), (Ending, Active)],
        Command::Renew => &[(PastDue, Active)],
        Command::FailRenewal => &[(Active, PastDue)],
        Command::EndAtProvider => &[(Trial, Canceled), (Active, Canceled), (PastDue, Canceled), (Ending, Canceled)],
        Command::EndPeriod | Command::Pass => {
            &[(Trial, Canceled), (PastDue, Canceled), (Ending, Canceled), (Ending, Active), (PastDue, Active)]
        }
        Command::Schedule(_) | Command::ChangePaid(_) | Command::Exhaust => &[],
    }
}

proptest! {
    #[test]
    fn nothing_is_reached_that_is_not_listed(steps in prop::collection::vec((commands(), 0u64..20), 1..40), paid: bool) {
        let mut now = start();
        let mut agreement = begun(pro(), if paid { Beginning::Paid } else { Beginning::Assigned });
        for (command, days) in steps {
            now = now.plus(DAYS(days));
            let command = match command {
                Command::StartTrial(bought, _) => Command::StartTrial(bought, trial_end(now, 14)),
                other => other,
            };
            // Time has passed for whoever gives a command.
            for command in [&Command::Pass, &command] {
                let (before, step) = (agreement.status(), agreement.step(command, now));
                let pair = (before, step.after.status());
                prop_assert!(pair.0 == pair.1 || allowed(command).contains(&pair), "{command:?}: {pair:?}");
                agreement = step.after;
            }
            prop_assert!(agreement.due().is_none_or(|due| due > now));
            prop_assert_eq!(agreement.ends_at().is_some(), matches!(
                agreement.status(), Status::Trial | Status::CancelAtPeriodEnd | Status::Canceled
            ));
            prop_assert!(!agreement.gate_engaged || agreement.dunning().is_some() || agreement.is_over());
            let kinds: BTreeSet<_> = agreement.scheduled.iter().map(|change| change.plan.key.clone()).collect();
            prop_assert!(kinds.is_empty() || agreement.status() != Status::Canceled);
        }
    }
}
