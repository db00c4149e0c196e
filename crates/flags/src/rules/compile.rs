//! A definition turned into the form that is evaluated: attributes as numbers, values parsed, answers already written
//! as JSON. What cannot be compiled becomes a flag that says so, never a flag with a wrong value.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicI64},
};

use bytes::Bytes;
use serde_json::Value;

use super::{condition::Test, context::Root, rollout::buckets_of};
use crate::model::{Branch, Condition, Definition, FlagId, State, ValueType};

/// An attribute among those that an app's rules look at.
pub type Attribute = u32;

/// The attributes that an app's rules look at, each once, so that a bulk evaluation finds each once.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    paths: Vec<(Root, Box<str>)>,
    known: HashMap<(Root, Box<str>), Attribute>,
}

impl Attributes {
    /// `None` when the path does not begin as attributes do.
    fn intern(&mut self, path: &str) -> Option<Attribute> {
        let attribute = split(path)?;
        if let Some(known) = self.known.get(&attribute) {
            return Some(*known);
        }
        let number = Attribute::try_from(self.paths.len()).ok()?;
        self.paths.push(attribute.clone());
        self.known.insert(attribute, number);
        Some(number)
    }

    /// Ends interning; what remains is what evaluation needs.
    pub fn seal(&mut self) {
        self.known = HashMap::new();
        self.paths.shrink_to_fit();
    }

    pub(super) fn path(&self, attribute: Attribute) -> (Root, &str) {
        let (root, rest) = &self.paths[attribute as usize];
        (*root, rest)
    }

    /// Whether a rule looks at this member, or at something in it.
    pub fn look_at(&self, root: Root, member: &str) -> bool {
        self.paths.iter().any(|(of, path)| *of == root && path.split('.').next() == Some(member))
    }

