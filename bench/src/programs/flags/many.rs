//! 100,000 flags over 1,000 apps: how long they take to load and what they weigh in memory.

use bench::{Result, process, subject::open};
use kernel::{AppId, Ticker};
use serde_json::json;

use super::sample;

const APPS: usize = 1_000;
const FLAGS_PER_APP: usize = 100;

const INSERT: &str = "INSERT INTO flags (id, app_id, key, definition, version, created_at, updated_at) \
                      SELECT id, app_id, key, definition, 1, 0, 0 FROM {rows} WHERE true";

pub async fn run() -> Result<()> {
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let service = open(folder.path(), None, |_| ()).await?;
    let core = service.core();
    for _ in 0..APPS {
        let app: AppId = core.db.ids().next();
        let ids: Vec<flags::model::FlagId> = (0..FLAGS_PER_APP).map(|_| core.db.ids().next()).collect();
        core.db
            .write(move |tx| {
                let definitions: Vec<(String, String)> = (0..FLAGS_PER_APP).map(definition).collect();
                let rows = ids.iter().zip(&definitions);
                let rows: Vec<_> = rows.map(|(id, (key, text))| (*id, app, key, text)).collect();
                tx.insert_all(INSERT, ["id", "app_id", "key", "definition"], &rows)?;
                tx.run("INSERT INTO flag_revisions (app_id, revision) VALUES ($1, 1)", &store::args![app])
            })
            .await?;
    }
    let me = std::process::id();
    let before = process::resident_megabytes(me)?;
    let started = Ticker.now();
    core.flags.load().await?;
    let seconds = Ticker.since(started).as_secs_f64();
    let peak = process::resident_megabytes(me)?;
    // Long enough for the allocator to give back what loading used for a while.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let after = process::resident_megabytes(me)?;
    let count = (APPS * FLAGS_PER_APP) as f64;
    let per_flag = |megabytes: f64| (megabytes - before) * 1024.0 * 1024.0 / count;
    let told = json!({ "seconds": seconds, "apps": APPS, "flags": count, "bytesPerFlag": per_flag(after),
                       "peakBytesPerFlag": per_flag(peak) });
    println!("{told}");
    Ok(())
}

fn definition(number: usize) -> (String, String) {
    let mut whole = json!({ "description": "", "valueType": "boolean", "offValue": false, "onValue": true });
    for (member, value) in sample::flag(number).as_object().into_iter().flatten() {
        whole[member] = value.clone();
    }
    (whole["key"].as_str().unwrap_or_default().to_owned(), whole.to_string())
}
