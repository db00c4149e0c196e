//! Changes of JSON that keep it JSON: another value in a member's place, a member gone, renamed or added.

use proptest::{prelude::*, sample::Index};
use serde_json::{Map, Number, Value};

use crate::nasty_text;

/// Any JSON of a few levels.
pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::Number)),
        nasty_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((nasty_text(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A text of lists within lists.
pub fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// One change of JSON.
#[derive(Clone, Debug)]
pub enum Warp {
    Replace { at: Index, by: Value },
    Remove { at: Index },
    Rename { at: Index, to: String },
    Add { at: Index, name: String, value: Value },
    Wrap { at: Index },
}

/// One to three changes.
pub fn warps() -> impl Strategy<Value = Vec<Warp>> {
    let at = any::<Index>;
    let warp = prop_oneof![
        3 => (at(), any_json()).prop_map(|(at, by)| Warp::Replace { at, by }),
        2 => at().prop_map(|at| Warp::Remove { at }),
        1 => (at(), nasty_text()).prop_map(|(at, to)| Warp::Rename { at, to }),
        1 => (at(), nasty_text(), any_json()).prop_map(|(at, name, value)| Warp::Add { at, name, value }),
        1 => at().prop_map(|at| Warp::Wrap { at }),
    ];
    prop::collection::vec(warp, 1..4)
}

/// The JSON with the changes made.
pub fn warped(json: &Value, warps: &[Warp]) -> Value {
    let mut json = json.clone();
    warps.iter().for_each(|warp| warp.apply(&mut json));
    json
}

impl Warp {
    fn apply(&self, json: &mut Value) {
        match self {
            Self::Replace { at, by } => *find(json, *at) = by.clone(),
            Self::Wrap { at } => {
                let found = find(json, *at);
                *found = Value::Array(vec![found.take()]);
            }
            Self::Remove { at } | Self::Rename { at, .. } | Self::Add { at, .. } => {
                let Some(members) = find_object(json, *at) else { return };
                self.apply_to_members(*at, members);
            }
        }
    }

    fn apply_to_members(&self, at: Index, members: &mut Map<String, Value>) {
        let name = (!members.is_empty()).then(|| members.keys().nth(at.index(members.len())).cloned()).flatten();
        match (self, name) {
            (Self::Add { name, value, .. }, _) => {
                members.insert(name.clone(), value.clone());
            }
            (Self::Remove { .. }, Some(name)) => {
                members.remove(&name);
            }
            (Self::Rename { to, .. }, Some(name)) => {
                let value = members.remove(&name).unwrap_or_default();
                members.insert(to.clone(), value);
            }
            _ => {}
        }
    }
}

fn count(json: &Value) -> usize {
    1 + match json {
        Value::Array(entries) => entries.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// The value at a place, counted from the outside in.
fn find(json: &mut Value, at: Index) -> &mut Value {
    let at = at.index(count(json));
    nth(json, at)
}

fn nth(json: &mut Value, at: usize) -> &mut Value {
    if at == 0 {
        return json;
    }
    let inner: Vec<&mut Value> = match json {
        Value::Array(entries) => entries.iter_mut().collect(),
        Value::Object(members) => members.values_mut().collect(),
        _ => Vec::new(),
    };
    let mut rest = at - 1;
    for value in inner {
        let size = count(value);
        if rest < size {
            return nth(value, rest);
        }
        rest -= size;
    }
    unreachable!("a place is within the count of values")
}

/// The object at a place, or else the outermost one.
fn find_object(json: &mut Value, at: Index) -> Option<&mut Map<String, Value>> {
    if find(json, at).is_object() { find(json, at).as_object_mut() } else { json.as_object_mut() }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest! {
        #[test]
        fn any_warp_fits_any_json(json in any_json(), warps in warps()) {
            warped(&json, &warps);
        }
    }
}
