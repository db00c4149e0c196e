//! What holds for every rule and every context.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Attributes, Context, Flag, Groups, OnDemand, Reason, Resolved, SentContext, evaluate};
use crate::model::{Definition, FlagId};

fn compile(definition: &Value) -> (Flag, Attributes) {
    let mut whole = json!({ "key": "f", "description": "", "state": "on-with-rule", "valueType": "string",
                            "offValue": "off", "onValue": "on" });
    for (name, value) in definition.as_object().expect("an object") {
        whole[name] = value.clone();
    }
    let definition: Definition = serde_json::from_value(whole).expect("a definition");
    let mut attributes = Attributes::default();
    let flag = Flag::compile(FlagId::from_u128(1), &definition, &Groups::new(), &mut attributes);
    (flag, attributes)
}

/// The answer's value and variant, the same whichever way attributes are found.
fn value(compiled: &(Flag, Attributes), context: &Context<'_>) -> (Value, i32, Reason) {
    let (flag, attributes) = compiled;
    let identity = context.identity();
    let verdict = evaluate(flag, &OnDemand { attributes, context }, identity.as_deref());
    let resolved = evaluate(flag, &Resolved::new(attributes, context), identity.as_deref());
    assert_eq!(verdict.reason, resolved.reason);
    assert_eq!(verdict.outcome.body, resolved.outcome.body);
    let value = verdict.outcome.value().map_or(Value::Null, |value| serde_json::from_slice(value).expect("JSON"));
    (value, verdict.outcome.variant, verdict.reason)
}

fn user(id: &str) -> String {
    json!({ "user": { "id": id } }).to_string()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z".prop_map(Value::from),
        "v?[0-9]{1,3}(\\.[0-9]{1,3}){0,3}(-[a-z0-9.]{0,6})?(\\+[a-z]{0,3})?".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let name = prop_oneof![
            prop::sample::select(vec![
                "user",
                "tenant",
                "org",
                "custom",
                "device",
                "context",
                "id",
                "a",
                "a.b",
                "targetingKey"
            ])
            .prop_map(str::to_owned),
            "\\PC{0,4}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..20).prop_map(|members| members.into_iter().collect::<Value>()),
        ]
    })
}

fn any_condition() -> impl Strategy<Value = Value> {
    let operators = vec![
        "eq",
        "neq",
        "contains",
        "not_contains",
        "in",
        "not_in",
        "starts_with",
        "ends_with",
        "gt",
        "gte",
        "lt",
        "lte",
        "before",
        "after",
        "matches",
        "semver_gt",
        "semver_lt",
        "semver_eq",
        "exists",
        "not_exists",
    ];
    let attributes = vec!["user.id", "user.a", "tenant.a.b", "custom.a", "custom.a.b", "device.key", "custom."];
    let values = prop::collection::vec(
        prop_oneof![
            any_json(),
            Just(json!("1.2.3")),
            Just(json!("2026-01-01T00:00:00Z")),
            Just(json!("^a")),
            Just(json!(3)),
        ],
        0..4,
    );
    (prop::sample::select(attributes), prop::sample::select(operators), values).prop_map(
        |(attribute, operator, values)| json!({ "attribute": attribute, "operator": operator, "values": values }),
    )
}

proptest! {
    #[test]
    fn no_context_and_no_rule_makes_it_panic(
        conditions in prop::collection::vec(any_condition(), 0..4),
        rollout in 0.0..=100.0,
        context in any_json(),
    ) {
        let rule = json!({ "branches": [{ "conditions": conditions, "returnValue": "x" }], "rolloutPct": rollout });
        let compiled = compile(&json!({ "rule": rule }));
        let body = context.to_string();
        if let Ok(sent) = SentContext::read(body.as_bytes()) {
            value(&compiled, &sent.context);
        }
        if let Ok(sent) = SentContext::read_open_feature(body.as_bytes()) {
            value(&compiled, &sent.context);
        }
    }

    #[test]
    fn the_first_branch_that_matches_wins(matching in prop::collection::vec(any::<bool>(), 0..12)) {
        let branch = |(index, matches): (usize, &bool)| {
            let operator = if *matches { "exists" } else { "not_exists" };
            json!({ "conditions": [{ "attribute": "user.id", "operator": operator }], "returnValue": index.to_string() })
        };
        let branches: Vec<Value> = matching.iter().enumerate().map(branch).collect();
        let compiled = compile(&json!({ "rule": { "branches": branches } }));
        let body = user("u");
        let (value, variant, _) = value(&compiled, &SentContext::read(body.as_bytes()).unwrap().context);
        match matching.iter().position(|matches| *matches) {
            Some(first) => prop_assert_eq!((value, variant), (json!(first.to_string()), first as i32)),
            None => prop_assert_eq!((value, variant), (json!("on"), -1)),
        }
    }

    #[test]
    fn raising_a_percentage_never_removes_anyone(low in 0.0..=100.0_f64, more in 0.0..=100.0_f64, id in "\\PC{1,20}") {
        let at = |percentage: f64| {
            let branches = json!([{ "conditions": [], "returnValue": "in" }]);
            let compiled = compile(&json!({ "rule": { "branches": branches, "rolloutPct": percentage } }));
            let body = user(&id);
            value(&compiled, &SentContext::read(body.as_bytes()).unwrap().context).0 == json!("in")
        };
        prop_assert!(!at(low) || at((low + more).min(100.0)));
        prop_assert!(at(100.0) && !at(0.0));
    }
}

