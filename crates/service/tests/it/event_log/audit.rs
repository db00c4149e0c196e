//! `GET /event-log/audit` and `GET /event-log/audit/workspace`.

use serde_json::{Value, json};
use testkit::{Receiver, TestApp, on_both_engines, webhooks::hook};

use super::{get, record};

on_both_engines!(
    events_that_name_somebody_are_in_the_trail,
    entries_are_found_by_action_actor_and_target,
    newest_first_and_page_by_page,
    the_services_own_entries_have_their_author,
    an_entry_and_a_delivery_of_one_commit_name_each_other,
    an_owner_sees_their_workspaces_entries_only,
    an_owner_downloads_their_workspaces_entries,
    a_deleted_app_leaves_nothing,
    wrong_questions_are_refused,
);

/// The entries without the service's own.
async fn trail(app: &TestApp, query: &str) -> Vec<Value> {
    let answer = get(app, "/audit", query).await.expect(200).json();
    let all = answer.as_array().expect("a list").clone();
    all.into_iter().filter(|entry| !entry["eventName"].as_str().expect("a name").starts_with("tenantry.")).collect()
}

fn names(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["eventName"].as_str().expect("a name")).collect()
}

async fn events_that_name_somebody_are_in_the_trail(app: TestApp) {
    record(
        &app,
        &[
            ("a", "2026-03-01T10:00:00Z", json!({ "userId": "u1", "plan": "pro", "note": "x", "n": 1, "rowId": null })),
            ("b", "2026-03-01T11:00:00Z", json!({ "note": "x", "rowId": true })),
            ("c", "2026-03-01T12:00:00Z", json!({ "billingSource": "card", "origin": "web", "email": "a@b.example" })),
        ],
    )
    .await;
    let entries = trail(&app, "").await;
    assert_eq!(names(&entries), ["c", "a"]);
    assert_eq!(entries[0]["extracted"], json!({ "billingSource": "card", "origin": "web", "email": "a@b.example" }));
    assert_eq!(entries[1]["extracted"], json!({ "userId": "u1", "plan": "pro" }));
    assert_eq!(entries[1]["timestamp"], "2026-03-01T10:00:00.000Z");
    assert!(entries[1]["rawEventId"].as_str().expect("an id").starts_with("event_"));
    assert_eq!(entries[1].as_object().expect("an object").len(), 4);
}

async fn entries_are_found_by_action_actor_and_target(app: TestApp) {
    record(
        &app,
        &[
            ("one", "2026-03-01T10:00:00Z", json!({ "userId": "u1", "orderId": "o1" })),
            ("two", "2026-03-01T10:00:01Z", json!({ "user_id": "u1", "orderId": 2 })),
            ("three", "2026-03-01T10:00:02Z", json!({ "actorId": "u1", "tenantId": "u2" })),
            ("four", "2026-03-01T10:00:03Z", json!({ "email": "u1", "orderId": "o1" })),
            ("one", "2026-03-01T10:00:04Z", json!({ "userId": "u2", "orderId": "u1" })),
        ],
    )
    .await;
    for (query, expected) in [
        ("&action=one", vec!["one", "one"]),
        ("&actor=u1", vec!["four", "three", "two", "one"]),
        ("&actor=u2", vec!["one"]),
        ("&target=o1", vec!["four", "one"]),
        ("&target=2", vec!["two"]),
        ("&target=u1", vec!["one"]),
        ("&target=u2", vec!["three"]),
        ("&actor=u1&target=o1", vec!["four", "one"]),
        ("&actor=u1&target=o1&action=one", vec!["one"]),
        ("&actor=u2&target=o1", vec![]),
        ("&action=on", vec![]),
        ("&actor=u", vec![]),
        ("&from=2026-03-01T10:00:01Z&to=2026-03-01T10:00:02Z", vec!["three", "two"]),
        ("&actor=u1&from=2026-03-01T10:00:01Z&to=2026-03-01T10:00:02Z", vec!["three", "two"]),
    ] {
        assert_eq!(names(&trail(&app, query).await), expected, "{query}");
    }
}

