//! PostgreSQL refuses an index entry of more than a third of a page, SQLite takes it. So whatever is indexed is bounded in
//! bytes, and both engines answer alike.

use store::{
    ColumnType,
    testing::{indexes, schema},
};
use testkit::{TestApp, on_both_engines};

on_both_engines!(no_entry_of_an_index_is_larger_than_any_engine_takes);

/// What a B-tree of PostgreSQL takes, less what it needs for itself.
const LARGEST_ENTRY: usize = 2_600;

/// An id, a digest in hex or base64, the name of something that the program itself names.
const OWN: usize = 80;
/// `kernel::Key`, and whatever else is ASCII of at most 128 characters.
const KEY: usize = 128;
const EMAIL: usize = 254;

/// Texts that are indexed and come from outside, with the most bytes that the type of their member lets through.
const FROM_OUTSIDE: &[(&str, usize)] = &[
    ("api_tokens.made_by_member", OWN),
    ("api_tokens.made_by_token", OWN),
    ("app_credentials.name", OWN),
    ("apps.domain", 253),
    ("attempt_counters.subject", OWN + EMAIL),
    ("event_names.name", 128 * 4),
    ("event_parameters.name", 128 * 4),
    ("federated_subjects.subject", OWN),
    ("files.object", OWN),
    ("flag_call_sites.file", 256 * 4),
    ("mail_counts.recipient", OWN),
    ("mail_templates.name", OWN),
    ("one_time_links.recipient", OWN),
    // WebAuthn: 1,023 bytes at most, in base64.
    ("passkeys.id", 1_364),
    ("connection_domains.domain", 253),
    ("linked_identities.provider", OWN),
    ("linked_identities.subject", OWN),
    ("pending_federations.handle", OWN),
    // The start of a digest; what the program itself names; and ids of ours with a metric.
    ("provider_customers.account", OWN),
    ("provider_objects.account", OWN),
    ("provider_objects.kind", OWN),
    ("provider_objects.key", 128 * 4 + 3 * OWN),
    ("scim_groups.external_id", 500 * 4),
    ("scim_groups.name_key", 200 * 4),
    ("scim_users.external_id", 500 * 4),
    ("usage_counters.metric", 128 * 4),
    ("usage_events.idempotency_key", 256 * 4),
    ("users.email_key", EMAIL),
    ("webhook_deliveries.status", OWN),
];

/// Columns that hold the same wherever they are.
fn by_name(column: &str) -> Option<usize> {
    match column {
        "id" | "kid" | "digest" | "state" | "consumer" | "belongs_by" => Some(OWN),
        "key" => Some(KEY),
        column if column.ends_with("_id") || column.ends_with("_digest") => Some(OWN),
        column if column.ends_with("_key") => Some(KEY),
        _ => None,
    }
}

async fn no_entry_of_an_index_is_larger_than_any_engine_takes(app: TestApp) {
    let db = app.service().core().db.clone();
    let tables = schema(&db).await;
    let mut texts = 0;
    for index in indexes(&db).await {
        let Some(table) = tables.iter().find(|table| table.name == index.table) else { continue };
        let mut largest = 0;
        for column in &index.columns {
            let kind = table.columns.iter().find(|(name, _)| name == column).map(|(_, kind)| *kind);
            if !matches!(kind, Some(ColumnType::Text | ColumnType::Bytes)) {
                continue;
            }
            let place = format!("{}.{column}", index.table);
            let told = FROM_OUTSIDE.iter().find(|(name, _)| *name == place).map(|(_, bytes)| *bytes);
            // The service's own bookkeeping: names that stand in the code.
            let own = index.columns == ["name"] && !table.has("app_id");
            let bytes = told.or_else(|| by_name(column)).or(own.then_some(OWN));
            largest += bytes.unwrap_or_else(|| panic!("{place} is in {}: how many bytes can it have?", index.name));
            texts += 1;
        }
        assert!(largest <= LARGEST_ENTRY, "an entry of {} can have {largest} bytes", index.name);
    }
    assert!(texts > 100, "{texts} columns are too few");
}
