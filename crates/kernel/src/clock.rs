//! Two kinds of time. [`Clock`] is business time: what a trial, a token or a retry is measured by, and what the test
//! clock moves. [`Ticker`] is elapsed time for leases, timeouts and metrics, which nothing ever moves.

use std::{
    fmt,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// An instant in UTC with microseconds, as stored. Goes out as RFC 3339 with milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The last microsecond of the year 9999.
    pub const MAX: Self = Self(253_402_300_799_999_999);
    /// 0001-01-01T00:00:00Z.
    pub const MIN: Self = Self(-62_135_596_800_000_000);

    /// Clamped, so that every timestamp can be shown.
    pub const fn from_micros(micros: i64) -> Self {
        if micros > Self::MAX.0 {
            Self::MAX
        } else if micros < Self::MIN.0 {
            Self::MIN
        } else {
            Self(micros)
        }
    }

    pub const fn from_seconds(seconds: i64) -> Self {
        Self::from_micros(seconds.saturating_mul(1_000_000))
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// How far `self` lies after `earlier`; zero when it does not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self::from_micros(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self::from_micros(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            // The last 26 hours are beyond jiff's instants, but not beyond its calendar.
            Err(_) => write!(f, "{:.3}Z", self.in_utc().ok_or(fmt::Error)?),
        }
    }
}

/// Why a text is not a timestamp; reads as "must be …" after a field's name.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidTimestamp;

impl fmt::Display for InvalidTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be an RFC 3339 timestamp such as 2026-01-31T09:30:00.000Z")
    }
}

impl std::error::Error for InvalidTimestamp {}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        // jiff also reads other forms than that of RFC 3339.
        if !has_the_form(text.as_bytes()) {
            return Err(InvalidTimestamp);
        }
        match text.parse::<jiff::Timestamp>() {
            // Clamping would make another time of it than was meant.
            Ok(instant) if instant.as_microsecond() < Self::MIN.0 => Err(InvalidTimestamp),
            Ok(instant) => Ok(Self::from_micros(instant.as_microsecond())),
            Err(_) => in_the_last_hours(text).ok_or(InvalidTimestamp),
        }
    }
}

/// Whether it looks like `2026-01-31T09:30:00.123+01:00`.
fn has_the_form(text: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"0000-00-00T00:00:00";
    let fits = |(found, wanted): (&u8, &u8)| match wanted {
        b'0' => found.is_ascii_digit(),
        b'T' => matches!(found, b'T' | b't' | b' '),
        other => found == other,
    };
    let Some((beginning, rest)) = text.split_at_checked(BEGINNING.len()) else { return false };
    let rest = match rest.strip_prefix(b".") {
        None => rest,
        Some(fraction) => match fraction.iter().position(|byte| !byte.is_ascii_digit()) {
            Some(end @ 1..=9) => &fraction[end..],
            _ => return false,
        },
    };
    let is_offset = match rest {
        b"Z" | b"z" => true,
        [b'+' | b'-', offset @ ..] => {
            let two = |tens: u8, ones: u8| (tens.is_ascii_digit() && ones.is_ascii_digit()).then_some((tens, ones));
            matches!(offset, [a, b, b':', c, d]
                if two(*a, *b).is_some_and(|hours| hours <= (b'2', b'3')) && two(*c, *d).is_some_and(|(tens, _)| tens <= b'5'))
        }
        _ => false,
    };
    is_offset && beginning.iter().zip(BEGINNING).all(fits)
}

/// "Never" is often written as the last second of the year 9999, which lies beyond jiff's instants.
fn in_the_last_hours(text: &str) -> Option<Timestamp> {
    let pieces = jiff::fmt::temporal::Pieces::parse(text).ok()?;
    let local = pieces.date().to_datetime(pieces.time()?);
    let ahead = jiff::SignedDuration::from_secs(pieces.to_numeric_offset()?.seconds().into());
    let at = Timestamp::from_utc(local.checked_sub(ahead).ok()?)?;
    (at.0 > jiff::Timestamp::MAX.as_microsecond()).then_some(at)
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time", "x-message": InvalidTimestamp.to_string() })
    }
}

/// Business time. Cheap to clone; clones move together.
#[derive(Clone)]
pub struct Clock(Arc<ClockSource>);

enum ClockSource {
    /// The machine's time plus an offset in microseconds, which only the test clock ever changes.
    System { offset: AtomicI64 },
    /// Stands still until it is set: for unit tests of rules.
    Frozen { at: AtomicI64 },
}

impl Clock {
    pub fn system() -> Self {
        Self(Arc::new(ClockSource::System { offset: AtomicI64::new(0) }))
    }

    pub fn frozen(at: Timestamp) -> Self {
        Self(Arc::new(ClockSource::Frozen { at: AtomicI64::new(at.0) }))
    }

    pub fn now(&self) -> Timestamp {
        match &*self.0 {
            ClockSource::System { offset } => {
                Timestamp::from_micros(system_micros().saturating_add(offset.load(Ordering::Acquire)))
            }
            ClockSource::Frozen { at } => Timestamp(at.load(Ordering::Acquire)),
        }
    }

