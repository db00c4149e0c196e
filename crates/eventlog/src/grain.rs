//! The intervals that events are counted by. All in UTC; weeks begin on Monday.

use kernel::Timestamp;
use store::text_enum;

text_enum! {
    /// The length of a bucket.
    #[derive(Hash, PartialOrd, Ord)]
    wire pub enum Grain {
        Hour = "hour",
        Day = "day",
        Week = "week",
        Month = "month",
    }
}

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// From the Monday before it to the first of January 1970, a Thursday.
const TO_MONDAY: i64 = 3 * DAY;

/// Later than any event.
const NEVER: i64 = i64::MAX / 2;

impl Grain {
    /// As tables hold it.
    pub fn number(self) -> i64 {
        match self {
            Self::Hour => 0,
            Self::Day => 1,
            Self::Week => 2,
            Self::Month => 3,
        }
    }

    /// The start of the bucket that the instant lies in; all in microseconds.
    pub fn start(self, at: i64) -> i64 {
        match self {
            Self::Hour => at - at.rem_euclid(HOUR),
            Self::Day => at - at.rem_euclid(DAY),
            Self::Week => at - (at + TO_MONDAY).rem_euclid(WEEK),
            Self::Month => Timestamp::from_micros(at).start_of_month().as_micros(),
        }
    }

    /// Where the bucket that begins at `start` ends and the next one begins.
    pub fn end(self, start: i64) -> i64 {
        match self {
            Self::Hour => start + HOUR,
            Self::Day => start + DAY,
            Self::Week => start + WEEK,
            Self::Month => match Timestamp::from_micros(start).plus_months(1) {
                Timestamp::MAX => NEVER,
                end => end.as_micros(),
            },
        }
    }

    /// What parts of such a bucket are put together from.
    pub fn finer(self) -> Option<Self> {
        match self {
            Self::Hour => None,
            Self::Day => Some(Self::Hour),
            Self::Week | Self::Month => Some(Self::Day),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(grain: Grain, at: &str) -> (String, String) {
        let start = grain.start(at.parse::<Timestamp>().expect("a timestamp").as_micros());
        let shown = |micros| Timestamp::from_micros(micros).to_string();
        (shown(start), shown(grain.end(start)))
    }

    #[test]
    fn buckets_begin_and_end_in_utc() {
        for (grain, at, start, end) in [
            (Grain::Hour, "2026-03-01T09:59:59.999Z", "2026-03-01T09:00:00.000Z", "2026-03-01T10:00:00.000Z"),
            (Grain::Day, "2026-03-01T00:30:00+02:00", "2026-02-28T00:00:00.000Z", "2026-03-01T00:00:00.000Z"),
            (Grain::Week, "2026-03-01T23:00:00Z", "2026-02-23T00:00:00.000Z", "2026-03-02T00:00:00.000Z"),
            (Grain::Week, "2026-03-02T00:00:00Z", "2026-03-02T00:00:00.000Z", "2026-03-09T00:00:00.000Z"),
            (Grain::Week, "1969-12-31T23:00:00Z", "1969-12-29T00:00:00.000Z", "1970-01-05T00:00:00.000Z"),
            (Grain::Month, "2024-02-29T12:00:00Z", "2024-02-01T00:00:00.000Z", "2024-03-01T00:00:00.000Z"),
            (Grain::Month, "1969-12-31T23:00:00Z", "1969-12-01T00:00:00.000Z", "1970-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(bucket(grain, at), (start.to_owned(), end.to_owned()), "{at}");
        }
    }

    #[test]
    fn every_bucket_ends_after_its_start_even_at_the_ends_of_time() {
        for at in [Timestamp::MIN, Timestamp::MAX] {
            for grain in Grain::ALL {
                let start = grain.start(at.as_micros());
                assert!(start <= at.as_micros() && grain.end(start) > at.as_micros(), "{grain:?} {at}");
            }
        }
    }
}
