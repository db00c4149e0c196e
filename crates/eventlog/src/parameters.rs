//! What an event's parameters feed. Pure.
//!
//! Strings and booleans are counted by value, numbers are summed, identifiers name entities; `null` and nested values are
//! kept and feed nothing.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::{Label, text::MAX_TEXT};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// Counts what has no counter of its own.
pub const OTHER: &str = "__other__";
/// Stands where an identifier was that is erased.
pub const ERASED: &str = "__erased__";
/// Longer texts are counted as [`OTHER`].
const LONGEST_VALUE: usize = 256;
/// Fields that bring an event into the audit trail though they are no identifiers.
const ALLOWED: [&str; 4] = [EMAIL, "plan", "billingSource", "origin"];
/// Whoever is meant by `actor`.
pub const ACTORS: [&str; 4] = ["actorId", "userId", "user_id", EMAIL];
pub const EMAIL: &str = "email";

/// Parameters by name: at most 100, and 64 KiB as JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parameters(pub Map<String, Value>);

impl JsonSchema for Parameters {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "EventParameters".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let names = Label::json_schema(generator);
        json_schema!({
            "type": "object",
            "maxProperties": 100,
            "propertyNames": names,
            "additionalProperties": true,
            "x-maxBytes": MAX_TEXT,
        })
    }
}

/// Strings and whole numbers of such a name are identifiers.
pub fn names_identifier(name: &str) -> bool {
    name.ends_with("id") || name.ends_with("Id")
}

/// The identifier that a parameter holds.
pub fn identifier<'a>(name: &str, value: &'a Value) -> Option<Cow<'a, str>> {
    if names_identifier(name) { entity_value(value) } else { None }
}

/// Whether values of such a name can be looked for in the audit trail.
pub fn is_traced(name: &str) -> bool {
    name == EMAIL || names_identifier(name)
}

/// The value by which the audit trail finds an event: that of an identifier, or an email address.
pub fn traced<'a>(name: &str, value: &'a Value) -> Option<Cow<'a, str>> {
    if is_traced(name) { entity_value(value) } else { None }
}

fn entity_value(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => digits(number).map(Cow::Owned),
        _ => None,
    }
}

/// Of a whole number, however it was written.
fn digits(number: &Number) -> Option<String> {
    if number.is_i64() || number.is_u64() {
        return Some(number.to_string());
    }
    let float = number.as_f64().filter(|float| float.is_finite() && float.fract() == 0.0)?;
    // Minus zero is zero.
    Some(format!("{:.0}", float + 0.0))
}

/// What a parameter adds to in its bucket.
#[derive(Debug, PartialEq)]
pub enum Feed<'a> {
    Value(&'a str),
    Number(f64),
}

pub fn feed(value: &Value) -> Option<Feed<'_>> {
    match value {
        Value::String(text) => {
            let fits = text.len() <= LONGEST_VALUE || text.chars().nth(LONGEST_VALUE).is_none();
            Some(Feed::Value(if fits { text } else { OTHER }))
        }
        Value::Bool(true) => Some(Feed::Value("true")),
        Value::Bool(false) => Some(Feed::Value("false")),
        Value::Number(_) => Some(Feed::Number(addend(value))),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What a value adds to a sum: nothing unless it is a number. Larger numbers count as the largest, of which more can be
/// added up than there will ever be events: PostgreSQL refuses a sum that overflows.
pub fn addend(value: &Value) -> f64 {
    value.as_f64().map_or(0.0, addend_of)
}

/// The same of a number, which JSON can say.
#[inline]
pub fn addend_of(number: f64) -> f64 {
    const LARGEST: f64 = 1e290;
    if number.is_finite() { number.clamp(-LARGEST, LARGEST) } else { 0.0 }
}

/// Whether a parameter is part of the audit trail.
fn is_extracted(name: &str, value: &Value) -> bool {
    let plain = matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_));
    ALLOWED.contains(&name) && plain || identifier(name, value).is_some()
}

pub fn is_audited(parameters: &Map<String, Value>) -> bool {
    parameters.iter().any(|(name, value)| is_extracted(name, value))
}

/// What the audit trail shows of an event.
pub fn extracted(parameters: Map<String, Value>) -> Map<String, Value> {
    parameters.into_iter().filter(|(name, value)| is_extracted(name, value)).collect()
}

