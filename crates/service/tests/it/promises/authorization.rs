//! Every route with every wrong caller. Walks the route table, so that a route without a row here fails the run.

use std::{collections::BTreeSet, time::Duration};

use http::Method;
use kernel::TenantId;
use serde_json::Value;
use tenancy::callers::privileges::BUILT_IN;
use testkit::{
    Answer, Caller, DirectoryCaller, TestApp,
    api_tokens::{app_token, bearer_of, workspace_token},
    members::{member, workspace},
    on_both_engines,
    routes::{OF_NOTHING, path},
};
use web::{Access, RouteEntry};

on_both_engines!(nobody_gets_further_than_they_may);

/// For everybody, and meant to be.
const PUBLIC: &[&str] = &[
    "GET /",
    "GET /account",
    "GET /tick",
    "GET /healthz",
    "GET /readyz",
    "GET /docs",
    "GET /docs/style.css",
    "GET /openapi.json",
    "GET /cloud-views/flags/evaluate/{app_id}/{flag_key}",
    "POST /cloud-views/flags/evaluate/{app_id}/{flag_key}",
    "POST /cloud-views/flags/bulkEvaluate/{app_id}",
    "POST /ofrep/v1/evaluate/flags",
    "POST /ofrep/v1/evaluate/flags/{key}",
    "POST /cloud-views/ofrep/{app_id}/ofrep/v1/evaluate/flags",
    "POST /cloud-views/ofrep/{app_id}/ofrep/v1/evaluate/flags/{key}",
    "POST /account/api-token/introspect",
    "GET /account/payprovider/checkoutSession/{session_id}/metadata",
    "GET /cloud-views/style.css",
    "GET /cloud-views/brand/{app_id}/style.css",
    "GET /cloud-views/form.js",
    "GET /cloud-views/passkey.js",
    "GET /cloud-views/verify-sender",
    "POST /cloud-views/verify-sender",
    "GET /auth/federation/saml/{connection_id}/metadata",
    "GET /auth/federation/providers/{app_id}",
    "GET /auth/url/login/{app_id}",
    "GET /auth/url/signup/{app_id}",
    "GET /auth/url/logout/{app_id}",
    "GET /auth/.well-known/openid-configuration",
    "GET /auth/.well-known/jwks.json",
    "GET /.well-known/openid-configuration",
    "POST /auth/auth/revoke",
];

