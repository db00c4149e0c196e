//! A filter bound to a schema, which answers for resources. Texts are compared without case unless the attribute says otherwise;
//! a comparison with an attribute that has no value is false, except `ne` and `eq null`.

use std::cmp::Ordering;

use kernel::{Result, Timestamp};
use serde_json::{Map, Value};

use super::{AttributePath, Filter, Operator, invalid};
use crate::schema::{Attribute, Kind, Schema};

/// A filter whose attributes exist.
#[derive(Clone, Debug)]
pub enum BoundFilter {
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    Present(Target),
    Compare { target: Target, operator: Operator, value: Value },
    Entry { attribute: &'static Attribute, filter: Box<Self> },
}

/// An attribute, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    attribute: &'static Attribute,
    part: Option<&'static Attribute>,
}

impl Target {
    /// The attribute that a path names; `None` when there is no such one.
    pub fn of(schema: &Schema, path: &AttributePath) -> Option<Self> {
        if path.schema.as_ref().is_some_and(|urn| !schema.is_called(urn)) {
            return None;
        }
        let attribute = schema.attribute(&path.name)?;
        match &path.sub {
            Some(sub) => Some(Self { attribute, part: Some(attribute.part(sub)?) }),
            None => Some(Self { attribute, part: None }),
        }
    }

    pub fn names(&self, attribute: &str) -> bool {
        self.attribute.name == attribute
    }

    /// The attribute whose values are compared.
    fn compared(&self) -> &'static Attribute {
        self.part.or(self.attribute.main_part()).unwrap_or(self.attribute)
    }

    /// Its values in a resource, which a list may have several of.
    pub fn values<'a>(&self, resource: &'a Map<String, Value>) -> Vec<&'a Value> {
        let part = self.part.or(self.attribute.main_part());
        let entries = match resource.get(self.attribute.name) {
            None | Some(Value::Null) => &[],
            Some(Value::Array(entries)) => entries.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        let values = entries.iter().filter_map(|entry| match part {
            Some(part) => entry.get(part.name),
            None => Some(entry),
        });
        values.filter(|value| !value.is_null()).collect()
    }

    /// How two resources are ordered by it: without case where case does not count, and those without a value last.
    pub fn order(&self, one: &Map<String, Value>, other: &Map<String, Value>) -> Ordering {
        let key = |resource: &Map<String, Value>| self.values(resource).first().map(|value| self.sort_key(value));
        match (key(one), key(other)) {
            (Some(one), Some(other)) => one.cmp(&other),
            (one, other) => other.is_some().cmp(&one.is_some()),
        }
    }

    fn sort_key(&self, value: &Value) -> String {
        match value {
            Value::String(text) if self.compared().case_exact => text.clone(),
            Value::String(text) => text.to_lowercase(),
            other => other.to_string(),
        }
    }
}

impl BoundFilter {
    /// Fails on attributes that the schema does not have and on comparisons that make no sense.
    pub fn new(filter: &Filter, schema: &Schema) -> Result<Self> {
        let all = |parts: &[Filter]| parts.iter().map(|part| Self::new(part, schema)).collect::<Result<Vec<_>>>();
        let target = |path: &AttributePath| {
            Target::of(schema, path).ok_or_else(|| invalid(format_args!("names {path}, which {} lacks", schema.name)))
        };
        Ok(match filter {
            Filter::Any(parts) => Self::Any(all(parts)?),
            Filter::All(parts) => Self::All(all(parts)?),
            Filter::Not(inner) => Self::Not(Box::new(Self::new(inner, schema)?)),
            Filter::Present(path) => Self::Present(target(path)?),
            Filter::Compare { path, operator, value } => compare(path, target(path)?, *operator, value)?,
            Filter::Entry { path, filter } => {
                let attribute = target(path)?.attribute;
                Self::Entry { attribute, filter: Box::new(Self::of_entry(filter, attribute)?) }
            }
        })
    }

    /// The same for a filter between brackets, whose attributes are parts of one.
    pub fn of_entry(filter: &Filter, attribute: &'static Attribute) -> Result<Self> {
        let all =
            |parts: &[Filter]| parts.iter().map(|part| Self::of_entry(part, attribute)).collect::<Result<Vec<_>>>();
        let target = |path: &AttributePath| match (&path.schema, &path.sub, attribute.part(&path.name)) {
            (None, None, Some(part)) => Ok(Target { attribute: part, part: None }),
            _ => Err(invalid(format_args!("names {path}, which {} lacks", attribute.name))),
        };
        Ok(match filter {
            Filter::Any(parts) => Self::Any(all(parts)?),
            Filter::All(parts) => Self::All(all(parts)?),
            Filter::Not(inner) => Self::Not(Box::new(Self::of_entry(inner, attribute)?)),
            Filter::Present(path) => Self::Present(target(path)?),
            Filter::Compare { path, operator, value } => compare(path, target(path)?, *operator, value)?,
            Filter::Entry { .. } => return Err(invalid("has brackets within brackets")),
        })
    }

