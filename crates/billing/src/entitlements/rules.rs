//! What a workspace may use: one function of plan, overrides, subscription and usage. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Currency, Label, Money, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use store::text_enum;

use crate::{
    catalog::{
        Plan,
        plans::{Quota, QuotaPolicy},
    },
    subscriptions::{Agreement, Cycle, Period},
};

/// A workspace's entitlements by name.
pub type Entitlements = BTreeMap<String, bool>;

/// What the app grants one workspace instead of its plan's values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    pub entitlements: Entitlements,
    pub quotas: Vec<QuotaOverride>,
    pub until: Option<Timestamp>,
}

/// Another limit of a metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaOverride {
    #[schemars(with = "Label")]
    pub metric: String,
    #[schemars(range(min = 0, max = 9_007_199_254_740_991i64))]
    pub limit: i64,
    /// What a unit beyond a metered limit costs, in major units of the price's currency; by default what the plan says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub unit_amount: Option<Number>,
}

/// All that decides, usage apart.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    pub agreement: Option<Agreement>,
    /// The plan of the subscription; none when it was deleted after the subscription had ended.
    pub plan: Option<Plan>,
    pub overrides: Option<Overrides>,
}

text_enum! {
    /// What an entitlement or a limit comes from.
    wire pub enum DecidedBy {
        Plan = "plan",
        Override = "override",
        Status = "status",
        Gate = "gate",
        Quota = "quota",
    }
}

/// How much was used of each metric in the period.
pub type Usage = BTreeMap<String, i64>;

impl Terms {
    pub fn cycle(&self) -> Cycle {
        self.agreement.as_ref().map_or(Cycle::CALENDAR_MONTHS, Agreement::cycle)
    }

    pub fn period(&self, now: Timestamp) -> Period {
        self.cycle().at(now)
    }

    /// The overrides that still count.
    pub fn overrides(&self, now: Timestamp) -> Option<&Overrides> {
        self.overrides.as_ref().filter(|overrides| overrides.until.is_none_or(|until| until > now))
    }

    /// The plan's quotas with the workspace's own limits. A limit of a metric that the plan says nothing of is a cap that
    /// takes nothing away, or what comes before the units that its `unitAmount` is charged for.
    pub fn quotas(&self, now: Timestamp) -> Vec<Quota> {
        let mut quotas = self.plan.as_ref().map(|plan| plan.quotas.clone()).unwrap_or_default();
        for own in self.overrides(now).into_iter().flat_map(|overrides| &overrides.quotas) {
            let QuotaOverride { metric, limit, unit_amount } = own.clone();
            match quotas.iter_mut().find(|quota| quota.metric == metric) {
                Some(quota) => {
                    quota.limit = limit;
                    if unit_amount.is_some() {
                        quota.unit_amount = unit_amount;
                    }
                }
                None => {
                    let policy = if unit_amount.is_some() { QuotaPolicy::Metered } else { QuotaPolicy::Hard };
                    quotas.push(Quota { metric, limit, policy, entitlement: None, unit_amount });
                }
            }
        }
        quotas
    }

    pub fn quota(&self, metric: &str, now: Timestamp) -> Option<Quota> {
        self.quotas(now).into_iter().find(|quota| quota.metric == metric)
    }

    /// Whether a limit is the workspace's own.
    pub fn limit_is_overridden(&self, metric: &str, now: Timestamp) -> bool {
        self.overrides(now).is_some_and(|overrides| overrides.quotas.iter().any(|quota| quota.metric == metric))
    }

    /// The whole set.
    pub fn entitlements(&self, used: &Usage, now: Timestamp) -> Entitlements {
        let plan = self.plan.iter().filter(|_| self.agreement.is_some()).flat_map(|plan| plan.entitlements.keys());
        let own = self.overrides(now).into_iter().flat_map(|overrides| overrides.entitlements.keys());
        let names: BTreeSet<&String> = plan.chain(own).collect();
        names.into_iter().map(|name| (name.clone(), self.decide(name, used, now).0)).collect()
    }

    /// One entitlement, and what decides it: an override beats the plan's value and a linked quota, never status or gate.
    pub fn decide(&self, name: &str, used: &Usage, now: Timestamp) -> (bool, DecidedBy) {
        match &self.agreement {
            Some(agreement) if agreement.is_over() => return (false, DecidedBy::Status),
            Some(agreement) if agreement.gate_engaged => return (false, DecidedBy::Gate),
            _ => {}
        }
        if let Some(granted) = self.overrides(now).and_then(|overrides| overrides.entitlements.get(name)) {
            return (*granted, DecidedBy::Override);
        }
        if self.agreement.is_none() {
            return (false, DecidedBy::Status);
        }
        let granted = self.plan.as_ref().and_then(|plan| plan.entitlements.get(name)).copied().unwrap_or(false);
        if granted && self.takes_away(name, used, now) { (false, DecidedBy::Quota) } else { (granted, DecidedBy::Plan) }
    }

