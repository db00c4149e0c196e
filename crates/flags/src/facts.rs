//! What this room tells: that an app's flags changed, and which flag or group and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::{FactKind as _, Reader};
use tenancy::facts::{AppDeleted, AppImported};

use crate::model::{FlagId, GroupId};

/// What happened to a flag or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlagChange {
    Created,
    Updated,
    RolledBack,
    Deleted,
}

spine::facts! {
    /// An app's flags or groups changed.
    FlagsChanged = "flags.changed" {
        /// Counts the changes of the app's flags and groups, this one included.
        revision: i64,
    }
    /// A flag was made, changed, rolled back or deleted.
    FlagChanged = "flag.changed" { flag_id: FlagId, key: String, version: i64, change: FlagChange }
    /// A saved group was made, changed, rolled back or deleted.
    FlagGroupChanged = "flag_group.changed" { group_id: GroupId, key: String, version: i64, change: FlagChange }
}

/// What keeps this node's flags true.
pub(crate) const FOLLOWER: Reader = Reader::of("flags", &[FlagsChanged::KIND, AppDeleted::KIND, AppImported::KIND]);

/// Who in this room reads facts.
pub fn readers() -> Vec<Reader> {
    vec![FOLLOWER]
}
