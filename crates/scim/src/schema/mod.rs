//! What the attributes of resources are called and how they behave (RFC 7643 §2 and §7). One declaration is what filters are
//! bound to, what bodies are read by and what `/Schemas` tells. Pure.

mod definitions;
mod read;

use serde_json::{Value, json};

pub use definitions::{GROUP, USER};

/// The attributes of one kind of resource.
#[derive(Debug)]
pub struct Schema {
    pub urn: &'static str,
    pub name: &'static str,
    pub description: &'static str,
    /// Those that every resource has, which no schema tells of.
    pub common: &'static [Attribute],
    pub attributes: &'static [Attribute],
    /// What the standard has and nobody can write here: passed over by patches, so that no directory stumbles over it.
    pub ignored: &'static [&'static str],
}

#[derive(Debug)]
pub struct Attribute {
    pub name: &'static str,
    pub kind: Kind,
    pub many: bool,
    /// Whether a list has one entry at most: another one takes its place.
    pub single: bool,
    pub required: bool,
    pub case_exact: bool,
    pub mutability: Mutability,
    pub always_returned: bool,
    pub unique: bool,
    /// What a reference leads to.
    pub refers_to: &'static str,
    pub description: &'static str,
    pub parts: &'static [Self],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Boolean,
    Instant,
    Reference,
    Complex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutability {
    ReadWrite,
    ReadOnly,
    /// Set with its entry, never by itself.
    Immutable,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Boolean => "boolean",
            Self::Instant => "dateTime",
            Self::Reference => "reference",
            Self::Complex => "complex",
        }
    }
}

impl Mutability {
    const fn name(self) -> &'static str {
        match self {
            Self::ReadWrite => "readWrite",
            Self::ReadOnly => "readOnly",
            Self::Immutable => "immutable",
        }
    }
}

impl Attribute {
    /// A part of it, in any case.
    pub fn part(&self, name: &str) -> Option<&'static Self> {
        self.parts.iter().find(|part| part.name.eq_ignore_ascii_case(name))
    }

    /// What a comparison with a list of objects means: their `value`.
    pub fn main_part(&self) -> Option<&'static Self> {
        self.part("value").filter(|_| self.many)
    }

    fn told(&self) -> Value {
        let mut told = json!({
            "name": self.name,
            "type": self.kind.name(),
            "multiValued": self.many,
            "description": self.description,
            "required": self.required,
            "mutability": self.mutability.name(),
            "returned": if self.always_returned { "always" } else { "default" },
        });
        match self.kind {
            Kind::Complex => {
                told["subAttributes"] = self.parts.iter().map(Self::told).collect();
            }
            Kind::Reference => told["referenceTypes"] = json!([self.refers_to]),
            Kind::Text | Kind::Boolean | Kind::Instant => {}
        }
        if self.kind != Kind::Complex {
            told["caseExact"] = self.case_exact.into();
            told["uniqueness"] = if self.unique { "server" } else { "none" }.into();
        }
        told
    }
}

impl Schema {
    /// An attribute, in any case.
    pub fn attribute(&self, name: &str) -> Option<&'static Attribute> {
        self.common.iter().chain(self.attributes).find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// Whether a URN before an attribute's name is this schema's.
    pub fn is_called(&self, urn: &str) -> bool {
        self.urn.eq_ignore_ascii_case(urn)
    }

    pub fn ignores(&self, name: &str) -> bool {
        self.ignored.iter().any(|ignored| ignored.eq_ignore_ascii_case(name))
    }

    /// As `/Schemas` tells it.
    pub fn told(&self, base: &str) -> Value {
        json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Schema"],
            "id": self.urn,
            "name": self.name,
            "description": self.description,
            "attributes": self.attributes.iter().map(Attribute::told).collect::<Vec<_>>(),
            "meta": { "resourceType": "Schema", "location": format!("{base}/Schemas/{}", self.urn) },
        })
    }
}