    pub fn len(&self) -> usize {
        self.paths.len()
    }

    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

/// `user.role` is `role` of the user.
pub(super) fn split(path: &str) -> Option<(Root, Box<str>)> {
    let (root, rest) = path.split_once('.')?;
    (!rest.is_empty()).then_some((Root::named(root)?, rest.into()))
}

/// Saved groups by key.
pub type Groups = HashMap<String, Arc<[Branch]>>;

/// A compiled flag. Immutable, apart from the note of when it was last asked for.
#[derive(Debug)]
pub struct Flag {
    pub id: FlagId,
    pub key: Box<str>,
    pub(super) body: FlagBody,
    /// Business time in microseconds, kept roughly.
    pub last_asked: AtomicI64,
}

#[derive(Debug)]
pub(super) enum FlagBody {
    Off(FlagResult),
    On(FlagResult),
    Ruled {
        /// How many of the 10,000 buckets are in.
        buckets: u32,
        branches: Box<[CompiledBranch]>,
        otherwise: FlagResult,
    },
    Broken(FlagResult),
}

#[derive(Debug)]
pub(super) struct CompiledBranch {
    pub(super) conditions: Box<[CompiledCondition]>,
    pub(super) outcome: FlagResult,
}

#[derive(Debug)]
pub(super) struct CompiledCondition {
    pub(super) attribute: Attribute,
    pub(super) negative: bool,
    pub(super) test: Test,
}

/// One possible answer, already written.
#[derive(Clone, Debug)]
pub struct FlagResult {
    /// `{"value":…,"enabled":…,"variantIndex":…}`
    pub body: Bytes,
    /// Where the value ends in `body`; 0 when there is none.
    value_end: u32,
    pub enabled: bool,
    pub variant: i32,
}

const VALUE_START: usize = r#"{"value":"#.len();

impl FlagResult {
    fn new(value: &Value, enabled: bool, variant: i32) -> Self {
        let value = value.to_string();
        let value_end = u32::try_from(VALUE_START + value.len()).expect("values are limited to 64 KiB");
        let body = format!(r#"{{"value":{value},"enabled":{enabled},"variantIndex":{variant}}}"#);
        Self { body: body.into(), value_end, enabled, variant }
    }

    fn broken(reason: &str) -> Self {
        let reason = Value::from(reason);
        let body = format!(r#"{{"enabled":false,"variantIndex":-1,"error":{reason}}}"#);
        Self { body: body.into(), value_end: 0, enabled: false, variant: -1 }
    }

    /// What a key evaluates to that no flag has.
    pub fn unknown() -> Self {
        Self::new(&Value::Bool(false), false, -1)
    }

    /// The value as JSON, unless the flag cannot be evaluated.
    pub fn value(&self) -> Option<&[u8]> {
        self.body.get(VALUE_START..self.value_end as usize)
    }
}

impl Flag {
    pub fn compile(id: FlagId, definition: &Definition, groups: &Groups, attributes: &mut Attributes) -> Self {
        let body = FlagBody::compile(definition, groups, attributes)
            .unwrap_or_else(|reason| FlagBody::Broken(FlagResult::broken(&reason)));
        Self { id, key: definition.key.as_str().into(), body, last_asked: AtomicI64::new(0) }
    }

    pub fn is_broken(&self) -> bool {
        matches!(self.body, FlagBody::Broken(_))
    }
}

impl FlagBody {
    fn compile(definition: &Definition, groups: &Groups, attributes: &mut Attributes) -> Result<Self, String> {
        match definition.state {
            State::Off => Ok(Self::Off(outcome(definition, &definition.off_value, false, -1)?)),
            State::On => Ok(Self::On(outcome(definition, &definition.on_value, true, -1)?)),
            State::OnWithRule => {
                let rule = definition.rule.as_ref().ok_or("The flag has no rule.")?;
                let branches = match &rule.group_ref {
                    None => &rule.branches[..],
                    Some(group) => groups.get(group).ok_or_else(|| format!("The group {group} does not exist."))?,
                };
                let compile = |(index, branch)| CompiledBranch::new(definition, index, branch, attributes);
                let otherwise = rule.otherwise_value.as_ref().unwrap_or(&definition.on_value);
                Ok(Self::Ruled {
                    buckets: buckets_of(rule.rollout_pct),
                    branches: branches.iter().enumerate().map(compile).collect::<Result<_, String>>()?,
                    otherwise: outcome(definition, otherwise, false, -1)?,
                })
            }
        }
    }
}

impl CompiledBranch {
    fn new(
        definition: &Definition,
        index: usize,
        branch: &Branch,
        attributes: &mut Attributes,
    ) -> Result<Self, String> {
        let variant = i32::try_from(index).map_err(|_| "The rule has too many branches.")?;
        let compile = |condition| CompiledCondition::new(condition, attributes);
        Ok(Self {
            conditions: branch.conditions.iter().map(compile).collect::<Result<_, String>>()?,
            outcome: outcome(definition, &branch.return_value, true, variant)?,
        })
    }
}

impl CompiledCondition {
    fn new(condition: &Condition, attributes: &mut Attributes) -> Result<Self, String> {
        let Condition { attribute: path, operator, values } = condition;
        let attribute = attributes.intern(path).ok_or_else(|| format!("{path} is not an attribute."))?;
        let test = Test::new(*operator, values).map_err(|misfit| format!("A value for {path} {misfit}."))?;
        Ok(Self { attribute, negative: operator.is_negative(), test })
    }
}

/// For a boolean flag `enabled` is the value itself.
fn outcome(definition: &Definition, value: &Value, enabled: bool, variant: i32) -> Result<FlagResult, String> {
    if !definition.value_type.admits(value) {
        return Err("A value is not of the flag's type.".to_owned());
    }
    let enabled = match definition.value_type {
        ValueType::Boolean => *value == Value::Bool(true),
        _ => enabled,
    };
    Ok(FlagResult::new(value, enabled, variant))
}
