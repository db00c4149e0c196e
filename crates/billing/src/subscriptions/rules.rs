//! The life of a subscription: from its state, a command (the passing of time is one) and the circumstances to the next
//! state and what is told of it. Pure. What the contract does not list cannot be reached.

use std::time::Duration;

use kernel::Timestamp;
use store::text_enum;

use super::agreement::{Agreement, BoughtPlan, Dunning, Ending, Purchase, ScheduledChange, State};

/// What happens to a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Puts it on a plan that needs no payment provider, or that the app's key gives away.
    Assign(Purchase),
    /// Puts it on another plan once the paid period is over.
    Schedule(BoughtPlan),
    /// Begins a trial that ends then.
    StartTrial(Purchase, Timestamp),
    Cancel,
    Reactivate {
        /// Whether going on would have to be paid for at a provider.
        must_pay: bool,
    },
    /// A checkout was paid: the provider renews it from now on.
    Pay(Purchase),
    /// Changes what the provider renews.
    ChangePaid(Purchase),
    /// A renewal, or a further attempt at it, was paid.
    Renew,
    /// A renewal, or a further attempt at it, was not paid.
    FailRenewal,
    /// The provider gave up on being paid.
    Exhaust,
    /// The provider canceled it.
    EndAtProvider,
    /// The trial or the period ends now, before its time.
    EndPeriod,
    /// Time passes.
    Pass,
}

text_enum! {
    /// Why a subscription changed, for its history.
    #[schemars(rename = "SubscriptionChangeCause")]
    wire pub enum Cause {
        Assigned = "assigned",
        ChangeScheduled = "change_scheduled",
        TrialStarted = "trial_started",
        CancelRequested = "cancel_requested",
        Reactivated = "reactivated",
        CheckoutPaid = "checkout_paid",
        PlanChanged = "plan_changed",
        PaymentSucceeded = "payment_succeeded",
        PaymentFailed = "payment_failed",
        DunningExhausted = "dunning_exhausted",
        CanceledByProvider = "canceled_by_provider",
        TimePassed = "time_passed",
    }
}

impl Command {
    pub fn cause(&self) -> Cause {
        match self {
            Self::Assign(_) => Cause::Assigned,
            Self::Schedule(_) => Cause::ChangeScheduled,
            Self::StartTrial(..) => Cause::TrialStarted,
            Self::Cancel => Cause::CancelRequested,
            Self::Reactivate { .. } => Cause::Reactivated,
            Self::Pay(_) => Cause::CheckoutPaid,
            Self::ChangePaid(_) => Cause::PlanChanged,
            Self::Renew => Cause::PaymentSucceeded,
            Self::FailRenewal => Cause::PaymentFailed,
            Self::Exhaust => Cause::DunningExhausted,
            Self::EndAtProvider => Cause::CanceledByProvider,
            Self::EndPeriod | Self::Pass => Cause::TimePassed,
        }
    }
}

/// What is told of a step, each by an event of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Created,
    PlanChanged { from: String },
    TrialStarted,
    TrialEnded,
    PastDue,
    Reactivated,
    Canceled,
}

/// The next state, and what is told of it in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub after: Agreement,
    pub told: Vec<Told>,
}

const DAY: Duration = Duration::from_hours(24);

/// When a trial ends that begins now.
pub fn trial_end(now: Timestamp, days: u32) -> Timestamp {
    now.plus(DAY.saturating_mul(days))
}

/// How a new subscription starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// It needs no payment provider, or the app's key gives it away.
    Assigned,
    Trial {
        until: Timestamp,
    },
    /// By a checkout that was paid.
    Paid,
}

impl Beginning {
    pub fn cause(self) -> Cause {
        match self {
            Self::Assigned => Cause::Assigned,
            Self::Trial { .. } => Cause::TrialStarted,
            Self::Paid => Cause::CheckoutPaid,
        }
    }
}

