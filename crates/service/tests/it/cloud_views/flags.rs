//! `/cloud-views/flags/evaluate` and `/cloud-views/flags/bulkEvaluate`.

use http::Method;
use serde_json::{Value, json};
use testkit::{
    TestApp,
    flags::{flag, flags},
    on_both_engines,
};

on_both_engines!(
    off_on_and_rules_are_worth_what_they_say,
    a_context_comes_bare_or_wrapped_and_org_is_tenant,
    all_flags_at_once,
    an_unknown_key_is_false_and_listed_as_discovered,
    only_the_latest_thousand_discoveries_are_kept,
    an_unknown_app_is_not_found,
    a_rollout_is_stable_and_needs_an_identity,
    a_change_counts_before_it_is_answered,
    a_change_reaches_the_other_node,
    flags_are_there_after_a_restart,
    any_page_may_ask,
    a_malformed_context_is_refused,
    evaluation_writes_nothing,
    only_the_listed_methods_are_served,
);

fn evaluate(app: &TestApp, key: &str) -> String {
    format!("/cloud-views/flags/evaluate/{}/{key}", app.app_id())
}

fn bulk(app: &TestApp) -> String {
    format!("/cloud-views/flags/bulkEvaluate/{}", app.app_id())
}

fn when(attribute: &str, operator: &str, values: impl Into<Value>, value: impl Into<Value>) -> Value {
    let (values, value): (Value, Value) = (values.into(), value.into());
    json!({ "conditions": [{ "attribute": attribute, "operator": operator, "values": values }], "returnValue": value })
}

fn text_flag(key: &str, rule: impl Into<Value>) -> Value {
    let rule: Value = rule.into();
    json!({ "key": key, "state": "on-with-rule", "valueType": "string", "offValue": "off", "onValue": "on", "rule": rule })
}

async fn off_on_and_rules_are_worth_what_they_say(app: TestApp) {
    flag(&app, json!({ "key": "off" })).await;
    flag(&app, json!({ "key": "on", "state": "on" })).await;
    flag(&app, json!({ "key": "json", "state": "on", "valueType": "json", "offValue": {}, "onValue": { "a": [1] } }))
        .await;
    let branches = json!([
        when("tenant.plan", "eq", json!(["pro"]), json!("P")),
        when("user.role", "in", json!(["OWNER"]), json!("O"))
    ]);
    flag(&app, text_flag("rule", json!({ "branches": branches, "otherwiseValue": "else" }))).await;
    flag(&app, text_flag("base", json!({ "branches": branches }))).await;
    let owner = json!({ "user": { "role": "OWNER" } });
    for (key, context, answer) in [
        ("off", Value::Null, json!({ "value": false, "enabled": false, "variantIndex": -1 })),
        ("on", Value::Null, json!({ "value": true, "enabled": true, "variantIndex": -1 })),
        ("json", Value::Null, json!({ "value": { "a": [1] }, "enabled": true, "variantIndex": -1 })),
        (
            "rule",
            json!({ "tenant": { "plan": "pro" }, "user": { "role": "OWNER" } }),
            json!({ "value": "P", "enabled": true, "variantIndex": 0 }),
        ),
        ("rule", owner.clone(), json!({ "value": "O", "enabled": true, "variantIndex": 1 })),
        (
            "rule",
            json!({ "tenant": { "plan": "Pro" } }),
            json!({ "value": "else", "enabled": false, "variantIndex": -1 }),
        ),
        ("base", json!({}), json!({ "value": "on", "enabled": false, "variantIndex": -1 })),
        ("rule", Value::Null, json!({ "value": "else", "enabled": false, "variantIndex": -1 })),
    ] {
        let given = match context {
            Value::Null => app.anon().get(&evaluate(&app, key)).await,
            context => app.anon().post(&evaluate(&app, key), context).await,
        };
        assert_eq!(given.expect(200).json(), answer, "{key}");
    }
    // The same operation under /v1, and a POST without a body.
    assert_eq!(app.anon().get(&format!("/v1{}", evaluate(&app, "on"))).await.expect(200).at("/value"), json!(true));
    assert_eq!(app.anon().call(Method::POST, &evaluate(&app, "on"), None).await.expect(200).at("/value"), json!(true));
}

async fn a_context_comes_bare_or_wrapped_and_org_is_tenant(app: TestApp) {
    let branches = json!([when("tenant.plan", "eq", json!(["pro"]), json!("P"))]);
    flag(&app, text_flag("k", json!({ "branches": branches }))).await;
    for context in [
        json!({ "tenant": { "plan": "pro" } }),
        json!({ "org": { "plan": "pro" } }),
        json!({ "context": { "tenant": { "plan": "pro" } } }),
        json!({ "context": { "org": { "plan": "pro" } }, "tenant": { "plan": "free" } }),
        json!({ "tenant": { "plan": "pro" }, "org": { "plan": "free" }, "accessToken": null }),
    ] {
        let answer = app.anon().post(&evaluate(&app, "k"), context.clone()).await.expect(200);
        assert_eq!(answer.at("/value"), json!("P"), "{context}");
    }
}

