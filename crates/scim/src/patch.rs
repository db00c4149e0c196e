//! Patches (RFC 7644 §3.5.2) applied to what a resource says. What directories write beyond the standard is understood: names of
//! operations in any case, and a removal that lists what goes. Pure.

use std::collections::HashSet;

use kernel::{Code, Error, Result};
use serde_json::{Map, Value};

use crate::{
    filter::{BoundFilter, Filter, Operator, PatchPath, parse_path},
    schema::{Attribute, Mutability, Schema},
};

/// Operations of one request.
const MOST: usize = 200;

/// One operation of a patch.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchOperation {
    verb: Verb,
    path: Option<PatchPath>,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Add,
    Replace,
    Remove,
}

/// Reads the body of a patch.
pub fn read(body: &Value) -> Result<Vec<PatchOperation>> {
    let operations = member(body, "Operations").and_then(Value::as_array);
    match operations {
        Some(operations) if (1..=MOST).contains(&operations.len()) => operations.iter().map(read_one).collect(),
        _ => Err(malformed(format!("Operations must be a list of one to {MOST} patch operations."))),
    }
}

fn read_one(operation: &Value) -> Result<PatchOperation> {
    let verb = match member(operation, "op").and_then(Value::as_str).map(str::to_ascii_lowercase).as_deref() {
        Some("add") => Verb::Add,
        Some("replace") => Verb::Replace,
        Some("remove") => Verb::Remove,
        _ => return Err(malformed("The op of a patch operation must be add, replace or remove.".to_owned())),
    };
    let path = match member(operation, "path") {
        None | Some(Value::Null) => None,
        Some(Value::String(path)) if path.is_empty() => None,
        Some(Value::String(path)) => Some(parse_path(path)?),
        Some(_) => return Err(malformed("The path of a patch operation must be a text.".to_owned())),
    };
    let value = member(operation, "value").cloned().unwrap_or_default();
    match (verb, &path) {
        (Verb::Remove, None) => Err(Error::new(Code::NoTarget, "A removal needs a path.")),
        (Verb::Add, _) if value.is_null() => Err(Error::invalid("value", "is required to add something")),
        _ => Ok(PatchOperation { verb, path, value }),
    }
}

fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.as_object()?.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn malformed(message: String) -> Error {
    Error::new(Code::MalformedJson, message)
}

/// Applies all operations in their order, or fails with the first that cannot be.
pub fn apply(schema: &Schema, resource: &mut Map<String, Value>, operations: &[PatchOperation]) -> Result<()> {
    operations.iter().try_for_each(|operation| apply_one(schema, resource, operation))
}

fn apply_one(schema: &Schema, resource: &mut Map<String, Value>, operation: &PatchOperation) -> Result<()> {
    let PatchOperation { verb, path, value } = operation;
    let Some(path) = path else {
        for (name, value) in schema.read(value)? {
            if let Some(attribute) = schema.attribute(&name) {
                change_whole(resource, attribute, *verb, &value)?;
            }
        }
        return Ok(());
    };
    let is_foreign = path.schema.as_ref().is_some_and(|urn| !schema.is_called(urn));
    let whole = path.sub.as_ref().map_or_else(|| path.name.clone(), |sub| format!("{}.{sub}", path.name));
    if is_foreign || schema.ignores(&path.name) || schema.ignores(&whole) {
        return Ok(());
    }
    let Some(attribute) = schema.attribute(&path.name) else {
        let message = format!("The path names {}, which {} lacks.", path.name, schema.name);
        return Err(Error::new(Code::InvalidPath, message));
    };
    if attribute.mutability == Mutability::ReadOnly {
        return Err(read_only(attribute.name));
    }
    let part = match &path.sub {
        Some(sub) => match attribute.part(sub) {
            Some(part) => Some(part),
            None => return Err(Error::new(Code::InvalidPath, format!("{} has no part {sub}.", attribute.name))),
        },
        None => None,
    };
    match (&path.filter, part) {
        (None, None) => {
            let value = &attribute.read("", value)?;
            change_whole(resource, attribute, *verb, value)
        }
        (filter, part) => change_inside(resource, attribute, filter.as_ref(), part, *verb, value),
    }
}

fn read_only(name: &str) -> Error {
    Error::new(Code::ReadOnly, format!("{name} cannot be changed."))
}

