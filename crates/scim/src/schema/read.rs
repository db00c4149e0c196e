//! Bodies, whose names come in any case, turned into the schema's own names; what is read-only or unknown is left out.

use kernel::{Code, Error, Result};
use serde_json::{Map, Value};

use super::{Attribute, Kind, Mutability, Schema};

impl Schema {
    /// What a body says about the attributes that can be written. Attributes named by this schema's URN are its own; those of
    /// other schemas and unknown ones are ignored, and so are read-only ones (RFC 7644 §3.5.1).
    pub fn read(&self, body: &Value) -> Result<Map<String, Value>> {
        let Some(body) = body.as_object() else { return Err(Error::invalid("body", "must be an object")) };
        let mut read = Map::new();
        for (name, value) in body {
            match value {
                Value::Object(own) if self.is_called(name) => {
                    own.iter().try_for_each(|(name, value)| self.take(&mut read, name, value))?;
                }
                value => self.take(&mut read, name, value)?,
            }
        }
        Ok(read)
    }

    fn take(&self, read: &mut Map<String, Value>, name: &str, value: &Value) -> Result<()> {
        let own = name.rsplit_once(':').filter(|(urn, _)| self.is_called(urn)).map_or(name, |(_, own)| own);
        // A dotted name is how one directory writes parts without a path.
        if let Some((whole, part)) = own.split_once('.')
            && let Some(attribute) = self.attribute(whole)
            && let Some(part) = attribute.part(part).filter(|_| !attribute.many)
        {
            let place = read.entry(attribute.name).or_insert_with(|| Value::Object(Map::new()));
            if let Some(place) = place.as_object_mut() {
                insert(place, part, part.read(attribute.name, value)?)?;
            }
            return Ok(());
        }
        match self.attribute(own).filter(|known| known.mutability != Mutability::ReadOnly) {
            Some(attribute) => insert(read, attribute, attribute.read("", value)?),
            None => Ok(()),
        }
    }
}

/// Which of two would count depends on who reads them.
fn insert(read: &mut Map<String, Value>, attribute: &Attribute, value: Value) -> Result<()> {
    match read.insert(attribute.name.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(Error::new(Code::MalformedJson, format!("The attribute {} is given twice.", attribute.name))),
    }
}

impl Attribute {
    /// A value of this attribute, with the names of its parts as the schema has them. `null` stands for no value.
    pub fn read(&self, whole: &str, value: &Value) -> Result<Value> {
        if value.is_null() {
            return Ok(Value::Null);
        }
        if !self.many {
            return self.read_one(whole, value);
        }
        match value {
            Value::Array(entries) => {
                entries.iter().map(|entry| self.read_one(whole, entry)).collect::<Result<Vec<_>>>().map(Value::Array)
            }
            one => Ok(Value::Array(vec![self.read_one(whole, one)?])),
        }
    }

    /// One entry of a list, or a single value.
    pub fn read_one(&self, whole: &str, value: &Value) -> Result<Value> {
        let wrong = |must: &str| {
            let field = if whole.is_empty() { self.name.to_owned() } else { format!("{whole}.{}", self.name) };
            Err(Error::invalid(field, must.to_owned()))
        };
        match (self.kind, value) {
            (_, Value::String(text)) if text.contains('\0') => wrong("must not contain a NUL character"),
            (Kind::Text | Kind::Reference | Kind::Instant, Value::String(_)) | (Kind::Boolean, Value::Bool(_)) => {
                Ok(value.clone())
            }
            // As a common directory writes them.
            (Kind::Boolean, Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true.into()),
            (Kind::Boolean, Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false.into()),
            (Kind::Complex, Value::Object(parts)) => self.read_parts(parts),
            // An entry written as its main value.
            (Kind::Complex, Value::String(_)) => match self.main_part() {
                Some(main) => Ok(Value::Object(Map::from_iter([(main.name.to_owned(), value.clone())]))),
                None => wrong("must be an object"),
            },
            (Kind::Complex, _) => wrong("must be an object"),
            (Kind::Boolean, _) => wrong("must be true or false"),
            (Kind::Text | Kind::Reference | Kind::Instant, _) => wrong("must be a string"),
        }
    }

    fn read_parts(&self, given: &Map<String, Value>) -> Result<Value> {
        let mut parts = Map::new();
        for (name, value) in given {
            if let Some(part) = self.part(name).filter(|part| part.mutability != Mutability::ReadOnly) {
                insert(&mut parts, part, part.read(self.name, value)?)?;
            }
        }
        Ok(Value::Object(parts))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::schema::{GROUP, USER};

    #[test]
    fn names_come_in_any_case_and_by_urn() {
        let body = json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
            "USERNAME": "ada@example.com",
            "urn:ietf:params:scim:schemas:core:2.0:User:active": "False",
            "name.familyName": "Lovelace",
            "Roles": "ADMIN",
            "id": "x", "groups": [], "password": "secret", "title": "Countess",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": { "department": "x" },
        });
        let expected = json!({
            "userName": "ada@example.com", "active": false, "name": { "familyName": "Lovelace" },
            "roles": [{ "value": "ADMIN" }],
        });
        assert_eq!(serde_json::Value::Object(USER.read(&body).expect("it can be read")), expected);
    }

    #[test]
    fn wrong_types_are_named_and_doubled_names_refused() {
        for (body, message) in [
            (json!({ "userName": 7 }), "userName must be a string"),
            (json!({ "active": "yes" }), "active must be true or false"),
            (json!({ "name": "Ada" }), "name must be an object"),
            (json!({ "name": { "givenName": [] } }), "name.givenName must be a string"),
            (json!({ "userName": "a\u{0}" }), "userName must not contain a NUL character"),
            (json!({ "userName": "a", "username": "b" }), "The attribute userName is given twice."),
            (json!([]), "body must be an object"),
        ] {
            assert_eq!(USER.read(&body).expect_err("it is refused").public(), message, "{body}");
        }
        assert_eq!(GROUP.read(&json!({ "members": [7] })).expect_err("refused").public(), "members must be an object");
    }
}
