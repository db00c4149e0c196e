//! `{user_id}` in the paths of workspace users: the membership's id, or the person's.

use std::borrow::Cow;

use kernel::{MemberId, UserId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};

/// A member by either id. Within one workspace both name the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberRef {
    Member(MemberId),
    User(UserId),
}

impl<'de> Deserialize<'de> for MemberRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let member = text.parse().map(Self::Member);
        member.or_else(|_| text.parse().map(Self::User)).map_err(D::Error::custom)
    }
}

impl JsonSchema for MemberRef {
    fn schema_name() -> Cow<'static, str> {
        "MemberRef".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(member|user)_[0-7][0-9a-hjkmnp-tv-z]{25}$" })
    }
}