    /// What a period costs, with the units beyond metered limits; `None` where nothing is paid.
    pub fn cost(&self, used: &Usage, now: Timestamp) -> Option<Money> {
        let agreement = self.agreement.as_ref().filter(|agreement| !agreement.is_over())?;
        let price = agreement.bought.price?;
        let beyond = |quota: &Quota| quota.overage(used, price.amount.currency).map(|cost| cost.minor);
        let overage = self.quotas(now).iter().filter_map(beyond).fold(0i64, i64::saturating_add);
        Some(Money::from_minor(price.amount.minor.saturating_add(overage), price.amount.currency))
    }

    /// Whether a hard quota that is used up takes the entitlement away.
    fn takes_away(&self, name: &str, used: &Usage, now: Timestamp) -> bool {
        let linked = |quota: &Quota| {
            quota.policy == QuotaPolicy::Hard && quota.entitlement.as_deref() == Some(name) && quota.is_used_up(used)
        };
        self.quotas(now).iter().any(linked)
    }

    /// When time alone may change the set: the subscription's own moment, the overrides' end, and the end of a period in
    /// which a hard quota was used up.
    pub fn next_change(&self, used: &Usage, now: Timestamp) -> Option<Timestamp> {
        let own = self.agreement.as_ref().and_then(Agreement::due);
        let until = self.overrides(now).and_then(|overrides| overrides.until);
        let used_up = |quota: &Quota| {
            quota.policy == QuotaPolicy::Hard
                && quota.limit > 0
                && quota.entitlement.is_some()
                && quota.is_used_up(used)
        };
        let over = self.agreement.as_ref().is_some_and(Agreement::is_over);
        let renewed = (!over && self.quotas(now).iter().any(used_up)).then(|| self.period(now).end);
        own.into_iter().chain(until).chain(renewed).min()
    }
}

impl Quota {
    /// What units beyond a metered limit cost, if they cost anything.
    pub fn overage(&self, used: &Usage, currency: Currency) -> Option<Money> {
        let unit = self.unit_amount.as_ref().filter(|_| self.policy == QuotaPolicy::Metered)?;
        let units = used.get(&self.metric).copied().unwrap_or(0).saturating_sub(self.limit).max(0);
        Money::of_units(units, unit, currency)
    }

    /// A limit of 0 is reached at once.
    pub fn is_used_up(&self, used: &Usage) -> bool {
        used.get(&self.metric).copied().unwrap_or(0) >= self.limit
    }
}

