//! `/account/payments/tax`.

use serde_json::{Value, json};
use testkit::{Caller, TestApp, assert_body, on_both_engines};

on_both_engines!(
    a_tax_is_made_changed_and_found,
    every_wrong_field_is_named,
    deleting_needs_its_privilege,
    another_apps_taxes_are_not_found,
);

const TAXES: &str = "/account/payments/tax";

fn path(tax: &Value) -> String {
    format!("{TAXES}/{}", tax["id"].as_str().expect("a tax has an id"))
}

async fn new(key: &Caller, percentage: Value) -> Value {
    key.post(TAXES, json!({ "countryCode": "DE", "name": "VAT", "percentage": percentage })).await.expect(200).json()
}

async fn a_tax_is_made_changed_and_found(app: TestApp) {
    let key = app.key();
    let made = key.post(TAXES, json!({ "countryCode": "ch", "name": " MWST ", "percentage": 8.1 })).await.expect(200);
    assert_body!(made, @r#"
    {
      "countryCode": "CH",
      "createdAt": "[time]",
      "id": "[tax id]",
      "name": "MWST",
      "percentage": 8.1
    }
    "#);
    let made = made.json();
    let second = new(&key, json!(19)).await;
    assert_eq!(second["percentage"], json!(19));
    assert_eq!(key.get(TAXES).await.expect(200).json(), json!([second, made]));
    assert_eq!(key.get(&path(&made)).await.expect(200).json(), made);
    let changed = key.put(&path(&made), json!({ "percentage": 7.7, "createdAt": null })).await.expect(200).json();
    let mut expected = made.clone();
    expected["percentage"] = json!(7.7);
    assert_eq!(changed, expected);
    let changed = key.put(&path(&made), json!({ "countryCode": "LI", "name": "Tax" })).await.expect(200);
    assert_eq!((changed.text("/countryCode").as_str(), changed.text("/name").as_str()), ("LI", "Tax"));
}

async fn every_wrong_field_is_named(app: TestApp) {
    let key = app.key();
    let tax = new(&key, json!(19)).await;
    for (body, field) in [
        (json!({ "countryCode": "XX", "name": "VAT", "percentage": 19 }), "countryCode"),
        (json!({ "countryCode": "DEU", "name": "VAT", "percentage": 19 }), "countryCode"),
        (json!({ "countryCode": "DE", "name": " ", "percentage": 19 }), "name"),
        (json!({ "countryCode": "DE", "name": "VAT", "percentage": -0.1 }), "percentage"),
        (json!({ "countryCode": "DE", "name": "VAT", "percentage": 100.1 }), "percentage"),
        (json!({ "countryCode": "DE", "name": "VAT", "percentage": "19" }), "percentage"),
    ] {
        key.post(TAXES, body.clone()).await.refuses(&[field]);
        key.put(&path(&tax), body).await.refuses(&[field]);
    }
    key.post(TAXES, json!({ "countryCode": "DE", "name": "VAT" })).await.refuses(&["percentage"]);
    key.put(&path(&tax), json!({ "percentage": null })).await.refuses(&["percentage"]);
    assert_eq!(key.get(TAXES).await.json(), json!([tax]));
}

async fn deleting_needs_its_privilege(app: TestApp) {
    let key = app.key();
    let tax = new(&key, json!(19)).await;
    key.delete(&path(&tax)).await.error(403, "MISSING_PRIVILEGE");
    let deleter = app.key_with(&["APP_DELETE"]).await;
    assert_eq!(deleter.delete(&path(&tax)).await.expect(200).body(), "");
    deleter.delete(&path(&tax)).await.error(404, "NOT_FOUND");
    key.get(&path(&tax)).await.error(404, "NOT_FOUND");
}

async fn another_apps_taxes_are_not_found(app: TestApp) {
    let other = app.other_app().await;
    let (key, foreign) = (app.key(), new(&other, json!(19)).await);
    key.get(&path(&foreign)).await.error(404, "NOT_FOUND");
    key.put(&path(&foreign), json!({ "name": "Mine" })).await.error(404, "NOT_FOUND");
    app.key_with(&["APP_DELETE"]).await.delete(&path(&foreign)).await.error(404, "NOT_FOUND");
    assert_eq!(other.get(&path(&foreign)).await.expect(200).json(), foreign);
}
