use std::{cell::Cell, collections::HashSet};

use kernel::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::PlanId, *};

fn ids() -> impl Fn() -> PriceId {
    let next = Cell::new(100);
    move || PriceId::from_u128(next.replace(next.get() + 1))
}

fn read<T: serde::de::DeserializeOwned + schemars::JsonSchema + Validate + 'static>(body: &Value) -> Result<T> {
    web::from_json(body.to_string().as_bytes())
}

fn refused(body: &Value) -> Vec<String> {
    let error = read::<NewPlan>(body).expect_err("is refused");
    error.details().iter().map(|problem| problem.field.clone()).collect()
}

fn plan(trial: bool, trial_days: Option<u32>) -> Plan {
    Plan {
        id: PlanId::from_u128(1),
        key: "pro".into(),
        name: "Pro".into(),
        description: "Words".into(),
        trial,
        trial_days,
        prices: vec![Price {
            id: PriceId::from_u128(1),
            amount: Money::from_minor(2_990, "EUR".parse().expect("a currency")),
            interval: Interval::Month,
        }],
        entitlements: BTreeMap::from([("reports".into(), true)]),
        quotas: Vec::new(),
        created_at: Timestamp::from_micros(0),
        revision: 1,
    }
}

fn change(body: &Value) -> PlanChange {
    read(body).expect("a valid change")
}

#[test]
fn every_wrong_member_is_named() {
    let body = json!({
        "key": "two words",
        "name": " ",
        "trial": true,
        "prices": [
            { "amount": -1, "currency": "EUR", "recurrenceInterval": "month" },
            { "amount": 1.234, "currency": "EUR", "recurrenceInterval": "year" },
            { "amount": 0.5, "currency": "JPY", "recurrenceInterval": "year" },
            { "amount": 3, "currency": "eur", "recurrenceInterval": "month" },
        ],
        "entitlements": { " ": true },
        "quotas": [
            { "metric": "calls", "limit": -1, "policy": "hard" },
            { "metric": "calls", "limit": 1, "policy": "metered", "entitlement": "" },
        ],
    });
    let expected = [
        "key",
        "name",
        "prices[0].amount",
        "entitlements. ",
        "quotas[0].limit",
        "quotas[1].entitlement",
        "trialDays",
        "prices[1].amount",
        "prices[2].amount",
        "prices[3]",
        "quotas[1].metric",
    ];
    assert_eq!(refused(&body), expected);
}

#[test]
fn types_are_checked_with_their_place() {
    let with_price = |price: Value| json!({ "key": "a", "name": "A", "prices": [price] });
    for (price, field) in [
        (json!({ "amount": "1", "currency": "EUR", "recurrenceInterval": "month" }), "prices[0].amount"),
        (json!({ "amount": 1, "currency": "EURO", "recurrenceInterval": "month" }), "prices[0].currency"),
        (json!({ "amount": 1, "currency": "EUR", "recurrenceInterval": "decade" }), "prices[0].recurrenceInterval"),
        (json!({ "currency": "EUR", "recurrenceInterval": "month" }), "prices[0].amount"),
    ] {
        assert_eq!(refused(&with_price(price)), [field]);
    }
    assert_eq!(refused(&json!({ "key": "a", "name": "A" })), ["prices"]);
    assert_eq!(refused(&json!({ "key": "a", "name": "A", "prices": [], "trialDays": 3651 })), ["trialDays"]);
}

#[test]
fn a_plan_without_a_trial_may_say_zero_days() {
    let body = json!({ "key": "a", "name": "A", "prices": [], "trial": false, "trialDays": 0 });
    assert!(read::<NewPlan>(&body).is_ok());
}

#[test]
fn a_partial_change_keeps_the_trial_whole() {
    let changed = |plan: Plan, body: Value| change(&body).applied_to(plan, ids());
    assert!(changed(plan(false, None), json!({ "trial": true })).is_err());
    assert!(changed(plan(false, Some(0)), json!({ "trial": true })).is_err());
    assert!(changed(plan(false, Some(7)), json!({ "trial": true })).is_ok());
    assert!(changed(plan(true, Some(7)), json!({ "trialDays": null })).is_err());
    assert!(changed(plan(true, Some(7)), json!({ "trialDays": null, "trial": false })).is_ok());
}

#[test]
fn a_change_keeps_what_it_does_not_name_and_null_clears() {
    assert_eq!(change(&json!({})).applied_to(plan(true, Some(7)), ids()).expect("fits"), plan(true, Some(7)));
    let body = json!({ "description": null, "entitlements": null, "quotas": null, "id": "plan_x", "unknown": 1 });
    let changed = change(&body).applied_to(plan(true, Some(7)), ids()).expect("fits");
    assert_eq!((changed.description.as_str(), changed.entitlements.len(), changed.key.as_str()), ("", 0, "pro"));
    for (member, _) in [("key", 0), ("name", 0), ("trial", 0), ("prices", 0)] {
        assert!(read::<PlanChange>(&json!({ member: null })).is_err(), "{member}");
    }
}

#[test]
fn the_first_plans_are_valid_and_one_of_them_is_free() {
    for plan in first_plans() {
        let mut problems = Problems::new();
        plan.validate(&mut problems);
        problems.finish().expect("a valid plan");
    }
    assert_eq!(first_plans().map(|plan| plan.prices.is_empty()), [false, true]);
}

fn a_price() -> impl Strategy<Value = NewPrice> {
    let currencies = prop::sample::select(vec!["EUR", "USD", "JPY"]);
    (0u32..4, currencies, prop::sample::select(Interval::ALL.to_vec())).prop_map(|(amount, currency, interval)| {
        NewPrice {
            amount: amount.into(),
            currency: currency.parse().expect("a currency"),
            recurrence_interval: interval,
        }
    })
}

proptest! {
    /// Whatever a plan's prices were, those that stay the same keep their id and no id is given twice.
    #[test]
    fn unchanged_prices_keep_their_ids(before in prop::collection::vec(a_price(), 0..8), after in prop::collection::vec(a_price(), 0..8)) {
        let distinct = |offered: Vec<NewPrice>| {
            let mut seen = HashSet::new();
            offered.into_iter().filter(|price| seen.insert((price.currency, price.recurrence_interval))).collect::<Vec<_>>()
        };
        let (before, after, new_id) = (distinct(before), distinct(after), ids());
        let first = priced(&[], &before, &new_id).expect("valid prices");
        let second = priced(&first, &after, &new_id).expect("valid prices");
        prop_assert_eq!(second.len(), after.len());
        let kept: HashSet<PriceId> = second.iter().map(|price| price.id).collect();
        prop_assert_eq!(kept.len(), second.len());
        for price in &second {
            let same = first.iter().find(|old| old.amount == price.amount && old.interval == price.interval);
            prop_assert_eq!(same.map(|old| old.id), first.iter().find(|old| old.id == price.id).map(|old| old.id));
        }
    }
}
