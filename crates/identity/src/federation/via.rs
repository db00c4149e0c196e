//! What somebody comes in through: a workspace's connection, whose word reaches its workspaces, or a provider of the app, whose word
//! reaches everything.

use std::{fmt, str::FromStr};

use ::store::{Arg, Column, ToArg, Value, WrongType, parsed};
use tenancy::federation::{ConnectionId, Provider};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    Connection(ConnectionId),
    Provider(Provider),
}

impl Via {
    pub(super) fn connection(self) -> Option<ConnectionId> {
        match self {
            Self::Connection(id) => Some(id),
            Self::Provider(_) => None,
        }
    }

    pub(super) fn provider(self) -> Option<Provider> {
        match self {
            Self::Connection(_) => None,
            Self::Provider(provider) => Some(provider),
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(id) => id.fmt(f),
            Self::Provider(provider) => f.write_str(provider.as_str()),
        }
    }
}

/// A connection's id holds an underscore, and no provider's name does.
impl FromStr for Via {
    type Err = WrongType;

    fn from_str(text: &str) -> Result<Self, WrongType> {
        match text.parse() {
            Ok(id) => Ok(Self::Connection(id)),
            Err(_) => text.parse().map(Self::Provider),
        }
    }
}

impl Column for Via {
    fn from_value(value: Value<'_>) -> Result<Self, WrongType> {
        parsed(value)
    }
}

impl ToArg for Via {
    fn to_arg(&self) -> Arg<'_> {
        Arg::Text(self.to_string().into())
    }
}
