//! Who makes a change: the actor, the address they call from, and the request. Written down beside every fact.

use std::{fmt, net::IpAddr, sync::LazyLock};

use serde::{Deserialize, Serialize};

use crate::{KeyId, UserId};

/// What kind of caller an [`Actor`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// A person who operates this installation through its console.
    Operator,
    /// The operator key.
    OperatorKey,
    AppKey,
    ApiToken,
    /// A person who signed in to an app.
    User,
    /// A directory that provisions people by SCIM.
    Scim,
    /// The service itself: background work, and requests of people who have not proven who they are.
    System,
}

/// Who acts. The id is that of the record behind the credential; the operator key and the system have none and are
/// called `operator` and `system`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Actor {
    #[serde(rename = "type")]
    pub kind: ActorKind,
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// For the operator key, a name that the caller gave and nobody checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Actor {
    fn new(kind: ActorKind, id: impl fmt::Display) -> Self {
        Self { kind, id: id.to_string(), email: None, name: None }
    }

    pub fn system() -> Self {
        Self::new(ActorKind::System, "system")
    }

    pub fn operator_key(name: Option<String>) -> Self {
        Self { name, ..Self::new(ActorKind::OperatorKey, "operator") }
    }

    pub fn app_key(id: KeyId) -> Self {
        Self::new(ActorKind::AppKey, id)
    }

    pub fn api_token(id: impl fmt::Display) -> Self {
        Self::new(ActorKind::ApiToken, id)
    }

    pub fn scim(id: impl fmt::Display) -> Self {
        Self::new(ActorKind::Scim, id)
    }

    pub fn user(id: UserId) -> Self {
        Self::new(ActorKind::User, id)
    }
}

/// An actor, and where the change came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    pub actor: Actor,
    /// The client's address; none for background work and the command line.
    pub address: Option<IpAddr>,
    /// The request's id.
    pub request: Option<String>,
}

impl Author {
    /// An actor outside any request.
    pub fn outside_requests(actor: Actor) -> Self {
        Self { actor, address: None, request: None }
    }

    /// Background work.
    pub fn system() -> &'static Self {
        static SYSTEM: LazyLock<Author> = LazyLock::new(|| Author::outside_requests(Actor::system()));
        &SYSTEM
    }
}

/// Whatever knows in whose name it acts: callers, and requests without one.
pub trait Authored {
    fn author(&self) -> Author;
}

impl Authored for Author {
    fn author(&self) -> Author {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_is_written_as_type_and_id_and_what_else_is_known() {
        let written = |actor: &Actor| serde_json::to_string(actor).expect("it can be written");
        assert_eq!(written(&Actor::system()), r#"{"type":"system","id":"system"}"#);
        let named = Actor::operator_key(Some("Ada".to_owned()));
        assert_eq!(written(&named), r#"{"type":"operator_key","id":"operator","name":"Ada"}"#);
        assert_eq!(serde_json::from_str::<Actor>(&written(&named)).expect("it can be read"), named);
    }
}