/// Changes an attribute as a whole. `value` has been read by it.
fn change_whole(
    resource: &mut Map<String, Value>,
    attribute: &'static Attribute,
    verb: Verb,
    value: &Value,
) -> Result<()> {
    match (verb, value) {
        (Verb::Remove, Value::Array(listed)) if attribute.many && !listed.is_empty() => {
            remove_listed(resource, attribute, listed);
            Ok(())
        }
        (Verb::Remove, _) | (Verb::Replace, Value::Null) if attribute.required => Err(read_only(attribute.name)),
        (Verb::Remove, _) | (_, Value::Null) => {
            resource.remove(attribute.name);
            Ok(())
        }
        (Verb::Add, Value::Array(added)) if attribute.many => {
            append(resource, attribute, added);
            Ok(())
        }
        (_, Value::Object(parts)) if !attribute.many => {
            merge(resource, attribute, parts);
            Ok(())
        }
        (_, value) => {
            resource.insert(attribute.name.to_owned(), last_alone(attribute, value.clone()));
            Ok(())
        }
    }
}

/// The entries of a list, made if there are none.
fn entries<'a>(resource: &'a mut Map<String, Value>, attribute: &Attribute) -> &'a mut Vec<Value> {
    let place = resource.entry(attribute.name).or_insert_with(|| Value::Array(Vec::new()));
    if !place.is_array() {
        *place = Value::Array(Vec::new());
    }
    match place {
        Value::Array(entries) => entries,
        _ => unreachable!("it was made a list"),
    }
}

/// What tells one entry from another.
fn key(attribute: &Attribute, entry: &Value) -> Option<String> {
    let main = attribute.main_part()?;
    entry.get(main.name)?.as_str().map(str::to_owned)
}

fn append(resource: &mut Map<String, Value>, attribute: &'static Attribute, added: &[Value]) {
    let entries = entries(resource, attribute);
    let mut known: HashSet<Option<String>> = entries.iter().map(|entry| key(attribute, entry)).collect();
    for entry in added {
        if known.insert(key(attribute, entry)) {
            entries.push(entry.clone());
        }
    }
    let all = last_alone(attribute, Value::Array(std::mem::take(entries)));
    resource.insert(attribute.name.to_owned(), all);
}

fn remove_listed(resource: &mut Map<String, Value>, attribute: &'static Attribute, listed: &[Value]) {
    let gone: HashSet<Option<String>> = listed.iter().map(|entry| key(attribute, entry)).collect();
    entries(resource, attribute).retain(|entry| !gone.contains(&key(attribute, entry)));
}

/// Of a list with one entry at most, the newest.
fn last_alone(attribute: &Attribute, mut value: Value) -> Value {
    if let Value::Array(entries) = &mut value
        && attribute.single
    {
        let last = entries.pop();
        *entries = last.into_iter().collect();
    }
    value
}

/// Parts that are not named stay as they are.
fn merge(resource: &mut Map<String, Value>, attribute: &Attribute, parts: &Map<String, Value>) {
    let place = resource.entry(attribute.name).or_insert_with(|| Value::Object(Map::new()));
    match place {
        Value::Object(known) => known.extend(parts.clone()),
        place => *place = Value::Object(parts.clone()),
    }
}

/// Changes a part of an attribute, or some entries of a list.
fn change_inside(
    resource: &mut Map<String, Value>,
    attribute: &'static Attribute,
    filter: Option<&Filter>,
    part: Option<&'static Attribute>,
    verb: Verb,
    value: &Value,
) -> Result<()> {
    let part = match part.map(|part| (part, part.mutability)) {
        // What is put together from other parts is passed over.
        Some((_, Mutability::ReadOnly)) => return Ok(()),
        Some((part, Mutability::Immutable)) => return Err(read_only(&format!("{}.{}", attribute.name, part.name))),
        Some((part, Mutability::ReadWrite)) => Some((part, part.read(attribute.name, value)?)),
        None => None,
    };
    if !attribute.many {
        if filter.is_some() {
            return Err(Error::new(Code::InvalidPath, format!("{} is not a list.", attribute.name)));
        }
        let Some((part, value)) = part else { return Ok(()) };
        let mut known = resource.get(attribute.name).and_then(Value::as_object).cloned().unwrap_or_default();
        set_part(&mut known, part, verb, &value);
        resource.insert(attribute.name.to_owned(), Value::Object(known));
        return Ok(());
    }
    let bound = filter
        .map(|filter| BoundFilter::of_entry(filter, attribute))
        .transpose()
        .map_err(|error| Error::new(Code::InvalidPath, error.public().replace("The filter", "The path")))?;
    let fits =
        |entry: &Value| bound.as_ref().is_none_or(|bound| entry.as_object().is_some_and(|entry| bound.fits(entry)));
    let entries = entries(resource, attribute);
    match (verb, part) {
        (Verb::Remove, None) => entries.retain(|entry| !fits(entry)),
        (verb, part) => {
            let mut found = false;
            for entry in entries.iter_mut().filter(|entry| fits(entry)) {
                found = true;
                change_entry(entry, attribute, part.as_ref(), verb, value)?;
            }
            if !found && verb != Verb::Remove {
                entries.push(new_entry(attribute, filter, part.as_ref(), verb, value)?);
            }
        }
    }
    let all = last_alone(attribute, Value::Array(std::mem::take(entries)));
    resource.insert(attribute.name.to_owned(), all);
    Ok(())
}

