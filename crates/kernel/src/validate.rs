//! Validation that collects every wrong field before it answers, so that a caller fixes a request once.
//!
//! ```
//! # use kernel::Problems;
//! let mut problems = Problems::new();
//! problems.check("name", false, "must not be empty");
//! problems.check("trialDays", false, "must be at least 1");
//! assert_eq!(problems.finish().unwrap_err().details().len(), 2);
//! ```

use serde::Serialize;

use crate::{Error, Result};

/// One wrong field. `field` is its path in the request (`prices[0].amount`), `message` reads on from it ("must not be negative").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FieldProblem {
    pub field: String,
    pub message: String,
}

/// The wrong fields of one request.
#[derive(Debug, Default)]
pub struct Problems(Vec<FieldProblem>);

impl From<Vec<FieldProblem>> for Problems {
    fn from(found: Vec<FieldProblem>) -> Self {
        Self(found)
    }
}

impl Problems {
    pub fn new() -> Self {
        Self::default()
    }

    /// What was said first about a field stands.
    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        let field = field.into();
        if self.0.iter().all(|known| known.field != field) {
            self.0.push(FieldProblem { field, message: message.into() });
        }
    }

    /// Adds what a text type says is wrong with a text, if anything.
    pub fn add_some(&mut self, field: &str, problem: Option<String>) {
        if let Some(problem) = problem {
            self.add(field, problem);
        }
    }

    pub fn check(&mut self, field: &str, holds: bool, message: &str) {
        if !holds {
            self.add(field, message);
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
    fn collects_every_problem_in_order_and_each_field_once() {
        let mut problems = Problems::new();
        problems.check("name", false, "must not be empty");
        problems.check("fine", true, "must not be empty");
        problems.add("tags", "is unknown");
        problems.add("name", "is unknown");
        let error = problems.finish().expect_err("two problems");
        let told: Vec<_> = error.details().iter().map(|d| (d.field.as_str(), d.message.as_str())).collect();
        assert_eq!(told, [("name", "must not be empty"), ("tags", "is unknown")]);
    }
}
