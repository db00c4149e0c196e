//! `/flags/eval-events`, `/flags/discover` and `/flags/call-sites`.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    TestApp,
    flags::{flag, flags},
    on_both_engines,
};

on_both_engines!(
    evaluations_are_counted_by_variant,
    reported_keys_are_discovered_with_their_type,
    call_sites_are_kept_with_their_flag,
    a_page_of_the_app_reports_without_a_key,
    each_report_is_taken_under_both_names_and_in_both_shapes,
    wrong_reports_are_refused_by_their_place,
    a_flag_nobody_asks_for_grows_stale,
    what_was_gathered_survives_a_stop,
    what_is_too_old_or_too_long_is_not_accepted,
    a_flag_keeps_its_newest_call_sites,
    a_report_that_cannot_be_stored_is_dropped_and_nobody_else_notices,
    nobody_who_looks_at_a_flag_waits_for_reports,
);

async fn evaluations_are_counted_by_variant(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    let yesterday = app.now().minus(Duration::from_secs(86_400));
    let events = json!([
        { "flagKey": "k", "variantIndex": 0 },
        { "flagKey": "k", "variantIndex": 0, "count": 4, "timestamp": yesterday },
        { "flagKey": "k", "variantIndex": -1, "count": 2 },
        { "flagKey": "unheard-of", "variantIndex": -1 },
    ]);
    let answer = app.key().post("/v1/flags/eval-events", json!({ "events": events })).await.expect(202);
    assert_eq!(answer.json(), json!({ "accepted": 4 }));
    let token = app.key_with(&["AUTHENTICATED"]).await;
    assert_eq!(
        token.post("/flags/eval-events", json!([{ "flagKey": "k", "variantIndex": 0 }])).await.expect(202).json(),
        json!({ "accepted": 1 })
    );
    let usage = app.operator().get(&path).await.expect(200).at("/usage");
    assert_eq!(
        usage["variants"],
        json!([{ "variantIndex": -1, "evaluations": 2 }, { "variantIndex": 0, "evaluations": 6 }])
    );
    assert_eq!((&usage["evaluations"], &usage["neverEvaluated"]), (&json!(8), &json!(false)));
    assert!(usage["lastEvaluatedAt"].as_str() > Some(yesterday.to_string().as_str()));
    let list = app.operator().get(&flags(&app)).await.expect(200).json();
    let keys: Vec<&Value> = list.as_array().expect("a list").iter().map(|entry| &entry["key"]).collect();
    assert_eq!(keys, ["unheard-of", "k"]);
    assert_eq!(list[1]["usage"], usage);
}

async fn reported_keys_are_discovered_with_their_type(app: TestApp) {
    flag(&app, json!({ "key": "k" })).await;
    let keys = json!({ "keys": [{ "key": "k" }, { "key": "new", "valueType": "number" }, { "key": "new" }] });
    assert_eq!(app.key().post("/flags/discover", keys).await.expect(202).json(), json!({ "accepted": 3 }));
    let list = app.operator().get(&flags(&app)).await.expect(200);
    assert_eq!(
        (list.at("/0/key"), list.at("/0/valueType"), list.at("/0/sightings")),
        (json!("new"), json!("number"), json!(2))
    );
    assert_eq!(list.json().as_array().map(Vec::len), Some(2));
}

async fn call_sites_are_kept_with_their_flag(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    let sites = json!({ "sites": [{ "flagKey": "k", "file": "src/nav.ts", "line": 12 }, { "flagKey": "k", "file": "src/a.ts", "line": 3 }] });
    app.key().post("/flags/call-sites", sites.clone()).await.expect(202);
    app.key().post("/flags/call-sites", sites).await.expect(202);
    let sites = app.operator().get(&path).await.expect(200).at("/usage/callSites");
    let places: Vec<String> =
        sites.as_array().expect("a list").iter().map(|site| format!("{}:{}", site["file"], site["line"])).collect();
    assert_eq!(places, ["\"src/a.ts\":3", "\"src/nav.ts\":12"]);
}

