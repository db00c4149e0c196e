//! What may be said of an endpoint.

use kernel::{Timestamp, WebUrl};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::apps::EventType;
use web::{Given, Patch, Validate};

use super::{Endpoint, EndpointId};

/// The body of `POST /admin/apps/{app_id}/webhook/endpoints`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct NewEndpoint {
    /// An absolute http or https URL.
    pub url: WebUrl,
    /// On without it.
    pub enabled: Option<bool>,
    /// Event types to send; empty means all.
    pub events: Option<Vec<EventType>>,
    #[schemars(length(max = 1_000))]
    pub description: Option<String>,
}

impl Validate for NewEndpoint {}

impl NewEndpoint {
    pub(super) fn to_endpoint(&self, id: EndpointId, now: Timestamp) -> Endpoint {
        Endpoint {
            id,
            url: self.url.to_string(),
            enabled: self.enabled.unwrap_or(true),
            events: names(self.events.as_deref().unwrap_or_default()),
            description: self.description.clone().unwrap_or_default(),
            created_at: now,
        }
    }
}

/// The body of `PUT /admin/apps/{app_id}/webhook/endpoints/{endpoint_id}`: a missing member keeps its value.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndpointChange {
    /// An absolute http or https URL.
    pub url: Given<WebUrl>,
    pub enabled: Given<bool>,
    /// Event types to send; empty means all.
    pub events: Patch<Vec<EventType>>,
    #[schemars(length(max = 1_000))]
    pub description: Patch<String>,
}

impl Validate for EndpointChange {}

impl EndpointChange {
    pub(super) fn apply(self, mut endpoint: Endpoint) -> Endpoint {
        self.url.apply(&mut endpoint.url);
        self.enabled.apply(&mut endpoint.enabled);
        let events = self.events.map(|events| names(events));
        endpoint.events = events.apply(Some(endpoint.events)).unwrap_or_default();
        endpoint.description = self.description.apply(Some(endpoint.description)).unwrap_or_default();
        endpoint
    }
}

fn names(events: &[EventType]) -> Vec<String> {
    events.iter().map(ToString::to_string).collect()
}