async fn newest_first_and_page_by_page(app: TestApp) {
    let events: Vec<_> = (0..600).map(|number| ("e", "2026-03-01T10:00:00Z", json!({ "rowId": number }))).collect();
    record(&app, &events).await;
    let rows = async |query: &str| -> Vec<i64> {
        let entries = trail(&app, query).await;
        entries.iter().map(|entry| entry["extracted"]["rowId"].as_i64().expect("a number")).collect()
    };
    // Of equal times what arrived last is the newest.
    let newest = |from: i64, count: i64| (from - count + 1..=from).rev().collect::<Vec<_>>();
    assert_eq!(rows("&action=e").await, newest(599, 100));
    assert_eq!(rows("&action=e&limit=500").await, newest(599, 500));
    assert_eq!(rows("&action=e&limit=3&offset=598").await, newest(1, 2));
    assert_eq!(rows("&action=e&offset=600").await, Vec::<i64>::new());
    assert_eq!(rows("&to=2026-03-02T00:00:00Z&limit=2&offset=1").await, newest(598, 2));
}

async fn the_services_own_entries_have_their_author(app: TestApp) {
    let workspace = app.workspace("acme").await;
    app.key().put("/account/app", json!({ "apiUrl": "https://api.example" })).await.expect(200);
    app.drain().await;
    let entries = get(&app, "/audit", "&action=tenantry.app.changed").await.expect(200).json();
    let extracted = &entries[0]["extracted"];
    assert_eq!(extracted["actorType"], "app_key");
    assert!(extracted["actorId"].as_str().expect("an id").starts_with("key_"), "{extracted}");
    assert!(extracted["requestId"].is_string() && extracted["ip"].is_string(), "{extracted}");
    let made =
        get(&app, "/audit", &format!("&action=tenantry.tenant.created&target={}", workspace.id)).await.expect(200);
    assert_eq!(made.at("/0/extracted/workspaceId"), json!(workspace.id));
    assert_eq!(made.at("/0/extracted/name"), "acme");
    // They are events like others.
    let now = app.now();
    let query = json!({ "eventName": "tenantry.tenant.created", "from": "2020-01-01T00:00:00Z", "to": now });
    assert_eq!(super::ask(&app, query).await.expect(200).at("/totalCount"), 1);
}

async fn an_entry_and_a_delivery_of_one_commit_name_each_other(app: TestApp) {
    let receiver = Receiver::start().await;
    hook(&app, &receiver, &["tenant.created"]).await;
    let acme = app.workspace("acme").await;
    app.drain().await;
    let deliveries = format!("/admin/apps/{}/webhook/deliveries", app.app_id());
    let detail = async |id: &str| app.operator().get(&format!("{deliveries}/{id}")).await.expect(200);
    let delivery = app.operator().get(&deliveries).await.expect(200).text("/0/id");
    let entry = get(&app, "/audit", "&action=tenantry.tenant.created").await.expect(200);
    assert_eq!(entry.at("/0/extracted/workspaceId"), acme.id.to_string());
    assert_eq!(detail(&delivery).await.text("/auditEntryId"), entry.text("/0/rawEventId"));
    assert_eq!(detail(&delivery).await.text("/eventId"), entry.text("/0/extracted/webhookEvent"));
    // A repeat is of the same commit.
    let replay = app.operator().post(&format!("{deliveries}/{delivery}/replay"), json!({})).await.expect(200);
    assert_eq!(detail(&replay.text("/deliveryId")).await.text("/auditEntryId"), entry.text("/0/rawEventId"));
    // Nobody outside is told of keys.
    let entry = get(&app, "/audit", "&action=tenantry.key.created").await.expect(200);
    assert!(entry.at("/0/extracted/keyId").is_string() && entry.json()[0]["extracted"].get("webhookEvent").is_none());
}

async fn an_owner_sees_their_workspaces_entries_only(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let bob = acme.add("bob@example.com", "MEMBER").await;
    app.drain().await;
    let path = "/event-log/audit/workspace";
    let seen = acme.owner().get(path).await.expect(200).json();
    let seen = seen.as_array().expect("a list");
    assert!(
        seen.len() >= 2 && seen.iter().all(|entry| entry["extracted"]["workspaceId"] == json!(acme.id)),
        "{seen:?}"
    );
    let made = acme.owner().get(&format!("{path}?action=tenantry.tenant_user.created&limit=1")).await.expect(200);
    assert_eq!(made.at("/0/eventName"), "tenantry.tenant_user.created");
    let target = bob["userId"].as_str().expect("a person");
    let about = acme.owner().get(&format!("{path}?target={target}")).await.expect(200).json();
    assert!(!about.as_array().expect("a list").is_empty());
    assert_eq!(other.owner().get(&format!("{path}?target={target}")).await.expect(200).json(), json!([]));
    assert_eq!(other.owner().get(&format!("{path}?action=nothing")).await.expect(200).json(), json!([]));
    app.user(&bob).get(path).await.error(403, "FORBIDDEN");
}

