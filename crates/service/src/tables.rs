//! Every table, by the room that owns it.

use std::time::Duration;

use store::{Table, table};

const SERVICE: &[Table] = &[
    table!("installation"("name")),
    table!("portal_codes"("digest") of app, workspace; expires "expires_at" + Duration::ZERO; stays "a visit under way"),
    table!("portal_sessions"("digest") of app, workspace; expires "expires_at" + Duration::ZERO;
        stays "a visit under way"),
];

pub const TABLES: &[(&str, &[Table])] = &[
    ("vault", vault::TABLES),
    ("spine", spine::TABLES),
    ("tenancy", tenancy::TABLES),
    ("billing", billing::TABLES),
    ("flags", flags::TABLES),
    ("identity", identity::TABLES),
    ("signals", signals::TABLES),
    ("eventlog", eventlog::TABLES),
    ("import", import::TABLES),
    ("files", files::TABLES),
    ("scim", scim::TABLES),
    ("service", SERVICE),
];

pub(crate) fn all() -> impl Iterator<Item = &'static Table> {
    TABLES.iter().flat_map(|(_, tables)| *tables)
}
