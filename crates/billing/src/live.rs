//! What rules of flags may look at of a workspace's billing, as it is at this instant.

use std::collections::BTreeMap;

use kernel::{AppId, Result, TenantId};
use store::Tx;

use crate::{
    entitlements::{self, Entitlements},
    subscriptions::Status,
    usage,
};

/// A workspace's billing as of now.
#[derive(Clone, Debug, Default)]
pub struct LiveBilling {
    pub entitlements: Entitlements,
    pub subscription: Option<LiveSubscription>,
    /// Every metric that was used in the present period or has a quota; empty unless it was asked for.
    pub usage: BTreeMap<String, LiveUsage>,
}

#[derive(Clone, Copy, Debug)]
pub struct LiveSubscription {
    pub status: Status,
    pub trial: bool,
    pub gate_engaged: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct LiveUsage {
    pub used: i64,
    pub limit: Option<i64>,
}

impl LiveUsage {
    /// How much of the limit is used, in percent; a limit of 0 is used up from the start.
    pub fn percent(self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "counters and limits fit into the 53 bits of a double")]
        self.limit.map(|limit| if limit == 0 { 100.0 } else { self.used as f64 * 100.0 / limit as f64 })
    }
}

/// Usage only when it is asked for.
pub fn of(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, with_usage: bool) -> Result<LiveBilling> {
    let terms = entitlements::terms(tx, app, tenant)?;
    let now = tx.now();
    let agreement = terms.agreement.as_ref();
    let mut live = LiveBilling {
        entitlements: entitlements::get(tx, app, tenant)?,
        subscription: agreement.map(|agreement| LiveSubscription {
            status: agreement.status(),
            trial: agreement.trial_until().is_some_and(|until| until > now),
            gate_engaged: agreement.gate_engaged,
        }),
        usage: BTreeMap::new(),
    };
    if with_usage {
        let used = usage::used(tx, app, tenant, terms.period(now))?;
        live.usage = used.into_iter().map(|(metric, used)| (metric, LiveUsage { used, limit: None })).collect();
        for quota in terms.quotas(now) {
            let entry = live.usage.entry(quota.metric).or_insert(LiveUsage { used: 0, limit: None });
            entry.limit = Some(quota.limit);
        }
    }
    Ok(live)
}
