//! JSON that borrows its texts from the request, so that reading a context costs a few small lists and no copies.

use std::{borrow::Cow, cmp::Ordering, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
};

#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Members<'a>),
}

/// Whole numbers stay exact; a comparison with a fraction is one of floats.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Int(i64),
    /// Above every `Int`.
    Large(u64),
    Float(f64),
}

impl Number {
    pub(super) fn of(number: &serde_json::Number) -> Self {
        let whole = number.as_i64().map(Self::Int).or_else(|| number.as_u64().map(Self::Large));
        whole.unwrap_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN)))
    }

    fn whole(value: u64) -> Self {
        i64::try_from(value).map_or(Self::Large(value), Self::Int)
    }

    fn as_float(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Large(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => Some(one.cmp(other)),
            (Self::Large(one), Self::Large(other)) => Some(one.cmp(other)),
            (Self::Int(_), Self::Large(_)) => Some(Ordering::Less),
            (Self::Large(_), Self::Int(_)) => Some(Ordering::Greater),
            _ => self.as_float().partial_cmp(&other.as_float()),
        }
    }
}

/// The members of an object. Of a name that stands twice, the last one counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

/// Beyond this many members a search by halves beats looking at each.
const SORTED_FROM: usize = 16;

impl<'a> Members<'a> {
    pub(super) fn new(mut members: Vec<(Cow<'a, str>, Json<'a>)>) -> Self {
        if members.len() >= SORTED_FROM {
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        Self(members)
    }

    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        let Self(members) = self;
        if members.len() < SORTED_FROM {
            return members.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value);
        }
        let after = members.partition_point(|(known, _)| known.as_ref() <= name);
        let (known, value) = members.get(after.checked_sub(1)?)?;
        (known == name).then_some(value)
    }

    /// What stands at a dotted path. A member whose own name has the dots goes before nested ones.
    pub fn find(&self, path: &str) -> Option<&Json<'a>> {
        let (mut members, mut rest) = (self, path);
        loop {
            if let Some(value) = members.get(rest) {
                return Some(value);
            }
            let (head, tail) = rest.split_once('.')?;
            match members.get(head)? {
                Json::Object(inner) => (members, rest) = (inner, tail),
                _ => return None,
            }
        }
    }

    pub(super) fn into_vec(self) -> Vec<(Cow<'a, str>, Json<'a>)> {
        self.0
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Json<'a>> {
        let at = self.0.iter().rposition(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }
}

impl<'a> Json<'a> {
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// From a tree that is owned elsewhere.
    pub fn owned(value: &serde_json::Value) -> Json<'static> {
        match value {
            serde_json::Value::Null => Json::Null,
            serde_json::Value::Bool(value) => Json::Bool(*value),
            serde_json::Value::Number(number) => Json::Number(Number::of(number)),
            serde_json::Value::String(text) => Json::Text(Cow::Owned(text.clone())),
            serde_json::Value::Array(list) => Json::List(list.iter().map(Json::owned).collect()),
            serde_json::Value::Object(members) => {
                let members = members.iter().map(|(name, value)| (Cow::Owned(name.clone()), Json::owned(value)));
                Json::Object(Members::new(members.collect()))
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

/// A member's name, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(Number::Int(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(Number::whole(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json<'de>, E> {
        Ok(Json::Number(Number::Float(value)))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Json<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            list.push(entry);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json<'de>, A::Error> {
        // Most objects of a context have a few members: one allocation for them.
        let mut members = Vec::with_capacity(8);
        while let Some(Name(name)) = entries.next_key()? {
            members.push((name, entries.next_value()?));
        }
        Ok(Json::Object(Members::new(members)))
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(Number::Int(value)) => serializer.serialize_i64(*value),
            Self::Number(Number::Large(value)) => serializer.serialize_u64(*value),
            Self::Number(Number::Float(value)) => serializer.serialize_f64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => serializer.collect_seq(list),
            Self::Object(Members(members)) => serializer.collect_map(members.iter().map(|(name, value)| (name, value))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_paths_find_nested_and_dotted_names() {
        let Json::Object(members) = serde_json::from_str(r#"{"a":{"b":{"c":1}},"x.y":2,"a.b.d":3,"n":4}"#).unwrap()
        else {
            panic!("an object")
        };
        let number = |value: i64| Some(Json::Number(Number::Int(value)));
        assert_eq!(members.find("a.b.c").cloned(), number(1));
        assert_eq!(members.find("x.y").cloned(), number(2));
        assert_eq!(members.find("a.b.d").cloned(), number(3));
        assert_eq!(members.find("n.o"), None);
        assert_eq!(members.find("a.b.c.d"), None);
    }

    #[test]
    fn of_a_name_that_stands_twice_the_last_counts() {
        for extra in [0, 30] {
            let many: String = (0..extra).map(|n| format!(r#""m{n}":0,"#)).collect();
            let text = format!(r#"{{"a":1,{many}"a":2}}"#);
            let Json::Object(members) = serde_json::from_str(&text).unwrap() else { panic!("an object") };
            assert_eq!(members.get("a"), Some(&Json::Number(Number::Int(2))));
            assert_eq!(members.get("zz"), None);
            assert_eq!(members.get(""), None);
        }
    }
}
