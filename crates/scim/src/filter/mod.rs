//! Filters (RFC 7644 §3.4.2.2): what a directory asks for. Reading one knows no schema, binding it to a schema finds wrong
//! attributes and comparisons that make no sense, and a bound one answers for a resource. Pure.

mod bound;
mod parse;
#[cfg(test)]
mod properties;

use std::fmt;

use kernel::{Code, Error};
use serde_json::Value;

pub use bound::{BoundFilter, Target};
pub use parse::{parse, parse_path};

/// A filter as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// At least one of them.
    Any(Vec<Self>),
    /// All of them.
    All(Vec<Self>),
    Not(Box<Self>),
    Present(AttributePath),
    Compare {
        path: AttributePath,
        operator: Operator,
        /// A text, a number, a boolean or null.
        value: Value,
    },
    /// At least one entry of a list fits: `emails[type eq "work"]`.
    Entry {
        path: AttributePath,
        filter: Box<Self>,
    },
}

/// An attribute as it is named: `urn:…:User:name.familyName`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributePath {
    /// The schema's URN, if it is named.
    pub schema: Option<String>,
    pub name: String,
    pub sub: Option<String>,
}

/// The path of a patch operation (RFC 7644 §3.5.2).
#[derive(Clone, Debug, PartialEq)]
pub struct PatchPath {
    pub schema: Option<String>,
    pub name: String,
    /// Which entries of a list are meant.
    pub filter: Option<Filter>,
    pub sub: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Equal,
    NotEqual,
    Contains,
    StartsWith,
    EndsWith,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Operator {
    pub const ALL: [(&'static str, Self); 9] = [
        ("eq", Self::Equal),
        ("ne", Self::NotEqual),
        ("co", Self::Contains),
        ("sw", Self::StartsWith),
        ("ew", Self::EndsWith),
        ("gt", Self::Greater),
        ("ge", Self::GreaterOrEqual),
        ("lt", Self::Less),
        ("le", Self::LessOrEqual),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, operator)| *operator == self).map_or("", |(name, _)| name)
    }

    /// Whether it asks for an order.
    pub(crate) fn orders(self) -> bool {
        matches!(self, Self::Greater | Self::GreaterOrEqual | Self::Less | Self::LessOrEqual)
    }

    /// Whether it looks inside a text.
    pub(crate) fn searches(self) -> bool {
        matches!(self, Self::Contains | Self::StartsWith | Self::EndsWith)
    }
}

/// A filter that cannot be used; the message follows "The filter".
pub(crate) fn invalid(problem: impl fmt::Display) -> Error {
    Error::new(Code::InvalidFilter, format!("The filter {problem}."))
}

impl fmt::Display for AttributePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}:")?;
        }
        f.write_str(&self.name)?;
        self.sub.as_ref().map_or(Ok(()), |sub| write!(f, ".{sub}"))
    }
}

/// As it could have been written, with parentheses around everything that is put together.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Self], word: &str| {
            for (place, part) in parts.iter().enumerate() {
                if place > 0 {
                    write!(f, " {word} ")?;
                }
                match part {
                    Self::Any(_) | Self::All(_) => write!(f, "({part})")?,
                    part => write!(f, "{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Self::Any(parts) => joined(f, parts, "or"),
            Self::All(parts) => joined(f, parts, "and"),
            Self::Not(inner) => write!(f, "not ({inner})"),
            Self::Present(path) => write!(f, "{path} pr"),
            Self::Compare { path, operator, value } => write!(f, "{path} {} {value}", operator.name()),
            Self::Entry { path, filter } => write!(f, "{path}[{filter}]"),
        }
    }
}

impl fmt::Display for PatchPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}:")?;
        }
        f.write_str(&self.name)?;
        if let Some(filter) = &self.filter {
            write!(f, "[{filter}]")?;
        }
        self.sub.as_ref().map_or(Ok(()), |sub| write!(f, ".{sub}"))
    }
}
