//! `GET /usage/{workspace_id}` and `POST /usage/sync/{workspace_id}`.

use serde_json::json;
use testkit::{
    TestApp, assert_body,
    billing::{change_plan, plan},
    on_both_engines,
};

on_both_engines!(every_metric_and_every_quota_is_listed_by_name, only_the_own_workspace_is_shown);

async fn every_metric_and_every_quota_is_listed_by_name(app: TestApp) {
    let team = plan(&app, "team", None, None).await;
    let quotas = json!([{ "metric": "disk", "limit": 10, "policy": "metered" }, { "metric": "b", "limit": 10, "policy": "hard" }]);
    change_plan(&app, &team, json!({ "quotas": quotas })).await;
    let workspace = app.workspace("acme").await;
    let user = workspace.owner();
    user.post("/account/subscription/select", json!({ "planKey": "team" })).await.expect(201);
    for (metric, value) in [("disk", 8), ("a", 2)] {
        user.post("/usage/ingest", json!({ "metric": metric, "value": value })).await.expect(201);
    }
    assert_body!(user.get(&format!("/usage/{}", workspace.id)).await.expect(200), @r#"
    {
      "metrics": [
        {
          "lastSyncError": null,
          "lastSyncStatus": null,
          "lastSyncedAt": null,
          "metric": "a",
          "used": 2
        },
        {
          "lastSyncError": null,
          "lastSyncStatus": null,
          "lastSyncedAt": null,
          "limit": 10,
          "metric": "b",
          "policy": "hard",
          "remaining": 10,
          "used": 0,
          "warningLevel": null
        },
        {
          "lastSyncError": null,
          "lastSyncStatus": null,
          "lastSyncedAt": null,
          "limit": 10,
          "metric": "disk",
          "policy": "metered",
          "remaining": 2,
          "used": 8,
          "warningLevel": "approaching"
        }
      ],
      "periodEnd": "[time]",
      "periodStart": "[time]",
      "workspaceId": "[tenant id]"
    }
    "#);
    let synced = user.post(&format!("/usage/sync/{}", workspace.id), json!({})).await.expect(200);
    assert_eq!(synced.json(), json!({ "syncedMetrics": 0, "failed": [] }));
}

async fn only_the_own_workspace_is_shown(app: TestApp) {
    let (own, other) = (app.workspace("one").await, app.workspace("two").await);
    for caller in [own.owner(), own.key()] {
        for id in [other.id.to_string(), "nonesuch".to_owned()] {
            caller.get(&format!("/usage/{id}")).await.error(403, "FORBIDDEN");
            caller.post(&format!("/usage/sync/{id}"), json!({})).await.error(403, "FORBIDDEN");
        }
    }
}
