//! What a subscription is at any instant: what was bought, how it stands, and what follows from that. Pure.

use std::{borrow::Cow, time::Duration};

use kernel::{Money, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use store::text_enum;

use super::{Cycle, Period};
use crate::catalog::{self, Interval, Plan, Price, PriceOffer};

text_enum! {
    /// How a subscription stands.
    #[schemars(rename = "SubscriptionStatus")]
    #[derive(Hash, PartialOrd, Ord)]
    wire pub enum Status {
        Trial = "trial",
        Active = "active",
        PastDue = "past_due",
        CancelAtPeriodEnd = "cancel_at_period_end",
        Canceled = "canceled",
    }
}

/// The status with what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Trial { until: Timestamp },
    Active,
    PastDue(Dunning),
    Ending(Ending),
    Canceled { at: Timestamp },
}

/// A renewal that was not paid yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dunning {
    /// The first failure.
    pub since: Timestamp,
    /// How often payment was tried.
    pub attempts: u32,
}

/// Canceled, with time left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    pub at: Timestamp,
    /// What is left is a trial's.
    pub trial: bool,
    /// What is left was not paid for.
    pub unpaid: Option<Dunning>,
}

/// What was bought, as it was then: a changed or deleted price touches nobody who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purchase {
    pub plan: BoughtPlan,
    pub price: Option<BoughtPrice>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoughtPlan {
    pub key: String,
    pub name: String,
    /// Whether it costs nothing, at whichever price.
    pub free: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoughtPrice {
    pub amount: Money,
    pub interval: Interval,
}

impl BoughtPrice {
    pub fn offer(self) -> PriceOffer {
        PriceOffer { currency: self.amount.currency, recurrence_interval: self.interval }
    }
}

impl Serialize for BoughtPrice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        catalog::plans::write_price(self.amount, self.interval, serializer)
    }
}

impl JsonSchema for BoughtPrice {
    fn schema_name() -> Cow<'static, str> {
        "Price".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Price::json_schema(generator)
    }
}

impl Purchase {
    pub fn of(plan: &Plan, price: Option<&Price>) -> Self {
        Self {
            plan: BoughtPlan { key: plan.key.clone(), name: plan.name.clone(), free: plan.is_free() },
            price: price.map(|price| BoughtPrice { amount: price.amount, interval: price.interval }),
        }
    }

    pub(crate) fn interval(&self) -> Interval {
        self.price.map_or(Interval::Month, |price| price.interval)
    }
}

/// A plan that begins when the paid period ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledChange {
    pub plan: BoughtPlan,
    pub at: Timestamp,
}

/// What a subscription is at any instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    pub bought: Purchase,
    pub state: State,
    /// Whether access is gated.
    pub gate_engaged: bool,
    pub anchor: Timestamp,
    pub scheduled: Option<ScheduledChange>,
    /// Whether the payment provider renews it.
    pub renewed_by_provider: bool,
}

/// How long after the first failure access ends, unless the provider gives up sooner.
pub const GATE_AFTER: Duration = Duration::from_hours(14 * 24);
/// How long after the first failure the subscription ends.
pub const CANCEL_AFTER: Duration = Duration::from_hours(30 * 24);

impl Agreement {
    pub fn status(&self) -> Status {
        match self.state {
            State::Trial { .. } => Status::Trial,
            State::Active => Status::Active,
            State::PastDue(_) => Status::PastDue,
            State::Ending(_) => Status::CancelAtPeriodEnd,
            State::Canceled { .. } => Status::Canceled,
        }
    }

    /// Present in a trial, and once it was canceled.
    pub fn ends_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Trial { until } => Some(until),
            State::Ending(ending) => Some(ending.at),
            State::Canceled { at } => Some(at),
            State::Active | State::PastDue(_) => None,
        }
    }

    /// Until when a trial runs, a canceled one included.
    pub fn trial_until(&self) -> Option<Timestamp> {
        match self.state {
            State::Trial { until } => Some(until),
            State::Ending(Ending { at, trial: true, .. }) => Some(at),
            _ => None,
        }
    }

    /// Whether what is paid for now is not renewed.
    pub fn is_ending(&self) -> bool {
        matches!(self.state, State::Ending(_)) || self.scheduled.is_some()
    }

    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Canceled { .. })
    }

    /// Whether it gives what its plan has, gate and quotas apart.
    pub fn gives_access(&self) -> bool {
        !self.is_over()
    }

    pub fn is_paid(&self) -> bool {
        !self.bought.plan.free
    }

    /// Whether the provider is being paid, or asked to be.
    pub fn runs_at_provider(&self) -> bool {
        self.renewed_by_provider && !self.is_over()
    }

    pub fn cycle(&self) -> Cycle {
        Cycle { anchor: self.anchor, interval: self.bought.interval() }
    }

    pub fn period(&self, now: Timestamp) -> Period {
        self.cycle().at(now)
    }

    /// The same with the periods of which the provider says that this is the present one.
    #[must_use]
    pub fn aligned(&self, period: Period) -> Self {
        let mut aligned = self.clone();
        if self.period(period.start).start != period.start {
            aligned.anchor = period.start;
        }
        if let State::Ending(ending) = &mut aligned.state
            && !ending.trial
        {
            ending.at = period.end;
        }
        if let Some(change) = &mut aligned.scheduled {
            change.at = period.end;
        }
        aligned
    }

    pub fn dunning(&self) -> Option<Dunning> {
        match self.state {
            State::PastDue(dunning) => Some(dunning),
            State::Ending(ending) => ending.unpaid,
            _ => None,
        }
    }

    /// When time alone changes it next.
    pub fn due(&self) -> Option<Timestamp> {
        let dunning = self.dunning().map(|dunning| {
            let after = if self.gate_engaged { CANCEL_AFTER } else { GATE_AFTER };
            dunning.since.plus(after)
        });
        let own = match self.state {
            State::Trial { until } => Some(until),
            State::Ending(ending) => Some(ending.at),
            State::Active | State::PastDue(_) => self.scheduled.as_ref().map(|change| change.at),
            State::Canceled { .. } => return None,
        };
        own.into_iter().chain(dunning).min()
    }
}
