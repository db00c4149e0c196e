//! JSON as it stands in a body. A member that is given twice is refused: which of the two counts would depend on who
//! reads it, and whoever checked the request before us may have read the other one. So is what is nested deeper than
//! anybody needs: it is stored, put into other documents and read again, where every level costs stack.

use std::fmt;

use serde::{
    Deserializer,
    de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// Objects and lists within each other.
const DEEPEST: u32 = 64;

/// Fails with what is wrong and where: as data, where it is JSON but not as bodies may have it.
pub fn parse(bytes: &[u8]) -> serde_json::Result<Value> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = JsonReader { levels: DEEPEST }.deserialize(&mut json)?;
    json.end().map(|()| value)
}

#[derive(Clone, Copy)]
struct JsonReader {
    /// How many more there may be.
    levels: u32,
}

impl JsonReader {
    fn inner<E: de::Error>(self) -> Result<Self, E> {
        let inner = self.levels.checked_sub(1).map(|levels| Self { levels });
        inner.ok_or_else(|| E::custom(format_args!("nested deeper than {DEEPEST} levels")))
    }
}

impl<'de> DeserializeSeed<'de> for JsonReader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonReader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let (inner, mut list) = (self.inner()?, Vec::new());
        while let Some(entry) = entries.next_element_seed(inner)? {
            list.push(entry);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let (inner, mut object) = (self.inner()?, Map::new());
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(inner)?;
            match object.entry(name) {
                serde_json::map::Entry::Vacant(place) => {
                    place.insert(value);
                }
                serde_json::map::Entry::Occupied(known) => {
                    let shown: String = known.key().chars().take(64).collect();
                    return Err(de::Error::custom(format_args!("the member {shown:?} is given twice")));
                }
            }
        }
        Ok(Value::Object(object))
    }
}
