//! The query string, read into a type with the API's error shape.

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{
    Code, Error, Result,
    text::{MAX_QUERY_TEXT, MAX_TEXT},
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{reader, survey};
use crate::{Describe, Failure, Operation};

/// Query parameters: the members of `T`, by name. Unknown ones are ignored; a list takes a name given several times.
#[derive(Clone, Copy, Debug)]
pub struct Params<T>(pub T);

impl<S: Sync, T: DeserializeOwned + JsonSchema + 'static> FromRequestParts<S> for Params<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Ok(Self(from_texts(parts.uri.query().unwrap_or_default(), Place::Query)?))
    }
}

impl<T: JsonSchema> Describe for Params<T> {
    fn describe(operation: &mut Operation) {
        operation.query::<T>();
    }
}

/// The query, read like [`Params`], beside its text: for a handler that answers a malformed one in a way of its own.
pub struct LenientParams<T> {
    pub read: Result<T>,
    pub text: String,
}

impl<S: Sync, T: DeserializeOwned + JsonSchema + 'static> FromRequestParts<S> for LenientParams<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let text = parts.uri.query().unwrap_or_default();
        Ok(Self { read: from_texts(text, Place::Query), text: text.to_owned() })
    }
}

impl<T: JsonSchema> Describe for LenientParams<T> {
    fn describe(operation: &mut Operation) {
        Params::<T>::describe(operation);
    }
}

/// Where `name=value&…` was found.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Query,
    Form,
}

/// Reads and validates `name=value&…`.
pub(super) fn from_texts<T: DeserializeOwned + JsonSchema + 'static>(texts: &str, place: Place) -> Result<T> {
    let (place, longest) = match place {
        Place::Query => ("query", MAX_QUERY_TEXT),
        Place::Form => ("form", MAX_TEXT),
    };
    let texts = Value::Object(parse(texts)?);
    let found = survey::problems_of_texts::<T>(&texts, longest);
    match reader::read_texts::<T>(&texts) {
        Ok(read) if found.is_empty() => Ok(read),
        Ok(_) => Err(Error::invalid_fields(found)),
        Err(problem) => Err(problem.among(place, found)),
    }
}

/// Texts by name; a name given several times has a list of them.
fn parse(query: &str) -> Result<Map<String, Value>> {
    let mut texts = Map::new();
    for (name, value) in form_fields(query)? {
        let value = Value::String(value);
        match texts.entry(name) {
            serde_json::map::Entry::Vacant(place) => {
                place.insert(value);
            }
            serde_json::map::Entry::Occupied(mut place) => match place.get_mut() {
                Value::Array(several) => several.push(value),
                one => *one = Value::Array(vec![one.take(), value]),
            },
        }
    }
    Ok(texts)
}

/// The names and values of `name=value&…`, decoded, in their order.
pub fn form_fields(text: &str) -> Result<Vec<(String, String)>> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(n, v)| Ok((decode(n)?, decode(v)?))).collect()
}

/// Form decoding: `+` is a space, `%41` a byte. A `%` that starts no byte stands for itself, as browsers have it.
fn decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        rest = if escaped.is_some() { &tail[2..] } else { tail };
        bytes.push(escaped.unwrap_or(if *first == b'+' { b' ' } else { *first }));
    }
    String::from_utf8(bytes)
        .map_err(|_| Error::new(Code::MalformedRequest, "A name or a value is not valid UTF-8 once decoded."))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use kernel::Page;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Search {
        text: String,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(default)]
        exact: bool,
        page: Option<i32>,
    }

    fn read<T: DeserializeOwned + JsonSchema + 'static>(query: &str) -> Result<T> {
        from_texts(query, Place::Query)
    }

    #[test]
    fn texts_become_what_the_type_asks_for() {
        let search: Search = read("text=a+b%2B%C3%A9%zz&tags=x&tags=y&exact=true&page=-3&other=1").unwrap();
        assert_eq!(search.text, "a b+é%zz");
        assert_eq!((search.tags, search.exact, search.page), (vec!["x".into(), "y".into()], true, Some(-3)));
        assert_eq!(read::<Search>("text=1&tags=x").unwrap().tags, ["x"]);
    }

    #[test]
    fn misfits_name_the_parameter() {
        for (query, message) in [
            ("", "text is required"),
            ("text=a&text=b", "text must be given once"),
            ("text=a&exact=yes", "exact must be true or false"),
            ("text=a&page=", "page must be an integer"),
            ("text=a&page=x", "page must be an integer"),
            ("text=%00", "text must not contain a NUL character"),
        ] {
            assert_eq!(read::<Search>(query).unwrap_err().public(), message, "{query}");
        }
        assert_eq!(read::<Search>("text=%ff").unwrap_err().code(), Code::MalformedRequest);
    }

    #[test]
    fn a_page_is_bounded() {
        for (query, fits) in [("", true), ("limit=1000&offset=5", true), ("limit=0", false), ("limit=1001", false)] {
            assert_eq!(from_texts::<Page>(query, Place::Query).is_ok(), fits, "{query}");
        }
    }
}
