//! `tenantry dev generate`: the files under `docs/` that are made from the code.

use std::path::Path;

use super::say;
use crate::config::reference_page;

pub fn run(check: bool) -> Result<(), String> {
    let documents = service::documents();
    let files = [
        ("docs/openapi.json", format!("{:#}\n", documents.openapi)),
        ("docs/routes.md", documents.routes),
        ("docs/errors.md", documents.errors),
        ("docs/facts.md", documents.facts),
        ("docs/configuration.md", reference_page()),
    ];
    let mut stale = Vec::new();
    for (path, fresh) in &files {
        if std::fs::read_to_string(path).is_ok_and(|present| present == *fresh) {
            continue;
        }
        if check {
            stale.push(*path);
        } else {
            write(Path::new(path), fresh)?;
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("Stale: {}. Run scripts/generate and commit the result.", stale.join(", ")))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("Cannot write {}: {error}", path.display()))?;
    let _ = say(format_args!("wrote {}", path.display()));
    Ok(())
}
