//! Why a request's value does not fit its type, told in words: which member it was and what it must be.

use std::fmt;

use kernel::{Error, FieldProblem};
use serde::de::{self, Expected, Unexpected};

/// One misfit. The path grows from the inside out while the readers return.
#[derive(Debug)]
pub(super) struct Problem {
    path: Vec<Step>,
    message: String,
}

#[derive(Debug)]
pub(super) enum Step {
    Member(String),
    Entry(usize),
}

impl Problem {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { path: Vec::new(), message: message.into() }
    }

    pub(super) fn at(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }

    /// `prices[0].amount`, or `body` when the whole of it does not fit.
    fn field(&self, whole: &str) -> String {
        let mut field = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Member(name) if field.is_empty() => field.push_str(name),
                Step::Member(name) => field.extend([".", name]),
                Step::Entry(place) => field.push_str(&format!("[{place}]")),
            }
        }
        if field.is_empty() { whole.to_owned() } else { field }
    }

    /// Together with what the schema found, which knows the limits too. `whole` names what was read, for a problem that
    /// is not inside any member of it.
    pub(super) fn among(self, whole: &str, mut others: Vec<FieldProblem>) -> Error {
        let field = self.field(whole);
        // Of a flattened member reading does not know the name, but the schema does.
        let vague = self.path.is_empty() && !others.is_empty();
        if !vague && others.iter().all(|other| other.field != field) {
            others.insert(0, FieldProblem { field, message: self.message });
        }
        Error::invalid_fields(others)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(must_be(&expected.to_string()))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match (unexpected, must_be(&expected.to_string())) {
            (Unexpected::Signed(_) | Unexpected::Unsigned(_), message) if message == "must be an integer" => {
                Self::new("is out of range")
            }
            (_, message) => Self::new(message),
        }
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::new(must_be(&expected.to_string()))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("must be one of {}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("is required").at(Step::Member(field.to_owned()))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new("is given twice").at(Step::Member(field.to_owned()))
    }
}

/// Serde says what it expected in Rust's words; callers know JSON's.
fn must_be(expected: &str) -> String {
    let what = match expected {
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        "a borrowed string" | "str" => "a string",
        "unit" => "null",
        other if other.starts_with("struct ") || other == "a map" => "an object",
        other if other.starts_with("a sequence") || other.starts_with("tuple ") || other.starts_with("a tuple") => {
            "a list"
        }
        other if other.starts_with("enum ") || other.contains("variant") => "one of the documented values",
        other => other,
    };
    format!("must be {what}")
}
