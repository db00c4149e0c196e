//! One file per command. Each prints for a person, or JSON when asked.

pub mod apps;
pub mod archives;
pub mod backup;
pub mod billing;
pub mod config;
pub mod doctor;
mod event_export;
pub mod events;
mod flag_file;
pub mod flags;
pub mod generate;
pub mod imports;
pub mod keys;
pub mod migrate_to;
pub mod operator_key;
mod progress;
pub mod secrets;
pub mod serve;
pub mod signing_keys;
pub mod webhooks;

use std::{
    fmt::Display,
    io::{self, Write as _},
};

use serde_json::Value;

use crate::cli::Output;

/// Prints a line. Fails once nobody reads it any more, as behind `head`: a command that would print forever stops then, all
/// others ignore it.
pub fn say(line: impl Display) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}

/// Prints `answer` as JSON when asked, else what `readable` makes of it.
fn print(output: Output, answer: &Value, readable: impl FnOnce(&Value) -> String) {
    let _ = if output.json { say(format_args!("{answer:#}")) } else { say(readable(answer)) };
}

/// A text member of an answer.
fn text<'a>(answer: &'a Value, pointer: &str) -> &'a str {
    answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Rows in columns as wide as their widest cell.
fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(&mut header.iter().copied())];
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines.join("\n")
}
