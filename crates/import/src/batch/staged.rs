//! Workspaces and people that were judged, put together into the rows that are staged.

use std::{collections::HashMap, mem};

use kernel::{Locale, OptionalName, text::MAX_NAME};
use serde::{Deserialize, Serialize};
use tenancy::{apps::parameters::Parameters, people, roles, workspaces::Metadata};
use vault::passwords::Imported;

use super::{ImportTenant, ImportUser, MOST_AT_ONCE, Place};

/// A workspace that was judged.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StagedTenant {
    pub(crate) name: String,
    pub(crate) plan: Option<String>,
    pub(crate) logo: Option<String>,
    pub(crate) metadata: Metadata,
    pub(crate) locale: Locale,
    pub(crate) onboarded: bool,
    pub(crate) owner: StagedUser,
    /// In the batch: `[0].tenant`, `row 7`.
    pub(crate) place: String,
}

impl StagedTenant {
    pub(super) fn new(place: Place, tenant: ImportTenant) -> Self {
        let owner = StagedUser::new(place.owner(), tenant.owner);
        let full_name = people::full_name(&owner.first_name, &owner.last_name);
        let default = if full_name.is_empty() { owner.email.clone() } else { full_name };
        Self {
            place: place.to_string(),
            name: tenant.name.map_or_else(|| default.chars().take(MAX_NAME).collect(), String::from),
            plan: tenant.plan.map(String::from),
            logo: tenant.logo.map(String::from),
            metadata: tenant.metadata.unwrap_or_default(),
            locale: tenant.locale.unwrap_or(Locale::ENGLISH),
            onboarded: tenant.onboarded.unwrap_or(false),
            owner: StagedUser { role: Some(roles::OWNER.to_owned()), ..owner },
        }
    }
}

/// Somebody who was judged.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StagedUser {
    /// In the batch: `[0].tenant.owner`, `[0].users[3]`, `row 7`.
    pub(crate) place: String,
    pub(crate) email: String,
    pub(crate) role: Option<String>,
    pub(crate) first_name: String,
    pub(crate) last_name: String,
    pub(crate) onboarded: bool,
    pub(crate) email_verified: bool,
    #[serde(default)]
    pub(crate) parameters: Parameters,
    pub(crate) password: Option<Imported>,
}

impl StagedUser {
    pub(super) fn new(place: Place, user: ImportUser) -> Self {
        let name = |name: Option<OptionalName>| name.map(String::from).unwrap_or_default();
        Self {
            place: place.to_string(),
            email: user.username.into(),
            role: user.role.map(String::from),
            first_name: name(user.first_name),
            last_name: name(user.last_name),
            onboarded: user.onboarded.unwrap_or(false),
            email_verified: user.email_verified.unwrap_or(false),
            parameters: user.parameters.unwrap_or_default(),
            password: user.password.map(|password| password.to_imported()),
        }
    }
}

/// What is staged in one row: people of one workspace, and the workspace itself in its first row.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Bundle {
    #[serde(skip)]
    pub(crate) item: usize,
    /// The workspace is 0, whatever came first.
    #[serde(skip)]
    pub(crate) position: usize,
    pub(crate) tenant: Option<StagedTenant>,
    pub(crate) users: Vec<StagedUser>,
}

impl Bundle {
    pub(crate) fn people(&self) -> usize {
        self.users.len() + usize::from(self.tenant.is_some())
    }
}

/// Puts people together by their workspaces. In a check nobody is kept, but they are counted all the same, so that it goes
/// through a batch as an import does.
#[derive(Default)]
pub(super) struct Bundles {
    items: HashMap<usize, Waiting>,
    ready: Vec<Bundle>,
}

/// What has come of an item and is in no bundle yet.
#[derive(Default)]
struct Waiting {
    people: usize,
    tenant: Option<StagedTenant>,
    users: Vec<StagedUser>,
    /// Rows of it that are on their way, the workspace's apart.
    rows: usize,
}

impl Bundles {
    pub(super) fn add_tenant(&mut self, item: usize, tenant: Option<StagedTenant>) {
        let waiting = self.items.entry(item).or_default();
        waiting.people += 1;
        waiting.tenant = tenant;
        self.ready.extend(waiting.bundle_if_full(item));
    }

    pub(super) fn add_user(&mut self, item: usize, user: Option<StagedUser>) {
        let waiting = self.items.entry(item).or_default();
        waiting.people += 1;
        waiting.users.extend(user);
        self.ready.extend(waiting.bundle_if_full(item));
    }

    /// The item goes on later, if at all.
    pub(super) fn pause(&mut self, item: usize) {
        self.ready.extend(self.items.entry(item).or_default().bundle(item));
    }

    pub(super) fn end(&mut self, item: usize) {
        self.pause(item);
        self.items.remove(&item);
    }

    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn take(&mut self) -> Vec<Bundle> {
        mem::take(&mut self.ready)
    }
}

impl Waiting {
    fn bundle_if_full(&mut self, item: usize) -> Option<Bundle> {
        if self.people < MOST_AT_ONCE { None } else { self.bundle(item) }
    }

    fn bundle(&mut self, item: usize) -> Option<Bundle> {
        if mem::take(&mut self.people) == 0 {
            return None;
        }
        // Before its workspace nobody is stored, whatever came first.
        let (tenant, users) = (self.tenant.take(), mem::take(&mut self.users));
        let position = if tenant.is_some() { 0 } else { self.rows + 1 };
        self.rows += usize::from(tenant.is_none());
        Some(Bundle { item, position, tenant, users })
    }
}
