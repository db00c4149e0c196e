//! What this room tells: changes of endpoints and their secrets, and deliveries that somebody repeated.

use kernel::Timestamp;
use spine::{FactKind as _, Reader};
use tenancy::{
    apps::EVENTS,
    facts::{AppCreated, AppDeleted, AppWebhookChanged},
};

use crate::{deliveries::DeliveryId, endpoints::EndpointId};

spine::facts! {
    /// An endpoint was added, or changed. These are its values from here on.
    EndpointChanged = "webhook_endpoint.changed" {
        endpoint_id: EndpointId,
        url: String,
        enabled: bool,
        /// Event types to send; empty means all.
        events: Vec<String>,
    }
    /// An endpoint was deleted.
    EndpointDeleted = "webhook_endpoint.deleted" { endpoint_id: EndpointId }
    /// An endpoint's deliveries are signed with a new secret; the one before signs beside it for a while.
    WebhookSecretRotated = "webhook_secret.rotated" {
        /// `null` for the endpoint of the app's profile.
        endpoint_id: Option<EndpointId>,
    }
    /// A delivery was repeated.
    DeliveryReplayed = "webhook_delivery.replayed" { delivery_id: DeliveryId, replay_id: DeliveryId }
    /// Deliveries of some time that did not arrive were repeated.
    DeliveriesRecovered = "webhook_deliveries.recovered" { since: Timestamp, until: Timestamp, replayed: i64 }
    /// An endpoint was disabled because too many deliveries in a row did not arrive.
    EndpointGivenUp = "webhook_endpoint.given_up" {
        /// `null` for the endpoint of the app's profile.
        endpoint_id: Option<EndpointId>,
    }
}

/// What turns facts into deliveries: every event type, and whatever changes where they go.
pub(crate) const CONSUMER: Reader = Reader::of("webhooks", &CONSUMED);

const TARGETS: [&str; 5] =
    [AppCreated::KIND, AppDeleted::KIND, AppWebhookChanged::KIND, EndpointChanged::KIND, EndpointDeleted::KIND];

pub(crate) const CONSUMED: [&str; TARGETS.len() + EVENTS.len()] = {
    let mut all = [""; TARGETS.len() + EVENTS.len()];
    let mut n = 0;
    while n < all.len() {
        all[n] = if n < TARGETS.len() { TARGETS[n] } else { EVENTS[n - TARGETS.len()] };
        n += 1;
    }
    all
};

/// Who in this room reads facts.
pub fn readers() -> Vec<Reader> {
    vec![CONSUMER, crate::realtime::FOLLOWER]
}