async fn all_flags_at_once(app: TestApp) {
    flag(&app, json!({ "key": "b", "state": "on" })).await;
    flag(&app, text_flag("a", json!({ "branches": [when("custom.team.size", "gte", json!([3]), json!("big"))] })))
        .await;
    let answer = app.anon().post(&bulk(&app), json!({ "custom": { "team": { "size": 3.0 } } })).await.expect(200);
    assert_eq!(
        answer.json(),
        json!({ "flags": [
        { "flag": "a", "evaluation": { "value": "big", "enabled": true, "variantIndex": 0 } },
        { "flag": "b", "evaluation": { "value": true, "enabled": true, "variantIndex": -1 } },
    ] })
    );
    let ignored = app.anon().post(&bulk(&app), json!({ "accessToken": "junk" })).await.expect(200);
    assert_eq!(ignored.at("/errorCode"), json!("INVALID_TOKEN"));
    assert_eq!(ignored.at("/flags/1/evaluation/value"), json!(true));
    let other = app.other_app().await.app_id();
    let none = app.anon().post(&format!("/cloud-views/flags/bulkEvaluate/{other}"), json!({})).await.expect(200);
    assert_eq!(none.json(), json!({ "flags": [] }));
}

async fn an_unknown_key_is_false_and_listed_as_discovered(app: TestApp) {
    let answer = app.anon().get(&evaluate(&app, "who.knows:it-1")).await.expect(200);
    assert_eq!(answer.json(), json!({ "value": false, "enabled": false, "variantIndex": -1 }));
    app.anon().post(&evaluate(&app, "who.knows:it-1"), json!({})).await.expect(200);
    let (longest, too_long) = ("k".repeat(128), "k".repeat(129));
    for no_key in ["not%20a%20key", "%C3%A4", &too_long] {
        let answer = app.anon().get(&evaluate(&app, no_key)).await.expect(200);
        assert_eq!(answer.json(), json!({ "value": false, "enabled": false, "variantIndex": -1 }));
    }
    let list = app.operator().get(&flags(&app)).await.expect(200);
    testkit::assert_body!(list, @r#"
    [
      {
        "discovered": true,
        "firstSeenAt": "[time]",
        "id": null,
        "key": "who.knows:it-1",
        "lastSeenAt": "[time]",
        "sightings": 2,
        "valueType": null
      }
    ]
    "#);
    // Made into a flag, it is no longer a discovery.
    flag(&app, json!({ "key": "who.knows:it-1" })).await;
    let list = app.operator().get(&flags(&app)).await.expect(200);
    assert_eq!((list.at("/0/discovered"), list.at("/1")), (json!(false), Value::Null));
    app.anon().get(&evaluate(&app, &longest)).await.expect(200);
    let list = app.operator().get(&flags(&app)).await.expect(200);
    assert_eq!((list.at("/0/key"), list.at("/1/key")), (json!(longest), json!("who.knows:it-1")));
}

async fn only_the_latest_thousand_discoveries_are_kept(app: TestApp) {
    let keys =
        |from: usize| (from..from + 1_000).map(|number| json!({ "key": format!("k{number}") })).collect::<Vec<_>>();
    app.key().post("/flags/discover", keys(0)).await.expect(202);
    let listed = app.operator().get(&flags(&app)).await.expect(200).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1_000));
    app.advance(std::time::Duration::from_secs(1)).await;
    app.key().post("/flags/discover", keys(900)).await.expect(202);
    let listed = app.operator().get(&flags(&app)).await.expect(200).json();
    let has = |key: &str| listed.as_array().expect("a list").iter().any(|entry| entry["key"] == key);
    assert_eq!(listed.as_array().map(Vec::len), Some(1_000));
    assert!(has("k900") && has("k1899") && !has("k0"));
}

async fn an_unknown_app_is_not_found(app: TestApp) {
    for id in ["app_00000000000000000000000000", "nonsense", "tenant_00000000000000000000000000"] {
        app.anon().get(&format!("/cloud-views/flags/evaluate/{id}/k")).await.error(404, "NOT_FOUND");
        app.anon().post(&format!("/cloud-views/flags/evaluate/{id}/k"), json!({})).await.error(404, "NOT_FOUND");
        app.anon().post(&format!("/cloud-views/flags/bulkEvaluate/{id}"), json!({})).await.error(404, "NOT_FOUND");
    }
}

