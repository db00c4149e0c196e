//! Validation that collects every wrong field before it answers, so that a caller mends a request once.
//!
//! ```
//! # use kernel::Problems;
//! let mut problems = Problems::new();
//! problems.text("name", "");
//! problems.check("trialDays", false, "must be at least 1");
//! assert_eq!(problems.finish().unwrap_err().details().len(), 2);
//! ```

use serde::Serialize;

use crate::{Error, Result};

/// Text members are limited to this many bytes unless they are content.
pub const MAX_TEXT: usize = 64 * 1024;
/// Lists are limited to this many entries, bulk import apart.
pub const MAX_LIST: usize = 1_000;

/// What a key looks like: the name by which programs know a role, a privilege or a plan. Without spaces, since
/// privileges are listed between spaces in tokens.
pub const KEY_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$";

/// One wrong field. `field` is its path in the request (`prices[0].amount`), `message` reads on from it ("must not be negative").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FieldProblem {
    pub field: String,
    pub message: String,
}

/// The wrong fields of one request.
#[derive(Debug, Default)]
pub struct Problems(Vec<FieldProblem>);

impl Problems {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldProblem { field: field.into(), message: message.into() });
    }

    pub fn check(&mut self, field: &str, holds: bool, message: &str) {
        if !holds {
            self.add(field, message);
        }
    }

    /// A required text: not blank, no NUL (PostgreSQL cannot store it), within the general limit.
    pub fn text(&mut self, field: &str, value: &str) {
        self.check(field, !value.trim().is_empty(), "must not be empty");
        self.optional_text(field, value);
    }

    /// A key, as [`KEY_PATTERN`] describes it.
    pub fn key(&mut self, field: &str, value: &str) {
        let fits = value.len() <= 128
            && value.starts_with(|first: char| first.is_ascii_alphanumeric())
            && value.chars().all(|character| character.is_ascii_alphanumeric() || "._:-".contains(character));
        self.check(
            field,
            fits,
            "must be 1 to 128 letters, digits, dots, colons, hyphens or underscores, a letter or digit first",
        );
    }

    /// A text that may be empty.
    pub fn optional_text(&mut self, field: &str, value: &str) {
        self.text_up_to(field, value, MAX_TEXT);
    }

    /// A text that may be empty, with a limit of its own in bytes.
    pub fn text_up_to(&mut self, field: &str, value: &str, limit: usize) {
        self.check(field, !value.contains('\0'), "must not contain a NUL character");
        if value.len() > limit {
            self.add(field, format!("must not be longer than {limit} bytes"));
        }
    }

    pub fn list<T>(&mut self, field: &str, entries: &[T]) {
        if entries.len() > MAX_LIST {
            self.add(field, format!("must not have more than {MAX_LIST} entries"));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `Ok` when nothing was wrong, else one error that names everything.
    pub fn finish(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::invalid_fields(self.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_words_for_programs() {
        for (key, fits) in [
            ("OWNER", true),
            ("reports:read", true),
            ("1.a-b_c", true),
            ("", false),
            ("a b", false),
            ("_a", false),
            ("ä", false),
        ] {
            let mut problems = Problems::new();
            problems.key("key", key);
            assert_eq!(problems.is_empty(), fits, "{key}");
        }
    }

    #[test]
    fn collects_every_problem_in_order() {
        let mut problems = Problems::new();
        problems.text("name", "  ");
        problems.text("note", "a\0b");
        problems.text("fine", "x");
        problems.list("tags", &[0; MAX_LIST + 1]);
        let error = problems.finish().expect_err("three problems");
        let fields: Vec<_> = error.details().iter().map(|d| d.field.as_str()).collect();
        assert_eq!(fields, ["name", "note", "tags"]);
    }
}
