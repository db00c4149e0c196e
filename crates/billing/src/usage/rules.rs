//! How usage stands against a quota, and which events are taken. Pure.

use std::time::Duration;

use kernel::{Label, TenantId, Timestamp, text_types};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::text_enum;
use web::Validate;

use crate::catalog::plans::{Quota, QuotaPolicy};

/// The largest whole number that every JSON reader holds exactly; a counter stops there.
pub const MAX_VALUE: i64 = 9_007_199_254_740_991;
/// How far back an event may lie, and how far ahead.
const LATE: Duration = Duration::from_hours(35 * 24);
const EARLY: Duration = Duration::from_secs(300);

text_types! {
    /// What makes an event count once, however often it is sent.
    IdempotencyKey {
        "minLength": 1,
        "maxLength": 256,
        "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$",
        "x-message": "must not contain control characters",
    }
}

/// The body of `POST /usage/ingest`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewUsage {
    pub metric: Label,
    /// 1 unless given.
    #[schemars(range(min = 1, max = MAX_VALUE))]
    pub value: Option<i64>,
    /// An event with the same key as an earlier one of the workspace is not counted again.
    pub idempotency_key: Option<IdempotencyKey>,
    /// When it happened, at most 35 days ago: now unless given.
    pub timestamp: Option<Timestamp>,
}

impl Validate for NewUsage {}

/// An event of a batch.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchedUsage {
    pub metric: Label,
    /// 1 unless given.
    #[schemars(range(min = 1, max = MAX_VALUE))]
    pub value: Option<i64>,
    pub idempotency_key: Option<IdempotencyKey>,
    pub timestamp: Option<Timestamp>,
    /// With a key: the workspace, which `x-tenant-id` must not contradict.
    pub workspace_id: Option<TenantId>,
}

impl Validate for BatchedUsage {}

/// Whether an event may lie there.
pub fn is_in_time(at: Timestamp, now: Timestamp) -> bool {
    at >= now.minus(LATE) && at <= now.plus(EARLY)
}

/// What to say of one that may not.
pub const OUT_OF_TIME: &str = "must lie at most 35 days back and 5 minutes ahead";

text_enum! {
    /// `approaching` from 80 % of the limit, `critical` from 95 %.
    wire pub enum WarningLevel {
        Approaching = "approaching",
        Critical = "critical",
    }
}

fn warning(used: i64, limit: i64) -> Option<WarningLevel> {
    let (used, limit) = (i128::from(used) * 100, i128::from(limit));
    if used >= limit * 95 {
        Some(WarningLevel::Critical)
    } else if used >= limit * 80 {
        Some(WarningLevel::Approaching)
    } else {
        None
    }
}

/// What is left; nothing less than nothing where the quota is a cap.
fn remaining(quota: &Quota, used: i64) -> i64 {
    let left = quota.limit.saturating_sub(used);
    if quota.policy == QuotaPolicy::Hard { left.max(0) } else { left }
}

/// How a metric stands against its quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaSnapshot {
    pub metric: String,
    pub used: i64,
    pub limit: i64,
    /// Negative beyond a metered limit.
    pub remaining: i64,
    pub warning_level: Option<WarningLevel>,
    pub policy: QuotaPolicy,
}

impl QuotaSnapshot {
    pub fn of(quota: &Quota, used: i64) -> Self {
        Self {
            metric: quota.metric.clone(),
            used,
            limit: quota.limit,
            remaining: remaining(quota, used),
            warning_level: warning(used, quota.limit),
            policy: quota.policy,
        }
    }
}

/// What a workspace used in the present period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageSnapshot {
    pub workspace_id: TenantId,
    pub period_start: Timestamp,
    pub period_end: Timestamp,
    /// By name.
    pub metrics: Vec<MetricUsage>,
}

/// A metric in the present period. `limit`, `remaining`, `warningLevel` and `policy` are there when it has a quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricUsage {
    pub metric: String,
    pub used: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<WarningLevel>")]
    pub warning_level: Option<Option<WarningLevel>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<QuotaPolicy>,
    pub last_synced_at: Option<Timestamp>,
    /// `ok`, `failed`, or `null` before the first.
    pub last_sync_status: Option<String>,
    pub last_sync_error: Option<String>,
    #[serde(skip)]
    pub is_gauge: bool,
}

impl MetricUsage {
    pub fn unused(metric: &str) -> Self {
        Self {
            metric: metric.to_owned(),
            used: 0,
            limit: None,
            remaining: None,
            warning_level: None,
            policy: None,
            last_synced_at: None,
            last_sync_status: None,
            last_sync_error: None,
            is_gauge: false,
        }
    }

    pub fn has_quota(&self) -> bool {
        self.limit.is_some()
    }

    pub fn measure(&mut self, quota: &Quota) {
        let snapshot = QuotaSnapshot::of(quota, self.used);
        self.limit = Some(snapshot.limit);
        self.remaining = Some(snapshot.remaining);
        self.warning_level = Some(snapshot.warning_level);
        self.policy = Some(snapshot.policy);
    }

    /// Against its quota, if it has one.
    pub fn quota(&self) -> Option<QuotaSnapshot> {
        Some(QuotaSnapshot {
            metric: self.metric.clone(),
            used: self.used,
            limit: self.limit?,
            remaining: self.remaining?,
            warning_level: self.warning_level?,
            policy: self.policy?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quota(limit: i64, policy: QuotaPolicy) -> Quota {
        Quota { metric: "calls".into(), limit, policy, entitlement: None, unit_amount: None }
    }

    #[test]
    fn warnings_begin_at_80_and_95_percent() {
        let level = |used| warning(used, 1_000);
        assert_eq!([level(0), level(799)], [None; 2]);
        assert_eq!([level(800), level(949)], [Some(WarningLevel::Approaching); 2]);
        assert_eq!([level(950), level(1_000), level(5_000)], [Some(WarningLevel::Critical); 3]);
        assert_eq!(warning(0, 0), Some(WarningLevel::Critical));
        assert_eq!([warning(79, 100), warning(80, 100)], [None, Some(WarningLevel::Approaching)]);
    }

    #[test]
    fn what_remains_of_a_cap_stops_at_nothing() {
        assert_eq!(QuotaSnapshot::of(&quota(10, QuotaPolicy::Hard), 15).remaining, 0);
        assert_eq!(QuotaSnapshot::of(&quota(10, QuotaPolicy::Metered), 15).remaining, -5);
    }

    #[test]
    fn events_lie_at_most_35_days_back_and_5_minutes_ahead() {
        let now = Timestamp::from_seconds(1_800_000_000);
        assert!(is_in_time(now.minus(LATE), now) && is_in_time(now.plus(EARLY), now));
        let second = Duration::from_secs(1);
        assert!(!is_in_time(now.minus(LATE + second), now) && !is_in_time(now.plus(EARLY + second), now));
    }

    proptest! {
        #[test]
        fn nothing_overflows_and_a_used_up_quota_is_critical(used in 0..=MAX_VALUE, limit in 0..=MAX_VALUE, hard: bool) {
            let quota = quota(limit, if hard { QuotaPolicy::Hard } else { QuotaPolicy::Metered });
            let snapshot = QuotaSnapshot::of(&quota, used);
            prop_assert!(used < limit || snapshot.warning_level == Some(WarningLevel::Critical));
            prop_assert!(!hard || snapshot.remaining >= 0);
            prop_assert!(snapshot.remaining <= limit);
        }
    }
}
