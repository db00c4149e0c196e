//! Every table, by the room that owns it.

use store::{Table, table};

const SERVICE: &[Table] = &[table!("installation"("name"))];

pub const TABLES: &[(&str, &[Table])] = &[
    ("vault", vault::TABLES),
    ("spine", spine::TABLES),
    ("tenancy", tenancy::TABLES),
    ("billing", billing::TABLES),
    ("flags", flags::TABLES),
    ("identity", identity::TABLES),
    ("signals", signals::TABLES),
    ("service", SERVICE),
];

pub(crate) fn all() -> impl Iterator<Item = &'static Table> {
    TABLES.iter().flat_map(|(_, tables)| *tables)
}
