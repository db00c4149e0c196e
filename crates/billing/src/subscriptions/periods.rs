//! Billing periods. Each is worked out from the anchor, never from the one before it, so that a month that lacks the
//! anchor's day does not move those that follow, and a period that passes without effect needs no work at all. Pure.

use std::time::Duration;

use kernel::Timestamp;

use crate::catalog::Interval;

/// From `start`, up to but without `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Period {
    pub start: Timestamp,
    pub end: Timestamp,
}

/// How periods follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    pub anchor: Timestamp,
    pub interval: Interval,
}

const DAY: Duration = Duration::from_hours(24);

impl Cycle {
    /// For workspaces without a subscription.
    pub const CALENDAR_MONTHS: Self = Self { anchor: Timestamp::from_seconds(0), interval: Interval::Month };

    /// The period that an instant lies in.
    pub fn at(self, instant: Timestamp) -> Period {
        let mut number = self.estimate(instant);
        while self.start(number) > instant {
            number -= 1;
        }
        // At the end of the calendar periods have no length any more.
        while self.start(number + 1) <= instant && self.start(number + 1) > self.start(number) {
            number += 1;
        }
        Period { start: self.start(number), end: self.start(number + 1) }
    }

    /// When the period with this number begins; 0 begins at the anchor.
    fn start(self, number: i64) -> Timestamp {
        let days = |count: i64| {
            let length = i64::try_from(DAY.as_micros()).unwrap_or(i64::MAX);
            Timestamp::from_micros(self.anchor.as_micros().saturating_add(length.saturating_mul(count)))
        };
        match self.interval {
            Interval::Day => days(number),
            Interval::Week => days(number.saturating_mul(7)),
            Interval::Month => self.anchor.plus_months(number),
            Interval::Year => self.anchor.plus_months(number.saturating_mul(12)),
        }
    }

    /// At most a period or two beside the right number.
    fn estimate(self, instant: Timestamp) -> i64 {
        const HOUR: i64 = 3_600_000_000;
        let hours = match self.interval {
            Interval::Day => 24,
            Interval::Week => 7 * 24,
            Interval::Month => 730,
            Interval::Year => 8_766,
        };
        instant.as_micros().saturating_sub(self.anchor.as_micros()) / (hours * HOUR)
    }
}

#[cfg(test)]
mod tests;
