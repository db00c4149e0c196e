//! What a JSON schema says about a text: length, pattern and format. This is where a text is judged, whether it stands
//! in a body, in a query or in the program itself.

use std::borrow::Cow;

use regex::Regex;
use serde_json::Value;

use super::{e164, is_host_name, is_origin, is_redirect_uri, is_web_url};
use crate::{Country, Currency, Timestamp, is_email};

/// The schema's own keyword for a limit in bytes: of a text in UTF-8, of anything else as JSON.
pub const MAX_BYTES: &str = "x-maxBytes";
/// The schema's own keyword for what to say when pattern or format do not fit.
pub const MESSAGE: &str = "x-message";

type Predicate = fn(&str) -> bool;

/// What patterns cannot say.
const FORMATS: [(&str, Predicate); 9] = [
    ("email", is_email),
    ("web-url", is_web_url),
    ("redirect-uri", is_redirect_uri),
    ("web-origin", is_origin),
    ("hostname", is_host_name),
    ("phone-number", |text| e164(text).is_some()),
    ("date-time", |text| text.parse::<Timestamp>().is_ok()),
    ("country-code", |text| text.parse::<Country>().is_ok()),
    ("currency-code", |text| text.parse::<Currency>().is_ok()),
];

/// The rules of one text, read from its schema once.
#[derive(Clone, Debug, Default)]
pub struct TextRules {
    shortest: usize,
    longest: Option<usize>,
    most_bytes: Option<usize>,
    pattern: Option<Regex>,
    format: Option<Predicate>,
    reserved: Vec<String>,
    message: Option<String>,
}

impl TextRules {
    /// Keywords that are not about texts are passed over.
    ///
    /// # Panics
    /// For a pattern that is not a regular expression: schemas are written by us.
    pub fn of(schema: &Value) -> Self {
        let number = |keyword: &str| schema[keyword].as_u64().and_then(|value| usize::try_from(value).ok());
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let format = schema["format"].as_str();
        Self {
            shortest: number("minLength").unwrap_or(0),
            longest: number("maxLength"),
            most_bytes: number(MAX_BYTES),
            pattern: schema["pattern"].as_str().map(|text| Regex::new(text).expect("a schema's pattern is valid")),
            format: FORMATS.iter().find(|(name, _)| Some(*name) == format).map(|(_, holds)| *holds),
            reserved: schema["not"]["enum"].as_array().into_iter().flatten().filter_map(text).collect(),
            message: schema[MESSAGE].as_str().map(str::to_owned),
        }
    }

    /// What is wrong with the text, in words that follow its field's name.
    pub fn problem(&self, text: &str) -> Option<String> {
        self.find(text).map(Cow::into_owned)
    }

    fn find(&self, text: &str) -> Option<Cow<'_, str>> {
        // PostgreSQL cannot store it.
        if text.contains('\0') {
            return Some("must not contain a NUL character".into());
        }
        let characters = if text.len() > self.longest.unwrap_or(usize::MAX) || text.len() < self.shortest * 4 {
            text.chars().count()
        } else {
            // Enough to be long enough, and not too long: no need to count.
            self.shortest
        };
        if characters < self.shortest || (self.shortest > 0 && text.trim().is_empty() && self.pattern.is_some()) {
            return Some(match self.shortest {
                1 => "must not be empty".into(),
                shortest => format!("must be at least {shortest} characters").into(),
            });
        }
        if let Some(longest) = self.longest.filter(|longest| characters > *longest) {
            return Some(format!("must be at most {longest} characters").into());
        }
        if let Some(most) = self.most_bytes.filter(|most| text.len() > *most) {
            return Some(format!("must be at most {most} bytes").into());
        }
        if self.reserved.iter().any(|reserved| reserved == text) {
            return Some(format!("must not be one of {}", self.reserved.join(", ")).into());
        }
        let fits = self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
            && self.format.is_none_or(|holds| holds(text));
        (!fits).then(|| self.message.as_deref().unwrap_or("does not have the documented form").into())
    }
}
