//! The route table's paths, ready to be called.

use kernel::KeyId;
use tenancy::api_tokens::{ApiTokenId, SecretId};

use crate::TestApp;

/// Parameters that stand for something that there is not: also the right callers find nothing.
pub const OF_NOTHING: [&str; 9] = [
    "role_id",
    "privilege_id",
    "connection_id",
    "plan_id",
    "tax_id",
    "tenant_id",
    "user_id",
    "identity_id",
    "passkey_id",
];

/// A route's path with something in the place of its parameters.
pub fn path(app: &TestApp, route: &str) -> String {
    let filled = route
        .replace("{app_id}", &app.app_id().to_string())
        .replace("{kid}", &vault::SigningKeyId::from_u128(7).to_string())
        .replace("{key_id}", &KeyId::from_u128(7).to_string())
        .replace("{flag_id}", &flags::model::FlagId::from_u128(7).to_string())
        .replace("/scim/group/{group_id}", &format!("/scim/group/{}", scim::ScimGroupId::from_u128(7)))
        .replace("/scim/v2/Groups/{group_id}", &format!("/scim/v2/Groups/{}", scim::ScimGroupId::from_u128(7)))
        .replace("{group_id}", &flags::model::GroupId::from_u128(7).to_string())
        .replace("{delivery_id}", &signals::deliveries::DeliveryId::from_u128(7).to_string())
        .replace("{endpoint_id}", &signals::endpoints::EndpointId::from_u128(7).to_string())
        .replace("/cloud-views/files/{key}", &format!("/cloud-views/files/file_{:026}", 7))
        .replace("{flag_key}", "some-flag")
        .replace("{key}", "some-flag")
        .replace("{token_id}", &ApiTokenId::from_u128(7).to_string())
        .replace("{secret_id}", &SecretId::from_u128(7).to_string())
        .replace("/me/sessions/{session_id}", &format!("/me/sessions/{}", tenancy::logins::LoginId::from_u128(7)))
        .replace("{session_id}", "cs_unknown")
        .replace("{portal_id}", "bps_unknown")
        .replace("{metric}", "calls")
        .replace("{provider}", "social-one")
        .replace("{workspace_id}", &kernel::TenantId::from_u128(7).to_string())
        .replace("/event-log/events/{event_id}", &format!("/event-log/events/event_{:026}", 7))
        .replace("{event_id}", &format!("usage_{:026}", 7))
        .replace("{job_id}", &format!("erasure_{:026}", 7))
        .replace("{entity_type}", "userId")
        .replace("{entity_value}", "u1")
        .replace("{templateName}", "SIGNUP")
        .replace("{grant_type}", "code")
        .replace("/scim/v2/ResourceTypes/{name}", "/scim/v2/ResourceTypes/User")
        .replace("/scim/v2/Schemas/{urn}", "/scim/v2/Schemas/urn:ietf:params:scim:schemas:core:2.0:User")
        .replace("{reference}", &format!("import_{:026}", 7));
    let filled = OF_NOTHING.iter().fold(filled, |path, kind| {
        let prefix = match *kind {
            "user_id" => "member",
            kind => kind.trim_end_matches("_id"),
        };
        path.replace(&format!("{{{kind}}}"), &format!("{prefix}_{:026}", 7))
    });
    assert!(!filled.contains('{'), "{filled} has a parameter that this test does not know");
    filled
}
