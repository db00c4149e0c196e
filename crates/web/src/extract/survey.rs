//! Everything that a schema says against a value, all of it at once: what is missing, of the wrong type, too long, too
//! large, or not of the form that it must have. A caller who fixes a request wants to hear of every problem.

use std::borrow::Cow;

use kernel::{FieldProblem, text::MAX_TEXT};
use schemars::JsonSchema;
use serde_json::{Map, Number, Value};

use super::shape::{JsonType, Node, Shape, Types};

/// Problems beyond this many help nobody.
const MOST: usize = 100;
/// An enumeration up to this long is told in full.
const MOST_VALUES: usize = 20;

/// The problems of `value`, in the order of the schema's members. A real choice between schemas is left to reading where
/// it is not clear which one was meant.
pub(super) fn problems<T: JsonSchema + 'static>(value: &Value) -> Vec<FieldProblem> {
    survey::<T>(value, false, MAX_TEXT)
}

/// The same for texts by name, where a number or a list is written as a text.
pub(super) fn problems_of_texts<T: JsonSchema + 'static>(value: &Value, longest: usize) -> Vec<FieldProblem> {
    survey::<T>(value, true, longest)
}

fn survey<T: JsonSchema + 'static>(value: &Value, texts: bool, longest: usize) -> Vec<FieldProblem> {
    let shape = Shape::of::<T>(longest);
    let mut survey = Survey { shape: &shape, texts, place: Vec::new(), found: Vec::new() };
    survey.look(shape.root(), value);
    survey.found
}

struct Survey<'a> {
    shape: &'a Shape,
    texts: bool,
    /// Where in the body we are; written out only when there is something to say.
    place: Vec<Step<'a>>,
    found: Vec<FieldProblem>,
}

enum Step<'a> {
    Member(Cow<'a, str>),
    Entry(usize),
}

impl<'a> Survey<'a> {
    fn look(&mut self, node: &'a Node, value: &Value) {
        if self.found.len() >= MOST {
            return;
        }
        if !self.texts {
            return self.judge(node, value);
        }
        // What does not stand for a value of the type is named by reading.
        if let Some(typed) = typed(node, value) {
            self.judge(node, &typed);
        }
    }

    fn look_inside(&mut self, step: Step<'a>, node: &'a Node, value: &Value) {
        self.place.push(step);
        self.look(node, value);
        self.place.pop();
    }

    fn judge(&mut self, node: &'a Node, value: &Value) {
        if let Some(wanted) = wrong_type(node, value).or_else(|| wrong_value(node, value)) {
            return self.note(&wanted);
        }
        for place in &node.also {
            self.look(self.shape.node(*place), value);
        }
        self.choose(node, value);
        match value {
            Value::Object(members) => self.look_at_members(node, members),
            Value::Array(entries) => self.look_at_entries(node, entries),
            Value::String(text) => {
                if let Some(problem) = node.text.problem(text) {
                    self.note(&problem);
                }
            }
            _ => {}
        }
    }

    /// The problems of the choice that was meant: the only one of the value's type.
    fn choose(&mut self, node: &'a Node, value: &Value) {
        let shape = self.shape;
        let choices = || node.choices.iter().map(|place| shape.node(*place));
        let mut meant = choices().filter(|choice| is_of_type(shape, choice, value));
        let chosen = match (meant.next(), meant.next()) {
            (Some(only), None) => Some(only),
            // Beside "or null" there is often only one.
            (None, _) => only(choices().filter(|choice| choice.types != Types::ONLY_NULL)),
            (Some(_), Some(_)) => None,
        };
        if let Some(chosen) = chosen {
            self.look(chosen, value);
        }
    }

    fn look_at_entries(&mut self, node: &'a Node, entries: &[Value]) {
        let (fewest, most) = (node.fewest_entries, node.most_entries.unwrap_or(usize::MAX));
        match entries.len() {
            0 if fewest == 1 => return self.note("must not be empty"),
            count if count < fewest => return self.note(&format!("must have at least {fewest} entries")),
            count if count > most => return self.note(&format!("must have at most {most} entries")),
            _ => {}
        }
        let Some(of_each) = node.entries else { return };
        for (place, entry) in entries.iter().enumerate() {
            self.look_inside(Step::Entry(place), self.shape.node(of_each), entry);
        }
    }

    fn look_at_members(&mut self, node: &'a Node, members: &Map<String, Value>) {
        if let Some(most) = node.most_members.filter(|most| members.len() > *most) {
            return self.note(&format!("must have at most {most} members"));
        }
        for name in node.required.iter().filter(|name| !members.contains_key(*name)) {
            self.note_inside(name.into(), "is required");
        }
        for (name, place) in &node.members {
            if let Some(value) = members.get(name) {
                self.look_inside(Step::Member(name.into()), self.shape.node(*place), value);
            }
        }
        if node.other_members.is_some() || node.member_names.is_some() {
            let known = |name: &str| node.members.iter().any(|(known, _)| known == name);
            members
                .iter()
                .filter(|(name, _)| !known(name))
                .for_each(|(name, value)| self.look_at_other(node, name, value));
        }
    }

