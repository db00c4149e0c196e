//! The tables of this room.

use std::time::Duration;

use store::{Table, table};

pub const TABLES: &[Table] = &[
    table!("webhook_endpoints"("id") of app, workspace),
    table!("webhook_targets"("endpoint_id") of app, workspace),
    table!("webhook_secrets"("id") of app; expires "expires_at" + Duration::ZERO; sealed "sealed" by "id"),
    table!("webhook_deliveries"("id") of app; kept "what a deleted workspace did has to arrive, tenant.deleted last";
        acted_on "the sender"),
];

/// What ends the claims on rows of this room.
pub const CLAIMS: &[&str] = &[spine::claims!("webhook_deliveries")];
