//! `tenantry doctor`: looks for what is wrong and says how to fix it. Fails when something is.

use serde_json::{Value, json};

use super::{print, text};
use crate::{api::Api, cli::Output};

/// Whether everything is well enough.
pub async fn run(api: &Api, output: Output) -> Result<bool, String> {
    let mut report = api.get("/admin/doctor").await?;
    if let Some(findings) = report["findings"].as_array_mut() {
        findings.insert(0, server(api));
    }
    let findings: Vec<&Value> = report["findings"].as_array().into_iter().flatten().collect();
    let count = |level: &str| findings.iter().filter(|finding| finding["level"] == level).count();
    let (problems, warnings) = (count("problem"), count("warning"));
    print(output, &report, |_| {
        let mut lines: Vec<String> = findings.iter().map(|finding| line(finding)).collect();
        lines.push(match (problems, warnings) {
            (0, 0) => "\nEverything is fine.".to_owned(),
            (0, warnings) => format!("\nNo problems. Warnings: {warnings}."),
            (problems, _) => format!("\nSome problems need fixing: {problems}."),
        });
        lines.join("\n")
    });
    Ok(problems == 0)
}

/// Whether anybody serves this installation, as far as can be told from here.
fn server(api: &Api) -> Value {
    let own = "the settings below are those of this command";
    match api {
        Api::Remote { base, .. } => json!({ "check": "server", "level": "ok", "message": format!("{base} responds") }),
        Api::Socket(_) => {
            json!({ "check": "server", "level": "ok", "message": "the server of this data folder responds" })
        }
        Api::Local(service) if service.core().db.is_single_node() => json!({
            "check": "server", "level": "problem", "message": format!("no server is running on this store; {own}"),
            "remedy": "Start it: tenantry serve."
        }),
        Api::Local(_) => json!({
            "check": "server", "level": "warning", "message": format!("the store was looked at, and no server was asked; {own}"),
            "remedy": "Name a server with --url to have it examined."
        }),
    }
}

fn line(finding: &Value) -> String {
    let mark = match text(finding, "/level") {
        "ok" => "ok      ",
        "warning" => "warning ",
        _ => "PROBLEM ",
    };
    let remedy = text(finding, "/remedy");
    let remedy = if remedy.is_empty() { String::new() } else { format!("\n          → {remedy}") };
    format!("{mark}  {}: {}{remedy}", text(finding, "/check"), text(finding, "/message"))
}
