//! What an operator asks about very many workspaces: a dry run of a plan, and why one of them has what it has.

use std::time::Duration;

use bench::{
    Result,
    subject::{OPERATOR, make_workspaces, open, post},
};
use kernel::Ticker;
use serde_json::json;

use super::subject::{make_plan, owners, put_on_plan};

const WORKSPACES: usize = 10_000;
const TIMES: usize = 9;

/// Tells the slowest of a few.
pub async fn run() -> Result<()> {
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let service = open(folder.path(), None, |_| ()).await?;
    let first = service.first_run().await?.ok_or("the store is not new")?;
    let (app, key) = (first.app.id, first.api_key);
    let plan = make_plan(&service, &key).await?;
    make_workspaces(&service, &key, WORKSPACES).await?;
    let owners = owners(&service, app).await?;
    for (_, tenant) in &owners {
        put_on_plan(&service, &key, *tenant).await?;
    }
    service.drain().await?;

    let path = format!("/account/payments/plan/{}/dry-run", plan["id"].as_str().ok_or("no id")?);
    let change = json!({ "entitlements": { "api": true, "sso": true } }).to_string();
    let (mut dry_run, mut explain) = (Duration::ZERO, Duration::ZERO);
    let operator = format!("Bearer {OPERATOR}");
    for (_, tenant) in owners.iter().take(TIMES) {
        let began = Ticker.now();
        post(&service, &path, ("x-api-key", &key), &change, 200).await?;
        dry_run = dry_run.max(Ticker.since(began));
        let question = json!({ "workspaceId": tenant, "entitlement": "api" }).to_string();
        let began = Ticker.now();
        post(&service, &format!("/admin/apps/{app}/explain"), ("authorization", &operator), &question, 200).await?;
        explain = explain.max(Ticker.since(began));
    }
    println!(
        "{}",
        json!({ "workspaces": owners.len(), "dryRun": dry_run.as_secs_f64(), "explain": explain.as_secs_f64() })
    );
    Ok(())
}