async fn a_rollout_is_stable_and_needs_an_identity(app: TestApp) {
    let rule =
        |percentage: f64| json!({ "branches": [{ "conditions": [], "returnValue": "in" }], "rolloutPct": percentage });
    let path = flag(&app, text_flag("new-nav", rule(78.97))).await;
    let of = async |context: Value| app.anon().post(&evaluate(&app, "new-nav"), context).await.expect(200).at("/value");
    // SHA-256("new-nav:user_1") modulo 10,000 is 7,897.
    assert_eq!(of(json!({ "user": { "id": "user_1" } })).await, json!("on"));
    assert_eq!(of(json!({})).await, json!("on"));
    app.operator().put(&path, json!({ "rule": rule(78.98) })).await.expect(200);
    assert_eq!(of(json!({ "user": { "id": "user_1" } })).await, json!("in"));
    assert_eq!(of(json!({ "tenant": { "id": "user_1" } })).await, json!("in"));
    app.operator().put(&path, json!({ "rule": rule(0.0) })).await.expect(200);
    assert_eq!(of(json!({ "user": { "id": "user_1" } })).await, json!("on"));
    app.operator().put(&path, json!({ "rule": rule(100.0) })).await.expect(200);
    assert_eq!(of(json!({})).await, json!("in"));
}

async fn a_change_counts_before_it_is_answered(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    for state in ["on", "off", "on", "off"] {
        app.operator().put(&path, json!({ "state": state })).await.expect(200);
        assert_eq!(app.anon().get(&evaluate(&app, "k")).await.expect(200).at("/value"), json!(state == "on"));
    }
    app.operator().delete(&path).await.expect(200);
    assert_eq!(app.anon().get(&evaluate(&app, "k")).await.expect(200).at("/value"), json!(false));
}

async fn a_change_reaches_the_other_node(app: TestApp) {
    let node = app.another_node().await;
    let path = flag(&app, json!({ "key": "k", "state": "on" })).await;
    app.drain().await;
    node.drain().await;
    assert_eq!(node.anon().get(&evaluate(&app, "k")).await.expect(200).at("/value"), json!(true));
    // The other node may change it too, from where this one left it.
    node.operator().put(&path, json!({ "state": "off" })).await.expect(200);
    app.drain().await;
    assert_eq!(app.anon().get(&evaluate(&app, "k")).await.expect(200).at("/value"), json!(false));
    node.drain().await;
}

async fn flags_are_there_after_a_restart(app: TestApp) {
    flag(&app, json!({ "key": "k", "state": "on" })).await;
    app.drain().await;
    app.restart().await;
    assert_eq!(app.anon().get(&evaluate(&app, "k")).await.expect(200).at("/value"), json!(true));
}

async fn any_page_may_ask(app: TestApp) {
    let page = app.anon().header("origin", "https://anywhere.example");
    let answer = page.get(&evaluate(&app, "k")).await.expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let asking = page.header("access-control-request-method", "POST");
    let answer = asking.call(Method::OPTIONS, &bulk(&app), None).await.expect(204);
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
}

async fn a_malformed_context_is_refused(app: TestApp) {
    let path = evaluate(&app, "k");
    app.anon().post(&path, json!([])).await.error(400, "VALIDATION_FAILED");
    app.anon().post(&path, json!({ "user": "u" })).await.refuses(&["user"]);
    app.anon().post(&path, json!({ "accessToken": 5 })).await.refuses(&["accessToken"]);
    for part in ["tenant", "org", "device", "custom", "context"] {
        app.anon().post(&path, json!({ part: [] })).await.refuses(&[part]);
        app.anon().post(&bulk(&app), json!({ part: "text" })).await.refuses(&[part]);
    }
    let huge = "x".repeat(1024 * 1024);
    app.anon().post(&path, json!({ "custom": { "x": huge } })).await.error(413, "BODY_TOO_LARGE");
    // What the context has besides is ignored, and `null` is nothing.
    app.anon().post(&path, json!({ "session": 1, "user": null, "context": null })).await.expect(200);
    let json = app.anon().header("content-type", "application/json; charset=utf-8");
    json.send(Method::POST, &path, "{").await.error(400, "MALFORMED_JSON");
    json.send(Method::POST, &path, "{}").await.expect(200);
    let text = app.anon().header("content-type", "text/plain");
    text.send(Method::POST, &path, "{}").await.error(415, "UNSUPPORTED_MEDIA_TYPE");
}

async fn evaluation_writes_nothing(app: TestApp) {
    flag(&app, json!({ "key": "k", "state": "on" })).await;
    app.drain().await;
    let before = app.service().core().db.counters().writes;
    for key in ["k", "unknown", "another"] {
        app.anon().get(&evaluate(&app, key)).await.expect(200);
        app.anon().post(&bulk(&app), json!({ "user": { "id": "u" } })).await.expect(200);
    }
    assert_eq!(app.service().core().db.counters().writes, before);
}

async fn only_the_listed_methods_are_served(app: TestApp) {
    app.anon().get(&bulk(&app)).await.error(405, "METHOD_NOT_ALLOWED");
    app.anon().put(&evaluate(&app, "k"), json!({})).await.error(405, "METHOD_NOT_ALLOWED");
    app.anon().get("/flags/eval-events").await.error(405, "METHOD_NOT_ALLOWED");
    let all = app.anon().post(&format!("/v1{}", bulk(&app)), json!({})).await.expect(200);
    assert_eq!(all.json(), json!({ "flags": [] }));
}