async fn a_page_of_the_app_reports_without_a_key(app: TestApp) {
    let body = json!([{ "key": "from-page" }]);
    let page = app.anon().header("x-app-id", &app.app_id().to_string());
    page.post("/flags/discover", body.clone()).await.error(403, "FORBIDDEN");
    page.header("origin", "https://foreign.example")
        .post("/flags/discover", body.clone())
        .await
        .error(403, "FORBIDDEN");
    let answer = page.header("origin", "http://localhost:3000").post("/flags/discover", body.clone()).await.expect(202);
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://localhost:3000"));
    app.anon().post("/flags/discover", body.clone()).await.error(401, "UNAUTHENTICATED");
    app.anon().header("x-app-id", "nonsense").post("/flags/discover", body.clone()).await.error(404, "NOT_FOUND");
    app.anon().header("x-api-key", "wrong").post("/flags/discover", body).await.error(401, "INVALID_CREDENTIAL");
}

async fn each_report_is_taken_under_both_names_and_in_both_shapes(app: TestApp) {
    for (path, member, entry) in [
        ("/flags/eval-events", "events", json!({ "flagKey": "k", "variantIndex": -1 })),
        ("/flags/discover", "keys", json!({ "key": "k" })),
        ("/flags/call-sites", "sites", json!({ "flagKey": "k", "file": "a.ts", "line": 1 })),
    ] {
        for path in [path.to_owned(), format!("/v1{path}")] {
            for list in [json!([]), json!([entry, entry])] {
                let accepted = json!({ "accepted": list.as_array().map(Vec::len) });
                let bare = app.key().post(&path, list.clone()).await.expect(202);
                let within = app.key().post(&path, json!({ member: list, "unknown": 1 })).await.expect(202);
                assert_eq!((bare.json(), within.json()), (accepted.clone(), accepted));
            }
        }
    }
}

async fn wrong_reports_are_refused_by_their_place(app: TestApp) {
    let events = json!([{ "flagKey": "a b", "variantIndex": -2, "count": 0 }, { "flagKey": "k", "variantIndex": 0 }]);
    let fields = ["events[0].flagKey", "events[0].variantIndex", "events[0].count"];
    app.key().post("/flags/eval-events", json!({ "events": events })).await.refuses(&fields);
    app.key().post("/flags/eval-events", events).await.refuses(&fields);
    app.key().post("/flags/eval-events", json!({})).await.refuses(&["events"]);
    app.key().post("/flags/discover", json!({ "keys": "k" })).await.refuses(&["keys"]);
    app.key()
        .post("/flags/eval-events", json!([{ "flagKey": "k", "variantIndex": 0, "timestamp": "yesterday" }, {}]))
        .await
        .refuses(&["events[0].timestamp", "events[1].flagKey", "events[1].variantIndex"]);
    let text = app.key().header("content-type", "text/plain");
    text.send(http::Method::POST, "/flags/discover", "[]").await.error(415, "UNSUPPORTED_MEDIA_TYPE");
    app.key().call(http::Method::POST, "/flags/discover", None).await.error(400, "MALFORMED_JSON");
    app.key()
        .post("/flags/call-sites", json!([{ "flagKey": "k", "file": "", "line": -1 }]))
        .await
        .refuses(&["sites[0].file", "sites[0].line"]);
    let many: Vec<Value> = (0..1_001).map(|_| json!({ "key": "k" })).collect();
    app.key().post("/flags/discover", many).await.refuses(&["keys"]);
    app.key()
        .post("/flags/discover", json!({ "keys": [{ "key": "k", "valueType": "date" }] }))
        .await
        .error(400, "VALIDATION_FAILED");
}

async fn a_flag_nobody_asks_for_grows_stale(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    let usage = async || app.operator().get(&path).await.expect(200).at("/usage");
    assert_eq!((usage().await["stale"].clone(), usage().await["neverEvaluated"].clone()), (json!(false), json!(true)));
    app.drain().await;
    app.advance(Duration::from_secs(31 * 86_400)).await;
    assert_eq!(usage().await["stale"], json!(true));
    app.anon().get(&format!("/cloud-views/flags/evaluate/{}/k", app.app_id())).await.expect(200);
    let after = usage().await;
    assert_eq!(
        (&after["stale"], &after["neverEvaluated"], &after["evaluations"]),
        (&json!(false), &json!(false), &json!(0))
    );
}

async fn what_was_gathered_survives_a_stop(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    app.service().start();
    app.key().post("/flags/eval-events", json!([{ "flagKey": "k", "variantIndex": 0 }])).await.expect(202);
    app.restart().await;
    assert_eq!(app.operator().get(&path).await.expect(200).at("/usage/evaluations"), json!(1));
}