/// The names whose value differs, those that came or went included.
pub fn changed(before: &Entitlements, after: &Entitlements) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names.into_iter().filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::subscriptions::{
        BoughtPlan, Purchase,
        rules::{Beginning, Command, begin, trial_end},
    };

    fn now() -> Timestamp {
        Timestamp::from_seconds(1_800_000_000)
    }

    fn quota(limit: i64, policy: QuotaPolicy) -> Quota {
        Quota { metric: "calls".into(), limit, policy, entitlement: Some("api".into()), unit_amount: None }
    }

    fn plan(quotas: Vec<Quota>) -> Plan {
        Plan {
            id: crate::catalog::PlanId::from_u128(1),
            key: "pro".into(),
            name: "Pro".into(),
            description: String::new(),
            trial: true,
            trial_days: Some(14),
            prices: vec![],
            entitlements: [("api".to_owned(), true), ("sso".to_owned(), false)].into(),
            quotas,
            created_at: now(),
            revision: 1,
        }
    }

    fn agreement(how: Beginning) -> Agreement {
        let plan = BoughtPlan { key: "pro".into(), name: "Pro".into(), free: false };
        begin(Purchase { plan, price: None }, how, now()).after
    }

    fn terms(agreement: Agreement, quotas: Vec<Quota>) -> Terms {
        Terms { agreement: Some(agreement), plan: Some(plan(quotas)), overrides: None }
    }

    fn used(count: i64) -> Usage {
        [("calls".to_owned(), count)].into()
    }

    #[test]
    fn without_a_subscription_there_is_nothing_but_overrides() {
        let mut terms = Terms { plan: Some(plan(vec![])), ..Terms::default() };
        assert!(terms.entitlements(&used(0), now()).is_empty());
        terms.overrides = Some(Overrides { entitlements: [("beta".to_owned(), true)].into(), ..Overrides::default() });
        assert_eq!(terms.entitlements(&used(0), now()), [("beta".to_owned(), true)].into());
    }

    #[test]
    fn a_hard_quota_takes_its_entitlement_away_at_the_limit_and_a_metered_one_does_not() {
        let active = || agreement(Beginning::Assigned);
        let hard = terms(active(), vec![quota(10, QuotaPolicy::Hard)]);
        assert_eq!(hard.decide("api", &used(9), now()), (true, DecidedBy::Plan));
        assert_eq!(hard.decide("api", &used(10), now()), (false, DecidedBy::Quota));
        assert_eq!(hard.next_change(&used(9), now()), None);
        assert_eq!(hard.next_change(&used(10), now()), Some(hard.period(now()).end));
        let metered = terms(active(), vec![quota(10, QuotaPolicy::Metered)]);
        assert_eq!(metered.decide("api", &used(99), now()), (true, DecidedBy::Plan));
        let none = terms(active(), vec![quota(0, QuotaPolicy::Hard)]);
        assert_eq!(none.decide("api", &Usage::new(), now()), (false, DecidedBy::Quota));
    }

    #[test]
    fn an_override_beats_plan_and_quota_but_neither_status_nor_gate() {
        let mut terms = terms(agreement(Beginning::Paid), vec![quota(10, QuotaPolicy::Hard)]);
        let granted = || [("api".to_owned(), true), ("sso".to_owned(), true), ("beta".to_owned(), false)].into();
        terms.overrides = Some(Overrides { entitlements: granted(), ..Overrides::default() });
        assert_eq!(terms.entitlements(&used(99), now()), granted());
        let failed = terms.agreement.clone().expect("one").step(&Command::FailRenewal, now()).after;
        terms.agreement = Some(failed.step(&Command::Exhaust, now()).after);
        assert_eq!(terms.decide("api", &used(0), now()), (false, DecidedBy::Gate));
        terms.agreement = Some(failed.step(&Command::EndAtProvider, now()).after);
        assert_eq!(terms.decide("api", &used(0), now()), (false, DecidedBy::Status));
        assert_eq!(terms.entitlements(&used(0), now()).len(), 3);
    }

    #[test]
    fn overrides_end_and_other_limits_count() {
        let mut terms =
            terms(agreement(Beginning::Trial { until: trial_end(now(), 14) }), vec![quota(10, QuotaPolicy::Hard)]);
        let until = now().plus(std::time::Duration::from_secs(60));
        let quotas = vec![
            QuotaOverride { metric: "calls".into(), limit: 100, unit_amount: None },
            QuotaOverride { metric: "seats".into(), limit: 5, unit_amount: None },
        ];
        terms.overrides = Some(Overrides { quotas, until: Some(until), ..Overrides::default() });
        assert_eq!(terms.quotas(now()).iter().map(|quota| quota.limit).collect::<Vec<_>>(), [100, 5]);
        assert_eq!(terms.next_change(&used(0), now()), Some(until));
        assert!(terms.decide("api", &used(50), now()).0);
        assert!(!terms.decide("api", &used(50), until).0);
        assert_eq!(terms.quotas(until).len(), 1);
    }

    proptest! {
        /// The nearest minor unit to the exact cost of the units beyond the limit, half of one upwards.
        #[test]
        fn overage_is_the_nearest_minor_unit(
            count in 0i64..1_000_000, limit in 0i64..1_000_000, digits in 0i64..1_000_000_000, places in 0u32..12,
            code in prop::sample::select(vec!["JPY", "EUR", "KWD"]),
        ) {
            let unit_amount = Some(format!("{digits}e-{places}").parse().expect("a number"));
            let quota = Quota { unit_amount, ..quota(limit, QuotaPolicy::Metered) };
            let currency: Currency = code.parse().expect("a currency");
            let minor = i128::from(quota.overage(&used(count), currency).expect("a price").minor);
            let beyond = if count > limit { i128::from(count - limit) } else { 0 };
            let (one, exact) = (10i128.pow(places), beyond * i128::from(digits) * 10i128.pow(currency.digits()));
            if minor < 1 << 52 {
                prop_assert!((-one..one).contains(&(2 * exact - 2 * minor * one)), "{minor}");
            } else {
                prop_assert!(exact >= one << 52);
            }
            prop_assert_eq!(Quota { policy: QuotaPolicy::Hard, ..quota }.overage(&used(count), currency), None);
        }

        #[test]
        fn no_access_means_that_every_name_is_false(count in 0i64..20, limit in 0i64..20, over: bool, granted: bool) {
            let mut gone = agreement(Beginning::Paid).step(&Command::FailRenewal, now()).after;
            gone = gone.step(if over { &Command::EndAtProvider } else { &Command::Exhaust }, now()).after;
            let mut terms = terms(gone, vec![quota(limit, QuotaPolicy::Hard)]);
            let entitlements = [("api".to_owned(), granted), ("more".to_owned(), granted)].into();
            terms.overrides = Some(Overrides { entitlements, ..Overrides::default() });
            let set = terms.entitlements(&used(count), now());
            prop_assert_eq!(set.keys().map(String::as_str).collect::<Vec<_>>(), ["api", "more", "sso"]);
            prop_assert!(set.values().all(|value| !value));
        }

        #[test]
        fn more_usage_never_gives_more(count in 0i64..40, more in 0i64..40, limit in 0i64..40) {
            let terms = terms(agreement(Beginning::Assigned), vec![quota(limit, QuotaPolicy::Hard)]);
            let (before, after) = (terms.decide("api", &used(count), now()).0, terms.decide("api", &used(count + more), now()).0);
            prop_assert!(before || !after);
            prop_assert_eq!(before, count < limit);
        }
    }
}
