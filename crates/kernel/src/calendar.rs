//! The calendar in UTC, as far as bills need it: months of different lengths, and where a month begins.

use jiff::{
    SignedDuration, Span,
    civil::{DateTime, date},
};

use crate::Timestamp;

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

impl Timestamp {
    /// The same day and time so many months later, or earlier; the last day of a month that has no such day.
    #[must_use]
    pub fn plus_months(self, months: i64) -> Self {
        let limit = if months < 0 { Self::MIN } else { Self::MAX };
        let moved = self.in_utc().zip(Span::new().try_months(months).ok());
        moved.and_then(|(civil, span)| Self::from_utc(civil.checked_add(span).ok()?)).unwrap_or(limit)
    }

    /// The first instant of its month.
    #[must_use]
    pub fn start_of_month(self) -> Self {
        self.in_utc().and_then(|civil| Self::from_utc(civil.date().first_of_month().into())).unwrap_or(Self::MIN)
    }

    pub(crate) fn in_utc(self) -> Option<DateTime> {
        EPOCH.checked_add(SignedDuration::from_micros(self.as_micros())).ok()
    }

    pub(crate) fn from_utc(civil: DateTime) -> Option<Self> {
        i64::try_from(civil.duration_since(EPOCH).as_micros()).ok().map(Self::from_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(from: &str, months: i64) -> String {
        from.parse::<Timestamp>().expect("a timestamp").plus_months(months).to_string()
    }

    #[test]
    fn a_day_that_a_month_lacks_is_its_last_one() {
        assert_eq!(moved("2026-01-31T09:30:00Z", 1), "2026-02-28T09:30:00.000Z");
        assert_eq!(moved("2026-01-31T09:30:00Z", 2), "2026-03-31T09:30:00.000Z");
        assert_eq!(moved("2027-11-30T00:00:00Z", 3), "2028-02-29T00:00:00.000Z");
        assert_eq!(moved("2028-02-29T00:00:00Z", 12), "2029-02-28T00:00:00.000Z");
        assert_eq!(moved("2026-03-31T23:59:59Z", -1), "2026-02-28T23:59:59.000Z");
    }

    #[test]
    fn a_month_begins_on_its_first_day() {
        let start = |text: &str| text.parse::<Timestamp>().expect("a timestamp").start_of_month().to_string();
        assert_eq!(start("2028-02-29T12:00:00.001Z"), "2028-02-01T00:00:00.000Z");
        assert_eq!(start("2026-03-01T00:30:00+02:00"), "2026-02-01T00:00:00.000Z");
    }

    #[test]
    fn what_lies_beyond_the_calendar_is_its_end() {
        assert_eq!(Timestamp::from_seconds(0).plus_months(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_seconds(0).plus_months(i64::MIN), Timestamp::MIN);
        assert_eq!(Timestamp::MAX.plus_months(1), Timestamp::MAX);
    }
}
