//! What was found about a batch: texts that begin with their place, a limited number of them.

use serde::{Deserialize, Serialize};

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
    pub(crate) fn add(&mut self, place: &str, text: &str) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_too_many_says_how_many_were_left_out() {
        let mut findings = Findings::default();
        (0..1_000).for_each(|number| findings.add(&format!("[{number}]"), "is wrong"));
        assert_eq!(findings.texts().len(), 1_000);
        assert_eq!(findings.texts()[999], "[999]: is wrong");
        findings.add("[1000]", "is wrong");
        assert_eq!(findings.texts().len(), 1_000);
        assert_eq!(findings.texts()[999], "and 2 more, which are not listed");
    }
}
