//! What the operator is shown.

use kernel::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Action, AppDefinitions, FlagRecord, GroupRecord, diff::Difference, store::VersionRow};
use crate::{
    model::{Branch, FlagId, GroupId, Rule, State, ValueType},
    usage::{Discovery, FlagUsage},
};

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Flag")]
pub struct FlagView {
    pub id: FlagId,
    pub key: String,
    pub description: String,
    pub state: State,
    pub value_type: ValueType,
    pub off_value: Value,
    pub on_value: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// Counts the changes; the `ETag` of this flag.
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Always false: this is a flag, not a key that was merely asked for.
    pub discovered: bool,
    pub usage: FlagUsage,
}

impl FlagView {
    pub(super) fn new(record: FlagRecord, usage: FlagUsage) -> Self {
        let FlagRecord { id, definition, version, created_at, updated_at } = record;
        Self {
            id,
            key: definition.key,
            description: definition.description,
            state: definition.state,
            value_type: definition.value_type,
            off_value: definition.off_value,
            on_value: definition.on_value,
            rule: definition.rule,
            version,
            created_at,
            updated_at,
            discovered: false,
            usage,
        }
    }
}

/// An entry of the list of flags: a flag, or a key that was asked for and that no flag has.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FlagListEntry {
    Flag(Box<FlagView>),
    Discovered(Discovery),
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FlagGroup")]
pub struct GroupView {
    pub id: GroupId,
    pub key: String,
    pub name: String,
    pub branches: Vec<Branch>,
    /// The keys of the flags that use it.
    pub used_by: Vec<String>,
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl GroupView {
    pub(super) fn new(record: GroupRecord, app: &AppDefinitions) -> Self {
        let GroupRecord { id, definition, version, created_at, updated_at } = record;
        let users = app.flags.iter().filter(|flag| flag.definition.uses_group(&definition.key));
        let used_by = users.map(|flag| flag.definition.key.clone()).collect();
        let (key, name, branches) = (definition.key, definition.name, definition.branches);
        Self { id, key, name, branches, used_by, version, created_at, updated_at }
    }
}

/// One change in the history of a flag or group.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FlagVersion")]
pub struct VersionView {
    pub version: i64,
    pub action: Action,
    pub changed_by: String,
    pub changed_at: Timestamp,
    /// Against the version before.
    pub diff: Vec<Difference>,
    /// As it was after this change.
    pub definition: Value,
}

impl From<VersionRow> for VersionView {
    fn from(row: VersionRow) -> Self {
        let VersionRow { version, action, changed_by, changed_at, definition, diff, .. } = row;
        Self { version, action, changed_by, changed_at, diff, definition }
    }
}
