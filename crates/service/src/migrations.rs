//! The one numbered list of migrations. Append only: a released step is never edited.

use store::Migration;

macro_rules! text {
    ($file:literal) => {
        include_str!(concat!("../migrations/", $file, ".sql"))
    };
}

pub const MIGRATIONS: &[Migration] = &[
    Migration::per_engine(1, "outbox", text!("sqlite/0001_outbox"), text!("postgres/0001_outbox")),
    Migration::shared(2, "messages", text!("0002_messages")),
    Migration::shared(3, "signing_keys", text!("0003_signing_keys")),
    Migration::shared(4, "installation", text!("0004_installation")),
    Migration::shared(5, "apps", text!("0005_apps")),
    Migration::shared(6, "access", text!("0006_access")),
    Migration::shared(7, "people", text!("0007_people")),
    Migration::shared(8, "api_tokens", text!("0008_api_tokens")),
    Migration::shared(9, "federation", text!("0009_federation")),
    Migration::shared(10, "branding", text!("0010_branding")),
    Migration::shared(11, "catalog", text!("0011_catalog")),
    Migration::shared(12, "identity", text!("0012_identity")),
    Migration::shared(13, "flags", text!("0013_flags")),
    Migration::shared(14, "hosted_login", text!("0014_hosted_login")),
    Migration::shared(15, "handover", text!("0015_handover")),
    Migration::shared(16, "purges", text!("0016_purges")),
    Migration::shared(17, "authors", text!("0017_authors")),
    Migration::shared(18, "operator_keys", text!("0018_operator_keys")),
    Migration::shared(19, "subscriptions", text!("0019_subscriptions")),
    Migration::shared(20, "authority", text!("0020_authority")),
    Migration::shared(21, "usage", text!("0021_usage")),
    Migration::shared(22, "checkout", text!("0022_checkout")),
    Migration::shared(23, "webhooks", text!("0023_webhooks")),
    Migration::shared(24, "joining", text!("0024_joining")),
    Migration::shared(25, "portals", text!("0025_portals")),
    Migration::shared(26, "eventlog", text!("0026_eventlog")),
    Migration::shared(27, "sent_forms", text!("0027_sent_forms")),
    Migration::shared(28, "recipients", text!("0028_recipients")),
    Migration::shared(29, "federated_logins", text!("0029_federated_logins")),
    Migration::shared(30, "imports", text!("0030_imports")),
    Migration::shared(31, "user_parameters", text!("0031_user_parameters")),
    Migration::shared(32, "providers", text!("0032_providers")),
    Migration::shared(33, "connection_states", text!("0033_connection_states")),
    Migration::shared(34, "staged_until", text!("0034_staged_until")),
    Migration::shared(35, "files", text!("0035_files")),
    Migration::shared(36, "vouched_members", text!("0036_vouched_members")),
    Migration::shared(37, "payments", text!("0037_payments")),
    Migration::shared(38, "scim", text!("0038_scim")),
    Migration::shared(39, "event_keeping", text!("0039_event_keeping")),
    Migration::shared(40, "event_chain", text!("0040_event_chain")),
    Migration::shared(41, "saml_keys", text!("0041_saml_keys")),
    Migration::shared(42, "event_sinks", text!("0042_event_sinks")),
    Migration::shared(43, "event_blocks", text!("0043_event_blocks")),
    Migration::shared(44, "delivery_facts", text!("0044_delivery_facts")),
    Migration::shared(45, "import_order", text!("0045_import_order")),
    Migration::per_engine(46, "event_counts", text!("sqlite/0046_event_counts"), text!("postgres/0046_event_counts")),
    Migration::shared(47, "paid_plans", text!("0047_paid_plans")),
    Migration::per_engine(48, "ingest_ids", text!("sqlite/0048_ingest_ids"), text!("postgres/0048_ingest_ids")),
    Migration::per_engine(
        49,
        "role_privileges",
        text!("sqlite/0049_role_privileges"),
        text!("postgres/0049_role_privileges"),
    ),
    Migration::per_engine(50, "event_keys", text!("sqlite/0050_event_keys"), text!("postgres/0050_event_keys")),
];
