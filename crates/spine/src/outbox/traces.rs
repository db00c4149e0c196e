//! What follows from a fact bears the fact's number under a name of its own. So one leads to the other without a search, and
//! nothing can follow from a fact twice.

use kernel::id_kinds;

use super::FactId;

id_kinds! {
    /// What a webhook's receiver is told; receivers deduplicate by it.
    WebhookEventId(WebhookEvent) = "evt";
    /// An event in the log; `rawEventId` on the wire. Entries of the audit trail are such events.
    LoggedEventId(LoggedEvent) = "event";
}

/// The event that a fact of a published type is.
pub fn webhook_event(fact: FactId) -> WebhookEventId {
    WebhookEventId::from_u128(fact.as_u128())
}

/// The entry in its app's audit trail.
pub fn audit_entry(fact: FactId) -> LoggedEventId {
    LoggedEventId::from_u128(fact.as_u128())
}
