//! What the storage takes as our word: signed addresses, and the form that a file is posted with (AWS Signature Version 4).
//! Pure: the same inputs give the same letters, and they are those that AWS's own libraries write.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kernel::{Error, Result, Timestamp};
use rusty_s3::{Method, signing::sign};
use serde_json::json;
use url::Url;
use vault::{hmac_sha256, hmac_sha256_hex};

use super::S3Address;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// What a form is answered with.
const POSTED: &str = "204";

/// A request as it is signed. Without a key it is about the bucket itself.
pub(super) struct Unsigned<'a> {
    pub(super) method: Method,
    pub(super) key: Option<&'a str>,
    pub(super) query: &'a [(&'a str, &'a str)],
    /// Names in lower case. They have to be sent along.
    pub(super) headers: &'a [(&'a str, &'a str)],
}

impl S3Address {
    /// The request's address, for as long as it says.
    pub(super) fn signed(&self, request: &Unsigned<'_>, now: Timestamp, lasts: Duration) -> Result<Url> {
        let url = match request.key {
            Some(key) => self.bucket.object_url(key),
            None => self.bucket.base_url().clone(),
        };
        let (mut query, mut headers) = (request.query.to_vec(), request.headers.to_vec());
        query.sort_unstable();
        headers.sort_unstable();
        let signed = sign(
            &instant(now)?,
            request.method,
            url,
            &self.key,
            self.secret.expose(),
            None,
            self.bucket.region(),
            lasts.as_secs().max(1),
            query.into_iter(),
            headers.into_iter(),
        );
        Ok(signature_last(signed))
    }

    /// Where a form is posted to.
    pub(super) fn form_url(&self) -> String {
        let url = self.bucket.base_url().as_str();
        if self.path_style { url.trim_end_matches('/').to_owned() } else { url.to_owned() }
    }

    /// The fields of a form with which whoever has it may post one object: under this key, of this type, and no larger.
    pub fn form(&self, allowed: &Allowed<'_>, now: Timestamp) -> Result<BTreeMap<&'static str, String>> {
        let (date, day) = (written(now, "%Y%m%dT%H%M%SZ")?, written(now, "%Y%m%d")?);
        let until = written(now.plus(allowed.lasts), "%Y-%m-%dT%H:%M:%SZ")?;
        let credential = format!("{}/{day}/{}/s3/aws4_request", self.key, self.bucket.region());
        let conditions = [
            equal("Content-Type", allowed.content_type),
            equal("success_action_status", POSTED),
            format!("[\"content-length-range\", 0, {}]", allowed.max_bytes),
            equal("bucket", self.bucket.name()),
            equal("key", allowed.key),
            equal("x-amz-algorithm", ALGORITHM),
            equal("x-amz-credential", &credential),
            equal("x-amz-date", &date),
        ];
        let policy = format!("{{\"expiration\": \"{until}\", \"conditions\": [{}]}}", conditions.join(", "));
        let policy = STANDARD.encode(policy);
        let signature = hmac_sha256_hex(&self.signing_key(&day), policy.as_bytes());
        Ok(BTreeMap::from([
            ("key", allowed.key.to_owned()),
            ("Content-Type", allowed.content_type.to_owned()),
            ("success_action_status", POSTED.to_owned()),
            ("x-amz-algorithm", ALGORITHM.to_owned()),
            ("x-amz-credential", credential),
            ("x-amz-date", date),
            ("policy", policy),
            ("x-amz-signature", signature),
        ]))
    }

    fn signing_key(&self, day: &str) -> [u8; 32] {
        let start = hmac_sha256(format!("AWS4{}", self.secret.expose()).as_bytes(), day.as_bytes());
        [self.bucket.region(), "s3", "aws4_request"].iter().fold(start, |key, word| hmac_sha256(&key, word.as_bytes()))
    }
}

/// What a form is good for.
pub struct Allowed<'a> {
    pub key: &'a str,
    pub content_type: &'a str,
    pub max_bytes: u64,
    pub lasts: Duration,
}

/// In the order in which AWS's libraries write it: what was asked for first. The signature is over the sorted one.
fn signature_last(mut url: Url) -> Url {
    let query = url.query().unwrap_or_default().to_owned();
    let (signature, asked): (Vec<&str>, Vec<&str>) = query.split('&').partition(|pair| pair.starts_with("X-Amz-"));
    let mut ordered = asked.join("&");
    for pair in signature {
        let _ = write!(ordered, "{}{pair}", if ordered.is_empty() { "" } else { "&" });
    }
    url.set_query(Some(&ordered));
    url
}

fn equal(name: &str, value: &str) -> String {
    format!("{{{}: {}}}", json!(name), json!(value))
}

fn instant(at: Timestamp) -> Result<jiff::Timestamp> {
    jiff::Timestamp::from_second(at.as_seconds()).map_err(Error::internal)
}

fn written(at: Timestamp, form: &str) -> Result<String> {
    Ok(instant(at)?.strftime(form).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> S3Address {
        S3Address::from_url(
            "s3://AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI%2FK7MDENG%2FbPxRfiCYEXAMPLEKEY@s3.amazonaws.com/examplebucket",
        )
        .expect("an address")
    }

    /// The worked example of AWS's documentation for signed addresses.
    #[test]
    fn an_address_is_signed_as_the_documentation_shows() {
        let request = Unsigned { method: Method::Get, key: Some("test.txt"), query: &[], headers: &[] };
        let now = Timestamp::from_seconds(1_369_353_600);
        let url = address().signed(&request, now, Duration::from_hours(24)).expect("signed");
        assert_eq!(
            url.as_str(),
            "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z\
             &X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        );
    }

    #[test]
    fn what_was_asked_for_stands_before_the_signature() {
        let query = [("response-content-type", "text/plain"), ("response-content-disposition", "inline; x")];
        let request = Unsigned { method: Method::Get, key: Some("a"), query: &query, headers: &[] };
        let url = address().signed(&request, Timestamp::from_seconds(0), Duration::from_secs(60)).expect("signed");
        let query = url.query().expect("a query");
        let start = "response-content-disposition=inline%3B%20x&response-content-type=text%2Fplain&X-Amz-Algorithm=";
        assert!(query.starts_with(start), "{query}");
    }

    #[test]
    fn a_form_says_all_that_it_allows() {
        let content_type = "text/plain; title=\"a\\b\"";
        let allowed = Allowed { key: "tenantry/tmp/x", content_type, max_bytes: 7, lasts: Duration::from_mins(15) };
        let now = Timestamp::from_seconds(1_369_353_600);
        let fields = address().form(&allowed, now).expect("a form");
        let policy = STANDARD.decode(&fields["policy"]).expect("base64");
        let policy: serde_json::Value = serde_json::from_slice(&policy).expect("JSON");
        assert_eq!(policy["expiration"], "2013-05-24T00:15:00Z");
        assert_eq!(policy["conditions"][2], json!(["content-length-range", 0, 7]));
        // Whatever is sent along has to be allowed, and is.
        for (name, value) in &fields {
            let is_allowed = policy["conditions"].as_array().expect("a list").contains(&json!({ *name: value }));
            assert_eq!(is_allowed, !["policy", "x-amz-signature"].contains(name), "{name}");
        }
    }
}
