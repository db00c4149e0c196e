//! An OpenFeature SDK that was not written here, against a server on a real port.

use serde_json::json;
use testkit::{OnPort, counterparts, flags::flag, on_one_engine};

on_one_engine!(the_public_sdk_for_servers_agrees);

async fn the_public_sdk_for_servers_agrees(server: OnPort) {
    let app = &server.app;
    let for_pro = |value: serde_json::Value| {
        let conditions = json!([{ "attribute": "tenant.plan", "operator": "eq", "values": ["pro"] }]);
        json!({ "branches": [{ "conditions": conditions, "returnValue": value }] })
    };
    flag(app, json!({ "key": "boolean", "state": "on" })).await;
    flag(app, json!({ "key": "off" })).await;
    flag(
        app,
        json!({ "key": "text", "state": "on-with-rule", "valueType": "string", "offValue": "", "onValue": "for others",
                       "rule": for_pro(json!("for pro")) }),
    )
    .await;
    flag(
        app,
        json!({ "key": "number", "state": "on-with-rule", "valueType": "number", "offValue": 0, "onValue": 1,
                       "rule": for_pro(json!(2.5)) }),
    )
    .await;
    flag(
        app,
        json!({ "key": "object", "state": "on-with-rule", "valueType": "json", "offValue": {}, "onValue": {},
                       "rule": for_pro(json!({ "colours": ["red"], "deep": { "yes": true } })) }),
    )
    .await;
    app.drain().await;

    counterparts::run(&server, "openfeature.mjs").await;
}