    /// Whether the resource fits.
    pub fn fits(&self, resource: &Map<String, Value>) -> bool {
        match self {
            Self::Any(parts) => parts.iter().any(|part| part.fits(resource)),
            Self::All(parts) => parts.iter().all(|part| part.fits(resource)),
            Self::Not(inner) => !inner.fits(resource),
            Self::Present(target) => target.values(resource).iter().any(|value| !is_empty(value)),
            Self::Compare { target, operator, value } => {
                let values = target.values(resource);
                let compared = target.compared();
                match operator {
                    Operator::Equal if value.is_null() => values.is_empty(),
                    Operator::NotEqual if value.is_null() => !values.is_empty(),
                    Operator::NotEqual => !values.iter().any(|own| holds(own, Operator::Equal, value, compared)),
                    operator => values.iter().any(|own| holds(own, *operator, value, compared)),
                }
            }
            Self::Entry { attribute, filter } => match resource.get(attribute.name) {
                Some(Value::Array(entries)) => entries.iter().filter_map(Value::as_object).any(|one| filter.fits(one)),
                Some(Value::Object(one)) => filter.fits(one),
                _ => false,
            },
        }
    }

    /// The text that an attribute has to equal for the filter to fit, when there is one: what an index can answer.
    pub fn equals(&self, attribute: &str) -> Option<&str> {
        match self {
            Self::Compare { target, operator: Operator::Equal, value }
                if target.attribute.name == attribute && target.part.is_none() =>
            {
                value.as_str()
            }
            Self::All(parts) => parts.iter().find_map(|part| part.equals(attribute)),
            _ => None,
        }
    }

    /// Whether it asks about an attribute.
    pub fn mentions(&self, attribute: &str) -> bool {
        match self {
            Self::Any(parts) | Self::All(parts) => parts.iter().any(|part| part.mentions(attribute)),
            Self::Not(inner) => inner.mentions(attribute),
            Self::Present(target) | Self::Compare { target, .. } => target.attribute.name == attribute,
            Self::Entry { attribute: own, .. } => own.name == attribute,
        }
    }
}

fn compare(path: &AttributePath, target: Target, operator: Operator, value: &Value) -> Result<BoundFilter> {
    let compared = target.compared();
    let problem = match (compared.kind, value) {
        (Kind::Complex, _) => Some("is not a simple value; name a part of it"),
        (_, Value::Null) if operator == Operator::Equal || operator == Operator::NotEqual => None,
        (Kind::Boolean, _) if operator.orders() || operator.searches() => Some("is true or false, which has no order"),
        (Kind::Boolean, Value::Bool(_)) => None,
        // As a common directory writes them.
        (Kind::Boolean, Value::String(text)) if is_boolean(text) => None,
        (Kind::Boolean, _) => Some("has to be compared with true or false"),
        (Kind::Instant, Value::String(text)) if operator.searches() || text.parse::<Timestamp>().is_ok() => None,
        (Kind::Instant, _) => Some("has to be compared with an instant such as \"2026-01-31T09:30:00Z\""),
        (Kind::Text | Kind::Reference, Value::String(_)) => None,
        (Kind::Text | Kind::Reference, _) => Some("has to be compared with a text in double quotes"),
    };
    match problem {
        None => Ok(BoundFilter::Compare { target, operator, value: value.clone() }),
        Some(problem) => Err(invalid(format_args!("cannot be used: {path} {problem}"))),
    }
}

fn is_boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(parts) => parts.is_empty(),
        _ => false,
    }
}

fn holds(own: &Value, operator: Operator, asked: &Value, attribute: &Attribute) -> bool {
    match (own, asked) {
        (Value::Bool(own), Value::Bool(asked)) => own == asked,
        (Value::Bool(own), Value::String(asked)) => own.to_string().eq_ignore_ascii_case(asked),
        (Value::String(own), Value::String(asked)) => match (instant(own, attribute), instant(asked, attribute)) {
            (Some(own), Some(asked)) if !operator.searches() => ordered(own.cmp(&asked), operator),
            _ if attribute.case_exact => text_holds(own, operator, asked),
            _ => text_holds(&own.to_lowercase(), operator, &asked.to_lowercase()),
        },
        _ => false,
    }
}

