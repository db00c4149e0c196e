//! What one condition asks of one value, compiled: lists sorted, bounds reduced to the one that matters, times and
//! versions parsed. Comparison is typed and case-sensitive: a text is never a number.

use std::{cmp::Ordering, sync::OnceLock};

use kernel::Timestamp;
use regex::Regex;
use semver::Version;
use serde_json::Value;

use super::json::{Json, Number};
use crate::model::Operator;

/// The positive form of an operator; [`super::Flag`] keeps beside it whether the answer is turned round.
#[derive(Debug)]
pub(super) enum Test {
    Equals(Scalars),
    Contains(Scalars),
    StartsWith(Box<[Box<str>]>),
    EndsWith(Box<[Box<str>]>),
    /// Above (or at, when inclusive) the least of the values.
    Above {
        bound: Number,
        inclusive: bool,
    },
    Below {
        bound: Number,
        inclusive: bool,
    },
    Before(Timestamp),
    After(Timestamp),
    Matches(Box<[Pattern]>),
    Semver(Ordering, Box<[Version]>),
    Exists,
}

/// What a value must be that does not suit its operator; reads on from the value's name.
pub(super) type Misfit = &'static str;

impl Test {
    pub(super) fn new(operator: Operator, values: &[Value]) -> Result<Self, Misfit> {
        match operator {
            Operator::Eq | Operator::Neq | Operator::In | Operator::NotIn => Ok(Self::Equals(Scalars::new(values)?)),
            Operator::Contains | Operator::NotContains => Ok(Self::Contains(Scalars::new(values)?)),
            Operator::StartsWith => Ok(Self::StartsWith(texts(values)?)),
            Operator::EndsWith => Ok(Self::EndsWith(texts(values)?)),
            Operator::Gt | Operator::Gte => {
                let bound = extreme(each(values, number)?, Ordering::Less);
                Ok(Self::Above { bound, inclusive: operator == Operator::Gte })
            }
            Operator::Lt | Operator::Lte => {
                let bound = extreme(each(values, number)?, Ordering::Greater);
                Ok(Self::Below { bound, inclusive: operator == Operator::Lte })
            }
            // No value at all matches nothing: nothing is before the first instant nor after the last.
            Operator::Before => Ok(Self::Before(each(values, time)?.into_iter().max().unwrap_or(Timestamp::MIN))),
            Operator::After => Ok(Self::After(each(values, time)?.into_iter().min().unwrap_or(Timestamp::MAX))),
            Operator::Matches => Ok(Self::Matches(each(values, Pattern::new)?.into())),
            Operator::SemverGt => Ok(Self::Semver(Ordering::Greater, each(values, version)?.into())),
            Operator::SemverLt => Ok(Self::Semver(Ordering::Less, each(values, version)?.into())),
            Operator::SemverEq => Ok(Self::Semver(Ordering::Equal, each(values, version)?.into())),
            Operator::Exists | Operator::NotExists => Ok(Self::Exists),
        }
    }

    /// Whether any of the values does what the operator says.
    pub(super) fn holds(&self, seen: &Json<'_>) -> bool {
        match (self, seen) {
            (Self::Exists, _) => true,
            (Self::Equals(values), seen) => values.has(seen),
            (Self::Contains(values), Json::Text(text)) => values.texts.iter().any(|part| text.contains(&**part)),
            (Self::Contains(values), Json::List(entries)) => entries.iter().any(|entry| values.has(entry)),
            (Self::StartsWith(values), Json::Text(text)) => values.iter().any(|part| text.starts_with(&**part)),
            (Self::EndsWith(values), Json::Text(text)) => values.iter().any(|part| text.ends_with(&**part)),
            (Self::Above { bound, inclusive }, Json::Number(number)) => {
                if *inclusive {
                    number >= bound
                } else {
                    number > bound
                }
            }
            (Self::Below { bound, inclusive }, Json::Number(number)) => {
                if *inclusive {
                    number <= bound
                } else {
                    number < bound
                }
            }
            (Self::Before(bound), Json::Text(text)) => text.parse().is_ok_and(|time: Timestamp| time < *bound),
            (Self::After(bound), Json::Text(text)) => text.parse().is_ok_and(|time: Timestamp| time > *bound),
            (Self::Matches(patterns), Json::Text(text)) => patterns.iter().any(|pattern| pattern.is_match(text)),
            (Self::Semver(order, versions), Json::Text(text)) => parse_version(text)
                .is_some_and(|seen| versions.iter().any(|version| seen.cmp_precedence(version) == *order)),
            _ => false,
        }
    }
}

/// Values to be equal to: texts sorted, because lists of ids can be long.
#[derive(Debug)]
pub(super) struct Scalars {
    texts: Box<[Box<str>]>,
    others: Box<[Other]>,
}

#[derive(Debug, PartialEq)]
enum Other {
    Null,
    Bool(bool),
    Number(Number),
}

