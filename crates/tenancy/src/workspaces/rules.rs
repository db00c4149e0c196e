//! What a workspace's settings must look like, and what a partial update makes of them. Pure.

use kernel::{Locale, Name, Text, WebUrl};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Given, Patch, Validate};

use super::{Metadata, SignupBy, Tenant};
use crate::logins::Reach;

/// The body of `PUT /account/tenant/{tenant_id}`: what is missing stays as it is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TenantChanges {
    pub name: Given<Name>,
    pub locale: Given<Locale>,
    /// An absolute http or https URL; `null` clears it.
    pub logo: Patch<WebUrl>,
    pub mfa: Given<bool>,
    pub onboarded: Given<bool>,
    /// The id of a federation connection of the app; `null` clears it.
    pub federation_connection: Patch<Text>,
    pub jit_provisioning: Given<bool>,
    /// Needs a `federationConnection`. Only by a key of the whole app.
    pub sso_required: Given<bool>,
    /// Replaced whole; `null` empties it.
    #[schemars(extend("x-maxBytes" = MAX_METADATA))]
    pub metadata: Patch<Metadata>,
    /// Replaced whole; `null` empties it. Only by a key of the whole app.
    #[schemars(extend("x-maxBytes" = MAX_METADATA))]
    pub app_metadata: Patch<Metadata>,
}

impl Validate for TenantChanges {}

impl TenantChanges {
    pub(super) fn apply(&self, before: &Tenant) -> Tenant {
        let metadata = |change: &Patch<Metadata>, before: &Metadata| {
            change.clone().apply(Some(before.clone())).unwrap_or_default()
        };
        Tenant {
            name: self.name.clone().or(before.name.clone()),
            locale: self.locale.or(before.locale),
            logo: self.logo.clone().apply(before.logo.clone()),
            mfa: self.mfa.or(before.mfa),
            onboarded: self.onboarded.or(before.onboarded),
            federation_connection: self.federation_connection.clone().apply(before.federation_connection.clone()),
            jit_provisioning: self.jit_provisioning.or(before.jit_provisioning),
            sso_required: self.sso_required.or(before.sso_required),
            metadata: metadata(&self.metadata, &before.metadata),
            app_metadata: metadata(&self.app_metadata, &before.app_metadata),
            ..before.clone()
        }
    }
}

/// A workspace that a person belongs to, and whether their role may read it.
pub(super) struct Own {
    pub(super) tenant: Tenant,
    pub(super) is_owner: bool,
    pub(super) may_read: bool,
}

impl Own {
    /// As this login would open it: without its factor, or by another way than its identity provider, the workspace keeps
    /// to itself what it keeps from those who may not read it.
    pub(super) fn seen_with(self, two_factors: bool, reach: Reach) -> Tenant {
        let by_its_way = !self.tenant.sso_required || self.is_owner || !reach.is_everything();
        if self.may_read && by_its_way && (two_factors || !self.tenant.mfa) {
            return self.tenant;
        }
        let nobody = SignupBy { email: String::new(), first_name: String::new(), last_name: String::new() };
        Tenant { metadata: Metadata::new(), signup_by: nobody, ..self.tenant }
    }
}

/// In bytes of JSON.
pub const MAX_METADATA: usize = 64 * 1024;

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
        let cleared = json!({ "logo": null, "federationConnection": null, "metadata": null, "appMetadata": null });
        assert!(wrong_fields(&cleared).is_empty());
        for member in ["name", "locale", "mfa", "onboarded", "jitProvisioning", "ssoRequired"] {
            assert_eq!(wrong_fields(&json!({ member: null })), [member]);
        }
    }

    #[test]
    fn unknown_and_read_only_members_are_ignored() {
        assert!(wrong_fields(&json!({ "id": 1, "createdAt": false, "plan": "pro", "colour": "red" })).is_empty());
    }
}