fn instant(text: &str, attribute: &Attribute) -> Option<Timestamp> {
    if attribute.kind == Kind::Instant { text.parse().ok() } else { None }
}

fn text_holds(own: &str, operator: Operator, asked: &str) -> bool {
    match operator {
        Operator::Contains => own.contains(asked),
        Operator::StartsWith => own.starts_with(asked),
        Operator::EndsWith => own.ends_with(asked),
        operator => ordered(own.cmp(asked), operator),
    }
}

fn ordered(order: Ordering, operator: Operator) -> bool {
    match operator {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Contains | Operator::StartsWith | Operator::EndsWith => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{filter::parse, schema::USER};

    fn ada() -> Map<String, Value> {
        let ada = json!({
            "id": "member_1", "userName": "Ada@Example.com", "externalId": "Ab", "active": true,
            "name": { "givenName": "Ada", "familyName": "Lovelace" },
            "emails": [{ "value": "Ada@Example.com", "type": "work", "primary": true }],
            "groups": [{ "value": "g1", "display": "Math" }, { "value": "g2", "display": "Engines" }],
            "meta": { "created": "2026-01-31T09:30:00.000Z" },
        });
        ada.as_object().cloned().expect("an object")
    }

    fn fits(filter: &str) -> bool {
        let filter = parse(filter).unwrap_or_else(|error| panic!("{filter}: {error:?}"));
        BoundFilter::new(&filter, &USER).unwrap_or_else(|error| panic!("{filter}: {error:?}")).fits(&ada())
    }

    #[test]
    fn what_fits() {
        for filter in [
            r#"userName eq "ada@example.COM""#,
            r#"USERNAME sw "ada" and userName ew ".com" and username co "@""#,
            r#"urn:ietf:params:scim:schemas:core:2.0:User:name.familyName eq "lovelace""#,
            r#"externalId eq "Ab""#,
            "active eq true",
            r#"active eq "True""#,
            "active ne false",
            "externalId ne null",
            "roles eq null",
            r#"roles ne "ADMIN""#,
            r#"emails co "EXAMPLE""#,
            r#"emails[type eq "work" and primary eq "True"]"#,
            r#"groups.display eq "Math" and groups eq "g2""#,
            r#"meta.created lt "2026-02-01T00:00:00Z" and meta.created ge "2026-01-31T10:30:00+01:00""#,
            "groups pr and not (roles pr)",
            r#"name.givenName gt "AC" and name.givenName le "ada""#,
        ] {
            assert!(fits(filter), "{filter}");
        }
    }

    #[test]
    fn what_does_not() {
        for filter in [
            r#"externalId eq "ab""#,
            r#"userName eq "bob@example.com""#,
            "active eq false",
            "roles pr",
            r#"roles eq "ADMIN""#,
            r#"emails[type eq "home" and value co "example"]"#,
            r#"groups[value eq "g1" and display eq "Engines"]"#,
            "userName eq null",
            r#"roles gt "A""#,
        ] {
            assert!(!fits(filter), "{filter}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for filter in [
            r#"shoeSize eq "44""#,
            r#"userName.x eq "a""#,
            r#"name eq "Ada""#,
            "userName eq 7",
            "userName eq true",
            r#"active gt true"#,
            r#"active eq "yes""#,
            r#"meta.created gt "yesterday""#,
            r#"emails[shoe eq "x"]"#,
            r#"urn:other:2.0:User:userName eq "a""#,
        ] {
            let parsed = parse(filter).unwrap_or_else(|error| panic!("{filter}: {error:?}"));
            let error = BoundFilter::new(&parsed, &USER).expect_err(filter);
            assert_eq!(error.code(), kernel::Code::InvalidFilter, "{filter}");
        }
    }

    #[test]
    fn an_index_can_answer_what_has_to_be_equal() {
        let equals = |filter: &str| {
            let filter = BoundFilter::new(&parse(filter).expect("a filter"), &USER).expect("it can be bound");
            filter.equals("userName").map(str::to_owned)
        };
        assert_eq!(equals(r#"userName eq "a""#).as_deref(), Some("a"));
        assert_eq!(equals(r#"active eq true and (userName eq "a")"#).as_deref(), Some("a"));
        assert_eq!(equals(r#"userName eq "a" or active eq true"#), None);
        assert_eq!(equals(r#"not (userName eq "a")"#), None);
        assert_eq!(equals(r#"userName sw "a""#), None);
    }
}