async fn what_is_too_old_or_too_long_is_not_accepted(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    let ago = |days: u64| app.now().minus(Duration::from_secs(days * 86_400));
    let event = |days| json!({ "flagKey": "k", "variantIndex": 0, "timestamp": ago(days) });
    let events = json!([event(0), event(90), event(92), event(10_000)]);
    let answer = app.key().post("/flags/eval-events", events).await.expect(202);
    assert_eq!(answer.json(), json!({ "accepted": 2 }));
    // Four bytes each: what an index has to take.
    let file = |length| "\u{20000}".repeat(length);
    let site = |file: String| json!({ "flagKey": "k", "file": file, "line": 1 });
    let answer =
        app.key().post("/flags/call-sites", json!([site(file(256)), site(file(257)), site(file(9_999))])).await;
    assert_eq!(answer.expect(202).json(), json!({ "accepted": 1 }));
    // Of a key that no flag has, too.
    let old = json!([{ "flagKey": "none", "variantIndex": 0, "timestamp": ago(92) }]);
    assert_eq!(app.key().post("/flags/eval-events", old).await.expect(202).json(), json!({ "accepted": 0 }));
    let long = json!([{ "flagKey": "none", "file": file(257), "line": 1 }]);
    assert_eq!(app.key().post("/flags/call-sites", long).await.expect(202).json(), json!({ "accepted": 0 }));
    let usage = app.operator().get(&path).await.expect(200).at("/usage");
    assert_eq!((&usage["evaluations"], usage["callSites"].as_array().map(Vec::len)), (&json!(2), Some(1)));
    app.advance(Duration::from_secs(10 * 86_400)).await;
    app.drain().await;
    let left = app.operator().get(&path).await.expect(200).at("/usage/evaluations");
    assert_eq!(left, json!(1), "counts are forgotten after 90 days");
}

async fn a_flag_keeps_its_newest_call_sites(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    for round in 0..3 {
        let sites: Vec<Value> = (0..1_000)
            .map(|line| json!({ "flagKey": "k", "file": format!("round-{round}.ts"), "line": line }))
            .collect();
        let answer = app.key().post("/flags/call-sites", sites).await.expect(202);
        assert_eq!(answer.json(), json!({ "accepted": 1_000 }));
        app.advance(Duration::from_secs(61)).await;
    }
    let sites = app.operator().get(&path).await.expect(200).at("/usage/callSites");
    let sites = sites.as_array().expect("a list");
    assert_eq!(sites.len(), 100);
    assert!(sites.iter().all(|site| site["file"] == "round-2.ts"), "{sites:?}");
}

/// What the schema refuses for a reason that nobody thought of.
async fn a_report_that_cannot_be_stored_is_dropped_and_nobody_else_notices(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    let refuse = "CREATE UNIQUE INDEX one_site_per_line ON flag_call_sites (line)";
    app.service().core().db.write(move |tx| tx.run(refuse, &[])).await.expect("an index");
    let site = |file: &str, line: i64| json!({ "flagKey": "k", "file": file, "line": line });
    let sites = json!([site("a.ts", 1), site("b.ts", 1), site("c.ts", 2)]);
    app.key().post("/flags/call-sites", sites).await.expect(202);
    app.key().post("/flags/eval-events", json!([{ "flagKey": "k", "variantIndex": 0 }])).await.expect(202);
    let usage = app.operator().get(&path).await.expect(200).at("/usage");
    assert_eq!((&usage["evaluations"], usage["callSites"].as_array().map(Vec::len)), (&json!(1), Some(2)));
    let metrics = app.operator().get("/metrics").await.expect(200);
    assert!(metrics.body().contains("tenantry_flag_reports_dropped_total 1\n"), "{}", metrics.body());
}

async fn nobody_who_looks_at_a_flag_waits_for_reports(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    let refuse = "CREATE UNIQUE INDEX one_count ON flag_evaluations (app_id, day)";
    app.service().core().db.write(move |tx| tx.run(refuse, &[])).await.expect("an index");
    for variant in [0, 1, 2] {
        app.key().post("/flags/eval-events", json!([{ "flagKey": "k", "variantIndex": variant }])).await.expect(202);
        assert_eq!(app.operator().get(&path).await.expect(200).at("/usage/evaluations"), json!(1));
        app.operator().get(&flags(&app)).await.expect(200);
        app.operator().put(&path, json!({ "name": format!("name {variant}") })).await.expect(200);
    }
}
