//! `GET /admin/apps/{app_id}/events/audit/verify`: the chain over the service's own entries.

use std::time::Duration;

use serde_json::{Value, json};
use store::args;
use testkit::{TestApp, on_both_engines};

use super::{get, record};

on_both_engines!(
    an_untouched_chain_verifies,
    whatever_is_changed_removed_or_put_in_is_found,
    erased_values_leave_the_chain_whole,
    what_the_retention_deletes_is_not_missed,
);

async fn verdict(app: &TestApp) -> Value {
    app.operator().get(&format!("/admin/apps/{}/events/audit/verify", app.app_id())).await.expect(200).json()
}

/// Entries of the service's own, more than are looked at together.
async fn entries(app: &TestApp, count: usize) -> i64 {
    for number in 0..count {
        app.key().put("/account/app", json!({ "name": format!("Shop {number} of {count}") })).await.expect(200);
    }
    app.drain().await;
    let found = verdict(app).await;
    assert_eq!((&found["ok"], found.get("firstBad")), (&json!(true), None), "{found}");
    found["entries"].as_i64().expect("a count")
}

/// Changes the database behind the service's back.
async fn tamper(app: &TestApp, statement: &'static str, id: &str) {
    let (app_id, id) = (app.app_id(), id.to_owned());
    let changed = app.service().core().db.write(move |tx| tx.exec(statement, &args![app_id, id])).await;
    assert!(changed.expect("changed") > 0, "{statement}");
}

async fn an_untouched_chain_verifies(app: TestApp) {
    let before = entries(&app, 1).await;
    assert!(before > 0);
    // Events from outside are not in it.
    record(&app, &[("e", "2026-03-01T10:00:00Z", json!({ "userId": "u1" }))]).await;
    assert_eq!(entries(&app, 230).await, before + 230);
    // What waits for the fold is looked at, too.
    app.key().put("/account/app", json!({ "name": "Late" })).await.expect(200);
    assert_eq!(verdict(&app).await["ok"], true);
    let other = app.other_app().await;
    let path = format!("/admin/apps/{}/events/audit/verify", other.app_id());
    assert_eq!(app.operator().get(&path).await.expect(200).at("/ok"), true);
    let unknown = "/admin/apps/app_00000000000000000000000007/events/audit/verify";
    app.operator().get(unknown).await.error(404, "NOT_FOUND");
}

async fn whatever_is_changed_removed_or_put_in_is_found(app: TestApp) {
    entries(&app, 4).await;
    let changed = get(&app, "/audit", "&action=tenantry.app.changed").await.expect(200);
    let id = changed.text("/1/rawEventId");
    for (spoil, mend) in [
        (
            "UPDATE event_rows SET happened_at = happened_at + 1 WHERE app_id = $1 AND id = $2",
            "UPDATE event_rows SET happened_at = happened_at - 1 WHERE app_id = $1 AND id = $2",
        ),
        (
            "UPDATE event_rows SET parameters = '{' || parameters WHERE app_id = $1 AND id = $2",
            "UPDATE event_rows SET parameters = substr(parameters, 2) WHERE app_id = $1 AND id = $2",
        ),
        (
            "UPDATE event_rows SET parameters = '{\"x\":1,' || substr(parameters, 2) WHERE app_id = $1 AND id = $2",
            "UPDATE event_rows SET parameters = '{' || substr(parameters, 8) WHERE app_id = $1 AND id = $2",
        ),
        (
            "UPDATE event_rows SET tenant_id = 'tenant_00000000000000000000000007' WHERE app_id = $1 AND id = $2",
            "UPDATE event_rows SET tenant_id = NULL WHERE app_id = $1 AND id = $2",
        ),
        (
            "UPDATE event_links SET content = content || 'x' WHERE app_id = $1 AND event_id = $2",
            "UPDATE event_links SET content = substr(content, 1, length(content) - 1) WHERE app_id = $1 AND event_id = $2",
        ),
    ] {
        tamper(&app, spoil, &id).await;
        let found = verdict(&app).await;
        assert_eq!((&found["ok"], &found["firstBad"]), (&json!(false), &json!(id)), "{spoil}: {found}");
        tamper(&app, mend, &id).await;
        assert_eq!(verdict(&app).await["ok"], true, "{mend}");
    }
    // Put in: the same entry under another id.
    let copy = "INSERT INTO event_rows (id, app_id, name_id, happened_at, ingested_at, ingest_source, audited, parameters) \
                SELECT 'event_7zzzzzzzzzzzzzzzzzzzzzzzzz', app_id, name_id, happened_at, ingested_at, ingest_source, audited, \
                parameters FROM event_rows WHERE app_id = $1 AND id = $2";
    tamper(&app, copy, &id).await;
    let found = verdict(&app).await;
    assert_eq!((&found["ok"], &found["firstBad"]), (&json!(false), &json!("event_7zzzzzzzzzzzzzzzzzzzzzzzzz")));
    tamper(&app, "DELETE FROM event_rows WHERE app_id = $1 AND id = $2", "event_7zzzzzzzzzzzzzzzzzzzzzzzzz").await;
    // Removed with and without its link, and the end cut off.
    tamper(&app, "DELETE FROM event_rows WHERE app_id = $1 AND id = $2", &id).await;
    assert_eq!(verdict(&app).await["firstBad"], json!(id));
    tamper(&app, "DELETE FROM event_links WHERE app_id = $1 AND event_id = $2", &id).await;
    assert_eq!(verdict(&app).await["ok"], false);
    tamper(&app, "DELETE FROM event_links WHERE app_id = $1 AND $2 <> ''", &id).await;
    assert_eq!(verdict(&app).await["ok"], false);
}

async fn erased_values_leave_the_chain_whole(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let bob = bob["userId"].as_str().expect("a person");
    let before = entries(&app, 1).await;
    let path = format!("/admin/apps/{}/events/entities/userId/{bob}", app.app_id());
    app.operator().delete(&path).await.expect(202);
    app.drain().await;
    let after = verdict(&app).await;
    // The erasure is an entry of its own.
    assert_eq!(after, json!({ "ok": true, "entries": before + 1 }));
    let made = get(&app, "/audit", "&action=tenantry.tenant_user.created").await.expect(200);
    assert_eq!(made.at("/0/extracted/targetUserId"), "__erased__");
    // What was erased cannot be filled in again.
    let spoil = "UPDATE event_rows SET parameters = replace(parameters, '__erased__', 'somebody') WHERE app_id = $1 AND id = $2";
    let id = made.text("/0/rawEventId");
    tamper(&app, spoil, &id).await;
    assert_eq!(verdict(&app).await["firstBad"], json!(id));
}

async fn what_the_retention_deletes_is_not_missed(app: TestApp) {
    let before = entries(&app, 210).await;
    let settings = format!("/admin/apps/{}/events/settings", app.app_id());
    app.operator().put(&settings, json!({ "retentionDays": 1 })).await.expect(200);
    app.advance(Duration::from_hours(23)).await;
    let late = entries(&app, 3).await;
    assert!(late >= before + 3, "{late}");
    app.advance(Duration::from_hours(3)).await;
    app.drain().await;
    let after = verdict(&app).await;
    assert_eq!(after["ok"], true, "{after}");
    assert!(after["entries"].as_i64().is_some_and(|entries| (3..10).contains(&entries)), "{after}");
    // Also when everything is kept from now on.
    app.operator().put(&settings, json!({ "retentionDays": null })).await.expect(200);
    app.drain().await;
    assert_eq!(verdict(&app).await["ok"], true);
}
