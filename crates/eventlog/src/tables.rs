//! The tables of this room.

use store::{Table, table};

pub const TABLES: &[Table] = &[
    table!("event_arrivals"("id") of app; acted_on "the fold"),
    table!("event_ingest_ids"("app_number, digest") of numbered_app),
    table!("event_names"("app_id, name") of app),
    table!("event_parameters"("app_id, name") of app),
    table!("event_folds"("app_id") of app),
    table!("event_buckets"("app_id, name_id, grain, starts_at") of app),
    table!("event_sums"("app_id, name_id, grain, starts_at, parameter_id") of app),
    table!("event_counts"("app_id, name_id, grain, starts_at, parameter_id, part") of app),
    table!("event_firsts"("app_number, entity_digest, name_id") of numbered_app),
    table!("event_rows"("id") of app; kept "the audit trail tells what became of deleted workspaces"),
    table!("event_blocks"("app_id, name_id, id") of app),
    table!("event_series"("app_id, name_id") of app; acted_on "the packer"),
    table!("event_links"("app_id, seq") of app),
    table!("event_chains"("app_id") of app),
    table!("event_settings"("app_id") of app),
    table!("event_erasures"("id") of app; acted_on "the eraser"),
    table!("event_sinks"("app_id") of app; sealed "sealed" by "app_id"; acted_on "the sink"),
];
