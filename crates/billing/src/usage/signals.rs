//! What streams are told of usage: the newest per workspace and metric, at most once a second, perhaps never. Whoever needs
//! every event reads the counters.

use std::time::Duration;

use kernel::{AppId, TenantId};
use serde::{Deserialize, Serialize};
use spine::Lossy;
use store::Db;

use super::QuotaSnapshot;

/// The shortest time between two signals of one metric.
const PACE: Duration = Duration::from_secs(1);

/// Usage was recorded, in the present period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageSignal {
    pub app: AppId,
    pub tenant: TenantId,
    pub metric: String,
    /// What was recorded since the last signal.
    pub value: i64,
    /// How much that makes in the period.
    pub used: i64,
    /// How that stands against the quota, if there is one.
    pub quota: Option<QuotaSnapshot>,
}

pub type UsageSignals = Lossy<UsageSignal>;

/// Opens the channel; once per process.
pub(crate) fn open(db: &Db) -> UsageSignals {
    Lossy::open(db, "usage", PACE)
}

impl UsageSignal {
    /// Call it once what it tells has committed.
    pub(crate) fn send(self, to: &UsageSignals) {
        to.send_merged(format!("{}:{}", self.tenant, self.metric), self, |older, newer| {
            let value = older.value.saturating_add(newer.value);
            *older = Self { value, ..newer };
        });
    }
}
