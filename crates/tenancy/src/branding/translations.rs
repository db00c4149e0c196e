//! An app's words: a flat map of texts, as the service says them, to what this app's people read instead.

use std::collections::BTreeMap;

use kernel::{
    Problems,
    text::{MAX_CONTENT, MAX_LIST},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::Validate;

/// Source text to translated text. One map serves all hosted pages and mails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("maxProperties" = MAX_LIST))]
pub struct Translations(BTreeMap<String, String>);

impl Translations {
    /// The translation, or the text itself when there is none.
    pub fn get<'a>(&'a self, text: &'a str) -> &'a str {
        self.find(text).unwrap_or(text)
    }

    pub fn find(&self, text: &str) -> Option<&str> {
        self.0.get(text).map(String::as_str).filter(|translated| !translated.is_empty())
    }
}

impl FromIterator<(String, String)> for Translations {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl Validate for Translations {
    fn validate(&self, problems: &mut Problems) {
        let size: usize = self.0.iter().map(|(from, to)| from.len() + to.len()).sum();
        if size > MAX_CONTENT {
            problems.add("body", format!("must not be longer than {MAX_CONTENT} bytes"));
        }
    }
}
