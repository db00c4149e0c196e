//! The flags and the context that are measured: conditions of several kinds, and rollouts.

use serde_json::{Value, json};

pub const FLAGS: usize = 50;

/// A flag with two branches of two conditions each and a rollout; some are plain.
pub fn flag(number: usize) -> Value {
    let key = format!("flag-{number:02}");
    let branch =
        |first: Value, second: Value, value: Value| json!({ "conditions": [first, second], "returnValue": value });
    let rare =
        json!({ "attribute": "user.email", "operator": "ends_with", "values": ["@staff.example", "@test.example"] });
    let role = json!({ "attribute": "user.role", "operator": "in", "values": ["OWNER", "ADMIN", "MEMBER"] });
    let plan = json!({ "attribute": "tenant.plan", "operator": "eq", "values": ["pro"] });
    let seats = json!({ "attribute": "custom.seats", "operator": "gte", "values": [5] });
    let version = json!({ "attribute": "custom.version", "operator": "semver_gt", "values": ["1.9.0"] });
    let country = json!({ "attribute": "custom.country", "operator": "neq", "values": ["XX"] });
    let (second, rollout) = match number % 5 {
        0 => (country, 100.0),
        1 => (seats, 50.0),
        2 => (version, 100.0),
        3 => (plan.clone(), 20.0),
        _ => (seats, 99.0),
    };
    if number.is_multiple_of(2) {
        let branches = json!([branch(rare, role.clone(), json!(true)), branch(role, second, json!(true))]);
        let rule = json!({ "branches": branches, "rolloutPct": rollout, "otherwiseValue": false });
        return json!({ "key": key, "state": "on-with-rule", "rule": rule });
    }
    let branches = json!([branch(rare, plan.clone(), json!("staff")), branch(plan, second, json!("variant-b"))]);
    let rule = json!({ "branches": branches, "rolloutPct": rollout, "otherwiseValue": "control" });
    json!({ "key": key, "state": "on-with-rule", "valueType": "string", "offValue": "off", "onValue": "control", "rule": rule })
}

pub fn context() -> String {
    json!({
        "user": { "id": "user_01k9z3m5q7e8rt2v4w6y8a0c2d", "email": "ada@example.com", "role": "ADMIN", "name": "Ada" },
        "tenant": { "id": "tenant_01k9z3m5q7e8rt2v4w6y8a0c2d", "plan": "pro", "name": "Engines" },
        "custom": { "seats": 12, "version": "1.10.3", "country": "CH" },
    })
    .to_string()
}
