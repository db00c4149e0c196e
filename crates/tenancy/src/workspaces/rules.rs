//! What a workspace's settings must look like, and what a partial update makes of them. Pure.

use kernel::{Locale, Problems};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Given, Patch, Validate};

use super::{Metadata, Tenant};
use crate::apps::is_web_url;

/// The body of `PUT /account/tenant/{tenant_id}`: what is missing stays as it is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TenantChanges {
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub name: Given<String>,
    pub locale: Given<Locale>,
    /// An absolute http or https URL; `null` clears it.
    #[schemars(url)]
    pub logo: Patch<String>,
    pub mfa: Given<bool>,
    pub onboarded: Given<bool>,
    /// The id of a federation connection of the app; `null` clears it.
    pub federation_connection: Patch<String>,
    pub jit_provisioning: Given<bool>,
    /// Replaced whole; `null` empties it.
    pub metadata: Patch<Metadata>,
}

impl Validate for TenantChanges {
    fn validate(&self, problems: &mut Problems) {
        if let Some(name) = self.name.value() {
            problems.text("name", name);
        }
        check_logo(problems, self.logo.value());
        check_metadata(problems, self.metadata.value());
    }
}

impl TenantChanges {
    pub(super) fn apply(&self, before: &Tenant) -> Tenant {
        let metadata = match &self.metadata {
            Patch::Missing => before.metadata.clone(),
            Patch::Null => Metadata::new(),
            Patch::Value(metadata) => metadata.clone(),
        };
        Tenant {
            name: self.name.value().map_or_else(|| before.name.clone(), |name| name.trim().to_owned()),
            locale: self.locale.or(before.locale),
            logo: self.logo.clone().apply(before.logo.clone()),
            mfa: self.mfa.or(before.mfa),
            onboarded: self.onboarded.or(before.onboarded),
            federation_connection: self.federation_connection.clone().apply(before.federation_connection.clone()),
            jit_provisioning: self.jit_provisioning.or(before.jit_provisioning),
            metadata,
            ..before.clone()
        }
    }
}

pub fn check_logo(problems: &mut Problems, logo: Option<&String>) {
    problems.check("logo", logo.is_none_or(|url| is_web_url(url)), "must be an absolute http or https URL");
}

const MAX_METADATA: usize = 64 * 1024;

pub fn check_metadata(problems: &mut Problems, metadata: Option<&Metadata>) {
    let size = metadata.and_then(|metadata| serde_json::to_vec(metadata).ok()).map_or(0, |bytes| bytes.len());
    problems.check("metadata", size <= MAX_METADATA, "must not be larger than 64 KiB as JSON");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use web::from_json;

    use super::*;

    fn wrong_fields(body: &Value) -> Vec<String> {
        match from_json::<TenantChanges>(body.to_string().as_bytes()) {
            Ok(_) => Vec::new(),
            Err(error) => error.details().iter().map(|problem| problem.field.clone()).collect(),
        }
    }

    #[test]
    fn every_wrong_member_is_named() {
        assert_eq!(wrong_fields(&json!({ "name": " ", "logo": "logo.png" })), ["name", "logo"]);
        assert_eq!(wrong_fields(&json!({ "metadata": { "a": "x".repeat(MAX_METADATA) } })), ["metadata"]);
        assert_eq!(wrong_fields(&json!({ "locale": "xx" })), ["locale"]);
        assert_eq!(wrong_fields(&json!({ "metadata": [1] })), ["metadata"]);
    }

    #[test]
    fn null_clears_only_what_may_be_absent() {
        let cleared = json!({ "logo": null, "federationConnection": null, "metadata": null });
        assert!(wrong_fields(&cleared).is_empty());
        for member in ["name", "locale", "mfa", "onboarded", "jitProvisioning"] {
            assert_eq!(wrong_fields(&json!({ member: null })), [member]);
        }
    }

    #[test]
    fn unknown_and_read_only_members_are_ignored() {
        assert!(wrong_fields(&json!({ "id": 1, "createdAt": false, "plan": "pro", "colour": "red" })).is_empty());
    }
}