/// A new subscription: of a workspace that has none, or whose last one is over.
pub fn begin(bought: Purchase, how: Beginning, now: Timestamp) -> Step {
    let (state, told) = match how {
        Beginning::Trial { until } => (State::Trial { until }, vec![Told::Created, Told::TrialStarted]),
        Beginning::Assigned | Beginning::Paid => (State::Active, vec![Told::Created]),
    };
    let renewed_by_provider = how == Beginning::Paid;
    let after = Agreement { bought, state, gate_engaged: false, anchor: now, scheduled: None, renewed_by_provider };
    Step { after, told }
}

impl Agreement {
    /// What a command makes of it.
    #[must_use]
    pub fn step(&self, command: &Command, now: Timestamp) -> Step {
        let mut step = Step { after: self.clone(), told: Vec::new() };
        if self.is_over() {
            return step;
        }
        match command {
            Command::Assign(bought) => step.assign(bought, now),
            Command::Schedule(plan) => step.schedule(plan, now),
            Command::StartTrial(bought, until) => step.start_trial(bought, *until, now),
            Command::Cancel => step.cancel(now),
            Command::Reactivate { must_pay } => step.reactivate(*must_pay, now),
            Command::Pay(bought) => step.pay(bought, now),
            Command::ChangePaid(bought) => step.change_paid(bought, now),
            Command::Renew => step.renew(),
            Command::FailRenewal => step.fail_renewal(now),
            Command::Exhaust => step.exhaust(),
            Command::EndAtProvider => step.end(now),
            Command::EndPeriod => step.end_period(now),
            Command::Pass => step.pass(now),
        }
        step
    }
}

impl Step {
    /// Another plan or price. The anchor stays unless the interval differs; then a new period begins.
    fn put_on(&mut self, bought: &Purchase, now: Timestamp) {
        let before = std::mem::replace(&mut self.after.bought, bought.clone());
        if before.interval() != bought.interval() {
            self.after.anchor = now;
        }
        if before.plan.key != bought.plan.key {
            self.told.push(Told::PlanChanged { from: before.plan.key });
        }
        self.after.scheduled = None;
    }

    /// A new period is paid for, so that what is about to end lasts until its end.
    fn change_paid(&mut self, bought: &Purchase, now: Timestamp) {
        let begins = self.after.bought.interval() != bought.interval();
        self.put_on(bought, now);
        let end = self.after.period(now).end;
        if let State::Ending(ending) = &mut self.after.state
            && begins
            && !ending.trial
        {
            ending.at = end;
        }
    }

    /// The plan counts at once. What was about to end goes on, and a trial needs no end any more.
    fn assign(&mut self, bought: &Purchase, now: Timestamp) {
        if matches!(self.after.state, State::Ending(_)) {
            self.told.push(Told::Reactivated);
        }
        if self.after.trial_until().is_some() {
            self.after.anchor = now;
        }
        self.put_on(bought, now);
        self.after.renewed_by_provider &= self.after.is_paid();
        match self.after.dunning().filter(|_| self.after.renewed_by_provider) {
            Some(dunning) => self.after.state = State::PastDue(dunning),
            None => {
                self.after.state = State::Active;
                self.after.gate_engaged = false;
            }
        }
    }

    /// Only what was paid for has an end worth waiting for.
    fn schedule(&mut self, plan: &BoughtPlan, now: Timestamp) {
        if !self.after.runs_at_provider() {
            return;
        }
        let at = match self.after.state {
            State::Ending(ending) => ending.at,
            _ => self.after.period(now).end,
        };
        self.after.scheduled = Some(ScheduledChange { plan: plan.clone(), at });
    }

    fn start_trial(&mut self, bought: &Purchase, until: Timestamp, now: Timestamp) {
        self.put_on(bought, now);
        self.after.state = State::Trial { until };
        self.after.anchor = now;
        self.after.gate_engaged = false;
        self.told.push(Told::TrialStarted);
    }

    fn cancel(&mut self, now: Timestamp) {
        self.after.scheduled = None;
        let (trial, unpaid) = (self.after.trial_until().is_some(), self.after.dunning());
        let at = match self.after.state {
            State::Trial { until } => until,
            State::Active | State::PastDue(_) => self.after.period(now).end,
            State::Ending(_) | State::Canceled { .. } => return,
        };
        self.after.state = State::Ending(Ending { at, trial, unpaid });
        self.told.push(Told::Canceled);
    }

