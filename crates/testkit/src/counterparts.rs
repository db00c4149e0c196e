//! Programs that were not written here, against a server on a real port. They are Node.js
//! and Python scripts in `crates/service/tests/counterparts`, around libraries and a browser that `scripts/prepare` installs.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{EngineName, OPERATOR_KEY, OnPort};

/// What a Python script of the folder prints, as JSON.
pub async fn python(script: &'static str) -> Value {
    python_with(script, &[]).await
}

/// The same with further variables.
pub async fn python_with(script: &'static str, more: &[(&str, String)]) -> Value {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../service/tests/counterparts");
    let mut python = Command::new(folder.join("python"));
    python.arg(script).stdin(Stdio::null()).envs(more.iter().map(|(name, value)| (name, value)));
    let said = tokio::task::spawn_blocking(move || python.output()).await.expect("the call ends").expect("it runs");
    let error = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{script} ended with {}\n{error}", said.status);
    serde_json::from_slice(&said.stdout).expect("it prints JSON")
}

/// Runs a script of the folder until it ends; fails the test with what it said when it does not end well.
pub async fn run(server: &OnPort, script: &'static str) {
    run_with(server, script, &[]).await;
}

/// The same with further variables.
pub async fn run_with(server: &OnPort, script: &'static str, more: &[(&str, String)]) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../service/tests/counterparts");
    assert!(folder.join("node_modules").exists(), "run scripts/prepare, which installs the counterparts");
    let OnPort { app, base_url, .. } = server;
    let mut node = Command::new("node");
    node.arg(script).current_dir(folder).stdin(Stdio::null());
    node.env("BASE_URL", base_url).env("APP_ID", app.app_id().to_string());
    node.env("API_KEY", app.key().header_sent("x-api-key")).env("OPERATOR_KEY", OPERATOR_KEY);
    node.env("MAILS", app.site().folder().join("mail"));
    node.envs(more.iter().map(|(name, value)| (name, value)));
    // One engine's pictures are enough.
    if app.site().engine() == EngineName::Sqlite {
        node.env("SCREENSHOTS", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/screenshots"));
    }
    let said = tokio::task::spawn_blocking(move || node.output()).await.expect("the call ends");
    let said = said.expect("node runs; scripts/prepare installs it");
    let (out, error) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success(), "{script} ended with {}\n{out}{error}", said.status);
}
