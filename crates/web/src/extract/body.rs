//! The JSON body of a request, read and validated before the handler sees it.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http_body_util::BodyExt;
use kernel::{Code, Error, FieldProblem, Problems, Result, text::read_refused};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{MediaType, json, reader, survey};
use crate::{Describe, Failure, Operation};

/// The rules of a request beyond its schema: those that span members, or that no schema can say. All problems are
/// collected before any is answered.
pub trait Validate {
    fn validate(&self, _: &mut Problems) {}
}

/// A JSON body that fits its type and its rules. Unknown members are ignored.
#[derive(Clone, Copy, Debug)]
pub struct Valid<T>(pub T);

impl<S: Sync, T: DeserializeOwned + JsonSchema + Validate + 'static> FromRequest<S> for Valid<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        Ok(Self(from_json(&json_bytes(request).await?)?))
    }
}

async fn json_bytes(request: Request) -> Result<Bytes> {
    let media_type = MediaType::of(request.headers());
    if matches!(media_type, MediaType::Form | MediaType::Other) {
        return Err(not_json());
    }
    let bytes = collect(request).await?;
    if media_type == MediaType::Missing && !bytes.is_empty() { Err(not_json()) } else { Ok(bytes) }
}

/// The same where the body may be left out, because every member of it may be.
#[derive(Clone, Copy, Debug)]
pub struct ValidOrNone<T>(pub Option<T>);

impl<S: Sync, T: DeserializeOwned + JsonSchema + Validate + 'static> FromRequest<S> for ValidOrNone<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let bytes = json_bytes(request).await?;
        Ok(Self(if bytes.is_empty() { None } else { Some(from_json(&bytes)?) }))
    }
}

impl<T: JsonSchema> Describe for ValidOrNone<T> {
    fn describe(operation: &mut Operation) {
        operation.body::<T>().body_may_be_left_out();
    }
}

impl<T: JsonSchema> Describe for Valid<T> {
    fn describe(operation: &mut Operation) {
        operation.body::<T>();
    }
}

/// Reads and validates JSON from elsewhere by the same rules as a body.
pub fn from_json<T: DeserializeOwned + JsonSchema + Validate + 'static>(bytes: &[u8]) -> Result<T> {
    from_value(&read_json(bytes)?)
}

/// JSON as bodies have it: every member once, and nested within bounds.
pub fn read_json(bytes: &[u8]) -> Result<Value> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::new(Code::MalformedJson, "The body is empty; send a JSON object."));
    }
    json::parse(bytes).map_err(|error| Error::new(Code::MalformedJson, format!("The body is not valid JSON: {error}.")))
}

/// The same for JSON that was parsed already, such as an entry of a list.
pub fn from_value<T: DeserializeOwned + JsonSchema + Validate + 'static>(value: &Value) -> Result<T> {
    let found = survey::problems::<T>(value);
    if !found.is_empty() {
        return Err(with_rules_across_members::<T>(value, found));
    }
    let read: T = reader::read(value).map_err(|problem| problem.among("body", found))?;
    let mut problems = Problems::new();
    read.validate(&mut problems);
    problems.finish()?;
    Ok(read)
}

/// Adds what spans members, if the body can be read at all, to what the schema found.
fn with_rules_across_members<T: DeserializeOwned + Validate>(value: &Value, found: Vec<FieldProblem>) -> Error {
    match read_refused(|| reader::read::<T>(value)) {
        Err(problem) => problem.among("body", found),
        Ok(read) => {
            let mut problems = Problems::from(found.clone());
            read.validate(&mut problems);
            problems.finish().err().unwrap_or_else(|| Error::invalid_fields(found))
        }
    }
}

/// 415, for whoever reads JSON in a way of its own.
pub fn not_json() -> Error {
    Error::new(Code::UnsupportedMediaType, "Send the body as JSON with `Content-Type: application/json`.")
}

