//! The registers of what is emitted and who reads it, from which `docs/facts.md` is made.

use schemars::{JsonSchema, Schema, schema_for};

use super::FactKind;

/// A kind of fact as its room has registered it.
#[derive(Clone, Copy)]
pub struct FactType {
    pub kind: &'static str,
    /// Its members, and in the description when it is emitted.
    pub schema: fn() -> Schema,
}

impl FactType {
    pub const fn of<T: FactKind>() -> Self {
        Self { kind: T::KIND, schema: schema::<T> }
    }
}

fn schema<T: JsonSchema>() -> Schema {
    schema_for!(T)
}

/// A reader of the outbox: its name, and the kinds of facts that it is for.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    pub name: &'static str,
    /// `None` for all kinds.
    pub kinds: Option<&'static [&'static str]>,
}

impl Reader {
    /// `Reader::of("purge", &[AppDeleted::KIND])`.
    pub const fn of(name: &'static str, kinds: &'static [&'static str]) -> Self {
        Self { name, kinds: Some(kinds) }
    }

    pub const fn of_all(name: &'static str) -> Self {
        Self { name, kinds: None }
    }

    pub fn reads(&self, kind: &str) -> bool {
        self.kinds.is_none_or(|kinds| kinds.contains(&kind))
    }
}

/// Declares a room's facts, each with when it is emitted and its members, and the register `FACTS` of them all:
///
/// ```ignore
/// spine::facts! {
///     /// A key was revoked.
///     KeyRevoked = "key.revoked" { key_id: KeyId }
///     /// A workspace was made.
///     TenantCreated = "tenant.created" (WorkspaceData)
/// }
/// ```
#[macro_export]
macro_rules! facts {
    ($($(#[$about:meta])* $name:ident = $kind:literal $members:tt)*) => {
        $($crate::fact! { $(#[$about])* $name = $kind $members })*

        /// Every kind of fact that this room emits.
        pub const FACTS: &[$crate::FactType] = &[$($crate::FactType::of::<$name>()),*];
    };
}

/// One fact of [`facts!`].
#[doc(hidden)]
#[macro_export]
macro_rules! fact {
    ($(#[$about:meta])* $name:ident = $kind:literal { $($(#[$doc:meta])* $member:ident: $type:ty),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($(#[$doc])* pub $member: $type),* }

        impl $crate::FactKind for $name {
            const KIND: &'static str = $kind;
        }
    };
    ($(#[$about:meta])* $name:ident = $kind:literal ($members:ty)) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub $members);

        impl $crate::FactKind for $name {
            const KIND: &'static str = $kind;
        }
    };
}