/// Stands for an entity, however long its value is: 16 characters, since there are very many.
pub fn entity_digest(parameter: &str, value: &str) -> String {
    // A name has no control characters, so that nothing else has the same text.
    let digest = vault::sha256_bytes(format!("{parameter}\0{value}").as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(&digest[..12])
}

/// Stands for an `ingestId`.
pub fn ingest_digest(ingest_id: &str) -> Vec<u8> {
    vault::sha256_bytes(ingest_id.as_bytes())[..16].to_vec()
}

/// Whether a filter's value is that of a parameter: the type counts, and 20 is 20.0.
pub fn equals(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Number(one), Value::Number(other)) => same_number(one, other),
        _ => wanted == found,
    }
}

fn same_number(one: &Number, other: &Number) -> bool {
    match (
        one.as_i64().map(i128::from).or(one.as_u64().map(i128::from)),
        other.as_i64().map(i128::from).or(other.as_u64().map(i128::from)),
    ) {
        (Some(one), Some(other)) => one == other,
        _ => one.as_f64() == other.as_f64(),
    }
}

/// A sum as JSON: whole where it is whole, and never beyond what JSON can say.
pub fn number(sum: f64) -> Number {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if sum.fract() == 0.0 && sum.abs() < EXACT {
        // Whole and below 2^53: exact.
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        return Number::from(sum as i64);
    }
    // What is not a number is no sum either.
    Number::from_f64(sum.clamp(f64::MIN, f64::MAX)).unwrap_or_else(|| Number::from(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strings_and_whole_numbers_of_such_a_name_are_identifiers() {
        for (name, value, expected) in [
            ("userId", json!("u1"), Some("u1")),
            ("user_id", json!(42), Some("42")),
            ("id", json!(42.0), Some("42")),
            ("orderid", json!(-7), Some("-7")),
            ("orderId", json!(1e20), Some("100000000000000000000")),
            ("orderId", json!(u64::MAX), Some("18446744073709551615")),
            ("orderId", json!(-0.0), Some("0")),
            ("orderId", json!(1.5), None),
            ("orderId", json!(true), None),
            ("orderId", json!(null), None),
            ("orderId", json!(["a"]), None),
            ("orderID", json!("a"), None),
            ("plan", json!("a"), None),
        ] {
            assert_eq!(identifier(name, &value).as_deref(), expected, "{name} {value}");
        }
    }

    #[test]
    fn long_texts_are_counted_with_the_others() {
        let (longest, beyond) = ("é".repeat(256), "é".repeat(257));
        assert_eq!(feed(&json!(longest)), Some(Feed::Value(&longest)));
        assert_eq!(feed(&json!(beyond)), Some(Feed::Value(OTHER)));
        assert_eq!(feed(&json!(false)), Some(Feed::Value("false")));
        assert_eq!(feed(&json!(2.5)), Some(Feed::Number(2.5)));
        assert_eq!((feed(&json!(null)), feed(&json!({})), feed(&json!([1]))), (None, None, None));
    }

    #[test]
    fn numbers_are_compared_by_value_and_types_count() {
        assert!(equals(&json!(20), &json!(20.0)) && equals(&json!(null), &json!(null)));
        assert!(!equals(&json!("20"), &json!(20)) && !equals(&json!(0), &json!(false)));
        assert!(!equals(&json!(9_007_199_254_740_993_i64), &json!(9_007_199_254_740_992_i64)));
    }

    #[test]
    fn sums_are_numbers_that_json_can_say() {
        let shown = |sum: f64| number(sum).to_string();
        assert_eq!((shown(30.0), shown(0.5), shown(-0.0)), ("30".into(), "0.5".into(), "0".into()));
        assert_eq!(
            (shown(f64::INFINITY), shown(f64::NAN)),
            (f64::MAX.to_string().parse::<f64>().map(|max| number(max).to_string()).expect("a number"), "0".into())
        );
    }

    #[test]
    fn the_trail_shows_identifiers_and_the_listed_fields() {
        let all = json!({ "userId": "u", "plan": "pro", "origin": null, "email": "a@b", "note": "x", "rowId": true });
        let Value::Object(all) = all else { panic!("an object") };
        assert!(is_audited(&all));
        assert_eq!(Value::from(extracted(all)), json!({ "userId": "u", "plan": "pro", "email": "a@b" }));
    }
}
