//! `tenantry import tenants|template`.

use std::{path::Path, sync::Arc, time::Duration};

use kernel::Ticker;
use serde_json::{Value, json};

use super::{flags, progress::ProgressBar, say, text};
use crate::{
    api::{Api, Upload},
    cli::{ImportCommand, Output, TemplateFormat},
};

/// What one call takes; said before anything is sent.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// How often a running import is looked at.
const PACE: Duration = Duration::from_millis(500);
/// After this time somebody who waits is told that nothing has begun.
const UNUSUAL: Duration = Duration::from_secs(10);

/// Plans are the app's own, which is why no example names one.
pub fn template(format: TemplateFormat) -> &'static str {
    match format {
        TemplateFormat::Json => include_str!("import_template.json"),
        TemplateFormat::Csv => include_str!("import_template.csv"),
    }
}

/// Whether nothing was wrong.
pub async fn run(api: &Api, command: ImportCommand) -> Result<bool, String> {
    // The example needs no server: it was printed before.
    let ImportCommand::Tenants { file, dry_run, wait, no_webhooks, of, output } = command else { return Ok(true) };
    if wait && api.is_without_server() {
        return Err("There is no running server here to wait for. Start one, or name it with --url.".into());
    }
    let size = file.metadata().map_err(|error| format!("Cannot read {}: {error}", file.display()))?.len();
    if size > MAX_BYTES {
        return Err(format!("{} has more than 64 MiB. Split it into several files.", file.display()));
    }
    let base = format!("/admin/apps/{}/import", flags::app(api, &of, None).await?);
    if dry_run {
        let report = send(api, &format!("{base}/validateTenants"), &file, size, output).await?;
        tell(output, &report, |report| judged(report, "Nothing was imported."));
        return Ok(report["approved"] == true);
    }
    let answer = send(api, &format!("{base}/tenants?webhooks={}", !no_webhooks), &file, size, output).await?;
    tell(output, &answer, |answer| taken(answer, api));
    match answer["reference"].as_str() {
        None => Ok(false),
        Some(reference) if wait => watch(api, &format!("{base}/status/{reference}"), output).await,
        Some(_) => Ok(true),
    }
}

async fn send(api: &Api, path: &str, file: &Path, size: u64, output: Output) -> Result<Value, String> {
    let is_csv = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let content_type = if is_csv { "text/csv" } else { "application/json" };
    let bar = Arc::new(ProgressBar::new("Sending", size, output));
    let shown = Arc::clone(&bar);
    let watcher = Arc::new(move |sent| shown.show(sent));
    let sent = api.upload(path, &Upload { file, content_type, secret: None, watcher: Some(watcher) }).await;
    bar.clear();
    sent.map_err(|error| match is_csv {
        true => error,
        false => format!("{error}\nThe file was read as JSON; a table is read as one if its name ends with .csv."),
    })
}

/// Until the import has ended: whether everybody was imported.
async fn watch(api: &Api, path: &str, output: Output) -> Result<bool, String> {
    let (begun, mut is_warned, mut told) = (Ticker.now(), false, Value::Null);
    let mut bar = None;
    loop {
        let status = api.get(path).await?;
        let users = |pointer: &str| status.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
        let bar = bar.get_or_insert_with(|| ProgressBar::new("Importing", users("/import/users"), output));
        bar.show(users("/progress/users"));
        let state = text(&status, "/status");
        if matches!(state, "COMPLETED" | "ERROR") {
            bar.clear();
            tell(output, &status, ended);
            return Ok(state == "COMPLETED" && list(&status["import"], "errors").is_empty());
        }
        let progress = json!([state, status["progress"]]);
        if output.json && progress != told {
            let _ = say(&status);
        }
        told = progress;
        if state == "SCHEDULED" && !is_warned && Ticker.since(begun) > UNUSUAL {
            is_warned = true;
            eprintln!("No server has begun with it yet. Is one running?");
        }
        tokio::time::sleep(PACE).await;
    }
}

/// A line of JSON when asked, else what `readable` makes of it.
fn tell(output: Output, answer: &Value, readable: impl FnOnce(&Value) -> String) {
    let _ = if output.json { say(answer) } else { say(readable(answer)) };
}

fn taken(answer: &Value, api: &Api) -> String {
    let Some(reference) = answer["reference"].as_str() else {
        return judged(&answer["import"], "Nothing was imported.");
    };
    let when = match api.is_without_server() {
        true => "It is carried out once the server runs.",
        false => "It is carried out in the background.",
    };
    judged(&answer["import"], &format!("{when} Its reference is {reference}."))
}

/// What was found about a file.
fn judged(report: &Value, then: &str) -> String {
    let verdict = if report["approved"] == true { "The file is right" } else { "The file cannot be imported" };
    format!("{verdict}: {}. {then}{}", counted(report, "/tenants", "/users"), findings(report))
}

fn ended(status: &Value) -> String {
    let counts = counted(status, "/progress/tenants", "/progress/users");
    format!("Imported {counts}.{}", findings(&status["import"]))
}

fn counted(of: &Value, tenants: &str, users: &str) -> String {
    let count = |pointer: &str| of.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    format!("{} workspaces, {} users", count(tenants), count(users))
}

/// Each with its place, under a heading.
fn findings(report: &Value) -> String {
    let mut told = String::new();
    for (heading, member) in [("Errors", "errors"), ("Warnings", "warnings")] {
        let texts = list(report, member);
        if !texts.is_empty() {
            told += &format!("\n\n{heading}:");
        }
        for finding in texts.iter().filter_map(Value::as_str) {
            // A terminal obeys some characters, and what stands in a file may be anybody's.
            let safe: String = finding.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
            told += &format!("\n  {safe}");
        }
    }
    told
}

fn list<'a>(report: &'a Value, member: &str) -> &'a [Value] {
    report[member].as_array().map_or(&[], Vec::as_slice)
}
