//! `/ofrep/v1/evaluate/flags` and its form under a base URL that names the app.

use serde_json::{Value, json};
use testkit::{TestApp, flags::flag, on_both_engines};

on_both_engines!(
    one_flag_in_the_protocols_words,
    all_flags_and_not_again_until_something_changes,
    the_app_comes_from_a_header_a_key_or_the_base_url,
    failures_have_the_protocols_codes,
);

const ALL: &str = "/ofrep/v1/evaluate/flags";

async fn three_flags(app: &TestApp) {
    flag(app, json!({ "key": "on", "state": "on" })).await;
    let branch = |attribute: &str, value: &str| json!({ "conditions": [{ "attribute": attribute, "operator": "eq", "values": ["x"] }], "returnValue": value });
    let rule =
        json!({ "branches": [branch("custom.country", "C"), branch("tenant.plan", "P"), branch("user.id", "U")] });
    flag(
        app,
        json!({ "key": "text", "state": "on-with-rule", "valueType": "string", "offValue": "", "onValue": "base",
                      "rule": rule }),
    )
    .await;
    let split =
        json!({ "branches": [{ "conditions": [], "returnValue": 2 }], "rolloutPct": 99.99, "otherwiseValue": 1 });
    flag(
        app,
        json!({ "key": "split", "state": "on-with-rule", "valueType": "number", "offValue": 0, "onValue": 1,
                      "rule": split }),
    )
    .await;
}

async fn one_flag_in_the_protocols_words(app: TestApp) {
    three_flags(&app).await;
    let caller = app.anon().header("x-app-id", &app.app_id().to_string());
    for (key, context, value, reason, variant) in [
        ("on", json!({}), json!(true), "STATIC", "on"),
        ("text", json!({ "country": "x" }), json!("C"), "TARGETING_MATCH", "branch-0"),
        ("text", json!({ "tenant.plan": "x" }), json!("P"), "TARGETING_MATCH", "branch-1"),
        ("text", json!({ "tenant": { "plan": "x" } }), json!("P"), "TARGETING_MATCH", "branch-1"),
        ("text", json!({ "targetingKey": "x" }), json!("U"), "TARGETING_MATCH", "branch-2"),
        ("text", json!({ "custom": { "country": "x" } }), json!("C"), "TARGETING_MATCH", "branch-0"),
        ("text", json!({}), json!("base"), "DEFAULT", "otherwise"),
        ("split", json!({ "targetingKey": "u" }), json!(2), "SPLIT", "branch-0"),
        ("split", json!({}), json!(1), "DEFAULT", "otherwise"),
    ] {
        let answer = caller.post(&format!("{ALL}/{key}"), json!({ "context": context })).await.expect(200);
        let told = [answer.at("/key"), answer.at("/value"), answer.at("/reason"), answer.at("/variant")];
        assert_eq!(told, [json!(key), value, json!(reason), json!(variant)], "{context}");
    }
    let ignored = caller.post(&format!("{ALL}/on"), json!({ "context": { "accessToken": "junk" } })).await.expect(200);
    assert_eq!(ignored.at("/metadata"), json!({ "variantIndex": -1, "enabled": true, "errorCode": "INVALID_TOKEN" }));
}

async fn all_flags_and_not_again_until_something_changes(app: TestApp) {
    three_flags(&app).await;
    let caller = app.anon().header("x-app-id", &app.app_id().to_string()).header("origin", "https://anywhere.example");
    let context = json!({ "context": { "targetingKey": "x" } });
    let answer = caller.post(ALL, context.clone()).await.expect(200);
    let values: Vec<Value> =
        answer.at("/flags").as_array().expect("a list").iter().map(|flag| flag["value"].clone()).collect();
    assert_eq!(values, [json!(true), json!(2), json!("U")]);
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let tag = answer.header("etag").expect("a tag").to_owned();
    let again = caller.header("if-none-match", &tag).post(ALL, context.clone()).await.expect(304);
    assert_eq!((again.bytes().len(), again.header("etag")), (0, Some(tag.as_str())));
    // Another context, or another flag, is another answer.
    caller.header("if-none-match", &tag).post(ALL, json!({ "context": { "targetingKey": "y" } })).await.expect(200);
    flag(&app, json!({ "key": "one-more" })).await;
    caller.header("if-none-match", &tag).post(ALL, context).await.expect(200);
}

async fn the_app_comes_from_a_header_a_key_or_the_base_url(app: TestApp) {
    flag(&app, json!({ "key": "on", "state": "on" })).await;
    let id = app.app_id().to_string();
    let base = format!("/cloud-views/ofrep/{id}");
    for (caller, base) in [(app.key(), ""), (app.anon().header("x-app-id", &id), ""), (app.anon(), base.as_str())] {
        assert_eq!(caller.post(&format!("{base}{ALL}/on"), json!({})).await.expect(200).at("/value"), json!(true));
        assert_eq!(caller.post(&format!("{base}{ALL}"), json!({})).await.expect(200).at("/flags/0/value"), json!(true));
    }
    app.anon().post(ALL, json!({})).await.error(400, "MISSING_HEADER");
    app.anon().header("x-api-key", "wrong").post(ALL, json!({})).await.error(401, "INVALID_CREDENTIAL");
    app.anon().header("x-app-id", "nonsense").post(ALL, json!({})).await.error(404, "NOT_FOUND");
    let nowhere = "/cloud-views/ofrep/app_00000000000000000000000000";
    app.anon().post(&format!("{nowhere}{ALL}"), json!({})).await.error(404, "NOT_FOUND");
}

async fn failures_have_the_protocols_codes(app: TestApp) {
    let caller = app.key();
    let unknown = caller.post(&format!("{ALL}/nothing"), json!({})).await.error(404, "NOT_FOUND");
    assert_eq!((unknown.at("/errorCode"), unknown.at("/key")), (json!("FLAG_NOT_FOUND"), json!("nothing")));
    let wrong = caller.post(&format!("{ALL}/nothing"), json!({ "context": 3 })).await.error(400, "VALIDATION_FAILED");
    assert_eq!(wrong.at("/errorCode"), json!("INVALID_CONTEXT"));
    let json = caller.header("content-type", "application/json");
    let junk = json.send(http::Method::POST, ALL, "{").await.error(400, "MALFORMED_JSON");
    assert_eq!(junk.at("/errorCode"), json!("PARSE_ERROR"));
}