#[test]
fn ten_thousand_identities_at_twenty_percent_are_evenly_spread() {
    for key in ["f", "checkout.v2", "another-flag"] {
        let branches = json!([{ "conditions": [], "returnValue": "in" }]);
        let compiled = compile(&json!({ "key": key, "rule": { "branches": branches, "rolloutPct": 20 } }));
        let inside = (0..10_000)
            .filter(|number| {
                let body = user(&format!("user_{number}"));
                value(&compiled, &SentContext::read(body.as_bytes()).unwrap().context).0 == json!("in")
            })
            .count();
        // Four standard deviations of a binomial distribution: 4 * sqrt(10000 * 0.2 * 0.8) = 160.
        assert!((1_840..=2_160).contains(&inside), "{key}: {inside}");
    }
}

#[test]
fn without_an_identity_only_a_full_rollout_takes_in() {
    let at = |percentage: u32| {
        let branches = json!([{ "conditions": [], "returnValue": "in" }]);
        let compiled =
            compile(&json!({ "rule": { "branches": branches, "rolloutPct": percentage, "otherwiseValue": "out" } }));
        value(&compiled, &Context::default())
    };
    assert_eq!(at(99), (json!("out"), -1, Reason::OutsideRollout));
    assert_eq!(at(100), (json!("in"), 0, Reason::Matched { split: false }));
}

#[test]
fn values_and_enabled_follow_the_state_and_the_type() {
    let body = user("u");
    let context = SentContext::read(body.as_bytes()).unwrap().context;
    let rule = json!({ "branches": [{ "conditions": [], "returnValue": "b" }] });
    let no_match = json!({ "branches": [{ "conditions": [{ "attribute": "custom.x", "operator": "exists" }],
                                          "returnValue": "b" }], "otherwiseValue": "else" });
    for (definition, written) in [
        (json!({ "state": "off" }), r#"{"value":"off","enabled":false,"variantIndex":-1}"#),
        (json!({ "state": "on" }), r#"{"value":"on","enabled":true,"variantIndex":-1}"#),
        (json!({ "rule": rule }), r#"{"value":"b","enabled":true,"variantIndex":0}"#),
        (json!({ "rule": no_match }), r#"{"value":"else","enabled":false,"variantIndex":-1}"#),
        (
            json!({ "valueType": "boolean", "state": "off", "offValue": true, "onValue": false }),
            r#"{"value":true,"enabled":true,"variantIndex":-1}"#,
        ),
        (
            json!({ "valueType": "boolean", "state": "on", "offValue": true, "onValue": false }),
            r#"{"value":false,"enabled":false,"variantIndex":-1}"#,
        ),
        (
            json!({ "valueType": "json", "state": "on", "onValue": { "a": [1] } }),
            r#"{"value":{"a":[1]},"enabled":true,"variantIndex":-1}"#,
        ),
        (
            json!({ "rule": { "groupRef": "gone" } }),
            r#"{"enabled":false,"variantIndex":-1,"error":"The group gone does not exist."}"#,
        ),
    ] {
        let (flag, attributes) = compile(&definition);
        let verdict = evaluate(&flag, &OnDemand { attributes: &attributes, context: &context }, Some("u"));
        assert_eq!(verdict.outcome.body, written, "{definition}");
    }
}
