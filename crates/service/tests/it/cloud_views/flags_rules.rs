//! What rules can ask of a context: every attribute and every operator, over the wire.

use serde_json::{Value, json};
use testkit::{TestApp, flags::flag, on_both_engines};

on_both_engines!(
    every_operator_matches_what_it_says,
    every_attribute_of_the_context_can_be_asked_for,
    conditions_are_joined_by_and,
    a_boolean_flag_is_enabled_when_its_value_is_true,
    a_flag_that_cannot_be_evaluated_says_why,
);

fn bulk(app: &TestApp) -> String {
    format!("/cloud-views/flags/bulkEvaluate/{}", app.app_id())
}

fn evaluate(app: &TestApp, key: &str) -> String {
    format!("/cloud-views/flags/evaluate/{}/{key}", app.app_id())
}

async fn flag_when(app: &TestApp, key: &str, conditions: Value) -> String {
    let rule = json!({ "branches": [{ "conditions": conditions, "returnValue": true }], "otherwiseValue": false });
    flag(app, json!({ "key": key, "state": "on-with-rule", "rule": rule })).await
}

/// The keys of the flags that match, in the order of their names.
async fn matching(app: &TestApp, context: Value) -> Vec<String> {
    let answer = app.anon().post(&bulk(app), context).await.expect(200).at("/flags");
    let matched = answer.as_array().expect("a list").iter().filter(|entry| entry["evaluation"]["variantIndex"] == 0);
    matched.map(|entry| entry["flag"].as_str().expect("a key").to_owned()).collect()
}

async fn every_operator_matches_what_it_says(app: TestApp) {
    for (operator, values) in [
        ("eq", json!(["pro", "max"])),
        ("neq", json!(["pro", "max"])),
        ("contains", json!(["ro", "zz"])),
        ("not_contains", json!(["ro", "zz"])),
        ("in", json!(["pro", 3, true, null])),
        ("not_in", json!(["pro", 3, true, null])),
        ("starts_with", json!(["pr"])),
        ("ends_with", json!(["o"])),
        ("gt", json!([3])),
        ("gte", json!([3])),
        ("lt", json!([3])),
        ("lte", json!([3])),
        ("before", json!(["2026-01-01T00:00:00Z"])),
        ("after", json!(["2026-01-01T00:00:00Z"])),
        ("matches", json!(["^p.o$"])),
        ("semver_gt", json!(["1.9.0"])),
        ("semver_lt", json!(["1.9.0"])),
        ("semver_eq", json!(["1.9.0"])),
        ("exists", json!([])),
        ("not_exists", json!([])),
    ] {
        flag_when(&app, operator, json!([{ "attribute": "custom.x", "operator": operator, "values": values }])).await;
    }
    let long = json!([{ "attribute": "custom.x", "operator": "matches", "values": ["^[a-z]{9}[a-z]*$"] }]);
    flag_when(&app, "long", long).await;
    for (seen, expected) in [
        (json!("pro"), "contains ends_with eq exists in matches starts_with"),
        // The longest text that is held against a pattern, and one that is longer.
        (json!("pro".repeat(1_365)), "contains ends_with exists long neq not_in starts_with"),
        (json!("pro".repeat(1_366)), "contains ends_with exists neq not_in starts_with"),
        (json!("Pro"), "contains ends_with exists neq not_in"),
        (json!("max"), "eq exists not_contains not_in"),
        (json!(3), "exists gte in lte neq not_contains"),
        (json!(3.5), "exists gt gte neq not_contains not_in"),
        (json!(-1), "exists lt lte neq not_contains not_in"),
        // A text is never a number.
        (json!("+3"), "exists neq not_contains not_in"),
        (json!(true), "exists in neq not_contains"),
        (json!(null), "exists in neq not_contains"),
        (json!(["ro", "x"]), "contains exists neq not_in"),
        (json!({ "y": 1 }), "exists neq not_contains not_in"),
        (json!("2025-12-31T23:59:59Z"), "before exists neq not_contains not_in"),
        (json!("2026-01-01T01:00:00.001+01:00"), "after exists neq not_contains not_in"),
        (json!("1.10.0"), "exists neq not_contains not_in semver_gt"),
        (json!("1.9.0-rc.1"), "exists neq not_contains not_in semver_lt"),
        (json!("1.9.0"), "exists neq not_contains not_in semver_eq"),
    ] {
        let matched = matching(&app, json!({ "custom": { "x": seen } })).await;
        assert_eq!(matched.join(" "), expected, "{seen}");
    }
    // What is missing matches only negative operators.
    assert_eq!(matching(&app, json!({})).await.join(" "), "neq not_contains not_exists not_in");
}

