//! `GET /admin/apps/{app_id}/events/export`.

use serde_json::{Value, json};
use testkit::{Answer, TestApp, on_both_engines};

use super::{event, get, record};

on_both_engines!(
    every_event_is_exported_once_in_parts,
    lines_are_events_that_can_be_sent_again,
    tables_have_the_same_events,
    wrong_exports_are_refused,
);

async fn export(app: &TestApp, query: &str) -> Answer {
    app.operator().get(&format!("/admin/apps/{}/events/export?{query}", app.app_id())).await
}

fn lines(answer: &Answer) -> Vec<Value> {
    answer.body().lines().map(|line| line.parse().expect("JSON")).collect()
}

async fn every_event_is_exported_once_in_parts(app: TestApp) {
    // Many at the same instant, some large.
    let (small, large) = (json!({ "rowId": 1 }), json!({ "text": "x".repeat(60_000) }));
    for round in 0..11 {
        let sent = |number: usize| {
            let at = format!("2026-03-{:02}T10:00:00Z", 1 + number % 3);
            let parameters = if round == 10 && number < 130 { &large } else { &small };
            event(&app, if number.is_multiple_of(2) { "a" } else { "b" }, &at, parameters.clone())
        };
        let events: Vec<Value> = (0..if round == 10 { 130 } else { 1_000 }).map(sent).collect();
        app.key().post("/event-log/batch", json!(events)).await.expect(201);
    }
    app.drain().await;
    let range = "from=2026-03-01T00:00:00Z&to=2026-03-03T10:00:00Z";
    let (mut ids, mut parts, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let part = export(&app, &format!("{range}{cursor}")).await.expect(200);
        let lines = lines(&part);
        assert_eq!(part.header("x-part-events"), Some(&*lines.len().to_string()));
        assert_eq!(part.header("x-total-events"), (parts == 0).then_some("10130"));
        ids.extend(lines.into_iter().map(|line| line["id"].to_string()));
        parts += 1;
        assert!(parts < 5, "it does not end");
        let Some(next) = part.header("x-next-cursor") else { break };
        cursor = format!("&cursor={next}");
    }
    assert!(parts > 1, "one part holds it all");
    assert_eq!(ids.len(), 10_130);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10_130);
}

async fn lines_are_events_that_can_be_sent_again(app: TestApp) {
    let parameters = json!({ "userId": "u1", "deep": { "a": [1, null] }, "n": 1.5 });
    record(&app, &[("e", "2026-03-01T10:00:00Z", parameters), ("e", "2026-03-02T10:00:00Z", json!({}))]).await;
    let all = export(&app, "").await.expect(200);
    assert_eq!(all.header("content-type"), Some("application/x-ndjson"));
    let all = lines(&all);
    let listed = get(&app, "/events", "&eventName=e").await.expect(200).json();
    let mine: Vec<&Value> = all.iter().filter(|line| line["eventName"] == "e").collect();
    assert_eq!(mine, [&listed[1], &listed[0]]);
    app.key().post("/event-log", mine[0].clone()).await.expect(201);
    // The service's own carry their place in the chain.
    let own: Vec<i64> = all.iter().filter_map(|line| line["chain"]["position"].as_i64()).collect();
    assert_eq!(own.len(), all.len() - 2);
    let day = export(&app, "format=jsonl&from=2026-03-02T10:00:00Z&to=2026-03-02T10:00:00Z").await.expect(200);
    assert_eq!(lines(&day), [listed[0].clone()]);
}

async fn tables_have_the_same_events(app: TestApp) {
    record(&app, &[("e", "2026-03-01T10:00:00Z", json!({ "a": "x,\"y\"" }))]).await;
    let range = "from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z";
    let csv = export(&app, &format!("format=csv&{range}")).await.expect(200);
    assert_eq!(csv.header("content-type"), Some("text/csv"));
    let (header, line) =
        csv.body().split_once("\r\n").map(|(one, two)| (one.to_owned(), two.to_owned())).expect("lines");
    assert!(header.starts_with("app_id,event_id,event_name,timestamp,ingested_at,"), "{header}");
    assert!(line.contains(",e,2026-03-01T10:00:00.000Z,") && line.contains(r#""{""a"":"#), "{line}");
    let parquet = export(&app, &format!("format=parquet&{range}")).await.expect(200);
    assert_eq!(parquet.header("content-type"), Some("application/vnd.apache.parquet"));
    assert!(parquet.bytes().starts_with(b"PAR1") && parquet.bytes().ends_with(b"PAR1"));
}

async fn wrong_exports_are_refused(app: TestApp) {
    export(&app, "format=xml").await.refuses(&["format"]);
    export(&app, "from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z").await.refuses(&["from"]);
    for wrong in ["x", "MQ", "%00"] {
        export(&app, &format!("cursor={wrong}")).await.refuses(&["cursor"]);
    }
    let unknown = "/admin/apps/app_00000000000000000000000007/events/export";
    app.operator().get(unknown).await.error(404, "NOT_FOUND");
}
