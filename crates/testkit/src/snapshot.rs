//! Bodies for snapshots: what differs from run to run is hidden, but only where its form is right. Whatever has another
//! form stays visible, and the snapshot fails.

use std::collections::BTreeMap;

use kernel::Timestamp;
use serde_json::Value;

/// The body as readable JSON in which ids, times and API keys are replaced by what they are.
pub fn redacted(body: &Value) -> String {
    format!("{:#}", hidden(body))
}

fn hidden(value: &Value) -> Value {
    match value {
        Value::String(text) => form(text).map_or_else(|| value.clone(), Value::from),
        Value::Array(list) => list.iter().map(hidden).collect(),
        // Sorted: a dependency of some test may switch the order of JSON members from names to insertion.
        Value::Object(members) => {
            let sorted: BTreeMap<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), hidden(value))).collect();
            sorted.into_iter().collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn form(text: &str) -> Option<String> {
    if is_timestamp(text) {
        return Some("[time]".into());
    }
    let (prefix, rest) = text.rsplit_once('_')?;
    if is_id(prefix, rest) {
        return Some(format!("[{prefix} id]"));
    }
    let kind = match prefix {
        "tnt" => "[API key]",
        "op" => "[operator key]",
        _ => return None,
    };
    let is_key = rest.len() == 43 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_key.then(|| kind.into())
}

/// RFC 3339 in UTC with milliseconds, exactly as the service writes it.
fn is_timestamp(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok_and(|parsed| parsed.to_string() == text)
}

/// A TypeID that holds a UUIDv7.
fn is_id(prefix: &str, suffix: &str) -> bool {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    if prefix.is_empty() || !prefix.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
        return false;
    }
    let digit =
        |byte: u8| ALPHABET.iter().position(|known| *known == byte).and_then(|value| u128::try_from(value).ok());
    let digits: Option<Vec<u128>> = suffix.bytes().map(digit).collect();
    let Some(digits) = digits.filter(|digits| digits.len() == 26 && digits[0] < 8) else { return false };
    let uuid = digits.iter().fold(0u128, |number, digit| number << 5 | digit);
    let (version, variant) = (uuid >> 76 & 0xf, uuid >> 62 & 0b11);
    version == 7 && variant == 0b10
}

#[cfg(test)]
mod tests {
    use kernel::{AppId, Clock, Entropy, IdSource};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_its_form_is_hidden_and_the_rest_stays() {
        let id: AppId = IdSource::new(Clock::system(), Entropy::os()).next();
        let body = json!({ "id": id, "at": "2026-01-31T09:30:00.000Z", "key": format!("tnt_{}", "a".repeat(43)) });
        assert_eq!(hidden(&body), json!({ "id": "[app id]", "at": "[time]", "key": "[API key]" }));
        for other in ["app_1", "2026-01-31T09:30:00Z", "2026-01-31T10:30:00.000+01:00", "tnt_short", "plain", "a_b"] {
            assert_eq!(form(other), None, "{other}");
        }
        // A random number in the form of an id is not a UUIDv7.
        assert_eq!(form("app_00000000000000000000000001"), None);
    }
}