impl Scalars {
    fn new(values: &[Value]) -> Result<Self, Misfit> {
        let (mut texts, mut others) = (Vec::new(), Vec::new());
        for value in values {
            match value {
                Value::String(text) => texts.push(text.as_str().into()),
                Value::Null => others.push(Other::Null),
                Value::Bool(value) => others.push(Other::Bool(*value)),
                Value::Number(number) => others.push(Other::Number(Number::of(number))),
                _ => return Err("must be a string, a number, a boolean or null"),
            }
        }
        texts.sort_unstable();
        texts.dedup();
        Ok(Self { texts: texts.into(), others: others.into() })
    }

    fn has(&self, seen: &Json<'_>) -> bool {
        let other = match seen {
            Json::Text(text) => return self.has_text(text),
            Json::Null => Other::Null,
            Json::Bool(value) => Other::Bool(*value),
            Json::Number(number) => Other::Number(*number),
            Json::List(_) | Json::Object(_) => return false,
        };
        self.others.contains(&other)
    }

    fn has_text(&self, text: &str) -> bool {
        match &*self.texts {
            [only] => **only == *text,
            texts => texts.binary_search_by(|known| (**known).cmp(text)).is_ok(),
        }
    }
}

/// A pattern that was checked when it was saved and is compiled when it is first needed: a compiled one is large, and
/// most flags of most apps sleep.
#[derive(Debug)]
pub(super) struct Pattern {
    text: Box<str>,
    compiled: OnceLock<Option<Regex>>,
}

const MAX_PATTERN: usize = 1_024;
/// Of the text that is held against a pattern, in bytes.
const MAX_MATCHED: usize = 4 * 1024;
/// Of the compiled program, in bytes.
const MAX_PROGRAM: usize = 512 * 1024;

impl Pattern {
    fn new(value: &Value) -> Result<Self, Misfit> {
        let text = value.as_str().ok_or("must be a string")?;
        if text.len() > MAX_PATTERN {
            return Err("must not be longer than 1024 bytes");
        }
        Ok(Self { text: text.into(), compiled: OnceLock::new() })
    }

    fn compile(text: &str) -> Option<Regex> {
        regex::RegexBuilder::new(text).size_limit(MAX_PROGRAM).dfa_size_limit(MAX_PROGRAM).build().ok()
    }

    /// A long text never matches: the worst patterns take milliseconds for each kilobyte.
    fn is_match(&self, text: &str) -> bool {
        text.len() <= MAX_MATCHED
            && self
                .compiled
                .get_or_init(|| Self::compile(&self.text))
                .as_ref()
                .is_some_and(|regex| regex.is_match(text))
    }
}

/// Whether a pattern compiles within the limits; asked when it is saved.
pub(super) fn is_pattern(text: &str) -> bool {
    text.len() <= MAX_PATTERN && Pattern::compile(text).is_some()
}

fn each<T>(values: &[Value], read: impl Fn(&Value) -> Result<T, Misfit>) -> Result<Vec<T>, Misfit> {
    values.iter().map(read).collect()
}

fn texts(values: &[Value]) -> Result<Box<[Box<str>]>, Misfit> {
    Ok(each(values, |value| value.as_str().map(Box::from).ok_or("must be a string"))?.into())
}

fn number(value: &Value) -> Result<Number, Misfit> {
    match value {
        Value::Number(number) => Ok(Number::of(number)),
        _ => Err("must be a number"),
    }
}

fn time(value: &Value) -> Result<Timestamp, Misfit> {
    let time = value.as_str().and_then(|text| text.parse().ok());
    time.ok_or("must be an RFC 3339 timestamp such as 2026-01-31T09:30:00Z")
}

fn version(value: &Value) -> Result<Version, Misfit> {
    value.as_str().and_then(parse_version).ok_or("must be a version such as 1.2.3")
}

/// Semantic versions, and what people write for them: `1`, `1.2`, `v1.2.3`.
fn parse_version(text: &str) -> Option<Version> {
    if text.len() > 256 {
        return None;
    }
    let text = text.strip_prefix('v').unwrap_or(text);
    let core = text.split(['-', '+']).next().unwrap_or_default();
    match core.bytes().filter(|byte| *byte == b'.').count() {
        0 | 1 if !core.is_empty() => {
            let zeros = if core.contains('.') { ".0" } else { ".0.0" };
            Version::parse(&format!("{core}{zeros}{}", &text[core.len()..])).ok()
        }
        _ => Version::parse(text).ok(),
    }
}

