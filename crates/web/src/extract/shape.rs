//! A body's schema, compiled once per type: what the [`survey`](super::survey) holds a value against.

use std::{
    any::TypeId,
    collections::HashMap,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};

use kernel::text::{MAX_BYTES, MESSAGE, TextRules};
use schemars::JsonSchema;
use serde_json::{Map, Number, Value};

use crate::schemas;

/// A schema as a list of nodes that refer to each other by their place, since schemas may contain themselves.
pub(super) struct Shape {
    nodes: Vec<Node>,
    root: usize,
}

/// What one schema asks of a value.
#[derive(Default)]
pub(super) struct Node {
    pub(super) types: Types,
    pub(super) text: TextRules,
    pub(super) least: Option<Number>,
    pub(super) most: Option<Number>,
    pub(super) fewest_entries: usize,
    pub(super) most_entries: Option<usize>,
    pub(super) entries: Option<usize>,
    pub(super) required: Vec<String>,
    pub(super) members: Vec<(String, usize)>,
    pub(super) other_members: Option<usize>,
    pub(super) member_names: Option<TextRules>,
    pub(super) most_members: Option<usize>,
    pub(super) most_bytes: Option<usize>,
    pub(super) values: Option<Vec<Value>>,
    /// At least one of these fits.
    pub(super) choices: Vec<usize>,
    /// All of these fit.
    pub(super) also: Vec<usize>,
    pub(super) message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonType {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl JsonType {
    const NAMES: [(&str, Self); 7] = [
        ("null", Self::Null),
        ("boolean", Self::Boolean),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("string", Self::String),
        ("array", Self::Array),
        ("object", Self::Object),
    ];

    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

/// JSON types that a schema names, as a set: every value of a body is held against one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const ONLY_NULL: Self = Self(1 << JsonType::Null as u8);

    fn of(named: &Value) -> Self {
        let names = texts(named);
        let types = JsonType::NAMES.iter().filter(|(name, _)| names.iter().any(|known| known == name));
        Self(types.fold(0, |set, (_, one)| set | 1 << *one as u8))
    }

    /// Nothing is said about types.
    pub(super) const fn is_open(self) -> bool {
        self.0 == 0
    }

    /// Named, and not only let through because none are.
    pub(super) const fn names(self, one: JsonType) -> bool {
        self.0 & 1 << one as u8 != 0
    }
}

/// By type and the limit of its texts.
type Shapes = HashMap<(TypeId, usize), Arc<Shape>>;

static SHAPES: LazyLock<RwLock<Shapes>> = LazyLock::new(RwLock::default);

impl Shape {
    /// `longest` limits the texts that name no limit themselves.
    pub(super) fn of<T: JsonSchema + 'static>(longest: usize) -> Arc<Self> {
        let id = (TypeId::of::<T>(), longest);
        if let Some(known) = SHAPES.read().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Arc::clone(known);
        }
        let mut schema = schemars::generate::SchemaGenerator::default().into_root_schema_for::<T>().to_value();
        schemas::bound(&mut schema, longest);
        let shape = Arc::new(Self::compile(&schema));
        SHAPES.write().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::clone(&shape));
        shape
    }

    fn compile(schema: &Value) -> Self {
        let mut compiler = Compiler { definitions: schema["$defs"].as_object(), known: HashMap::new(), nodes: vec![] };
        let root = compiler.node(schema);
        Self { nodes: compiler.nodes, root }
    }

    pub(super) fn root(&self) -> &Node {
        self.node(self.root)
    }

    pub(super) fn node(&self, place: usize) -> &Node {
        &self.nodes[place]
    }
}

struct Compiler<'a> {
    definitions: Option<&'a Map<String, Value>>,
    known: HashMap<&'a str, usize>,
    nodes: Vec<Node>,
}

impl<'a> Compiler<'a> {
    fn node(&mut self, schema: &'a Value) -> usize {
        let place = self.nodes.len();
        self.nodes.push(Node::default());
        self.nodes[place] = self.compile(schema);
        place
    }

    fn definition(&mut self, reference: &'a str) -> Option<usize> {
        if reference == "#" {
            return Some(0);
        }
        let name = reference.strip_prefix("#/$defs/")?;
        if let Some(place) = self.known.get(name) {
            return Some(*place);
        }
        let schema = self.definitions?.get(name)?;
        let place = self.nodes.len();
        self.known.insert(name, place);
        self.nodes.push(Node::default());
        self.nodes[place] = self.compile(schema);
        Some(place)
    }

    fn compile(&mut self, schema: &'a Value) -> Node {
        let count = |keyword: &str| schema[keyword].as_u64().and_then(|value| usize::try_from(value).ok());
        let list = |keyword: &str| schema[keyword].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut node = Node {
            types: Types::of(&schema["type"]),
            text: TextRules::of(schema),
            least: schema["minimum"].as_number().cloned(),
            most: schema["maximum"].as_number().cloned(),
            fewest_entries: count("minItems").unwrap_or(0),
            most_entries: count("maxItems"),
            entries: schema.get("items").filter(|items| items.is_object()).map(|items| self.node(items)),
            required: texts(&schema["required"]),
            member_names: schema.get("propertyNames").map(TextRules::of),
            most_members: count("maxProperties"),
            most_bytes: count(MAX_BYTES),
            values: values(schema),
            message: schema[MESSAGE].as_str().map(str::to_owned),
            also: list("allOf").iter().map(|part| self.node(part)).collect(),
            ..Node::default()
        };
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            node.members.push((name.clone(), self.node(member)));
        }
        node.other_members =
            schema.get("additionalProperties").filter(|other| other.is_object()).map(|other| self.node(other));
        if let Some(place) = schema["$ref"].as_str().and_then(|reference| self.definition(reference)) {
            node.also.push(place);
        }
        let choices: Vec<&Value> = list("anyOf").iter().chain(list("oneOf")).collect();
        match merged_values(&choices) {
            Some(values) => node.values = Some(values),
            None => node.choices = choices.into_iter().map(|choice| self.node(choice)).collect(),
        }
        node
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(one) => vec![one.clone()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The only values that a schema accepts, if it lists them.
fn values(schema: &Value) -> Option<Vec<Value>> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => Some(values.clone()),
        (_, Some(value)) => Some(vec![value.clone()]),
        _ => None,
    }
}

/// An enumeration whose values are described one by one is a choice between values.
fn merged_values(choices: &[&Value]) -> Option<Vec<Value>> {
    if choices.is_empty() {
        return None;
    }
    choices.iter().map(|choice| values(choice)).collect::<Option<Vec<_>>>().map(|lists| lists.concat())
}
