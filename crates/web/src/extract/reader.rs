//! Reads a type from JSON as the documentation promises, where plain serde differs: `309.0` is an integer, a list is
//! never an object, a string never holds NUL (PostgreSQL cannot store it), and a misfit is told by its path.
//!
//! The query string is read the same way: there every value is a text, so numbers and booleans are parsed from it.

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor,
    value::{BorrowedStrDeserializer, MapAccessDeserializer},
};
use serde_json::{Map, Number, Value};

use super::problem::{Problem, Step};

type Read<T> = Result<T, Problem>;

pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Read<T> {
    T::deserialize(Reader { value, texts: false })
}

/// Reads from texts by name; a name that was given several times has a list.
pub(super) fn read_texts<T: DeserializeOwned>(value: &Value) -> Read<T> {
    T::deserialize(Reader { value, texts: true })
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    value: &'a Value,
    texts: bool,
}

impl<'a> Reader<'a> {
    fn text(self) -> Read<&'a str> {
        match self.value {
            Value::String(text) if text.contains('\0') => Err(Problem::new("must not contain a NUL character")),
            Value::String(text) => Ok(text),
            Value::Array(_) if self.texts => Err(Problem::new("must be given once")),
            _ => Err(Problem::new("must be a string")),
        }
    }

    fn number(self, what: &str) -> Read<Number> {
        let wrong = || Problem::new(format!("must be {what}"));
        match self.value {
            Value::Number(number) => Ok(number.clone()),
            Value::String(_) if self.texts => self.text()?.parse().map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }

    fn boolean(self) -> Read<bool> {
        match self.value {
            Value::Bool(value) => Ok(*value),
            Value::String(text) if self.texts && text == "true" => Ok(true),
            Value::String(text) if self.texts && text == "false" => Ok(false),
            _ => Err(Problem::new("must be true or false")),
        }
    }

    fn object(self) -> Read<&'a Map<String, Value>> {
        self.value.as_object().ok_or_else(|| Problem::new("must be an object"))
    }

    fn integer<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        let number = self.number("an integer")?;
        match (number.as_u64(), number.as_i64(), number.as_f64().and_then(whole)) {
            (Some(value), ..) => visitor.visit_u64(value),
            (_, Some(value), _) | (_, _, Some(value)) => visit_signed(value, visitor),
            _ => Err(Problem::new("must be an integer")),
        }
    }

    fn list<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        let entries = match self.value {
            Value::Array(entries) => entries.as_slice(),
            text @ Value::String(_) if self.texts => std::slice::from_ref(text),
            _ => return Err(Problem::new("must be a list")),
        };
        visitor.visit_seq(Entries { rest: entries.iter(), place: 0, texts: self.texts })
    }

    fn members<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        visitor.visit_map(Members { rest: self.object()?.iter(), current: None, texts: self.texts })
    }
}

/// A float that is a whole number; within these bounds the conversion is exact.
fn whole(value: f64) -> Option<i64> {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    (value.fract() == 0.0 && (-BOUND..BOUND).contains(&value)).then_some(value as i64)
}

fn visit_signed<'a, V: Visitor<'a>>(value: i64, visitor: V) -> Read<V::Value> {
    match u64::try_from(value) {
        Ok(value) => visitor.visit_u64(value),
        Err(_) => visitor.visit_i64(value),
    }
}

macro_rules! integers {
    ($($method:ident)*) => { $(
        fn $method<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
            self.integer(visitor)
        }
    )* };
}

impl<'a> de::Deserializer<'a> for Reader<'a> {
    type Error = Problem;

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(value) => match whole(value) {
                    Some(value) => visit_signed(value, visitor),
                    None => visitor.visit_f64(value),
                },
                None => self.integer(visitor),
            },
            Value::String(_) => visitor.visit_borrowed_str(self.text()?),
            Value::Array(_) => self.list(visitor),
            Value::Object(_) => self.members(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        visitor.visit_bool(self.boolean()?)
    }

    fn deserialize_f32<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        let number = self.number("a number")?.as_f64().filter(|number| number.is_finite());
        visitor.visit_f64(number.ok_or_else(|| Problem::new("must be a number"))?)
    }

    fn deserialize_char<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        if self.value.is_null() { visitor.visit_unit() } else { Err(Problem::new("must be null")) }
    }

    fn deserialize_unit_struct<V: Visitor<'a>>(self, _: &'static str, visitor: V) -> Read<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(self, _: &'static str, visitor: V) -> Read<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        self.list(visitor)
    }

    fn deserialize_tuple<V: Visitor<'a>>(self, _: usize, visitor: V) -> Read<V::Value> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'a>>(self, _: &'static str, _: usize, visitor: V) -> Read<V::Value> {
        self.list(visitor)
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        self.members(visitor)
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        self.members(visitor)
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        match self.value {
            Value::String(_) => visitor.visit_enum(self.text()?.into_deserializer()),
            Value::Object(members) if members.len() == 1 => {
                let members = Members { rest: members.iter(), current: None, texts: self.texts };
                visitor.visit_enum(MapAccessDeserializer::new(members))
            }
            _ => Err(Problem::new(format!("must be one of {}", variants.join(", ")))),
        }
    }

    fn deserialize_identifier<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'a>>(self, visitor: V) -> Read<V::Value> {
        visitor.visit_unit()
    }
}

struct Entries<'a> {
    rest: std::slice::Iter<'a, Value>,
    place: usize,
    texts: bool,
}

impl<'a> de::SeqAccess<'a> for Entries<'a> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Read<Option<T::Value>> {
        let Some(value) = self.rest.next() else { return Ok(None) };
        let place = self.place;
        self.place += 1;
        let entry = seed.deserialize(Reader { value, texts: self.texts });
        entry.map(Some).map_err(|problem| problem.at(Step::Entry(place)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Members<'a> {
    rest: serde_json::map::Iter<'a>,
    current: Option<(&'a String, &'a Value)>,
    texts: bool,
}

impl<'a> de::MapAccess<'a> for Members<'a> {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        self.current = self.rest.next();
        let Some((name, _)) = self.current else { return Ok(None) };
        if name.contains('\0') {
            return Err(Problem::new("must not have a member with a NUL character in its name"));
        }
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Read<V::Value> {
        let (name, value) = self.current.take().ok_or_else(|| Problem::new("must be an object"))?;
        let member = seed.deserialize(Reader { value, texts: self.texts });
        member.map_err(|problem| problem.at(Step::Member(name.clone())))
    }
}