    /// How far this clock runs ahead of the machine's; zero unless the test clock moved it.
    pub fn offset(&self) -> Duration {
        match &*self.0 {
            ClockSource::System { offset } => {
                Duration::from_micros(offset.load(Ordering::Acquire).try_into().unwrap_or(0))
            }
            ClockSource::Frozen { .. } => Duration::ZERO,
        }
    }

    /// Raises the offset to `offset`. Time never moves backwards: a smaller one changes nothing.
    pub fn raise_offset(&self, raised: Duration) {
        let micros = i64::try_from(raised.as_micros()).unwrap_or(i64::MAX);
        match &*self.0 {
            ClockSource::System { offset } => offset.fetch_max(micros, Ordering::AcqRel),
            ClockSource::Frozen { at } => at.load(Ordering::Acquire),
        };
    }

    /// Moves forward to `target`; a target in the past changes nothing.
    pub fn advance_to(&self, target: Timestamp) {
        match &*self.0 {
            ClockSource::System { offset } => {
                offset.fetch_max(target.0.saturating_sub(system_micros()), Ordering::AcqRel)
            }
            ClockSource::Frozen { at } => at.fetch_max(target.0, Ordering::AcqRel),
        };
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one home of the machine's wall clock")]
fn system_micros() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX)
}

/// Elapsed time that no test clock moves. All tickers of a process share one origin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ticker;

/// A moment on the [`Ticker`]'s scale, meaningful within this process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(Instant);

impl Ticker {
    #[expect(clippy::disallowed_methods, reason = "this is the one home of the monotonic clock")]
    pub fn now(self) -> Tick {
        Tick(Instant::now())
    }

    pub fn since(self, earlier: Tick) -> Duration {
        self.now().0.saturating_duration_since(earlier.0)
    }
}

impl Tick {
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.checked_add(duration).unwrap_or(self.0))
    }

    /// How far `self` lies after `earlier`; zero when it does not.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_go_out_with_milliseconds_and_come_in_with_any_offset() {
        let at: Timestamp = "2026-01-31T10:30:00.123456+01:00".parse().expect("valid");
        assert_eq!(at.to_string(), "2026-01-31T09:30:00.123Z");
        assert_eq!(at.as_micros() % 1_000, 456);
        assert_eq!(Timestamp::from_seconds(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn junk_is_no_timestamp() {
        for junk in [
            "",
            "tomorrow",
            "2026-01-31",
            "2026-01-31T09:30:00",
            "2026-01-31T09:30Z",
            "2026-01-31T09:30:00+24:00",
            "2026-01-31T09:30:00+01:60",
            "2026-01-31T09:30:00+0100",
            "2026-01-31T09:30:00.Z",
            "20260131T093000Z",
            "2026-01-31T09:30:00Z[UTC]",
            "1769851800",
        ] {
            assert_eq!(junk.parse::<Timestamp>(), Err(InvalidTimestamp), "{junk}");
        }
        for good in ["2026-01-31t09:30:00z", "2026-01-31 09:30:00.123456789+23:59", "2026-01-31T09:30:00-00:00"] {
            assert!(good.parse::<Timestamp>().is_ok(), "{good}");
        }
    }

    #[test]
    fn the_last_hours_of_9999_are_accepted() {
        let last = |text: &str| text.parse::<Timestamp>();
        let jiff_ends = Timestamp(jiff::Timestamp::MAX.as_microsecond());
        for text in
            ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z", "9999-12-30T22:00:01Z", "9999-12-31T13:59:59-10:00"]
        {
            assert!(last(text).is_ok_and(|at| at > jiff_ends), "{text}");
        }
        let never = "9999-12-31T23:59:59.000Z";
        assert_eq!(last("9999-12-31T23:59:59Z").expect("a time").to_string(), never);
        assert_eq!(last("9999-12-31T13:59:59-10:00").expect("a time").to_string(), never);
        assert_eq!(last("9999-12-31T23:59:59.999999Z"), Ok(Timestamp::MAX));
        assert!(last("9999-12-30T22:00:00Z").is_ok());
        for beyond in [
            "9999-12-31T23:59:59-00:01",
            "9999-12-31T24:00:00Z",
            "9999-12-31T23:59:59",
            "9999-12-31",
            "10000-01-01T00:00:00Z",
        ] {
            assert_eq!(last(beyond), Err(InvalidTimestamp), "{beyond}");
        }
    }

    #[test]
    fn extremes_can_still_be_written() {
        assert_eq!(Timestamp::from_micros(i64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Timestamp::from_micros(i64::MIN).to_string(), "0001-01-01T00:00:00.000Z");
    }

    #[test]
    fn clocks_only_move_forward() {
        let clock = Clock::frozen(Timestamp::from_seconds(100));
        clock.advance_to(Timestamp::from_seconds(50));
        assert_eq!(clock.now(), Timestamp::from_seconds(100));
        clock.advance_to(Timestamp::from_seconds(150));
        assert_eq!(clock.now(), Timestamp::from_seconds(150));

        let system = Clock::system();
        system.raise_offset(Duration::from_secs(3600));
        system.raise_offset(Duration::from_secs(60));
        assert_eq!(system.offset(), Duration::from_secs(3600));
    }
}