    fn look_at_other(&mut self, node: &'a Node, name: &str, value: &Value) {
        if let Some(problem) = node.member_names.as_ref().and_then(|rules| rules.problem(name)) {
            self.note_inside(name.to_owned().into(), &format!("has a name that {problem}"));
        } else if let Some(place) = node.other_members {
            self.look_inside(Step::Member(name.to_owned().into()), self.shape.node(place), value);
        }
    }

    fn note_inside(&mut self, name: Cow<'a, str>, message: &str) {
        self.place.push(Step::Member(name));
        self.note(message);
        self.place.pop();
    }

    fn note(&mut self, message: &str) {
        let field = self.field();
        if self.found.iter().all(|known| known.field != field) {
            self.found.push(FieldProblem { field, message: message.to_owned() });
        }
    }

    /// `prices[0].amount`, or `body` for the whole of it.
    fn field(&self) -> String {
        let mut field = String::new();
        for step in &self.place {
            match step {
                Step::Member(name) if field.is_empty() => field.push_str(name),
                Step::Member(name) => field.extend([".", name]),
                Step::Entry(place) => field.push_str(&format!("[{place}]")),
            }
        }
        if field.is_empty() { "body".to_owned() } else { field }
    }
}

/// What a text in a query stands for: a number, the only entry of a list, or itself.
fn typed<'a>(node: &Node, value: &'a Value) -> Option<Cow<'a, Value>> {
    match value {
        _ if node.types.is_open() || node.types.names(JsonType::of(value)) => Some(Cow::Borrowed(value)),
        Value::String(text) if node.types.names(JsonType::Integer) || node.types.names(JsonType::Number) => {
            text.parse().ok().map(|number| Cow::Owned(Value::Number(number)))
        }
        Value::String(_) if node.types.names(JsonType::Array) => Some(Cow::Owned(Value::Array(vec![value.clone()]))),
        _ => None,
    }
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    found.next().filter(|_| found.next().is_none())
}

fn is_of_type(shape: &Shape, node: &Node, value: &Value) -> bool {
    has_type(node, value)
        && (!value.is_null() || node.values.as_ref().is_none_or(|values| values.contains(value)))
        && node.also.iter().all(|place| is_of_type(shape, shape.node(*place), value))
}

fn has_type(node: &Node, value: &Value) -> bool {
    node.types.is_open()
        || node.types.names(JsonType::of(value))
        || (node.types.names(JsonType::Integer) && value.as_f64().is_some_and(|number| number.fract() == 0.0))
}

/// What the value must be, when it is not.
fn wrong_type(node: &Node, value: &Value) -> Option<String> {
    match &node.values {
        _ if has_type(node, value) => None,
        Some(values) => Some(one_of(node, values)),
        None => Some(must_be(node.types).to_owned()),
    }
}

fn must_be(types: Types) -> &'static str {
    let wanted = [
        (JsonType::String, "must be a string"),
        (JsonType::Integer, "must be an integer"),
        (JsonType::Number, "must be a number"),
        (JsonType::Boolean, "must be true or false"),
        (JsonType::Array, "must be a list"),
        (JsonType::Object, "must be an object"),
    ];
    let found = wanted.iter().find(|(one, _)| types.names(*one));
    found.map_or("must be one of the documented values", |(_, message)| message)
}

fn wrong_value(node: &Node, value: &Value) -> Option<String> {
    if let Some(values) = node.values.as_ref().filter(|values| !values.contains(value)) {
        return Some(one_of(node, values));
    }
    match value {
        Value::Number(number) => out_of_range(node, number),
        Value::Object(_) | Value::Array(_) => {
            let most = node.most_bytes.filter(|most| value.to_string().len() > *most)?;
            Some(format!("must be at most {most} bytes as JSON"))
        }
        _ => None,
    }
}

fn one_of(node: &Node, values: &[Value]) -> String {
    if let Some(message) = &node.message {
        return message.clone();
    }
    let names: Vec<String> = values
        .iter()
        .filter(|value| !value.is_null())
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    match names.as_slice() {
        [only] => format!("must be {only}"),
        several if several.len() <= MOST_VALUES => format!("must be one of {}", several.join(", ")),
        _ => "must be one of the documented values".to_owned(),
    }
}

fn out_of_range(node: &Node, number: &Number) -> Option<String> {
    let below = node.least.as_ref().is_some_and(|least| less(number, least));
    let above = node.most.as_ref().is_some_and(|most| less(most, number));
    match (&node.least, &node.most) {
        (Some(least), _) if below && least.as_f64() == Some(0.0) => Some("must not be negative".to_owned()),
        (Some(least), Some(most)) if below || above => Some(format!("must be between {least} and {most}")),
        (Some(least), None) if below => Some(format!("must be at least {least}")),
        (None, Some(most)) if above => Some(format!("must be at most {most}")),
        _ => None,
    }
}

/// Exact for integers, which are compared as such.
fn less(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a < b,
        _ => a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a < b),
    }
}
