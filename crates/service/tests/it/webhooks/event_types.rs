//! `GET /webhooks/event-types`.

use serde_json::json;
use testkit::{TestApp, on_both_engines};

on_both_engines!(any_member_sees_every_type_with_a_sample);

async fn any_member_sees_every_type_with_a_sample(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let listed = app.user(&bob).get("/webhooks/event-types").await.expect(200).json();
    let events = listed["events"].as_array().expect("a list").clone();
    assert_eq!(events.len(), 19);
    let first = &events[0];
    assert_eq!((&first["type"], &first["category"]), (&json!("tenant.created"), &json!("tenant")));
    assert_eq!(first["description"], "A workspace was created");
    for event in &events {
        let sample = &event["samplePayload"];
        assert_eq!(sample["type"], event["type"]);
        assert!(sample["id"].as_str().is_some_and(|id| id.starts_with("evt_")) && sample["created"].is_i64());
        assert_eq!(sample["app_id"], json!(app.app_id()));
        assert_eq!(sample["workspace_id"], json!(acme.id));
        let data = &sample["data"];
        assert_eq!(data.get("workspaceId").unwrap_or(&data["id"]), &json!(acme.id), "{event}");
    }
    let categories: std::collections::BTreeSet<&str> =
        events.iter().filter_map(|event| event["category"].as_str()).collect();
    assert_eq!(categories.into_iter().collect::<Vec<_>>(), ["billing", "tenant", "tenant_user"]);
}
