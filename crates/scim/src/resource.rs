//! Resources as they go over the wire: their version, and which of their attributes are asked for (RFC 7644 §3.9). Pure.

use kernel::{Error, Result};
use serde_json::{Map, Value, json};
use vault::sha256_hex;

use crate::schema::Schema;

/// A resource with what its headers say.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) body: Map<String, Value>,
    /// As `ETag` has it.
    pub(crate) version: String,
    pub(crate) location: String,
}

impl Written {
    /// `version` tells one state from the next; without it, the content does.
    pub(crate) fn new(
        mut body: Map<String, Value>,
        kind: &str,
        created: &str,
        location: String,
        version: Option<i64>,
    ) -> Self {
        let version = match version {
            Some(version) => format!("W/\"{version}\""),
            None => {
                let digest = sha256_hex(Value::Object(body.clone()).to_string().as_bytes());
                format!("W/\"{}\"", &digest[..16])
            }
        };
        body.insert(
            "meta".to_owned(),
            json!({ "resourceType": kind, "created": created, "location": location, "version": version }),
        );
        Self { body, version, location }
    }
}

/// Which attributes an answer has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    only: Vec<String>,
    without: Vec<String>,
}

impl Selection {
    /// Names separated by commas. Both at once make no sense.
    pub(crate) fn new(attributes: Option<&str>, excluded: Option<&str>) -> Result<Self> {
        let names = |text: Option<&str>| -> Vec<String> {
            let names = text.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        let (only, without) = (names(attributes), names(excluded));
        match only.is_empty() || without.is_empty() {
            true => Ok(Self { only, without }),
            false => Err(Error::invalid("excludedAttributes", "cannot be sent together with attributes")),
        }
    }

    /// Whether an attribute is in the answer, so that it need not be looked up otherwise.
    pub(crate) fn has(&self, schema: &Schema, attribute: &str) -> bool {
        let names = |list: &[String]| list.iter().any(|name| plain(schema, name).0.eq_ignore_ascii_case(attribute));
        let whole = |list: &[String]| list.iter().any(|name| plain(schema, name) == (attribute.to_owned(), None));
        if self.only.is_empty() { !whole(&self.without) } else { names(&self.only) }
    }

    /// Takes away what is not asked for.
    pub(crate) fn apply(&self, schema: &Schema, mut body: Map<String, Value>) -> Value {
        if !self.only.is_empty() {
            let mut kept = Map::new();
            for (name, value) in body {
                let always = name == "schemas" || schema.attribute(&name).is_some_and(|known| known.always_returned);
                match always {
                    true => drop(kept.insert(name, value)),
                    false => self.keep(schema, &mut kept, name, value),
                }
            }
            return Value::Object(kept);
        }
        for name in &self.without {
            let (name, part) = plain(schema, name);
            let Some(attribute) = schema.attribute(&name).filter(|known| !known.always_returned) else { continue };
            match part {
                None => drop(body.shift_remove(attribute.name)),
                Some(part) => each_entry(body.get_mut(attribute.name), |entry| {
                    entry.retain(|name, _| !name.eq_ignore_ascii_case(&part));
                }),
            }
        }
        Value::Object(body)
    }

    fn keep(&self, schema: &Schema, kept: &mut Map<String, Value>, name: String, mut value: Value) {
        let asked: Vec<Option<String>> = self
            .only
            .iter()
            .map(|asked| plain(schema, asked))
            .filter(|(asked, _)| asked.eq_ignore_ascii_case(&name))
            .map(|(_, part)| part)
            .collect();
        if asked.is_empty() {
            return;
        }
        if !asked.contains(&None) {
            each_entry(Some(&mut value), |entry| {
                entry.retain(|name, _| asked.iter().flatten().any(|part| part.eq_ignore_ascii_case(name)));
            });
        }
        kept.insert(name, value);
    }
}

/// An attribute and its part without the schema's URN.
fn plain(schema: &Schema, name: &str) -> (String, Option<String>) {
    let own = match name.get(..schema.urn.len()) {
        Some(urn) if schema.is_called(urn) => name[urn.len()..].trim_start_matches(':'),
        _ => name,
    };
    match own.split_once('.') {
        Some((whole, part)) => (whole.to_owned(), Some(part.to_owned())),
        None => (own.to_owned(), None),
    }
}

/// A list as its entries, one object as itself.
fn each_entry(value: Option<&mut Value>, change: impl FnMut(&mut Map<String, Value>)) {
    let entries = match value {
        Some(Value::Array(entries)) => entries.as_mut_slice(),
        Some(one) => std::slice::from_mut(one),
        None => return,
    };
    entries.iter_mut().filter_map(Value::as_object_mut).for_each(change);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::USER;

    fn selected(attributes: Option<&str>, excluded: Option<&str>) -> Value {
        let ada = json!({
            "schemas": [USER.urn], "id": "1", "userName": "ada@example.com", "active": true,
            "name": { "givenName": "Ada", "familyName": "L" }, "roles": [{ "value": "MEMBER", "primary": true }],
        });
        let ada = ada.as_object().cloned().expect("an object");
        Selection::new(attributes, excluded).expect("a selection").apply(&USER, ada)
    }

    #[test]
    fn only_what_is_asked_for_and_what_is_always_there() {
        assert_eq!(
            selected(Some("ACTIVE, name.givenName,urn:ietf:params:scim:schemas:core:2.0:User:roles.value"), None),
            json!({
                "schemas": [USER.urn], "id": "1", "userName": "ada@example.com", "active": true,
                "name": { "givenName": "Ada" }, "roles": [{ "value": "MEMBER" }],
            })
        );
    }

    #[test]
    fn what_is_excluded_goes_unless_it_is_always_there() {
        assert_eq!(
            selected(None, Some("name.familyName,roles,id,userName,unknown")),
            json!({
                "schemas": [USER.urn], "id": "1", "userName": "ada@example.com", "active": true,
                "name": { "givenName": "Ada" },
            })
        );
        assert!(Selection::new(Some("a"), Some("b")).is_err());
    }

    #[test]
    fn what_is_not_in_the_answer_need_not_be_looked_up() {
        let has = |only, without| Selection::new(only, without).expect("a selection").has(&USER, "groups");
        assert!(has(None, None) && has(Some("groups.value"), None) && has(None, Some("groups.value")));
        assert!(!has(Some("userName"), None) && !has(None, Some("groups")));
    }
}
