//! One thing that somebody said, or that evaluation saw, about the use of a flag.

use kernel::{AppId, Timestamp};

use crate::model::{FlagKey, ValueType};

const DAY: i64 = 86_400;
/// How many days counts are kept.
pub(super) const DAYS: i64 = 90;
/// A longer path of a file is not kept. In bytes it stays far below what an index takes.
const LONGEST_FILE: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct UsageReport {
    pub(super) app: AppId,
    pub(super) key: String,
    pub(super) told: Told,
}

#[derive(Clone, Debug)]
pub(super) enum Told {
    /// A key that no flag has was asked for.
    Sighted(Sighting),
    Used(Timestamp),
    Evaluated {
        variant: i32,
        day: i64,
        count: i64,
    },
    CalledFrom {
        file: String,
        line: i64,
        at: Timestamp,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sighting {
    pub(super) value_type: Option<ValueType>,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) count: i64,
}

impl UsageReport {
    /// Keys that could not be a flag's are not worth listing.
    pub(super) fn sighted(app: AppId, key: &str, value_type: Option<ValueType>, now: Timestamp) -> Option<Self> {
        let told = Told::Sighted(Sighting { value_type, first: now, last: now, count: 1 });
        FlagKey::problem(key).is_none().then(|| Self { app, key: key.to_owned(), told })
    }

    pub(super) fn evaluated(app: AppId, key: &str, variant: i32, at: Timestamp, count: i64) -> Self {
        Self { app, key: key.to_owned(), told: Told::Evaluated { variant, day: day(at), count } }
    }

    pub(super) fn called_from(app: AppId, key: &str, file: &str, line: i64, at: Timestamp) -> Option<Self> {
        is_short(file).then(|| Self {
            app,
            key: key.to_owned(),
            told: Told::CalledFrom { file: file.to_owned(), line, at },
        })
    }

    /// How much writing it takes: a row, and, for some, looking whether older ones must go.
    pub(super) const fn weight(&self) -> usize {
        match self.told {
            Told::Used(_) | Told::Evaluated { .. } => 1,
            Told::Sighted(_) | Told::CalledFrom { .. } => 2,
        }
    }
}

/// Whether a call site in this file is kept.
pub(super) fn is_short(file: &str) -> bool {
    file.chars().count() <= LONGEST_FILE
}

pub(super) fn day(at: Timestamp) -> i64 {
    at.as_seconds().div_euclid(DAY)
}

/// Whether counts of this instant are kept no longer.
pub(super) fn is_forgotten(at: Timestamp, now: Timestamp) -> bool {
    day(at) < first_day(now)
}

/// The first day whose counts are kept.
pub(super) fn first_day(now: Timestamp) -> i64 {
    day(now) - DAYS
}
