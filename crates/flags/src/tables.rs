//! The tables of this room. Flags go first: what clients report is kept only for flags that exist.

use store::{Table, table};

pub const TABLES: &[Table] = &[
    table!("flags"("id") of app),
    table!("flag_groups"("id") of app),
    table!("flag_versions"("subject_id, version") of app),
    table!("flag_revisions"("app_id") of app),
    table!("flag_discoveries"("app_id, key") of app),
    table!("flag_evaluations"("app_id, key, variant_index, day") of app),
    table!("flag_last_uses"("app_id, key") of app),
    table!("flag_call_sites"("app_id, key, file, line") of app),
];