/// It has arrived before the handler was called.
pub(super) async fn collect(request: Request) -> Result<Bytes> {
    let collected = request.into_body().collect().await.map_err(Error::internal)?;
    Ok(collected.to_bytes())
}

/// The body as it came, for what is signed or is not JSON.
#[derive(Clone, Debug)]
pub struct RawBody(pub Bytes);

impl<S: Sync> FromRequest<S> for RawBody {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        Ok(Self(collect(request).await?))
    }
}

impl Describe for RawBody {
    fn describe(operation: &mut Operation) {
        operation.raw_body("application/octet-stream");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Patch;
    use kernel::Name;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "some members are only judged")]
    struct Plan {
        #[serde(default)]
        trial_days: u32,
        #[serde(default)]
        prices: Vec<Price>,
        #[serde(default)]
        interval: Option<Interval>,
        #[serde(default)]
        note: Patch<String>,
        #[serde(default)]
        metadata: Option<Value>,
        #[serde(default)]
        #[schemars(length(min = 2), inner(range(min = 1, max = 3)))]
        steps: Option<Vec<u32>>,
        #[serde(default)]
        name: Option<Name>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "some members are only judged")]
    struct Price {
        #[schemars(range(min = 0))]
        amount: f64,
        currency: String,
    }

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Interval {
        Month,
        Year,
    }

    impl Validate for Plan {
        fn validate(&self, problems: &mut Problems) {
            for (place, price) in self.prices.iter().enumerate() {
                problems.check(&format!("prices[{place}]"), price.currency != "DEM", "must not be in a past currency");
            }
        }
    }

    fn problem(json: &str) -> String {
        let error = from_json::<Plan>(json.as_bytes()).unwrap_err();
        assert_eq!(error.code(), Code::ValidationFailed, "{error:?}");
        error.public().to_owned()
    }

    #[test]
    fn names_the_field_and_what_it_must_be() {
        for (json, message) in [
            (r#"{"prices":[{"amount":"1","currency":"EUR"}]}"#, "prices[0].amount must be a number"),
            (r#"{"prices":[{"amount":1}]}"#, "prices[0].currency is required"),
            (r#"{"prices":[{"amount":1,"currency":3}]}"#, "prices[0].currency must be a string"),
            (r#"{"prices":[{"amount":-1,"currency":"EUR"}]}"#, "prices[0].amount must not be negative"),
            (r#"{"prices":[[1,"EUR"]]}"#, "prices[0] must be an object"),
            (r#"{"prices":{}}"#, "prices must be a list"),
            (r#"{"trialDays":1.5}"#, "trialDays must be an integer"),
            (r#"{"trialDays":"1"}"#, "trialDays must be an integer"),
            (r#"{"trialDays":-1}"#, "trialDays must not be negative"),
            (r#"{"trialDays":99999999999}"#, "trialDays must be between 0 and 4294967295"),
            (r#"{"interval":"decade"}"#, "interval must be one of month, year"),
            (r#"{"interval":7}"#, "interval must be one of month, year"),
            (r#"{"note":[]}"#, "note must be a string"),
            (r#"{"note":"a\u0000b"}"#, "note must not contain a NUL character"),
            (r#"{"metadata":{"a":["\u0000"]}}"#, "metadata.a[0] must not contain a NUL character"),
            (r#"{"steps":[1]}"#, "steps must have at least 2 entries"),
            (r#"{"steps":[1,4]}"#, "steps[1] must be between 1 and 3"),
            (r#"{"name":" "}"#, "name must not be empty"),
            (r#"{"name":"a\nb"}"#, "name must be one line without control characters"),
            (r#"{"name":7}"#, "name must be a string"),
            (r#"{"prices":[{"amount":1,"currency":null}]}"#, "prices[0].currency must be a string"),
            ("[]", "body must be an object"),
            ("3", "body must be an object"),
            ("null", "body must be an object"),
        ] {
            assert_eq!(problem(json), message, "{json}");
        }
    }

    #[test]
    fn names_every_misfit_at_once() {
        let json = br#"{"trialDays":"1","prices":[{"amount":"1"},{"currency":"EUR"},[]],"note":7,"metadata":null,
            "interval":"day","steps":[1,9,"2"],"name":""}"#;
        let error = from_json::<Plan>(json).unwrap_err();
        let told: Vec<String> = error.details().iter().map(|one| format!("{} {}", one.field, one.message)).collect();
        assert_eq!(
            told,
            [
                "trialDays must be an integer",
                "prices[0].currency is required",
                "prices[0].amount must be a number",
                "prices[1].amount is required",
                "prices[2] must be an object",
                "interval must be one of month, year",
                "note must be a string",
                "steps[1] must be between 1 and 3",
                "steps[2] must be an integer",
                "name must not be empty",
            ]
        );
    }

    #[test]
    fn wrong_values_and_what_spans_members_are_named_together() {
        let json = br#"{"prices":[{"amount":-1,"currency":"EUR"},{"amount":1,"currency":"DEM"}],"name":" "}"#;
        let error = from_json::<Plan>(json).unwrap_err();
        let fields: Vec<&str> = error.details().iter().map(|one| one.field.as_str()).collect();
        assert_eq!(fields, ["prices[0].amount", "name", "prices[1]"]);
    }

    #[test]
    fn texts_and_lists_have_limits_without_saying_so() {
        let (text, list) = ("a".repeat(65_537), vec![json!({ "amount": 1, "currency": "EUR" }); 1_001]);
        let error = from_json::<Plan>(json!({ "note": text, "prices": list }).to_string().as_bytes()).unwrap_err();
        let told: Vec<String> = error.details().iter().map(|one| format!("{} {}", one.field, one.message)).collect();
        assert_eq!(told, ["prices must have at most 1000 entries", "note must be at most 65536 characters"]);
    }

    #[test]
    fn a_whole_float_is_an_integer_and_unknown_members_are_ignored() {
        let plan: Plan =
            from_json(br#"{"trialDays":309.0,"prices":[{"amount":3,"currency":"EUR"}],"x":[{}]}"#).unwrap();
        assert_eq!(plan.trial_days, 309);
        assert_eq!(plan.prices[0].currency, "EUR");
        assert_eq!(from_json::<Plan>(br#"{"interval":"year"}"#).unwrap().interval, Some(Interval::Year));
        assert_eq!(from_json::<Plan>(br#"{"trialDays":1e2}"#).unwrap().trial_days, 100);
        let plan: Plan = from_json(br#"{"metadata":{"a":[1,2.5,null,true]}}"#).unwrap();
        assert_eq!(plan.metadata, Some(serde_json::json!({ "a": [1, 2.5, null, true] })));
    }

    #[test]
    fn what_is_no_json_is_malformed() {
        for junk in ["", "  ", "{", "{\"a\":}", "\u{0}", r#"{"note":"a","note":"b"}"#, r#"{"x":[{"a":1,"\u0061":1}]}"#]
        {
            assert_eq!(from_json::<Plan>(junk.as_bytes()).unwrap_err().code(), Code::MalformedJson, "{junk}");
        }
        assert_eq!(from_json::<Plan>(b"\xff").unwrap_err().code(), Code::MalformedJson);
        assert_eq!(from_json::<Plan>("[".repeat(10_000).as_bytes()).unwrap_err().code(), Code::MalformedJson);
    }

    #[test]
    fn a_patch_tells_missing_from_null() {
        assert_eq!(from_json::<Plan>(b"{}").unwrap().note, Patch::Missing);
        assert_eq!(from_json::<Plan>(br#"{"note":null}"#).unwrap().note, Patch::Null);
        assert_eq!(from_json::<Plan>(br#"{"note":"x"}"#).unwrap().note, Patch::Value("x".to_owned()));
    }
}
