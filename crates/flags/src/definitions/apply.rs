//! Flags and groups as a file says: all that it names is created or changed in one step, or, when anything is wrong,
//! nothing is.

use std::{collections::BTreeSet, sync::Arc};

use kernel::{AppId, Error, Name, Problems, Result, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use web::{Given, Patch, Validate};

use super::{
    Action, AppDefinitions, Versioned, VersionedRecord,
    bodies::{FlagUpdate, GroupUpdate, default_value},
    change::{Change, Changes, Storable},
    headers::Actor,
};
use crate::model::{Branch, Definition, FlagKey, GroupDefinition, Rule, State, ValueType};

/// What a file may say of a flag. What is missing stays as it is, or has its default in a new flag.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedFlag {
    pub key: FlagKey,
    #[serde(default)]
    pub description: Patch<Text>,
    #[serde(default)]
    pub state: Given<State>,
    #[serde(default)]
    pub value_type: Given<ValueType>,
    #[serde(default)]
    pub off_value: Patch<Value>,
    #[serde(default)]
    pub on_value: Patch<Value>,
    #[serde(default)]
    pub rule: Patch<Rule>,
}

/// The same of a saved group.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AppliedFlagGroup")]
pub struct AppliedGroup {
    pub key: FlagKey,
    #[serde(default)]
    pub name: Given<Name>,
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub branches: Given<Vec<Branch>>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlagFile {
    #[serde(default)]
    pub groups: Vec<AppliedGroup>,
    #[serde(default)]
    pub flags: Vec<AppliedFlag>,
    /// Only check everything, and say what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

impl Validate for FlagFile {
    fn validate(&self, problems: &mut Problems) {
        for (list, keys) in [
            ("groups", self.groups.iter().map(|group| &group.key).collect::<Vec<_>>()),
            ("flags", self.flags.iter().map(|flag| &flag.key).collect()),
        ] {
            let mut seen = BTreeSet::new();
            for (index, key) in keys.into_iter().enumerate() {
                problems.check(&format!("{list}[{index}].key"), seen.insert(&**key), "is given twice");
            }
        }
    }
}

/// What happens to one entry of a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "AppliedFlagStep")]
pub struct AppliedStep {
    pub action: AppliedAction,
    pub kind: AppliedKind,
    pub key: String,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AppliedAction {
    Created,
    Changed,
    Unchanged,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AppliedKind {
    Group,
    Flag,
}

/// One kind of entry.
trait Applied {
    type Of: Versioned;
    const LIST: &'static str;
    const KIND: AppliedKind;
    fn key(&self) -> &str;
    /// As it is when nothing but the key is given.
    fn blank(&self) -> Self::Of;
    fn update(&self, before: &Self::Of) -> Result<Self::Of>;
}

impl Applied for AppliedFlag {
    type Of = Definition;
    const LIST: &'static str = "flags";
    const KIND: AppliedKind = AppliedKind::Flag;

    fn key(&self) -> &str {
        &self.key
    }

    fn blank(&self) -> Definition {
        let value_type = self.value_type.or(ValueType::default());
        Definition {
            key: self.key.to_string(),
            description: String::new(),
            state: State::default(),
            value_type,
            off_value: default_value(value_type, false),
            on_value: default_value(value_type, true),
            rule: None,
        }
    }

    fn update(&self, before: &Definition) -> Result<Definition> {
        let Self { key: _, description, state, value_type, off_value, on_value, rule } = self.clone();
        FlagUpdate { key: Given(None), description, state, value_type, off_value, on_value, rule }.apply(before)
    }
}

impl Applied for AppliedGroup {
    type Of = GroupDefinition;
    const LIST: &'static str = "groups";
    const KIND: AppliedKind = AppliedKind::Group;

    fn key(&self) -> &str {
        &self.key
    }

    fn blank(&self) -> GroupDefinition {
        GroupDefinition { key: self.key.to_string(), name: String::new(), branches: Vec::new() }
    }

    fn update(&self, before: &GroupDefinition) -> Result<GroupDefinition> {
        let Self { key: _, name, branches } = self.clone();
        GroupUpdate { key: Given(None), name, branches }.apply(before)
    }
}

impl Changes {
    pub(super) async fn apply(&self, app: AppId, file: &FlagFile, actor: &Actor) -> Result<Vec<AppliedStep>> {
        let decide = |seen: &AppDefinitions| {
            let (mut after, mut plan) = (seen.clone(), Plan::default());
            self.plan(&file.groups, seen, &mut after, &mut plan, actor)?;
            self.plan(&file.flags, seen, &mut after, &mut plan, actor)?;
            // Only now is known what everything is among.
            let mut problems = Problems::new();
            check(&file.groups, &after, &mut problems)?;
            check(&file.flags, &after, &mut problems)?;
            problems.finish()?;
            let changes = if file.dry_run { Vec::new() } else { plan.changes };
            Ok((changes, plan.steps))
        };
        self.make_all(app, decide).await
    }

    fn plan<A: Applied>(
        &self,
        entries: &[A],
        seen: &AppDefinitions,
        after: &mut AppDefinitions,
        plan: &mut Plan,
        actor: &Actor,
    ) -> Result<()> {
        let now = self.db.clock().now();
        for entry in entries {
            let known = A::Of::among(seen).iter().find(|known| known.definition.key() == entry.key());
            let definition = match known {
                Some(known) => entry.update(&known.definition)?,
                None => entry.update(&entry.blank())?,
            };
            let (action, change) = match known {
                Some(known) if known.definition == definition => (AppliedAction::Unchanged, None),
                Some(known) => {
                    let record = VersionedRecord { definition, version: known.version + 1, updated_at: now, ..*known };
                    let change = Change::put(Some(&known.definition), record, Action::Updated, actor)?;
                    (AppliedAction::Changed, Some(change))
                }
                None => {
                    let id = self.db.ids().next();
                    let record = VersionedRecord { id, definition, version: 1, created_at: now, updated_at: now };
                    (AppliedAction::Created, Some(Change::put(None, record, Action::Created, actor)?))
                }
            };
            if let Some(change) = change {
                change.apply_to(after);
                plan.changes.push(Arc::new(change));
            }
            plan.steps.push(AppliedStep { action, kind: A::KIND, key: entry.key().to_owned() });
        }
        Ok(())
    }
}

#[derive(Default)]
struct Plan {
    changes: Vec<Arc<dyn Storable>>,
    steps: Vec<AppliedStep>,
}

/// Adds what is wrong with each entry, under its place in the file.
fn check<A: Applied>(entries: &[A], after: &AppDefinitions, problems: &mut Problems) -> Result<()> {
    for (index, entry) in entries.iter().enumerate() {
        let record = A::Of::among(after).iter().find(|known| known.definition.key() == entry.key());
        let Some(Err(error)) = record.map(|record| record.definition.check(after)) else { continue };
        let details = error.details();
        if details.is_empty() {
            return Err(error);
        }
        for detail in details {
            problems.add(format!("{}[{index}].{}", A::LIST, detail.field), detail.message.clone());
        }
    }
    Ok::<(), Error>(())
}
