//! Members of a partial update: a missing one keeps the value, another replaces it, and `null` clears what may be
//! absent.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

/// Use with `#[serde(default)]`, which makes a missing member [`Patch::Missing`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    #[default]
    Missing,
    Null,
    Value(T),
}

impl<T> Patch<T> {
    /// The value to keep from now on, given the one so far.
    pub fn apply<U: From<T>>(self, current: Option<U>) -> Option<U> {
        match self {
            Self::Missing => current,
            Self::Null => None,
            Self::Value(value) => Some(value.into()),
        }
    }

    /// The new value, if one was given.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Missing | Self::Null => None,
        }
    }

    /// The same change of what is made from the value.
    pub fn map<U>(&self, make: impl FnOnce(&T) -> U) -> Patch<U> {
        match self {
            Self::Missing => Patch::Missing,
            Self::Null => Patch::Null,
            Self::Value(value) => Patch::Value(make(value)),
        }
    }

    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Null, Self::Value))
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Patch_{}", T::schema_name()).into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("web::Patch<{}>", T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

/// A member that may be left out, but not cleared: `null` is refused. Use with `#[serde(default)]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given<T>(pub Option<T>);

impl<T> Given<T> {
    /// The value to keep from now on, given the one so far.
    pub fn or<U: From<T>>(self, current: U) -> U {
        self.0.map_or(current, U::from)
    }

    pub fn value(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> Default for Given<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Given<T> {
    /// Puts the new value, if one was given, in the place of the one so far.
    pub fn apply<U: From<T>>(self, current: &mut U) {
        if let Some(value) = self.0 {
            *current = value.into();
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Self(Some(value)))
    }
}

impl<T: JsonSchema> JsonSchema for Given<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::{Given, Patch};

    #[test]
    fn what_cannot_be_cleared_refuses_null() {
        assert_eq!(Given::<i32>::default().or(1), 1);
        assert_eq!(serde_json::from_str::<Given<i32>>("2").unwrap().or(1), 2);
        assert!(serde_json::from_str::<Given<i32>>("null").is_err());
    }

    #[test]
    fn missing_keeps_null_clears_and_a_value_replaces() {
        assert_eq!(Patch::<i32>::Missing.apply(Some(1)), Some(1));
        assert_eq!(Patch::<i32>::Null.apply(Some(1)), None);
        assert_eq!(Patch::Value(2).apply(Some(1)), Some(2));
    }

    #[test]
    fn what_cannot_be_cleared_takes_a_value_or_nothing() {
        let mut ttl = 60;
        Given::<i32>::default().apply(&mut ttl);
        assert_eq!(ttl, 60);
        Given(Some(90)).apply(&mut ttl);
        assert_eq!(ttl, 90);
        assert!(serde_json::from_str::<Given<u32>>("null").is_err());
    }
}