fn set_part(parts: &mut Map<String, Value>, part: &Attribute, verb: Verb, value: &Value) {
    if verb == Verb::Remove || value.is_null() {
        parts.remove(part.name);
    } else {
        parts.insert(part.name.to_owned(), value.clone());
    }
}

fn change_entry(
    entry: &mut Value,
    attribute: &'static Attribute,
    part: Option<&(&'static Attribute, Value)>,
    verb: Verb,
    value: &Value,
) -> Result<()> {
    let Value::Object(known) = entry else { return Ok(()) };
    match part {
        Some((part, value)) => set_part(known, part, verb, value),
        None => match attribute.read_one("", value)? {
            Value::Object(parts) => known.extend(parts),
            other => *entry = other,
        },
    }
    Ok(())
}

/// The entry that an addition to none of a list means: what the filter says it equals, and the value. Nothing that could be
/// replaced is 400.
fn new_entry(
    attribute: &'static Attribute,
    filter: Option<&Filter>,
    part: Option<&(&'static Attribute, Value)>,
    verb: Verb,
    value: &Value,
) -> Result<Value> {
    let mut entry = Map::new();
    let described = filter.is_none_or(|filter| equalities(attribute, filter, &mut entry));
    if verb == Verb::Replace || !described {
        return Err(Error::new(Code::NoTarget, format!("No entry of {} matches the path.", attribute.name)));
    }
    match part {
        Some((part, value)) => set_part(&mut entry, part, verb, value),
        None => {
            if let Value::Object(parts) = attribute.read_one("", value)? {
                entry.extend(parts);
            }
        }
    }
    Ok(Value::Object(entry))
}

/// Takes over what a filter says of an entry; false when it says more than what equals what.
fn equalities(attribute: &'static Attribute, filter: &Filter, entry: &mut Map<String, Value>) -> bool {
    match filter {
        Filter::All(parts) => parts.iter().all(|part| equalities(attribute, part, entry)),
        Filter::Compare { path, operator: Operator::Equal, value } => {
            let Some(part) = attribute.part(&path.name) else { return false };
            let Ok(value) = part.read(attribute.name, value) else { return false };
            entry.insert(part.name.to_owned(), value);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::{GROUP, USER};

    fn patched(schema: &Schema, before: &Value, operations: &Value) -> Result<Value> {
        let mut resource = before.as_object().cloned().expect("an object");
        apply(schema, &mut resource, &read(&json!({ "Operations": operations }))?)?;
        Ok(Value::Object(resource))
    }

    fn ada() -> Value {
        json!({
            "userName": "ada@example.com", "active": true, "name": { "givenName": "Ada" },
            "roles": [{ "value": "MEMBER", "primary": true }],
        })
    }

    #[track_caller]
    fn user(operations: &Value, expected: &Value) {
        let mut whole = ada();
        for (name, value) in expected.as_object().expect("an object") {
            whole[name] = value.clone();
        }
        assert_eq!(patched(&USER, &ada(), operations).expect("it can be applied"), whole, "{operations}");
    }

    #[test]
    fn attributes_are_set_with_and_without_a_path() {
        user(&json!([{ "op": "Replace", "path": "active", "value": "False" }]), &json!({ "active": false }));
        user(&json!([{ "op": "replace", "value": { "active": false, "id": "x" } }]), &json!({ "active": false }));
        user(
            &json!([{ "op": "Add", "path": "name.familyName", "value": "L" }]),
            &json!({ "name": { "givenName": "Ada", "familyName": "L" } }),
        );
        user(
            &json!([{ "op": "add", "value": { "name.familyName": "L", "externalId": "7" } }]),
            &json!({ "name": { "givenName": "Ada", "familyName": "L" }, "externalId": "7" }),
        );
        user(
            &json!([{ "op": "add", "path": "urn:ietf:params:scim:schemas:core:2.0:User:externalId", "value": "7" }]),
            &json!({ "externalId": "7" }),
        );
        user(&json!([{ "op": "remove", "path": "name.givenName" }]), &json!({ "name": {} }));
    }

    #[test]
    fn a_role_takes_the_place_of_the_other() {
        let admin = json!({ "roles": [{ "value": "ADMIN" }] });
        user(&json!([{ "op": "add", "path": "roles", "value": [{ "value": "ADMIN" }] }]), &admin);
        user(&json!([{ "op": "replace", "path": "roles", "value": { "value": "ADMIN" } }]), &admin);
        let primary = json!({ "roles": [{ "value": "ADMIN", "primary": true }] });
        let path = r#"roles[primary eq "True"].value"#;
        user(&json!([{ "op": "Add", "path": path, "value": "ADMIN" }]), &primary);
        let gone = json!({ "op": "remove", "path": r#"roles[value eq "MEMBER"]"# });
        user(&json!([gone, { "op": "add", "path": path, "value": "ADMIN" }]), &primary);
    }

    #[test]
    fn what_cannot_be_written_here_is_passed_over() {
        for path in [
            "displayName",
            r#"emails[type eq "work"].value"#,
            "password",
            "name.formatted",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department",
        ] {
            user(&json!([{ "op": "replace", "path": path, "value": "x" }]), &json!({}));
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (operations, code) in [
            (json!([]), Code::MalformedJson),
            (json!([{ "op": "move", "path": "active" }]), Code::MalformedJson),
            (json!([{ "op": "replace", "path": 7, "value": 1 }]), Code::MalformedJson),
            (json!([{ "op": "remove" }]), Code::NoTarget),
            (json!([{ "op": "replace", "path": "shoeSize", "value": "44" }]), Code::InvalidPath),
            (json!([{ "op": "replace", "path": "name.shoe", "value": "44" }]), Code::InvalidPath),
            (json!([{ "op": "replace", "path": "name[givenName pr]", "value": "44" }]), Code::InvalidPath),
            (json!([{ "op": "replace", "path": "roles[shoe pr]", "value": "44" }]), Code::InvalidPath),
            (json!([{ "op": "replace", "path": "id", "value": "x" }]), Code::ReadOnly),
            (json!([{ "op": "add", "path": "groups", "value": [{ "value": "x" }] }]), Code::ReadOnly),
            (json!([{ "op": "remove", "path": "userName" }]), Code::ReadOnly),
            (json!([{ "op": "remove", "path": "roles" }]), Code::ReadOnly),
            (json!([{ "op": "replace", "path": "active", "value": null }]), Code::ReadOnly),
            (json!([{ "op": "replace", "path": "active", "value": "perhaps" }]), Code::ValidationFailed),
            (json!([{ "op": "add", "path": "active" }]), Code::ValidationFailed),
            (json!([{ "op": "replace", "path": r#"roles[value eq "X"].value"#, "value": "Y" }]), Code::NoTarget),
        ] {
            assert_eq!(patched(&USER, &ada(), &operations).expect_err("refused").code(), code, "{operations}");
        }
    }

    #[test]
    fn members_are_added_once_and_removed_in_every_way() {
        let group = json!({ "displayName": "Math", "members": [{ "value": "a" }, { "value": "b" }] });
        let members =
            |operations: Value| patched(&GROUP, &group, &operations).expect("it can be applied")["members"].clone();
        assert_eq!(
            members(json!([{ "op": "Add", "path": "members", "value": [{ "value": "b" }, { "value": "c" }] }])),
            json!([{ "value": "a" }, { "value": "b" }, { "value": "c" }])
        );
        for removal in [
            json!({ "op": "remove", "path": r#"members[value eq "a"]"# }),
            json!({ "op": "Remove", "path": "members", "value": [{ "value": "a" }] }),
            json!({ "op": "replace", "path": "members", "value": [{ "value": "b" }] }),
            json!({ "op": "replace", "value": { "members": [{ "value": "b" }] } }),
        ] {
            assert_eq!(members(json!([removal])), json!([{ "value": "b" }]), "{removal}");
        }
        assert_eq!(members(json!([{ "op": "remove", "path": "members" }])), Value::Null);
        assert_eq!(members(json!([{ "op": "remove", "path": r#"members[value eq "x"]"# }])), group["members"]);
        let inside = json!([{ "op": "replace", "path": r#"members[value eq "a"].value"#, "value": "x" }]);
        assert_eq!(patched(&GROUP, &group, &inside).expect_err("refused").code(), Code::ReadOnly);
    }
}
