//! `scim2-tester`, a conformance suite of somebody else's, against a server on a port.

use serde_json::json;
use testkit::{OnPort, counterparts::python_with, on_both_engines};

on_both_engines!(a_conformance_suite_finds_nothing);

async fn a_conformance_suite_finds_nothing(server: OnPort) {
    let directory = server.app.workspace("acme").await.directory().await;
    let token = directory.caller.header_sent("authorization");
    let variables = [("SCIM_URL", format!("{}/scim/v2", server.base_url)), ("SCIM_AUTHORIZATION", token)];
    let told = python_with("scim.py", &variables).await;
    assert_eq!(told["wrong"], json!([]));
    assert!(told["passed"].as_u64().is_some_and(|passed| passed > 50), "{told}");
}