/// The least (or greatest) of the bounds, since any of them may be passed. No bound at all is passed by nothing.
fn extreme(numbers: Vec<Number>, wanted: Ordering) -> Number {
    let better = |one: Number, other: Number| if other.partial_cmp(&one) == Some(wanted) { other } else { one };
    numbers.into_iter().reduce(better).unwrap_or(Number::Float(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn holds(operator: Operator, values: &Value, seen: &Value) -> bool {
        let values = values.as_array().expect("a list").clone();
        let test = Test::new(operator, &values).expect("values suit the operator");
        test.holds(&Json::owned(seen)) != operator.is_negative()
    }

    #[test]
    fn each_operator_compares_typed_and_case_sensitive() {
        use Operator::{
            After, Before, Contains, EndsWith, Eq, Exists, Gt, Gte, In, Lt, Lte, Matches, Neq, NotContains, NotExists,
            NotIn, SemverEq, SemverGt, SemverLt, StartsWith,
        };
        for (operator, values, seen, expected) in [
            (SemverGt, json!(["2.0.0", "1.0.0"]), json!("1.5.0"), true),
            (SemverGt, json!(["2.0.0", "3.0.0"]), json!("1.5.0"), false),
            (SemverLt, json!(["1.0.0", "2.0.0"]), json!("1.5.0"), true),
            (SemverLt, json!(["1.0.0", "0.9.0"]), json!("1.5.0"), false),
            (SemverEq, json!(["1.0.0", "1.5.0"]), json!("1.5"), true),
            (Eq, json!(["pro"]), json!("pro"), true),
            (Eq, json!(["pro"]), json!("Pro"), false),
            (Eq, json!([1]), json!("1"), false),
            (Eq, json!([1]), json!(1.0), true),
            (Eq, json!([9007199254740993_i64]), json!(9007199254740992_i64), false),
            (Eq, json!([true]), json!("true"), false),
            (Eq, json!([null]), json!(null), true),
            (Eq, json!([0]), json!(null), false),
            (Eq, json!(["a", "b"]), json!("b"), true),
            (Eq, json!(["a"]), json!(["a"]), false),
            (Neq, json!(["a", "b"]), json!("b"), false),
            (Neq, json!(["a", "b"]), json!("c"), true),
            (Neq, json!(["1"]), json!(1), true),
            (In, json!(["a", "b", 3]), json!(3), true),
            (NotIn, json!(["a", "b", 3]), json!(4), true),
            (Contains, json!(["x", "li"]), json!("Alice"), true),
            (Contains, json!(["al"]), json!("Alice"), false),
            (Contains, json!(["beta"]), json!(["alpha", "beta"]), true),
            (Contains, json!([3]), json!([1, 3]), true),
            (Contains, json!([3]), json!("3"), false),
            (NotContains, json!(["beta"]), json!(["alpha"]), true),
            (NotContains, json!(["li", "x"]), json!("Alice"), false),
            (StartsWith, json!(["Al"]), json!("Alice"), true),
            (StartsWith, json!(["al"]), json!("Alice"), false),
            (EndsWith, json!(["@x.io", "@y.io"]), json!("a@y.io"), true),
            (Gt, json!([10, 5]), json!(6), true),
            (Gt, json!([5]), json!(5), false),
            (Gt, json!([5]), json!("6"), false),
            (Gte, json!([5]), json!(5.0), true),
            (Lt, json!([1, 3]), json!(2), true),
            (Lte, json!([2]), json!(2), true),
            (Before, json!(["2026-01-01T00:00:00Z"]), json!("2025-12-31T23:30:00-01:00"), false),
            (Before, json!(["2026-01-01T00:00:00Z"]), json!("2025-12-31T23:30:00Z"), true),
            (After, json!(["2026-01-01T00:00:00Z"]), json!("2026-01-01T00:00:00.001Z"), true),
            (After, json!(["2026-01-01T00:00:00Z"]), json!("soon"), false),
            (Matches, json!(["^a+$", "z"]), json!("aaa"), true),
            (Matches, json!(["^a+$"]), json!("aab"), false),
            (SemverGt, json!(["1.9.0"]), json!("1.10.0"), true),
            (SemverGt, json!(["1.10"]), json!("v1.10.1"), true),
            (SemverGt, json!(["1.0.0-beta"]), json!("1.0.0"), true),
            (SemverLt, json!(["2"]), json!("1.99.99"), true),
            (SemverLt, json!(["2.0.0"]), json!("two"), false),
            (SemverEq, json!(["1.2.3"]), json!("1.2.3+build.7"), true),
            (SemverEq, json!(["1.2"]), json!("1.2.0"), true),
            (Exists, json!([]), json!(null), true),
            (NotExists, json!([]), json!(""), false),
        ] {
            assert_eq!(holds(operator, &values, &seen), expected, "{operator:?} {values} {seen}");
        }
    }

    #[test]
    fn values_that_do_not_suit_the_operator_are_named() {
        for (operator, value) in [
            (Operator::Gt, json!("5")),
            (Operator::StartsWith, json!(5)),
            (Operator::Before, json!("2026-01-01")),
            (Operator::SemverEq, json!("one")),
            (Operator::Matches, json!(1)),
            (Operator::Eq, json!({})),
            (Operator::Contains, json!([])),
        ] {
            assert!(Test::new(operator, &[value]).is_err(), "{operator:?}");
        }
        assert!(!is_pattern("("));
        assert!(!is_pattern("(a{1000}){1000}"));
        assert!(!is_pattern(r"(a)\1"));
        assert!(is_pattern(r"^\w+@example\.com$"));
    }
}
