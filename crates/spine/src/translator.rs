//! A machine translator that the operator runs or rents, spoken to in LibreTranslate's protocol. Answers are kept for a
//! day: apps ask for the same texts again and again.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kernel::{Secret, Tick, Ticker};
use serde::Deserialize;
use serde_json::json;
use url::Url;
use vault::sha256_bytes;

use crate::outbound::client_builder;

const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Of an answer, which is read whole.
const LARGEST: u64 = 1024 * 1024;
const KEPT_FOR: Duration = Duration::from_hours(24);
const MOST_KEPT: usize = 10_000;
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// A text in another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    pub text: String,
    /// The language that the translator found, when it was not told.
    pub detected: Option<String>,
}

/// Asks the configured translator.
pub struct Translator {
    client: reqwest::Client,
    url: Url,
    api_key: Option<String>,
    kept: Mutex<Kept>,
}

impl Translator {
    /// `None` for an empty URL. The error says what is wrong without repeating the URL: it may hold a key.
    pub fn from_url(url: &Secret<String>) -> Result<Option<Self>, String> {
        let text = url.expose().trim();
        if text.is_empty() {
            return Ok(None);
        }
        let mut url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("must be http(s)://…".into());
        }
        let api_key = url.password().map(str::to_owned);
        // Neither belongs into requests: the key goes into their bodies.
        let cleared = url.set_password(None).and_then(|()| url.set_username(""));
        cleared.map_err(|()| "must have a host".to_owned())?;
        url.path_segments_mut().map_err(|()| "must have a host".to_owned())?.pop_if_empty().push("translate");
        let client = client_builder().connect_timeout(Duration::from_secs(5)).timeout(TIME_LIMIT).build();
        let client = client.map_err(|error| format!("cannot make an HTTP client: {error}"))?;
        Ok(Some(Self { client, url, api_key, kept: Mutex::default() }))
    }

    /// The error is for the log: it says why there is no translation.
    pub async fn translate(&self, text: &str, source: Option<&str>, target: &str) -> Result<Translated, String> {
        let key = sha256_bytes(json!([text, source, target]).to_string().as_bytes());
        if let Some(known) = self.kept().get(&key) {
            return Ok(known);
        }
        let mut body = json!({ "q": text, "source": source.unwrap_or("auto"), "target": target, "format": "text" });
        if let Some(api_key) = &self.api_key {
            body["api_key"] = json!(api_key);
        }
        let answer = self.client.post(self.url.clone()).json(&body).send().await;
        let mut answer = answer.map_err(|error| error.without_url().to_string())?;
        if !answer.status().is_success() {
            return Err(format!("the translator answered {}", answer.status()));
        }
        let mut read = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| error.without_url().to_string())? {
            read.extend_from_slice(&chunk);
            if read.len() as u64 > LARGEST {
                return Err("the translator's answer is too large".into());
            }
        }
        let said: Said = serde_json::from_slice(&read).map_err(|error| format!("the translator's answer: {error}"))?;
        let translated = Translated {
            text: said.translated_text.replace('\0', ""),
            detected: said.detected_language.map(|detected| detected.language),
        };
        self.kept().put(key, translated.clone());
        Ok(translated)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    translated_text: String,
    detected_language: Option<Detected>,
}

#[derive(Deserialize)]
struct Detected {
    language: String,
}

/// The newest answers, by the digest of what was asked.
#[derive(Default)]
struct Kept {
    answers: HashMap<[u8; 32], Translated>,
    ages: VecDeque<([u8; 32], Tick)>,
    bytes: usize,
}

impl Kept {
    fn get(&mut self, key: &[u8; 32]) -> Option<Translated> {
        while self.ages.front().is_some_and(|(_, since)| Ticker.since(*since) > KEPT_FOR) {
            self.drop_oldest();
        }
        self.answers.get(key).cloned()
    }

    fn put(&mut self, key: [u8; 32], answer: Translated) {
        self.bytes += answer.text.len();
        if let Some(former) = self.answers.insert(key, answer) {
            self.bytes -= former.text.len();
            return;
        }
        self.ages.push_back((key, Ticker.now()));
        while self.ages.len() > MOST_KEPT || self.bytes > MOST_BYTES {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(gone) = self.ages.pop_front().and_then(|(key, _)| self.answers.remove(&key)) {
            self.bytes -= gone.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(text: &str) -> Translated {
        Translated { text: text.to_owned(), detected: None }
    }

    #[test]
    fn answers_are_kept_within_bounds() {
        let mut kept = Kept::default();
        for number in 0..=MOST_KEPT {
            kept.put(sha256_bytes(&number.to_le_bytes()), translated("x"));
        }
        assert_eq!((kept.answers.len(), kept.bytes), (MOST_KEPT, MOST_KEPT));
        assert_eq!(kept.get(&sha256_bytes(&0_usize.to_le_bytes())), None);
        kept.put([0; 32], translated(&"x".repeat(MOST_BYTES)));
        assert_eq!(kept.answers.len(), 1);
    }

    #[test]
    fn an_address_is_judged_when_it_is_given() {
        let read = |url: &str| Translator::from_url(&Secret::new(url.to_owned()));
        assert!(read("").is_ok_and(|none| none.is_none()));
        assert!(read("ftp://a.example").is_err() && read("nothing").is_err());
        let translator = read("https://:key@a.example/api/").ok().flatten().expect("a translator");
        assert_eq!(translator.url.as_str(), "https://a.example/api/translate");
        assert_eq!(translator.api_key.as_deref(), Some("key"));
    }
}