    fn reactivate(&mut self, must_pay: bool, now: Timestamp) {
        self.after.scheduled = None;
        let State::Ending(Ending { at, trial, unpaid }) = self.after.state else { return };
        self.after.state = match unpaid {
            Some(dunning) => State::PastDue(dunning),
            None if trial && must_pay => State::Trial { until: at },
            None => State::Active,
        };
        if trial && !must_pay {
            self.after.anchor = now;
        }
        self.told.push(Told::Reactivated);
    }

    /// Ends a trial at once and begins the first period.
    fn pay(&mut self, bought: &Purchase, now: Timestamp) {
        self.put_on(bought, now);
        self.after.anchor = now;
        self.after.state = State::Active;
        self.after.gate_engaged = false;
        self.after.renewed_by_provider = true;
    }

    fn renew(&mut self) {
        match &mut self.after.state {
            State::PastDue(_) => self.after.state = State::Active,
            State::Ending(ending) => ending.unpaid = None,
            State::Trial { .. } | State::Active | State::Canceled { .. } => return,
        }
        self.after.gate_engaged = false;
    }

    fn fail_renewal(&mut self, now: Timestamp) {
        let dunning = match self.after.dunning() {
            Some(Dunning { since, attempts }) => Dunning { since, attempts: attempts.saturating_add(1) },
            None => Dunning { since: now, attempts: 1 },
        };
        match &mut self.after.state {
            State::Active => {
                self.after.state = State::PastDue(dunning);
                self.told.push(Told::PastDue);
            }
            State::PastDue(known) => *known = dunning,
            State::Ending(ending) if !ending.trial => ending.unpaid = Some(dunning),
            State::Trial { .. } | State::Ending(_) | State::Canceled { .. } => {}
        }
    }

    fn exhaust(&mut self) {
        self.after.gate_engaged |= self.after.dunning().is_some();
    }

    /// The provider or dunning ends it; somebody who asked for that was told when they did.
    fn end(&mut self, at: Timestamp) {
        if !matches!(self.after.state, State::Ending(_)) {
            self.told.push(Told::Canceled);
        }
        self.after.state = State::Canceled { at };
        self.after.scheduled = None;
    }

    /// What waits for the end of a trial or a period happens now; else another period begins.
    fn end_period(&mut self, now: Timestamp) {
        if let Some(change) = &mut self.after.scheduled {
            change.at = now;
        }
        match &mut self.after.state {
            State::Trial { until } => *until = now,
            State::Ending(ending) => ending.at = now,
            State::Active | State::PastDue(_) if self.after.scheduled.is_none() => self.after.anchor = now,
            State::Active | State::PastDue(_) | State::Canceled { .. } => {}
        }
        self.pass(now);
    }

    /// Everything that is due, each at its own instant.
    fn pass(&mut self, now: Timestamp) {
        while let Some(due) = self.after.due().filter(|due| *due <= now) {
            self.pass_at(due);
        }
    }

    fn pass_at(&mut self, due: Timestamp) {
        let scheduled = self.after.scheduled.clone().filter(|change| change.at <= due);
        match (self.after.state, scheduled) {
            (_, Some(ScheduledChange { plan, .. })) => {
                self.after.renewed_by_provider = false;
                self.put_on(&Purchase { plan, price: None }, due);
                self.after.state = State::Active;
                self.after.gate_engaged = false;
            }
            (State::Trial { until }, None) => {
                self.after.state = State::Canceled { at: until };
                self.after.gate_engaged = true;
                self.after.scheduled = None;
                self.told.push(Told::TrialEnded);
            }
            (State::Ending(ending), None) if ending.at <= due => self.end(ending.at),
            (_, None) if self.after.gate_engaged => self.end(due),
            (_, None) => self.after.gate_engaged = true,
        }
    }
}

#[cfg(test)]
mod moments;
#[cfg(test)]
mod tests;
