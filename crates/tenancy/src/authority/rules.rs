//! What may be handed out by whom. Pure.

use std::sync::Arc;

use crate::{
    apps::Profile,
    callers::privileges::{BUILT_IN, is_destructive},
    roles::{ADMIN, OWNER, Role},
};

/// What a caller holds where something is given.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    Everything,
    Only(Arc<[String]>),
}

impl Held {
    pub(crate) fn is_everything(&self) -> bool {
        matches!(self, Self::Everything)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(keys) => keys.iter().any(|held| held == key),
        }
    }

    pub(super) fn first_lacking<'a>(&self, wanted: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        wanted.into_iter().find(|key| !self.has(key))
    }

    /// A built-in privilege that is missing from those of an ordinary app key, which may move power within its app.
    pub(super) fn lacks_power(&self) -> Option<&'static str> {
        self.first_lacking(BUILT_IN.iter().map(|known| known.key).filter(|key| !is_destructive(key)))
    }
}

/// A privilege of the role that keeps this caller from giving it.
pub(super) fn beyond<'a>(held: &Held, role: &'a Role) -> Option<&'a str> {
    if role.is_default { None } else { held.first_lacking(keys(role)) }
}

/// What a new or changed role hands out: the privileges that its members did not have, and all of them when it becomes
/// the role that everybody gets who joins.
pub(super) fn handed_out<'a>(before: Option<&Role>, after: &'a Role) -> Vec<&'a str> {
    let becomes_default = after.is_default && before.is_none_or(|before| !before.is_default);
    let had = |key: &str| before.is_some_and(|before| keys(before).any(|known| known == key));
    keys(after).filter(|key| becomes_default || !had(key)).collect()
}

/// Whether another role becomes the one that runs workspaces, or that one another: what OWNER and ADMIN may do beyond their
/// privileges goes with the key.
pub(super) fn is_renamed_power(before: Option<&Role>, after: &Role) -> bool {
    let runs = |role: &Role| [OWNER, ADMIN].contains(&role.key.as_str());
    match before {
        Some(before) => before.key != after.key && (runs(before) || runs(after)),
        None => runs(after),
    }
}

fn keys(role: &Role) -> impl Iterator<Item = &str> {
    role.privileges.iter().map(|privilege| privilege.key.as_str())
}

/// Settings that decide who acts for the app, where people's codes and tokens go, and who hears of them.
const POWERFUL: [&str; 9] = [
    "operatorTenantId",
    "allowedTokenPrivileges",
    "redirectUris",
    "defaultCallbackUri",
    "allowedOrigins",
    "requirePkce",
    "webhookUrl",
    "emailSenderEmail",
    "emailSenderName",
];

/// The first of the changed settings that moves power. A new `uiUrl` does when its origin was not allowed before.
pub(super) fn powerful_setting<'a>(before: &Profile, after: &Profile, changed: &'a [String]) -> Option<&'a str> {
    let known = before.origins();
    let new_origin = after.origins().iter().any(|origin| !known.contains(origin));
    let is_powerful = |name: &&str| POWERFUL.contains(name) || (new_origin && *name == "uiUrl");
    changed.iter().map(String::as_str).find(is_powerful)
}
