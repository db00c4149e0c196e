//! `/account/payments/plan`.

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{
    TestApp, assert_body,
    catalog::{PLANS, new_plan as new, plan_path as path},
    on_both_engines,
};

on_both_engines!(
    the_first_app_has_a_free_and_a_trial_plan_and_others_have_none,
    a_plan_is_answered_whole,
    every_wrong_field_is_named_and_nothing_is_made,
    a_partial_change_keeps_the_rest,
    a_trial_keeps_its_days,
    keys_are_unique_in_an_app,
    of_eight_at_once_one_gets_the_key,
    a_plan_that_a_workspace_is_on_keeps_its_key_and_stays,
    another_apps_plans_are_not_found,
    the_catalog_of_a_deleted_app_is_purged,
);

async fn the_first_app_has_a_free_and_a_trial_plan_and_others_have_none(app: TestApp) {
    let mut first = app.key().get(PLANS).await.expect(200).json();
    let free = first[0].take();
    assert_eq!((&free["key"], &free["prices"], &free["trial"]), (&json!("free"), &json!([]), &json!(false)));
    testkit::assert_text!(testkit::redacted(&first[1]), @r#"
    {
      "createdAt": "[time]",
      "description": "Everything, after a trial of 14 days",
      "entitlements": {},
      "id": "[plan id]",
      "key": "pro",
      "name": "Pro",
      "prices": [
        {
          "amount": 29,
          "currency": "EUR",
          "recurrenceInterval": "month"
        },
        {
          "amount": 29,
          "currency": "USD",
          "recurrenceInterval": "month"
        }
      ],
      "quotas": [],
      "trial": true,
      "trialDays": 14
    }
    "#);
    assert_eq!(app.other_app().await.get(PLANS).await.expect(200).json(), json!([]));
}

async fn a_plan_is_answered_whole(app: TestApp) {
    let key = app.key();
    let body = json!({
        "key": "team", "name": " Team ", "description": "For teams", "trial": true, "trialDays": 30,
        "prices": [
            { "amount": 29.90, "currency": "eur", "recurrenceInterval": "month" },
            { "amount": 3000, "currency": "JPY", "recurrenceInterval": "year" },
            { "amount": 0, "currency": "KWD", "recurrenceInterval": "day" },
        ],
        "entitlements": { "reports": true, "export": false },
        "quotas": [
            { "metric": "api_calls", "limit": 1000, "policy": "hard", "entitlement": "reports" },
            { "metric": "storage", "limit": 5, "policy": "metered" },
        ],
        "id": "plan_x", "createdAt": 3,
    });
    let made = key.post(PLANS, body).await.expect(200);
    assert_body!(made, @r#"
    {
      "createdAt": "[time]",
      "description": "For teams",
      "entitlements": {
        "export": false,
        "reports": true
      },
      "id": "[plan id]",
      "key": "team",
      "name": "Team",
      "prices": [
        {
          "amount": 29.9,
          "currency": "EUR",
          "recurrenceInterval": "month"
        },
        {
          "amount": 3000,
          "currency": "JPY",
          "recurrenceInterval": "year"
        },
        {
          "amount": 0,
          "currency": "KWD",
          "recurrenceInterval": "day"
        }
      ],
      "quotas": [
        {
          "entitlement": "reports",
          "limit": 1000,
          "metric": "api_calls",
          "policy": "hard"
        },
        {
          "limit": 5,
          "metric": "storage",
          "policy": "metered"
        }
      ],
      "trial": true,
      "trialDays": 30
    }
    "#);
    assert_eq!(key.get(&path(&made.json())).await.expect(200).json(), made.json());
    assert_eq!(key.get(&format!("/v1{PLANS}?limit=1")).await.expect(200).json(), json!([made.json()]));
}

async fn every_wrong_field_is_named_and_nothing_is_made(app: TestApp) {
    let key = app.key();
    let before = key.get(PLANS).await.json();
    let price = |amount: Value, currency: &str, interval: &str| {
        let prices = json!([{ "amount": amount, "currency": currency, "recurrenceInterval": interval }]);
        json!({ "key": "a", "name": "A", "prices": prices })
    };
    let with = |member: &str, value: Value| {
        let mut body = json!({ "key": "a", "name": "A", "prices": [] });
        body[member] = value;
        body
    };
    let month = json!({ "amount": 1, "currency": "EUR", "recurrenceInterval": "month" });
    for (body, fields) in [
        (json!({}), &["key", "name", "prices"][..]),
        (json!({ "key": "a", "name": "A" }), &["prices"]),
        (json!({ "key": "", "name": " ", "prices": [] }), &["key", "name"]),
        (price(json!(-1), "EUR", "month"), &["prices[0].amount"]),
        (price(json!(1.999), "EUR", "month"), &["prices[0].amount"]),
        (price(json!(0.5), "JPY", "month"), &["prices[0].amount"]),
        (price(json!("1"), "EUR", "month"), &["prices[0].amount"]),
        (price(json!(1), "EURO", "month"), &["prices[0].currency"]),
        (price(json!(1), "EUR", "decade"), &["prices[0].recurrenceInterval"]),
        (with("prices", json!([month, month])), &["prices[1]"]),
        (with("trial", json!(true)), &["trialDays"]),
        (with("trialDays", json!(-1)), &["trialDays"]),
        (with("trialDays", json!(1.5)), &["trialDays"]),
        (with("entitlements", json!({ "reports": "yes" })), &["entitlements.reports"]),
        (with("quotas", json!([{ "metric": "a", "limit": 1, "policy": "soft" }])), &["quotas[0].policy"]),
        (
            with("quotas", json!([{ "metric": "", "limit": -1, "policy": "hard" }])),
            &["quotas[0].metric", "quotas[0].limit"],
        ),
    ] {
        key.post(PLANS, body).await.refuses(fields);
    }
    assert_eq!(key.get(PLANS).await.json(), before);
}

async fn a_partial_change_keeps_the_rest(app: TestApp) {
    let key = app.key();
    let before = new(&key, "team").await;
    let changed = key.put(&path(&before), json!({ "description": "For teams", "id": "x" })).await.expect(200).json();
    let mut expected = before.clone();
    expected["description"] = "For teams".into();
    assert_eq!(changed, expected);
    let prices = json!([
        { "amount": 300, "currency": "EUR", "recurrenceInterval": "year" },
        { "amount": 29.9, "currency": "EUR", "recurrenceInterval": "month" },
    ]);
    let change =
        json!({ "key": "crew", "name": "Crew", "prices": prices, "entitlements": { "a": true }, "description": null });
    let changed = key.put(&path(&before), change).await.expect(200).json();
    assert_eq!((&changed["key"], &changed["prices"], &changed["description"]), (&json!("crew"), &prices, &json!("")));
    assert_eq!(key.get(&path(&before)).await.expect(200).json(), changed);
    let cleared = key.put(&path(&before), json!({ "prices": [], "entitlements": null })).await.expect(200);
    assert_eq!((cleared.at("/prices"), cleared.at("/entitlements")), (json!([]), json!({})));
}

async fn a_trial_keeps_its_days(app: TestApp) {
    let key = app.key();
    let plan = new(&key, "team").await;
    key.put(&path(&plan), json!({ "trial": true })).await.refuses(&["trialDays"]);
    key.put(&path(&plan), json!({ "trial": true, "trialDays": 0 })).await.refuses(&["trialDays"]);
    key.put(&path(&plan), json!({ "trial": true, "trialDays": 7 })).await.expect(200);
    key.put(&path(&plan), json!({ "trialDays": null })).await.refuses(&["trialDays"]);
    key.put(&path(&plan), json!({ "trial": null })).await.refuses(&["trial"]);
    let ended = key.put(&path(&plan), json!({ "trial": false, "trialDays": null })).await.expect(200);
    assert_eq!((ended.at("/trial"), ended.at("/trialDays")), (json!(false), Value::Null));
}

async fn keys_are_unique_in_an_app(app: TestApp) {
    let key = app.key();
    let plan = new(&key, "team").await;
    key.post(PLANS, json!({ "key": "team", "name": "T", "prices": [] })).await.error(409, "PLAN_KEY_TAKEN");
    key.put(&path(&plan), json!({ "key": "free" })).await.error(409, "PLAN_KEY_TAKEN");
    key.put(&path(&plan), json!({ "key": "team" })).await.expect(200);
    new(&app.other_app().await, "team").await;
}

async fn of_eight_at_once_one_gets_the_key(app: TestApp) {
    let key = app.key();
    let body = json!({ "key": "team", "name": "T", "prices": [] });
    let race = join_all((0..8).map(|_| key.post(PLANS, body.clone()))).await;
    assert_eq!(race.iter().filter(|answer| answer.status() == 200).count(), 1);
    for answer in race.into_iter().filter(|answer| answer.status() != 200) {
        answer.error(409, "PLAN_KEY_TAKEN");
    }
}

async fn a_plan_that_a_workspace_is_on_keeps_its_key_and_stays(app: TestApp) {
    let key = app.key();
    let plan = new(&key, "team").await;
    let details = format!("/account/tenant/{}/paymentDetails", app.workspace("acme").await.id);
    let monthly = json!({ "currency": "EUR", "recurrenceInterval": "month" });
    key.post(&details, json!({ "planKey": "team", "priceOffer": monthly })).await.expect(200);
    key.delete(&path(&plan)).await.error(409, "PLAN_IN_USE");
    key.put(&path(&plan), json!({ "key": "crew" })).await.error(409, "PLAN_IN_USE");
    key.put(&path(&plan), json!({ "name": "Crew" })).await.expect(200);
    key.post(&details, json!({ "planKey": "free" })).await.expect(200);
    let deleted = key.delete(&path(&plan)).await.expect(200);
    assert_eq!(deleted.body(), "");
    key.get(&path(&plan)).await.error(404, "NOT_FOUND");
    key.delete(&path(&plan)).await.error(404, "NOT_FOUND");
}

async fn another_apps_plans_are_not_found(app: TestApp) {
    let other = app.other_app().await;
    let (key, foreign) = (app.key(), new(&other, "team").await);
    key.get(&path(&foreign)).await.error(404, "NOT_FOUND");
    key.put(&path(&foreign), json!({ "name": "Mine" })).await.error(404, "NOT_FOUND");
    key.delete(&path(&foreign)).await.error(404, "NOT_FOUND");
    assert_eq!(other.get(&path(&foreign)).await.expect(200).json(), foreign);
}

async fn the_catalog_of_a_deleted_app_is_purged(app: TestApp) {
    let other = app.other_app().await;
    new(&other, "team").await;
    other
        .post("/account/payments/tax", json!({ "countryCode": "DE", "name": "VAT", "percentage": 19 }))
        .await
        .expect(200);
    let left = async || {
        let (db, id) = (app.service().core().db.clone(), other.app_id());
        let sql = "SELECT (SELECT count(*) FROM plans WHERE app_id = $1), (SELECT count(*) FROM prices WHERE app_id = $1), \
             (SELECT count(*) FROM taxes WHERE app_id = $1)";
        let counted = db.get_one::<(i64, i64, i64)>(sql, &store::args![id]).await;
        counted.expect("can be counted").expect("a row")
    };
    assert_eq!(left().await, (1, 1, 1));
    app.operator().delete(&format!("/admin/apps/{}", other.app_id())).await.expect(200);
    app.drain().await;
    assert_eq!(left().await, (0, 0, 0));
}