/// Public, but of use only to somebody who has a password, a link, a code or a token to show; with a body whose content
/// is refused.
const BY_CONTENT: &[(&str, &str)] = &[
    ("POST /auth/token", "{}"),
    ("POST /cloud-views/files", "{}"),
    ("GET /cloud-views/files/{key}", ""),
    ("POST /account/payprovider/webhook/{app_id}", "{}"),
    ("POST /auth/revoke", "{}"),
    ("POST /auth/token/{grant_type}/{app_id}", "{}"),
    ("POST /auth/token/direct", "{}"),
    ("POST /auth/token/workspace-list", r#"{ "accessToken": "x" }"#),
    ("POST /auth/token/workspace-switch", r#"{ "accessToken": "x", "targetTenantUserId": "x" }"#),
    ("POST /auth/handover/code/{app_id}", r#"{ "accessToken": "x" }"#),
    ("POST /auth/auth/signup", "{}"),
    ("POST /auth/auth/credentialsConfig", "{}"),
    ("POST /auth/auth/authenticate", "{}"),
    ("POST /auth/auth/magic-link", "{}"),
    ("POST /auth/auth/magic-link/authenticate", r#"{ "token": "x" }"#),
    ("POST /auth/auth/password", "{}"),
    ("PUT /auth/auth/password", r#"{ "token": "x", "password": "violet harbour lamp" }"#),
    ("POST /auth/auth/startMfaUserSetup", "{}"),
    ("POST /auth/auth/finishMfaUserSetup", "{}"),
    ("POST /auth/auth/challengeMfa", "{}"),
    ("POST /auth/auth/commitMfaCode", "{}"),
    ("POST /auth/auth/resetUserMfaSetup", "{}"),
    ("POST /auth/auth/passkeys/request-setup-link", "{}"),
    ("GET /auth/auth/passkeys/registration-options", ""),
    ("POST /auth/auth/passkeys/verify-registration", "{}"),
    ("GET /auth/auth/passkeys/authentication-options", ""),
    ("GET /realtime/config", ""),
    ("GET /realtime/stream", ""),
    ("POST /auth/auth/passkeys/verify-authentication", "{}"),
];

/// Pages of the hosted login, which are nothing without a login under way, a mailed link or an app that sends somebody.
const PAGES: &[&str] = &[
    "GET /cloud-views/portal/{app_id}/members",
    "POST /cloud-views/portal/{app_id}/members",
    "GET /cloud-views/portal/{app_id}/members/{user_id}",
    "POST /cloud-views/portal/{app_id}/members/{user_id}",
    "GET /cloud-views/portal/{app_id}/plan",
    "POST /cloud-views/portal/{app_id}/plan",
    "GET /cloud-views/portal/{app_id}/profile",
    "POST /cloud-views/portal/{app_id}/profile",
    "GET /cloud-views/portal/{app_id}/settings",
    "POST /cloud-views/portal/{app_id}/settings",
    "GET /cloud-views/sandbox/checkout/{session_id}",
    "POST /cloud-views/sandbox/checkout/{session_id}",
    "GET /cloud-views/sandbox/portal/{portal_id}",
    "POST /cloud-views/sandbox/portal/{portal_id}",
    "GET /cloud-views/subscription-portal/selectPlan",
    "GET /cloud-views/user-management-portal/users",
    "GET /auth/authorize",
    "POST /auth/authorize",
    "GET /auth/logout",
    "POST /auth/logout",
    "GET /auth/demo",
    "POST /auth/demo",
    "GET /auth/login",
    "POST /auth/login",
    "GET /auth/federation/done",
    "GET /auth/federation/oidc/{connection_id}/callback",
    "POST /auth/federation/oidc/{connection_id}/callback",
    "GET /auth/federation/oidc/{connection_id}/login",
    "GET /auth/federation/{provider}/callback",
    "POST /auth/federation/{provider}/callback",
    "GET /auth/federation/{provider}/login",
    "GET /auth/login/signup-provider",
    "POST /auth/login/signup-provider",
    "GET /auth/federation/saml/{connection_id}/login",
    "POST /auth/federation/saml/{connection_id}/acs",
    "GET /auth/login/forgot",
    "POST /auth/login/forgot",
    "GET /auth/login/link-sent",
    "GET /auth/login/new-address",
    "POST /auth/login/new-address",
    "GET /auth/login/magic-link",
    "POST /auth/login/magic-link",
    "GET /auth/login/mfa",
    "POST /auth/login/mfa",
    "GET /auth/login/mfa/backup",
    "POST /auth/login/mfa/backup",
    "POST /auth/login/mfa/continue",
    "POST /auth/login/mfa/resend",
    "GET /auth/login/mfa/setup",
    "POST /auth/login/mfa/setup",
    "POST /auth/login/mfa/setup/finish",
    "POST /auth/login/passkey",
    "GET /auth/login/passkey-link",
    "POST /auth/login/passkey-link",
    "GET /auth/login/passkey-ready",
    "GET /auth/login/passkey-setup",
    "POST /auth/login/passkey-setup",
    "POST /auth/login/passkey-setup/options",
    "POST /auth/login/passkey/options",
    "GET /auth/login/password",
    "POST /auth/login/password",
    "POST /auth/login/send-link",
    "GET /auth/login/ways",
    "GET /auth/login/invitation",
    "POST /auth/login/invitation",
    "GET /auth/login/set-password",
    "POST /auth/login/set-password",
    "GET /auth/login/signed-out",
    "GET /auth/login/signup",
    "POST /auth/login/signup",
    "GET /auth/login/signup-sent",
    "GET /auth/login/wait",
    "GET /auth/login/workspace",
    "POST /auth/login/workspace",
];

/// Public, but nothing without a mailed link.
const BY_LINK: &[&str] = &["GET /cloud-views/verify-sender", "POST /cloud-views/verify-sender"];

/// Their bodies or queries would need more than a line to be right; the right caller gets as far as their check.
const REFUSED_FOR_CONTENT: &[&str] = &[
    "POST /admin/apps/import",
    "POST /account/import/tenantsFromFile",
    "POST /account/import/validateTenantsFromFile",
    "POST /account/role",
    "POST /account/federation/connection",
    "POST /account/federation/metadata",
    "POST /account/payprovider/confirm-checkout",
    "POST /admin/apps/{app_id}/explain",
    "POST /admin/apps/{app_id}/simulate",
    "POST /auth/invitation/accept",
    "GET /event-log/charts",
    "GET /event-log/entities/{entity_type}/{entity_value}",
    "GET /event-log/journeys/stats",
    "GET /event-log/audit",
    "GET /event-log/names",
    "GET /event-log/events",
    "GET /event-log/events/{event_id}",
];

/// Parts of SCIM that there are not.
const NOT_OFFERED: &[&str] = &[
    "GET /scim/v2/Me",
    "POST /scim/v2/Me",
    "PUT /scim/v2/Me",
    "PATCH /scim/v2/Me",
    "DELETE /scim/v2/Me",
    "POST /scim/v2/Bulk",
];

/// Name a file in their bodies.
const OF_NO_FILE: &[&str] = &["POST /account/tenant/upload/finish", "POST /account/tenant/file/delete"];

/// Every other route, with a body that its rightful caller could send.
const GUARDED: &[(&str, &str)] = &[
    ("GET /metrics", ""),
    ("GET /admin/apps", ""),
    ("POST /admin/apps", r#"{ "name": "Shop", "domain": "shop.example" }"#),
    ("GET /admin/apps/{app_id}", ""),
    ("GET /admin/apps/{app_id}/keys", ""),
    ("POST /admin/apps/{app_id}/keys", r#"{ "name": "k" }"#),
    ("DELETE /admin/apps/{app_id}/keys/{key_id}", ""),
    ("GET /account/app", ""),
    ("GET /account/scim/token", ""),
    ("POST /account/scim/token", r#"{ "name": "t" }"#),
    ("DELETE /account/scim/token/{token_id}", ""),
    ("PUT /account/scim/group/{group_id}", r#"{ "role": null }"#),
    ("GET /scim/v2/Users", ""),
    ("POST /scim/v2/Users", r#"{ "userName": "walked@example.com" }"#),
    ("POST /scim/v2/Users/.search", "{}"),
    ("GET /scim/v2/Users/{user_id}", ""),
    ("PUT /scim/v2/Users/{user_id}", r#"{ "userName": "a@b.example" }"#),
    ("PATCH /scim/v2/Users/{user_id}", r#"{ "Operations": [{ "op": "add", "path": "active", "value": true }] }"#),
    ("DELETE /scim/v2/Users/{user_id}", ""),
    ("GET /scim/v2/Groups", ""),
    ("POST /scim/v2/Groups", r#"{ "displayName": "Walkers" }"#),
    ("POST /scim/v2/Groups/.search", "{}"),
    ("GET /scim/v2/Groups/{group_id}", ""),
    ("PUT /scim/v2/Groups/{group_id}", r#"{ "displayName": "x" }"#),
    ("PATCH /scim/v2/Groups/{group_id}", r#"{ "Operations": [{ "op": "add", "path": "externalId", "value": "x" }] }"#),
    ("DELETE /scim/v2/Groups/{group_id}", ""),
    ("POST /scim/v2/.search", "{}"),
    ("GET /scim/v2/ServiceProviderConfig", ""),
    ("GET /scim/v2/ResourceTypes", ""),
    ("GET /scim/v2/ResourceTypes/{name}", ""),
    ("GET /scim/v2/Schemas", ""),
    ("GET /scim/v2/Schemas/{urn}", ""),
    ("GET /scim/v2/Me", ""),
    ("POST /scim/v2/Me", "{}"),
    ("PUT /scim/v2/Me", "{}"),
    ("PATCH /scim/v2/Me", "{}"),
    ("DELETE /scim/v2/Me", ""),
    ("POST /scim/v2/Bulk", "{}"),
    ("GET /account/api-token/app", ""),
    ("POST /account/api-token/app", r#"{ "name": "t", "privileges": ["APP_READ"] }"#),
    ("DELETE /account/api-token/app/{token_id}", ""),
    ("GET /account/api-token/workspace", ""),
    ("POST /account/api-token/workspace", r#"{ "name": "t", "privileges": ["APP_READ"], "tenantUserId": "{owner}" }"#),
    ("DELETE /account/api-token/workspace/{token_id}", ""),
    ("GET /account/api-token/me/app/available-privileges", ""),
    ("GET /account/api-token/me/app", ""),
    ("POST /auth/invitation/accept", r#"{ "token": "x" }"#),
    ("POST /account/api-token/me/app", r#"{ "name": "t", "privileges": ["APP_READ"] }"#),
    ("DELETE /account/api-token/me/app/{token_id}", ""),
    ("GET /admin/apps/{app_id}/secrets", ""),
    ("POST /admin/apps/{app_id}/secrets/rotate", "{}"),
    ("DELETE /admin/apps/{app_id}/secrets/{secret_id}", ""),
    ("PUT /account/app", r#"{ "requirePkce": true }"#),
    ("PUT /account/app/credentials", "{}"),
    ("GET /account/app/credentialsState", ""),
    ("GET /account/app/userParameters", ""),
    ("PUT /account/app/userParameters", "[]"),
    ("GET /admin/apps/{app_id}/webhook", ""),
    ("PUT /admin/apps/{app_id}/webhook", r#"{ "url": "http://10.0.0.1/" }"#),
    ("GET /communication/email/template/{templateName}", ""),
    ("PUT /communication/email/template/{templateName}", r#"{ "type": "SIGNUP", "content": "x" }"#),
    ("DELETE /communication/email/template/{templateName}", ""),
    ("GET /admin/brand/css", ""),
    ("POST /admin/brand/css", r#"{ "content": "a{}" }"#),
    ("DELETE /admin/brand/css", ""),
    ("GET /cloud-views/brand/translations", ""),
    ("POST /cloud-views/brand/translations", "{}"),
    ("GET /account/role", ""),
    ("POST /account/role", r#"{ "name": "r", "key": "R", "privileges": ["{privilege_id}"] }"#),
    ("GET /account/role/{role_id}", ""),
    ("PUT /account/role/{role_id}", "{}"),
    ("DELETE /account/role/{role_id}", ""),
    ("GET /account/role/privilege", ""),
    ("POST /account/role/privilege", r#"{ "key": "P" }"#),
    ("GET /account/role/privilege/{privilege_id}", ""),
    ("PUT /account/role/privilege/{privilege_id}", "{}"),
    ("DELETE /account/role/privilege/{privilege_id}", ""),
    ("GET /account/federation/connection", ""),
    ("POST /account/federation/connection", r#"{ "name": "c", "loginUrl": "https://a.example", "certificate": "x" }"#),
    ("POST /account/federation/metadata", r#"{ "metadataXml": "x" }"#),
    ("POST /account/federation/connection/{connection_id}/test", "{}"),
    ("GET /account/federation/connection/{connection_id}", ""),
    ("PUT /account/federation/connection/{connection_id}", "{}"),
    ("DELETE /account/federation/connection/{connection_id}", ""),
    ("GET /account/payments/plan", ""),
    ("POST /account/payments/plan", r#"{ "name": "Gold", "key": "gold", "prices": [] }"#),
    ("GET /account/payments/plan/{plan_id}", ""),
    ("PUT /account/payments/plan/{plan_id}", "{}"),
    ("DELETE /account/payments/plan/{plan_id}", ""),
    ("GET /account/payments/tax", ""),
    ("POST /account/payments/tax", r#"{ "countryCode": "DE", "name": "VAT", "percentage": 19 }"#),
    ("GET /account/payments/tax/{tax_id}", ""),
    ("PUT /account/payments/tax/{tax_id}", "{}"),
    ("DELETE /account/payments/tax/{tax_id}", ""),
    ("GET /account/subscription/plans", ""),
    ("GET /account/subscription/status", ""),
    ("GET /account/subscription/portal", ""),
    ("GET /account/tenant/{tenant_id}/customerPortal", ""),
    ("POST /admin/apps/{app_id}/explain", "{}"),
    ("POST /admin/apps/{app_id}/simulate", "{}"),
    ("POST /account/payments/plan/{plan_id}/dry-run", "{}"),
    ("POST /account/tenant/{tenant_id}/planDetails/dry-run", r#"{ "planKey": "free" }"#),
    ("POST /account/subscription/select", r#"{ "planKey": "free" }"#),
    ("POST /account/subscription/change", r#"{ "planKey": "free" }"#),
    ("GET /billing/state", ""),
    ("POST /billing/subscriptions", "{}"),
    ("POST /billing/cancel", ""),
    ("POST /billing/reactivate", ""),
    ("POST /billing/trial/start", "{}"),
    ("POST /account/tenant/{tenant_id}/checkoutId", r#"{ "planKey": "pro" }"#),
    ("POST /account/app/checkoutId", r#"{ "planKey": "free" }"#),
    ("POST /account/subscription/checkout", r#"{ "planKey": "free" }"#),
    ("POST /account/payprovider/confirm-checkout", "{}"),
    ("GET /entitlements", ""),
    ("POST /usage/ingest", r#"{ "metric": "m" }"#),
    ("POST /usage/ingest/batch", r#"[{ "metric": "m" }]"#),
    ("GET /usage/quota/{metric}", ""),
    ("PUT /usage/gauge/{metric}", r#"{ "value": 1 }"#),
    ("GET /usage/{workspace_id}", ""),
    ("POST /usage/sync/{workspace_id}", ""),
    ("DELETE /usage/events/{event_id}", ""),
    ("GET /account/tenant/{tenant_id}/overrides", ""),
    ("PUT /account/tenant/{tenant_id}/overrides", "{}"),
    ("DELETE /account/tenant/{tenant_id}/overrides", ""),
    ("GET /account/tenant", ""),
    ("POST /account/tenant", r#"{ "owner": { "email": "a@b.example", "firstName": "A", "lastName": "B" } }"#),
    ("GET /account/tenant/byId/{tenant_id}", ""),
    ("PUT /account/tenant/{tenant_id}", "{}"),
    ("GET /account/tenant/{tenant_id}/paymentDetails", ""),
    ("POST /account/tenant/{tenant_id}/paymentDetails", r#"{ "planKey": "free" }"#),
    ("POST /account/tenant/{tenant_id}/planDetails", r#"{ "planKey": "free" }"#),
    ("GET /account/tenant/{tenant_id}/subscription/history", ""),
    ("GET /account/tenant/{tenant_id}/deletion-preview", ""),
    ("DELETE /account/tenant/{tenant_id}", ""),
    ("POST /account/import/tenants", "[]"),
    ("POST /account/import/validateTenants", "[]"),
    ("POST /account/import/tenantsFromFile", r#"{ "fileUrl": "http://10.0.0.1/x" }"#),
    ("POST /account/import/validateTenantsFromFile", r#"{ "fileUrl": "http://10.0.0.1/x" }"#),
    ("GET /account/import", ""),
    ("GET /account/import/status/{reference}", ""),
    ("POST /admin/apps/{app_id}/import/tenants", "[]"),
    ("POST /admin/apps/{app_id}/import/validateTenants", "[]"),
    ("GET /admin/apps/{app_id}/import/status/{reference}", ""),
    ("POST /account/tenant/translate/text", r#"{ "text": "Hello" }"#),
    ("POST /account/tenant/upload/prepare", r#"{ "fileName": "a.txt", "contentType": "text/plain" }"#),
    ("POST /account/tenant/upload/finish", r#"{ "key": "x" }"#),
    ("POST /account/tenant/file/signedUrl", r#"{ "keys": [] }"#),
    ("POST /account/tenant/file/delete", r#"{ "key": "x" }"#),
    ("GET /account/tenant/file", ""),
    ("GET /account/tenant/user", ""),
    ("POST /account/tenant/user", r#"{ "username": "c@d.example" }"#),
    ("GET /account/tenant/user/{user_id}", ""),
    ("PUT /account/tenant/user/{user_id}", "{}"),
    ("DELETE /account/tenant/user/{user_id}", ""),
    ("GET /account/tenant/user/{user_id}/associations", ""),
    ("POST /account/tenant/user/{user_id}/password", ""),
    ("GET /account/tenant/user/{user_id}/passwordLink", ""),
    ("DELETE /account/tenant/user/{user_id}/sessions", ""),
    ("DELETE /account/tenant/user/{user_id}/mfa", ""),
    ("GET /account/me", ""),
    ("PUT /account/me", "{}"),
    ("GET /account/me/sessions", ""),
    ("DELETE /account/me/sessions/{session_id}", ""),
    ("GET /account/me/passkeys", ""),
    ("DELETE /account/me/passkeys/{passkey_id}", ""),
    ("GET /account/me/mfa", ""),
    ("DELETE /account/me/mfa", ""),
    ("POST /account/me/email", r#"{ "email": "c@d.example" }"#),
    ("POST /account/me/password", r#"{ "current": "x", "password": "y" }"#),
    ("GET /account/me/identities", ""),
    ("DELETE /account/me/identities/{identity_id}", ""),
    ("POST /auth/introspect", r#"{ "token": "x" }"#),
    ("POST /auth/refresh-token", "{}"),
    ("GET /auth/userinfo", ""),
    ("POST /auth/userinfo", ""),
    ("GET /admin/signing-keys", ""),
    ("GET /admin/saml-keys", ""),
    ("POST /admin/saml-keys/rotate", "{}"),
    ("POST /admin/operator-key", "{}"),
    ("POST /admin/signing-keys/rotate", "{}"),
    ("POST /admin/signing-keys/{kid}/revoke", "{}"),
    ("POST /admin/backup", ""),
    ("POST /admin/apps/{app_id}/export", r#"{ "passphrase": "correct horse" }"#),
    ("POST /admin/apps/import", ""),
    ("GET /admin/doctor", ""),
    ("GET /admin/test-clock", ""),
    ("POST /admin/test-clock", r#"{ "advanceSeconds": 1 }"#),
    ("GET /admin/apps/{app_id}/flags", ""),
    ("POST /admin/apps/{app_id}/flags", r#"{ "key": "k" }"#),
    ("PUT /admin/apps/{app_id}", "{}"),
    ("POST /admin/apps/{app_id}/flags/apply", "{}"),
    ("GET /admin/apps/{app_id}/flags/{flag_id}", ""),
    ("PUT /admin/apps/{app_id}/flags/{flag_id}", "{}"),
    ("DELETE /admin/apps/{app_id}/flags/{flag_id}", ""),
    ("GET /admin/apps/{app_id}/flags/{flag_id}/versions", ""),
    ("POST /admin/apps/{app_id}/flags/{flag_id}/rollback", r#"{ "version": 1 }"#),
    ("POST /admin/apps/{app_id}/flags/{flag_id}/explain", "{}"),
    ("GET /admin/apps/{app_id}/flag-groups", ""),
    ("POST /admin/apps/{app_id}/flag-groups", r#"{ "key": "g", "name": "G" }"#),
    ("GET /admin/apps/{app_id}/flag-groups/{group_id}", ""),
    ("PUT /admin/apps/{app_id}/flag-groups/{group_id}", "{}"),
    ("DELETE /admin/apps/{app_id}/flag-groups/{group_id}", ""),
    ("GET /admin/apps/{app_id}/flag-groups/{group_id}/versions", ""),
    ("POST /admin/apps/{app_id}/flag-groups/{group_id}/rollback", r#"{ "version": 1 }"#),
    ("POST /flags/eval-events", r#"{ "events": [] }"#),
    ("POST /flags/discover", r#"{ "keys": [] }"#),
    ("POST /flags/call-sites", r#"{ "sites": [] }"#),
    ("POST /realtime/authorize", ""),
    ("GET /admin/apps/{app_id}/webhook/stream", ""),
    ("GET /webhooks/event-types", ""),
    ("GET /webhooks/deliveries/{app_id}", ""),
    ("POST /webhooks/deliveries/{delivery_id}/replay", ""),
    ("POST /webhooks/secrets/rotate/{app_id}", ""),
    ("GET /admin/apps/{app_id}/webhook/secret", ""),
    ("POST /admin/apps/{app_id}/webhook/secret/rotate", ""),
    ("POST /admin/apps/{app_id}/webhook/test", r#"{ "url": "http://10.0.0.1/" }"#),
    ("POST /admin/apps/{app_id}/webhook/recover", r#"{ "since": "2020-01-01T00:00:00Z" }"#),
    ("GET /admin/apps/{app_id}/webhook/deliveries", ""),
    ("GET /admin/apps/{app_id}/webhook/deliveries/{delivery_id}", ""),
    ("POST /admin/apps/{app_id}/webhook/deliveries/{delivery_id}/replay", ""),
    ("GET /admin/apps/{app_id}/webhook/endpoints", ""),
    ("POST /admin/apps/{app_id}/webhook/endpoints", r#"{ "url": "https://a.example" }"#),
    ("GET /admin/apps/{app_id}/webhook/endpoints/{endpoint_id}", ""),
    ("PUT /admin/apps/{app_id}/webhook/endpoints/{endpoint_id}", "{}"),
    ("DELETE /admin/apps/{app_id}/webhook/endpoints/{endpoint_id}", ""),
    ("POST /admin/apps/{app_id}/webhook/endpoints/{endpoint_id}/secret/rotate", ""),
    (
        "POST /event-log",
        r#"{ "appId": "{app_id}", "eventName": "e", "timestamp": "2026-01-01T00:00:00Z", "parameters": {} }"#,
    ),
    ("POST /event-log/batch", r#"[{}]"#),
    (
        "POST /event-log/query",
        r#"{ "appId": "{app_id}", "eventName": "e", "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z" }"#,
    ),
    ("GET /event-log/charts", ""),
    ("GET /event-log/entities/{entity_type}/{entity_value}", ""),
    ("GET /event-log/journeys/stats", ""),
    ("GET /event-log/audit", ""),
    ("POST /event-log/funnel", r#"{ "appId": "{app_id}", "steps": ["e"], "entityType": "user" }"#),
    ("GET /event-log/names", ""),
    ("GET /admin/apps/{app_id}/events/settings", ""),
    ("GET /admin/apps/{app_id}/events/tail", ""),
    ("GET /admin/apps/{app_id}/events/export", ""),
    ("GET /admin/apps/{app_id}/events/audit/verify", ""),
    ("PUT /admin/apps/{app_id}/events/settings", "{}"),
    ("PUT /admin/apps/{app_id}/events/sink", r#"{ "kind": "http", "url": "https://sink.example" }"#),
    ("GET /admin/apps/{app_id}/events/sink", ""),
    ("DELETE /admin/apps/{app_id}/events/sink", ""),
    ("DELETE /admin/apps/{app_id}/events/entities/{entity_type}/{entity_value}", ""),
    ("GET /admin/apps/{app_id}/events/erasures/{job_id}", ""),
    ("GET /event-log/events", ""),
    ("GET /event-log/events/{event_id}", ""),
    ("GET /event-log/audit/workspace", ""),
    ("GET /event-log/audit/workspace/download", ""),
    ("DELETE /account/app", ""),
    ("DELETE /admin/apps/{app_id}", ""),
];

/// Their answers do not end; tests of their own read them.
const ENDLESS: [&str; 2] = ["GET /admin/apps/{app_id}/webhook/stream", "GET /admin/apps/{app_id}/events/tail"];

/// Somebody who is refused, and how.
struct Refused {
    who: &'static str,
    caller: Caller,
    status: u16,
    code: &'static str,
}

fn refused(who: &'static str, caller: Caller, status: u16, code: &'static str) -> Refused {
    Refused { who, caller, status, code }
}

/// Those without any standing, by what they send.
struct Strangers {
    revoked: Caller,
    orphaned: Caller,
    revoked_token: Caller,
    expired_token: Caller,
    weak_token: Caller,
    /// May do everything, in one workspace.
    scoped_token: Caller,
    user_token: String,
    /// A MEMBER whose access token says no more than that they are signed in.
    mere_member: Caller,
    elsewhere: TenantId,
}

impl Strangers {
    async fn of(app: &TestApp) -> Self {
        let (revoked, orphaned) = (app.key_with(&["APP_READ", "APP_WRITE"]).await, app.other_app().await);
        let key = format!("/admin/apps/{}/keys/{}", revoked.app_id(), revoked.key_id());
        app.operator().delete(&key).await.expect(200);
        app.operator().delete(&format!("/admin/apps/{}", orphaned.app_id())).await.expect(200);
        let elsewhere = workspace(app).await;
        let everything: Vec<&str> = BUILT_IN.iter().map(|privilege| privilege.key).collect();
        let scoped = workspace_token(app, workspace(app).await, &everything).await;
        let gone = app_token(app, &everything).await;
        let path = format!("/account/api-token/app/{}", gone.text("/record/id"));
        app.key().delete(&path).await.expect(200);
        let at = app.now().plus(Duration::from_secs(30));
        let body = serde_json::json!({ "name": "t", "privileges": everything, "expireAt": at });
        let expired = app.key().post("/account/api-token/app", body).await.expect(201);
        app.advance(Duration::from_secs(60)).await;
        Self {
            revoked,
            orphaned,
            revoked_token: bearer_of(app, &gone),
            expired_token: bearer_of(app, &expired),
            weak_token: bearer_of(app, &app_token(app, &["AUTHENTICATED"]).await),
            scoped_token: bearer_of(app, &scoped),
            user_token: member(app, elsewhere, "OWNER").await.access_token(app, &everything.join(" ")),
            mere_member: member(app, elsewhere, "MEMBER")
                .await
                .signed_in_with(app, "AUTHENTICATED")
                .header("x-app-id", &app.app_id().to_string()),
            elsewhere,
        }
    }
}

/// Who must not get through to a route with this access.
async fn wrong_callers(app: &TestApp, strangers: &Strangers, access: Access) -> Vec<Refused> {
    let (anon, none, bad) = (app.anon(), "UNAUTHENTICATED", "INVALID_CREDENTIAL");
    match access {
        Access::Public => Vec::new(),
        Access::Operator => vec![
            refused("nobody", anon.clone(), 401, none),
            refused("an app's key", app.key(), 401, none),
            refused("a wrong operator key", anon.with_operator_key("op_wrong"), 401, bad),
            refused("an empty operator key", anon.header("authorization", "Bearer "), 401, bad),
            refused("another scheme", anon.header("authorization", "Basic b3A6b3A="), 401, none),
            refused(
                "an app's key as operator key",
                anon.with_operator_key(&app.key().header_sent("x-api-key")),
                401,
                bad,
            ),
        ],
        Access::Key { privilege }
        | Access::KeyWithTenant { privilege }
        | Access::KeyOrUser { privilege }
        | Access::UserOrKey { privilege, .. } => {
            let for_users_too = matches!(access, Access::KeyOrUser { .. } | Access::UserOrKey { .. });
            let unknown = format!("tnt_{}", "x".repeat(43));
            let mut wrong = vec![
                refused("nobody", anon.clone(), 401, none),
                refused("an empty key", anon.header("x-api-key", ""), 401, bad),
                refused("garbage", anon.header("x-api-key", "garbage"), 401, bad),
                refused("garbage like a token", anon.header("x-api-key", "a.b.c"), 401, bad),
                refused("an unknown key", anon.header("x-api-key", &unknown), 401, bad),
                refused("a revoked key", strangers.revoked.clone(), 401, bad),
                refused("the key of a deleted app", strangers.orphaned.clone(), 401, bad),
                refused("the operator's key as app key", anon.header("x-api-key", testkit::OPERATOR_KEY), 401, bad),
            ];
            wrong.push(refused("a revoked token", strangers.revoked_token.clone(), 401, bad));
            wrong.push(refused("an expired token", strangers.expired_token.clone(), 401, bad));
            let as_key = anon.header("x-api-key", &strangers.user_token);
            wrong.push(refused("a user's access token as key", as_key, 401, bad));
            if !for_users_too {
                wrong.push(refused("the operator", app.operator(), 401, none));
            }
            // What any key may do concerns no workspace.
            if !matches!(access, Access::KeyOrUser { .. } | Access::Key { privilege: None }) {
                let elsewhere = strangers.elsewhere.to_string();
                let scoped = strangers.scoped_token.header("x-tenant-id", &elsewhere);
                wrong.push(refused("another workspace's token", scoped, 403, "FORBIDDEN"));
            }
            if privilege.is_some() {
                let without = app.key_with(&["AUTHENTICATED"]).await;
                wrong.push(refused("a key without the privilege", without, 403, "MISSING_PRIVILEGE"));
                let weak = strangers.weak_token.clone();
                wrong.push(refused("a token without the privilege", weak, 403, "MISSING_PRIVILEGE"));
            }
            wrong
        }
        Access::Scim => vec![
            refused("nobody", anon.clone(), 401, none),
            refused("an app's key", app.key(), 401, none),
            refused("garbage", anon.with_operator_key("garbage"), 401, bad),
            refused("the operator", app.operator(), 401, bad),
            refused("an unknown token", anon.with_operator_key(&format!("scim_{}", "x".repeat(43))), 401, bad),
            refused("a user's access token", anon.with_operator_key(&strangers.user_token), 401, bad),
            refused(
                "an API token as bearer",
                anon.with_operator_key(&strangers.scoped_token.header_sent("x-api-key")),
                401,
                bad,
            ),
        ],
        Access::User { permission } | Access::Bearer { permission } => {
            let mut wrong = vec![
                refused("nobody", anon.clone(), 401, none),
                refused("an app's key", app.key(), 401, none),
                refused("garbage", anon.with_operator_key("garbage"), 401, bad),
                refused("the operator", app.operator(), 401, bad),
                refused(
                    "an API token as user",
                    anon.with_operator_key(&strangers.scoped_token.header_sent("x-api-key")),
                    401,
                    bad,
                ),
            ];
            if let Some(permission) = permission {
                let code = if permission == "OWNER or ADMIN" { "FORBIDDEN" } else { "MISSING_PRIVILEGE" };
                wrong.push(refused("a member without the permission", strangers.mere_member.clone(), 403, code));
            }
            wrong
        }
    }
}

async fn ask(caller: &Caller, app: &TestApp, route: &RouteEntry, body: &str) -> Answer {
    let body: Option<Value> = (!body.is_empty()).then(|| body.parse().expect("the row's body is JSON"));
    caller.call(route.method.clone(), &path(app, route.path), body).await
}

/// The key of another app with one privilege more than usual.
async fn other_app_with(app: &TestApp, privilege: &str) -> Caller {
    let other = app.other_app().await.app_id();
    let body = serde_json::json!({ "name": "k", "privileges": [privilege] });
    let made = app.operator().post(&format!("/admin/apps/{other}/keys"), body).await.expect(201);
    app.anon().with_api_key(other, &made.text("/key"))
}

async fn nobody_gets_further_than_they_may(app: TestApp) {
    let table = service::route_table();
    let name = |route: &RouteEntry| format!("{} {}", route.method, route.path);
    let with_bodies = BY_CONTENT.iter().chain(GUARDED).map(|(name, _)| *name);
    let known: BTreeSet<String> = PUBLIC.iter().chain(PAGES).copied().chain(with_bodies).map(str::to_owned).collect();
    let routes: BTreeSet<String> = table.iter().map(name).collect();
    let differing: Vec<&String> = routes.symmetric_difference(&known).collect();
    assert!(differing.is_empty(), "the rows here and the routes differ: {differing:#?}");
    assert_eq!(known.len(), PUBLIC.len() + PAGES.len() + BY_CONTENT.len() + GUARDED.len(), "a route stands here twice");

    let strangers = Strangers::of(&app).await;
    for route in &table {
        let name = name(route);
        let row = GUARDED.iter().find(|(guarded, _)| *guarded == name);
        assert_eq!(route.access == Access::Public, row.is_none(), "{name} is {}", route.access);
        let body = row.map_or("", |(_, body)| *body);
        for wrong in wrong_callers(&app, &strangers, route.access).await {
            let answer = ask(&wrong.caller, &app, route, body).await;
            assert_eq!(answer.status(), wrong.status, "{name} as {}: {answer:?}", wrong.who);
            match route.access {
                Access::Scim => answer.scim_error(wrong.status, ""),
                _ => answer.error(wrong.status, wrong.code),
            };
        }
    }
    let tenant = workspace(&app).await;
    let owner = member(&app, tenant, "OWNER").await;
    let directory = DirectoryCaller::made_by(&app.key().in_workspace(tenant)).await;
    // Nothing above changed anything, and the right callers get through; deletions come last.
    let rows = GUARDED.iter().map(|(name, body)| (*name, *body));
    let introspected = r#"{ "token": "x", "refreshToken": "x" }"#;
    for (name, body) in BY_CONTENT {
        let route =
            table.iter().find(|route| format!("{} {}", route.method, route.path) == *name).expect("in the table");
        let answer = ask(&app.anon(), &app, route, body).await;
        let expected = if name.contains("/cloud-views/files") { [403, 415] } else { [400, 401] };
        assert!(expected.contains(&answer.status()), "{name}: {answer:?}");
    }
    for name in PAGES {
        let (method, path) = name.split_once(' ').expect("a method and a path");
        let form = app.anon().header("content-type", "application/x-www-form-urlencoded");
        let answer = form.send(method.parse().expect("a method"), path, "r=x&csrf=x&token=x&member=x&app=x").await;
        // A form that leads nowhere leads to a page that says so.
        let answer = match answer.header("location") {
            Some(location) if answer.status() == 303 && method == "POST" => app.anon().get(location).await,
            _ => answer,
        };
        assert!(matches!(answer.status(), 400..=404), "{name}: {answer:?}");
        // A script asks for the options; everything else is looked at by a person.
        let kind = if path.ends_with("/options") { "application/json" } else { "text/html; charset=utf-8" };
        assert_eq!(answer.header("content-type"), Some(kind), "{name}: {answer:?}");
    }
    let public = PUBLIC.iter().map(|name| (*name, if name.starts_with("POST") { introspected } else { "" }));
    for (name, body) in public.chain(rows).filter(|(name, _)| !ENDLESS.contains(name)) {
        let route =
            table.iter().find(|route| format!("{} {}", route.method, route.path) == name).expect("in the table");
        let caller = match route.access {
            Access::Public => app.anon(),
            Access::Operator => app.operator(),
            Access::Scim => directory.caller.clone(),
            Access::Bearer { .. } | Access::User { .. } => {
                owner.signed_in(&app).header("x-app-id", &app.app_id().to_string())
            }
            // The app is needed to the end: another one goes.
            Access::Key { privilege: Some(privilege) } | Access::KeyOrUser { privilege: Some(privilege) }
                if privilege.ends_with("_DELETE") && name != "DELETE /account/app" =>
            {
                app.key_with(&[privilege]).await
            }
            _ if name == "DELETE /account/app" => other_app_with(&app, "APP_DELETE").await,
            _ => app.key().header("x-tenant-id", &tenant.to_string()),
        };
        let body = body.replace("{owner}", &owner.member.to_string()).replace("{app_id}", &app.app_id().to_string());
        let answer = ask(&caller, &app, route, &body).await;
        if BY_LINK.contains(&name) {
            assert!(matches!(answer.status(), 404 | 415), "{name}: {answer:?}");
            continue;
        }
        let of_nothing =
            ["kid", "key_id", "token_id", "secret_id", "flag_id", "group_id", "event_id", "session_id", "key"]
                .iter()
                .chain(&["delivery_id", "endpoint_id", "reference", "job_id"])
                .chain(&OF_NOTHING)
                .any(|id| name.contains(&format!("{{{id}}}")));
        let refused_for_its_content = matches!(answer.status(), 400 | 401) && REFUSED_FOR_CONTENT.contains(&name);
        // Public, but the app has to be named by a header.
        let nameless = name.contains(" /ofrep/") && answer.status() == 400;
        // The workspace has to be the caller's own.
        let foreign = name.contains("{workspace_id}") && answer.status() == 403;
        let let_in = answer.status() < 400
            || answer.status() == 501 && NOT_OFFERED.contains(&name)
            || answer.status() == 404 && (of_nothing || OF_NO_FILE.contains(&name))
            || refused_for_its_content
            // This person has none yet.
            || answer.status() == 409 && name == "POST /account/me/password"
            || nameless
            || foreign;
        assert!(let_in, "{name}: {answer:?}");
    }
    let gone = app.key().call(Method::GET, "/account/app", None).await;
    gone.error(401, "INVALID_CREDENTIAL");
}