async fn every_attribute_of_the_context_can_be_asked_for(app: TestApp) {
    let paths = [
        "user.id",
        "user.email",
        "user.role",
        "user.name",
        "user.key",
        "tenant.id",
        "tenant.plan",
        "tenant.name",
        "tenant.key",
        "device.key",
        "custom.a",
        "custom.a.b",
        "org.plan",
    ];
    for path in paths {
        flag_when(&app, path, json!([{ "attribute": path, "operator": "eq", "values": [path] }])).await;
    }
    for path in paths {
        let (part, name) = path.split_once('.').expect("a dot");
        let matched = matching(&app, json!({ part: { name: path } })).await;
        assert_eq!(matched, [path], "{path}");
    }
    let nested = matching(&app, json!({ "custom": { "a": { "b": "custom.a.b" } } })).await;
    assert_eq!(nested, ["custom.a.b"]);
    // `org` is another name for `tenant`, in rules as in contexts.
    assert_eq!(matching(&app, json!({ "tenant": { "plan": "org.plan" } })).await, ["org.plan"]);
    assert_eq!(matching(&app, json!({ "org": { "plan": "tenant.plan" } })).await, ["tenant.plan"]);
}

async fn conditions_are_joined_by_and(app: TestApp) {
    let conditions = json!([{ "attribute": "user.role", "operator": "eq", "values": ["OWNER"] },
                            { "attribute": "tenant.plan", "operator": "eq", "values": ["pro"] }]);
    flag_when(&app, "both", conditions).await;
    flag_when(&app, "everybody", json!([])).await;
    let (owner, pro) = (json!({ "role": "OWNER" }), json!({ "plan": "pro" }));
    assert_eq!(matching(&app, json!({ "user": owner, "tenant": pro })).await, ["both", "everybody"]);
    assert_eq!(matching(&app, json!({ "user": owner })).await, ["everybody"]);
    assert_eq!(matching(&app, json!({ "tenant": pro })).await, ["everybody"]);
}

async fn a_boolean_flag_is_enabled_when_its_value_is_true(app: TestApp) {
    flag(&app, json!({ "key": "reversed", "offValue": true, "onValue": false })).await;
    let rule = json!({ "branches": [{ "conditions": [], "returnValue": false }] });
    flag(&app, json!({ "key": "shut-off", "state": "on-with-rule", "rule": rule })).await;
    let number = json!({ "key": "number", "state": "on", "valueType": "number", "offValue": 0, "onValue": 0.5 });
    let number = flag(&app, number).await;
    for (key, value, enabled, variant) in [
        ("reversed", json!(true), true, -1),
        ("shut-off", json!(false), false, 0),
        // Of any other type it is enabled when it is on.
        ("number", json!(0.5), true, -1),
    ] {
        let answer = app.anon().get(&evaluate(&app, key)).await.expect(200).json();
        assert_eq!(answer, json!({ "value": value, "enabled": enabled, "variantIndex": variant }), "{key}");
    }
    app.operator().put(&number, json!({ "state": "off" })).await.expect(200);
    let off = app.anon().get(&evaluate(&app, "number")).await.expect(200).json();
    assert_eq!(off, json!({ "value": 0, "enabled": false, "variantIndex": -1 }));
}

/// Nothing that can be saved is so; a store that was edited by hand may be.
async fn a_flag_that_cannot_be_evaluated_says_why(app: TestApp) {
    let path = flag(&app, json!({ "key": "broken", "state": "on" })).await;
    let edit = app.service().core().db.write(|tx| {
        tx.exec("UPDATE flags SET definition = replace(definition, '\"onValue\":true', '\"onValue\":7')", &[])
    });
    edit.await.expect("the definition can be edited");
    app.drain().await;
    app.restart().await;
    let answer = app.anon().get(&evaluate(&app, "broken")).await.expect(200).json();
    let told = json!({ "enabled": false, "variantIndex": -1, "error": "A value is not of the flag's type." });
    assert_eq!(answer, told);
    let all = app.anon().post(&bulk(&app), json!({})).await.expect(200).json();
    assert_eq!(all, json!({ "flags": [{ "flag": "broken", "evaluation": told }] }));
    let explained = app.operator().post(&format!("{path}/explain"), json!({})).await.expect(200);
    assert_eq!((explained.at("/error"), explained.at("/value")), (told["error"].clone(), Value::Null));
    let protocol = app.key().post("/ofrep/v1/evaluate/flags", json!({})).await.expect(200);
    assert_eq!(protocol.at("/flags/0/errorCode"), json!("GENERAL"));
}
