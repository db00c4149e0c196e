//! Periods against a calendar that is counted out month by month.

use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a timestamp")
}

fn shown(cycle: Cycle, instant: &str) -> (String, String) {
    let Period { start, end } = cycle.at(at(instant));
    (start.to_string(), end.to_string())
}

#[test]
fn the_31st_becomes_the_last_day_of_shorter_months_and_comes_back() {
    let cycle = Cycle { anchor: at("2026-01-31T10:00:00Z"), interval: Interval::Month };
    let (january, february) = ("2026-01-31T10:00:00.000Z".to_owned(), "2026-02-28T10:00:00.000Z".to_owned());
    assert_eq!(shown(cycle, "2026-01-31T10:00:00Z"), (january, february.clone()));
    assert_eq!(shown(cycle, "2026-03-01T00:00:00Z"), (february, "2026-03-31T10:00:00.000Z".to_owned()));
    let before = ("2025-12-31T10:00:00.000Z".to_owned(), "2026-01-31T10:00:00.000Z".to_owned());
    assert_eq!(shown(cycle, "2026-01-31T09:59:59Z"), before);
}

#[test]
fn a_year_from_the_29th_of_february_ends_on_the_28th_and_comes_back() {
    let cycle = Cycle { anchor: at("2024-02-29T10:00:00Z"), interval: Interval::Year };
    let ends: Vec<String> = (2024..2029).map(|year| shown(cycle, &format!("{year}-06-01T00:00:00Z")).1).collect();
    let expected = ["2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29", "2029-02-28"];
    assert_eq!(ends, expected.map(|day| format!("{day}T10:00:00.000Z")));
}

#[test]
fn without_a_subscription_periods_are_calendar_months() {
    let month = ("2026-02-01T00:00:00.000Z".to_owned(), "2026-03-01T00:00:00.000Z".to_owned());
    assert_eq!(shown(Cycle::CALENDAR_MONTHS, "2026-02-28T23:59:59.999Z"), month);
}

const MICROS_OF_A_DAY: i64 = 86_400_000_000;

/// A day since 1970 and a time of that day.
#[derive(Clone, Copy, Debug)]
struct Moment {
    year: i64,
    month: i64,
    day: i64,
    micros: i64,
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Moment {
    fn timestamp(self) -> Timestamp {
        let months = (1970..self.year).flat_map(|year| (1..=12).map(move |month| (year, month)));
        let months = months.chain((1..self.month).map(|month| (self.year, month)));
        let days: i64 = months.map(|(year, month)| month_length(year, month)).sum::<i64>() + self.day - 1;
        Timestamp::from_micros(days * MICROS_OF_A_DAY + self.micros)
    }

    /// Turns the pages of the calendar one by one.
    fn months_later(self, months: i64) -> Self {
        let (mut year, mut month) = (self.year, self.month);
        for _ in 0..months.abs() {
            month += months.signum();
            if !(1..=12).contains(&month) {
                year += months.signum();
                month = if month == 0 { 12 } else { 1 };
            }
        }
        Self { year, month, day: self.day.min(month_length(year, month)), ..self }
    }

    fn begins(self, interval: Interval, number: i64) -> Timestamp {
        let days = |days: i64| Timestamp::from_micros(self.timestamp().as_micros() + days * MICROS_OF_A_DAY);
        match interval {
            Interval::Day => days(number),
            Interval::Week => days(7 * number),
            Interval::Month => self.months_later(number).timestamp(),
            Interval::Year => self.months_later(12 * number).timestamp(),
        }
    }
}

/// Mostly the ends of months, and the day that few years have.
fn moments() -> impl Strategy<Value = Moment> {
    let day = prop_oneof![3 => 28i64..=31, 1 => 1i64..=31];
    let month = prop_oneof![1 => Just(2i64), 2 => 1i64..=12];
    (2010i64..2110, month, day, 0..MICROS_OF_A_DAY).prop_map(|(year, month, day, micros)| Moment {
        year,
        month,
        day: day.min(month_length(year, month)),
        micros,
    })
}

/// How far within a period an instant lies, in parts of its length; its very ends are tried most.
fn places() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0f64..1.0]
}

proptest! {
    #[test]
    fn periods_are_those_of_the_calendar(
        anchor in moments(), interval in 0usize..4, number in prop_oneof![-30i64..30, 0i64..150], place in places(),
    ) {
        let interval = Interval::ALL[interval];
        let (start, end) = (anchor.begins(interval, number), anchor.begins(interval, number + 1));
        #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a place within a period")]
        let within = (end.since(start).as_micros() as f64 * place) as i64;
        let instant = Timestamp::from_micros((start.as_micros() + within).min(end.as_micros() - 1));
        let cycle = Cycle { anchor: anchor.timestamp(), interval };
        prop_assert_eq!(cycle.at(instant), Period { start, end });
    }

    #[test]
    fn every_instant_lies_in_one_period_and_the_next_begins_where_it_ends(
        anchor in 0i64..4_000_000_000, instant in 0i64..8_000_000_000, interval in 0usize..4,
    ) {
        let cycle = Cycle { anchor: Timestamp::from_seconds(anchor), interval: Interval::ALL[interval] };
        let instant = Timestamp::from_seconds(instant);
        let period = cycle.at(instant);
        prop_assert!(period.start <= instant && instant < period.end);
        prop_assert_eq!(cycle.at(period.start), period);
        prop_assert_eq!(cycle.at(period.end).start, period.end);
    }

    #[test]
    fn the_end_of_the_calendar_has_a_period_too(interval in 0usize..4) {
        let cycle = Cycle { anchor: Timestamp::from_seconds(0), interval: Interval::ALL[interval] };
        prop_assert!(cycle.at(Timestamp::MAX).start <= Timestamp::MAX);
    }
}
