//! The route table: which route exists, who may call it and which file serves it. The authorization test walks it,
//! and `docs/routes.md` and `docs/errors.md` are written from here.

use std::fmt::Write as _;

use http::Method;
use kernel::Code;

use crate::{Access, Routes, status_of};

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEntry {
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    pub summary: &'static str,
    pub file: &'static str,
    pub tag: &'static str,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// Every route in order of registration, hidden ones too.
    pub fn table(&self) -> Vec<RouteEntry> {
        let entry = |route: &crate::routes::Route| RouteEntry {
            method: route.method.clone(),
            path: route.path,
            access: route.operation.access,
            summary: route.summary,
            file: route.file,
            tag: route.tag,
        };
        self.listed().map(entry).collect()
    }
}

/// `docs/routes.md`: from a path to the file that serves it, by heading.
pub fn routes_markdown(table: &[RouteEntry]) -> String {
    let mut text =
        String::from("# Routes\n\nGenerated from the registered routes; each path also answers under `/v1`.\n");
    let mut tags: Vec<&str> = table.iter().map(|entry| entry.tag).collect();
    let mut seen = Vec::new();
    tags.retain(|tag| {
        !seen.contains(tag) && {
            seen.push(*tag);
            true
        }
    });
    for tag in tags {
        let _ = write!(text, "\n## {tag}\n\n| method | path | who | what | file |\n|---|---|---|---|---|\n");
        for entry in table.iter().filter(|entry| entry.tag == tag) {
            let RouteEntry { method, path, access, summary, file, .. } = entry;
            let _ = writeln!(text, "| {method} | `{path}` | {access} | {summary} | `{file}` |");
        }
    }
    text
}

/// `docs/errors.md`: every error code with its status and meaning.
pub fn errors_markdown() -> String {
    let mut text = String::from(
        "# Errors\n\nGenerated from the list of codes. Every failure has `statusCode`, `error` (the code), `message` and \
         `requestId`; validation errors also have `details`.\n\n| status | error | meaning |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        let _ = writeln!(text, "| {} | `{}` | {} |", status_of(code.kind()).as_u16(), code.as_str(), code.meaning());
    }
    text
}
