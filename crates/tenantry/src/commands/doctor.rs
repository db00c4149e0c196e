//! `tenantry doctor`: looks for what is wrong and says how to mend it. Fails when something is.

use serde_json::Value;

use super::{print, text};
use crate::{api::Api, cli::Output};

/// Whether everything is well enough.
pub async fn run(api: &Api, output: Output) -> Result<bool, String> {
    let report = api.get("/admin/doctor").await?;
    let findings: Vec<&Value> = report["findings"].as_array().into_iter().flatten().collect();
    let sick = findings.iter().any(|finding| finding["level"] == "problem");
    print(output, &report, |_| {
        let mut lines: Vec<String> = findings.iter().map(|finding| line(finding)).collect();
        lines.push(if sick { "\nSome problems need fixing." } else { "\nEverything is fine." }.to_owned());
        lines.join("\n")
    });
    Ok(!sick)
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
