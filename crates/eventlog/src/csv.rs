//! Cells of CSV.

use std::borrow::Cow;

/// As RFC 4180 has it.
pub fn cell(text: &str) -> String {
    if text.contains(['"', ',', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// For files that people open in a spreadsheet: a text that it would take for a formula gets an apostrophe before it. Names are
/// chosen by strangers, and formulas can send what is in other cells elsewhere.
pub fn without_formula(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text() {
        for text in ["=1+1", "+1", "-1", "@A1", "\t=1", "\r=1"] {
            assert_eq!(without_formula(text), format!("'{text}"));
        }
        assert_eq!(without_formula("a=1"), "a=1");
    }
}
