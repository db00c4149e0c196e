//! `/account/subscription/plans`.

use serde_json::{Value, json};
use testkit::{
    TestApp, assert_body,
    catalog::{PLANS, plan_path as path},
    on_both_engines,
};

on_both_engines!(
    customers_see_plans_with_the_ids_of_prices,
    a_price_that_stays_the_same_keeps_its_id,
    what_changed_is_offered_at_once_and_soon_on_other_nodes,
);

const OFFERED: &str = "/account/subscription/plans";

async fn customers_see_plans_with_the_ids_of_prices(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    assert_body!(user.get(OFFERED).await.expect(200), @r#"
    [
      {
        "description": "For getting started",
        "key": "free",
        "name": "Free",
        "prices": [],
        "trial": false,
        "trialDays": null
      },
      {
        "description": "Everything, after a trial of 14 days",
        "key": "pro",
        "name": "Pro",
        "prices": [
          {
            "amount": 29,
            "currency": "EUR",
            "id": "[price id]",
            "recurrenceInterval": "month"
          },
          {
            "amount": 29,
            "currency": "USD",
            "id": "[price id]",
            "recurrenceInterval": "month"
          }
        ],
        "trial": true,
        "trialDays": 14
      }
    ]
    "#);
    assert_eq!(user.get(&format!("{OFFERED}?limit=1&offset=1")).await.expect(200).text("/0/key"), "pro");
    user.header("x-app-id", &app.other_app().await.app_id().to_string()).get(OFFERED).await.error(403, "FORBIDDEN");
    app.key().get(OFFERED).await.error(401, "UNAUTHENTICATED");
}

async fn a_price_that_stays_the_same_keeps_its_id(app: TestApp) {
    let (key, user) = (app.key(), app.workspace("acme").await.owner());
    let pro = key.get(PLANS).await.expect(200).at("/1");
    let ids = async || {
        let prices = user.get(OFFERED).await.expect(200).at("/1/prices");
        let id = |price: &Value| (price["currency"].clone(), price["id"].clone());
        prices.as_array().expect("a list").iter().map(id).collect::<Vec<_>>()
    };
    let before = ids().await;
    let (eur, usd) = (&pro["prices"][0], &pro["prices"][1]);
    key.put(&path(&pro), json!({ "prices": [usd, eur] })).await.expect(200);
    assert_eq!(ids().await, [before[1].clone(), before[0].clone()]);
    let mut dearer = eur.clone();
    dearer["amount"] = json!(30);
    key.put(&path(&pro), json!({ "prices": [dearer, usd] })).await.expect(200);
    let after = ids().await;
    assert_eq!(after[1], before[1]);
    assert_eq!(after[0].0, before[0].0);
    assert_ne!(after[0].1, before[0].1);
}

async fn what_changed_is_offered_at_once_and_soon_on_other_nodes(app: TestApp) {
    let (key, user, node) = (app.key(), app.workspace("acme").await.owner(), app.another_node().await);
    let bearer = user.header_sent("authorization");
    let there = node.anon().header("authorization", &bearer).header("x-app-id", &app.app_id().to_string());
    let offered = async || {
        let plans = user.get(OFFERED).await.expect(200).json();
        node.drain().await;
        assert_eq!(there.get(OFFERED).await.expect(200).json(), plans);
        let name = |plan: &Value| plan["name"].as_str().expect("a name").to_owned();
        plans.as_array().expect("a list").iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(offered().await, ["Free", "Pro"]);
    let team = key.post(PLANS, json!({ "key": "team", "name": "Team", "prices": [] })).await.expect(200);
    assert_eq!(offered().await, ["Team", "Free", "Pro"]);
    key.put(&path(&team.json()), json!({ "name": "Teams" })).await.expect(200);
    assert_eq!(offered().await, ["Teams", "Free", "Pro"]);
    key.delete(&path(&team.json())).await.expect(200);
    assert_eq!(offered().await, ["Free", "Pro"]);
}
