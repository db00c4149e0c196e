//! The tables of this room.

use std::time::Duration;

use ::store::{Table, table};

use crate::logins::LONGEST_ACCESS;

/// A link that expired can still be told from one that never was.
const LINKS_KEPT: Duration = Duration::from_secs(24 * 3600);

pub const TABLES: &[Table] = &[
    table!("apps"("id")),
    table!("operator_keys"("digest")),
    table!("app_keys"("id") of app),
    table!("app_secrets"("id") of app; sealed "sealed" by "id"),
    table!("api_tokens"("id") of app, workspace, secret),
    table!("scim_tokens"("id") of app, workspace),
    table!("one_time_links"("id") of app, person; expires "expires_at" + LINKS_KEPT),
    // Refreshing a login does not move its end, but leaves tokens that need it.
    table!("refresh_families"("id") of app, person; expires "expires_at" + LONGEST_ACCESS,
        unless "EXISTS (SELECT 1 FROM refresh_tokens WHERE refresh_tokens.family_id = refresh_families.id)"),
    table!("members"("id") of app, workspace, person),
    table!("invitations"("id") of app, workspace),
    table!("tenants"("id") of app),
    table!("users"("id") of app),
    // Gone before what they grant, and brought after it: meanwhile their lists would be written anew again and again.
    table!("roles"("id") of app; acted_on "the triggers that list what a role grants"),
    table!("role_privileges"("role_id, privilege_id") of app),
    table!("privileges"("id") of app),
    table!("federation_connections"("id") of app; sealed "sealed_private_key" by "id", "sealed_client_secret" by "id"),
    table!("connection_domains"("app_id, domain") of app),
    table!("mail_templates"("app_id, name") of app),
    table!("mail_counts"("recipient") of app; expires "expires_at" + Duration::ZERO;
        stays "each installation counts the mails it sends"),
    table!("brand_styles"("app_id") of app),
    table!("brand_translations"("app_id") of app),
    table!("app_credentials"("app_id, name") of app; sealed "sealed" by "name"),
];
