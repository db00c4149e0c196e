//! What was found about a batch: texts that begin with their place, a limited number of them.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// More than this many help nobody.
const MOST_SHOWN: usize = 1_000;
/// A place can hold a name that somebody chose.
const LONGEST: usize = 1_000;

/// Errors or warnings of one batch, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Findings {
    shown: Vec<String>,
    count: usize,
}

impl Findings {
    pub(crate) fn add(&mut self, place: impl Display, text: impl Display) {
        self.count += 1;
        if self.shown.len() < MOST_SHOWN {
            let finding: String = format!("{place}: {text}").chars().take(LONGEST).collect();
            self.shown.push(finding);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// At most 1,000 texts; the last one says how many there are besides.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts = self.shown.clone();
        if self.count > MOST_SHOWN {
            texts.truncate(MOST_SHOWN - 1);
            texts.push(format!("and {} more, which are not listed", self.count - texts.len()));
        }
        texts
    }
}

/// A longer value is not what somebody searches their file for.
const LONGEST_VALUE: usize = 200;

/// The problem with the text or number that has it, so that it can be found in a file. Nothing of a password is repeated.
pub(crate) fn with_value(problem: &str, given: &Value, member: &str) -> String {
    if member.split('.').any(|part| part == "password") {
        return problem.to_owned();
    }
    let pointer = format!("/{}", member.replace("].", "/").replace(']', "").replace(['.', '['], "/"));
    match given.pointer(&pointer) {
        Some(value @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => {
            let value = value.to_string();
            if value.len() <= LONGEST_VALUE { format!("{problem} (it is {value})") } else { problem.to_owned() }
        }
        _ => problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_value_is_named_unless_it_is_secret_or_long() {
        let given = json!({ "owner": { "username": "a\nda", "password": { "value": "5f4d" } }, "list": [{ "n": 7 }],
                            "name": "x".repeat(300), "metadata": { "a": 1 } });
        let told = |member: &str| with_value("is wrong", &given, member);
        assert_eq!(told("owner.username"), r#"is wrong (it is "a\nda")"#);
        assert_eq!(told("list[0].n"), "is wrong (it is 7)");
        for member in ["owner.password.value", "name", "metadata", "absent", "owner.absent", ""] {
            assert_eq!(told(member), "is wrong", "{member}");
        }
    }

    #[test]
    fn the_last_of_too_many_says_how_many_were_left_out() {
        let mut findings = Findings::default();
        (0..1_000).for_each(|number| findings.add(format_args!("[{number}]"), "is wrong"));
        assert_eq!(findings.texts().len(), 1_000);
        assert_eq!(findings.texts()[999], "[999]: is wrong");
        findings.add("[1000]", "is wrong");
        assert_eq!(findings.texts().len(), 1_000);
        assert_eq!(findings.texts()[999], "and 2 more, which are not listed");
    }
}
