//! An app's roles and plans.

use serde_json::{Value, json};

use crate::Caller;

pub async fn role(key: &Caller, name: &str) -> Value {
    let roles = key.get("/account/role").await.expect(200).json();
    let found = roles.as_array().expect("a list").iter().find(|role| role["key"] == name).cloned();
    found.unwrap_or_else(|| panic!("no role {name} in {roles}"))
}

pub fn role_path(role: &Value) -> String {
    format!("/account/role/{}", role["id"].as_str().expect("a role has an id"))
}

pub const PLANS: &str = "/account/payments/plan";

pub fn plan_path(plan: &Value) -> String {
    format!("{PLANS}/{}", plan["id"].as_str().expect("a plan has an id"))
}

pub async fn new_plan(key: &Caller, name: &str) -> Value {
    let price = json!({ "amount": 29.9, "currency": "EUR", "recurrenceInterval": "month" });
    key.post(PLANS, json!({ "key": name, "name": name, "prices": [price] })).await.expect(200).json()
}
