//! An OpenFeature SDK that was not written here, against a server on a real port.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::json;
use testkit::{TestApp, on_one_engine};
use tokio::{net::TcpListener, sync::oneshot};

use crate::admin_flags::flag;

on_one_engine!(the_public_sdk_for_servers_agrees);

async fn the_public_sdk_for_servers_agrees(app: TestApp) {
    let for_pro = |value: serde_json::Value| {
        let conditions = json!([{ "attribute": "tenant.plan", "operator": "eq", "values": ["pro"] }]);
        json!({ "branches": [{ "conditions": conditions, "returnValue": value }] })
    };
    flag(&app, json!({ "key": "boolean", "state": "on" })).await;
    flag(&app, json!({ "key": "off" })).await;
    flag(
        &app,
        json!({ "key": "text", "state": "on-with-rule", "valueType": "string", "offValue": "", "onValue": "for others",
                       "rule": for_pro(json!("for pro")) }),
    )
    .await;
    flag(
        &app,
        json!({ "key": "number", "state": "on-with-rule", "valueType": "number", "offValue": 0, "onValue": 1,
                       "rule": for_pro(json!(2.5)) }),
    )
    .await;
    flag(
        &app,
        json!({ "key": "object", "state": "on-with-rule", "valueType": "json", "offValue": {}, "onValue": {},
                       "rule": for_pro(json!({ "colours": ["red"], "deep": { "yes": true } })) }),
    )
    .await;
    app.drain().await;

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async move { stopped.await.unwrap_or_default() };
    let server =
        tokio::spawn(web::server::serve(listener, app.service().app(), web::server::Limits::default(), stopped));

    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/openfeature");
    assert!(
        folder.join("node_modules/@openfeature/server-sdk").exists(),
        "run scripts/prepare, which installs the SDK"
    );
    let mut node = Command::new("node");
    node.args(["check.mjs", &base, &app.app_id().to_string(), &app.key().header_sent("x-api-key")]);
    node.current_dir(folder).stdin(Stdio::null());
    let said = tokio::task::spawn_blocking(move || node.output()).await.expect("the call ends");
    let said = said.expect("node runs; scripts/prepare installs it");
    assert!(
        said.status.success(),
        "{}{}",
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr)
    );
    let _ = stop.send(());
    server.await.expect("the server ends");
    app.drain().await;
}
