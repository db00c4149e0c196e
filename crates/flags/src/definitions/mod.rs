//! Flags and saved groups as the operator keeps them: a version per change, rollback, and no lost update.
//!
//! A change is decided and compiled outside the transaction, from one view of all the app's definitions, and committed
//! only if that view is still current; otherwise it is decided again. The committing node evaluates by the new
//! definitions before the write answers.

mod apply;
mod bodies;
mod change;
mod diff;
pub mod groups_http;
mod headers;
pub mod http;
mod store;
mod versioned;
mod views;

use std::{collections::HashMap, sync::Arc};

use ::store::text_enum;

pub(crate) use change::Changes;
pub(crate) use store::{StoredApp, load_all, load_app};
pub use versioned::{Versioned, VersionedRecord};

use crate::{
    facts::FlagChange,
    model::{Definition, FlagId, GroupDefinition},
    rules::{Attributes, Flag, Groups, Root},
};

pub type FlagRecord = VersionedRecord<Definition>;
pub type GroupRecord = VersionedRecord<GroupDefinition>;

/// All that an app's flags consist of, at one moment.
#[derive(Clone, Default)]
pub struct AppDefinitions {
    pub revision: i64,
    pub flags: Vec<FlagRecord>,
    pub groups: Vec<GroupRecord>,
}

impl AppDefinitions {
    pub(crate) fn groups_by_key(&self) -> Groups {
        by_key(&self.groups)
    }

    pub(crate) fn compile(&self) -> CompiledApp {
        let mut compiler = Compiler::new(self.revision, &self.groups, self.flags.len());
        self.flags.iter().for_each(|flag| compiler.add(flag.id, &flag.definition));
        compiler.finish()
    }
}

fn by_key(groups: &[GroupRecord]) -> Groups {
    let entry = |group: &GroupRecord| (group.definition.key.clone(), group.definition.branches.as_slice().into());
    groups.iter().map(entry).collect::<HashMap<String, Arc<[_]>>>()
}

/// Compiles an app's flags one after the other.
pub(crate) struct Compiler {
    revision: i64,
    groups: Groups,
    attributes: Attributes,
    flags: Vec<Flag>,
}

impl Compiler {
    fn new(revision: i64, groups: &[GroupRecord], flags: usize) -> Self {
        let (attributes, flags) = (Attributes::default(), Vec::with_capacity(flags));
        Self { revision, groups: by_key(groups), attributes, flags }
    }

    fn add(&mut self, id: FlagId, definition: &Definition) {
        let compiled = Flag::compile(id, definition, &self.groups, &mut self.attributes);
        if compiled.is_broken() {
            tracing::warn!(flag = %id, key = definition.key, "a flag cannot be evaluated");
        }
        self.flags.push(compiled);
    }

    fn finish(mut self) -> CompiledApp {
        self.flags.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        self.attributes.seal();
        let looks_at = |member| self.attributes.look_at(Root::Tenant, member);
        let usage = looks_at("usage");
        let billing = usage || looks_at("entitlements") || looks_at("subscription");
        let reads = BillingReads { billing, usage };
        CompiledApp { revision: self.revision, attributes: self.attributes, flags: self.flags.into(), reads }
    }
}

/// An app's flags as they are evaluated: immutable, replaced as a whole.
#[derive(Debug, Default)]
pub struct CompiledApp {
    pub revision: i64,
    pub attributes: Attributes,
    /// By key.
    pub flags: Box<[Flag]>,
    pub reads: BillingReads,
}

/// What the app's rules look at of a workspace's billing: the rest is not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BillingReads {
    pub billing: bool,
    pub usage: bool,
}

impl CompiledApp {
    pub fn get(&self, key: &str) -> Option<&Flag> {
        let at = self.flags.binary_search_by(|flag| (*flag.key).cmp(key)).ok()?;
        self.flags.get(at)
    }
}

text_enum! {
    /// What made a version.
    #[schemars(rename = "FlagVersionAction")]
    wire pub enum Action {
        Created = "created",
        Updated = "updated",
        RolledBack = "rolled-back",
    }
}

impl Action {
    fn change(self) -> FlagChange {
        match self {
            Self::Created => FlagChange::Created,
            Self::Updated => FlagChange::Updated,
            Self::RolledBack => FlagChange::RolledBack,
        }
    }
}