async fn an_owner_downloads_their_workspaces_entries(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let path = "/event-log/audit/workspace/download";
    for name in ["=HYPERLINK(1)", "a, \"b\""] {
        app.key().put(&format!("/account/tenant/{}", acme.id), json!({ "name": name })).await.expect(200);
    }
    app.drain().await;
    let table = acme.owner().get(path).await.expect(200);
    assert_eq!((table.header("content-type"), table.header("x-next-cursor")), (Some("text/csv"), None));
    assert_eq!(table.header("content-disposition"), Some("attachment; filename=\"audit-trail.csv\""));
    let lines: Vec<String> = table.body().lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "timestamp,event_name,actor_type,actor_id,actor_name,ip,request_id,details,entry_id");
    assert!(lines[1].contains(",tenantry.tenant.updated,app_key,"), "{}", lines[1]);
    assert!(lines[1].contains(r#"""a, \""b\"""#), "{}", lines[1]);
    let listed = acme.owner().get("/event-log/audit/workspace?limit=500").await.expect(200).json();
    let listed = listed.as_array().expect("a list");
    assert_eq!(lines.len() - 1, listed.len());
    let written = acme.owner().get(&format!("{path}?format=jsonl")).await.expect(200);
    let written: Vec<Value> = written.body().lines().map(|line| line.parse().expect("JSON")).collect();
    assert_eq!(&written, listed);
    // Where the second part would begin.
    let second = &listed[1];
    let at: kernel::Timestamp = second["timestamp"].as_str().expect("a time").parse().expect("a time");
    let cursor = format!("{}.{}", at.as_micros(), second["rawEventId"].as_str().expect("an id"));
    let rest = acme.owner().get(&format!("{path}?format=jsonl&cursor={cursor}")).await.expect(200);
    assert_eq!(rest.body().lines().count(), listed.len() - 2);
    let theirs = other.owner().get(&format!("{path}?format=jsonl&cursor={cursor}")).await.expect(200);
    assert!(!theirs.body().contains(&acme.id.to_string()));
    acme.owner().get(&format!("{path}?cursor=x")).await.refuses(&["cursor"]);
    acme.owner().get(&format!("{path}?from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z")).await.refuses(&["from"]);
}

async fn a_deleted_app_leaves_nothing(app: TestApp) {
    let other = app.other_app().await;
    let sent = json!({ "appId": other.app_id(), "eventName": "e", "timestamp": "2026-03-01T10:00:00Z", "parameters": { "rowId": 1 } });
    other.post("/event-log", sent.clone()).await.expect(201);
    app.drain().await;
    other.post("/event-log", sent).await.expect(201);
    app.operator().delete(&format!("/admin/apps/{}", other.app_id())).await.expect(200);
    app.drain().await;
    let id = other.app_id();
    let left = app.service().core().db.read(move |tx| {
        tx.one::<(i64, i64)>(
            "SELECT (SELECT count(*) FROM event_rows WHERE app_id = $1), (SELECT count(*) FROM event_arrivals)",
            &store::args![id],
        )
    });
    assert_eq!(left.await.expect("counted"), (0, 0));
}

async fn wrong_questions_are_refused(app: TestApp) {
    app.key().get("/event-log/audit").await.refuses(&["appId"]);
    for (query, field) in [
        ("&limit=0", "limit"),
        ("&limit=501", "limit"),
        ("&offset=-1", "offset"),
        ("&from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", "from"),
        ("&actor=", "actor"),
        ("&action=", "action"),
    ] {
        get(&app, "/audit", query).await.refuses(&[field]);
    }
    assert_eq!(get(&app, "/audit", "&limit=500").await.status(), 200);
}
