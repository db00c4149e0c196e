//! Deliveries: one event on its way to one endpoint. The rows are the queue; what becomes of each attempt is written
//! beside it.

mod admin_http;
mod consumer;
mod http;
mod proof;
mod recovery;
mod replay;
mod retention;
mod store;
mod testing;

use std::time::Duration;

use ::store::{row, text_enum};
use kernel::{AppId, TenantId, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spine::{FactId, LoggedEventId, outbound::Url, outbox::audit_entry};

pub(crate) use consumer::{consume, settle_apps};
pub use proof::{Proof, Undelivered, prove};
pub(crate) use retention::Retention;
pub use store::{Backlog, backlog};
pub(crate) use store::{Unsent, delivery_of};

use crate::{
    Signals,
    endpoints::{EndpointId, is_of_profile},
};

id_kinds! {
    /// A delivery.
    DeliveryId(DeliveryKind) = "delivery";
}

text_enum! {
    /// How far a delivery is.
    wire pub enum DeliveryStatus {
        Pending = "pending",
        Delivered = "delivered",
        /// The last attempt failed and another one is scheduled.
        Failed = "failed",
        /// Given up; it can be replayed.
        DeadLetter = "dlq",
    }
}

/// Why a delivery was not sent although there was a URL.
pub(crate) const WEBHOOK_DISABLED: &str = "webhook_disabled";
pub(crate) const ENDPOINT_DELETED: &str = "The endpoint was deleted.";

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// How long to wait after the first, second, … failed attempt. After one more it is given up.
pub const PAUSES: [Duration; 6] = [
    Duration::from_secs(MINUTE),
    Duration::from_secs(5 * MINUTE),
    Duration::from_secs(30 * MINUTE),
    Duration::from_secs(2 * HOUR),
    Duration::from_secs(12 * HOUR),
    Duration::from_secs(24 * HOUR),
];

/// One attempt, once it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// 1 to 7.
    pub attempt: i64,
    pub at: Timestamp,
    /// `null` without an answer.
    pub response_code: Option<i64>,
    /// `null` when it was delivered.
    pub error: Option<String>,
    #[schemars(range(min = 0))]
    pub latency_ms: i64,
}

/// A delivery as its owner sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    pub id: DeliveryId,
    pub event_id: String,
    pub event_type: String,
    /// Where it goes: fixed when the delivery was made.
    pub target_url: String,
    pub status: DeliveryStatus,
    /// The attempt under way or last made: 1 to 7.
    #[schemars(range(min = 1, max = 7))]
    pub attempt: i64,
    /// `null` without an answer.
    pub response_code: Option<i64>,
    /// What went wrong at the last attempt, for people.
    pub last_error: Option<String>,
    pub next_retry_at: Option<Timestamp>,
    pub delivered_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// The envelope, as it is sent.
    pub payload: Value,
    /// An endpoint beside that of the app's profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_id: Option<EndpointId>,
}

/// A delivery with what became of each attempt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DetailedDelivery {
    #[serde(flatten)]
    pub delivery: Delivery,
    /// Oldest first.
    pub attempts: Vec<Attempt>,
    /// The place of the fact it tells of among all facts.
    pub position: i64,
    /// The entry in the app's audit trail that the same commit made: its `rawEventId`. Missing from deliveries of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_entry_id: Option<LoggedEventId>,
}

/// A delivery as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryRow {
    pub(crate) id: DeliveryId,
    pub(crate) app: AppId,
    pub(crate) tenant: Option<TenantId>,
    pub(crate) endpoint: EndpointId,
    pub(crate) event_id: String,
    pub(crate) event_type: String,
    pub(crate) position: i64,
    pub(crate) fact: Option<FactId>,
    pub(crate) target_url: String,
    pub(crate) payload: String,
    pub(crate) status: DeliveryStatus,
    pub(crate) attempt: i64,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) response_code: Option<i64>,
    pub(crate) last_error: Option<String>,
    pub(crate) next_attempt_at: Option<Timestamp>,
    pub(crate) delivered_at: Option<Timestamp>,
    pub(crate) created_at: Timestamp,
}

row! {
    DeliveryRow = "webhook_deliveries" {
        id,
        app: "app_id",
        tenant: "tenant_id",
        endpoint: "endpoint_id",
        event_id,
        event_type,
        position,
        fact: "fact_id",
        target_url,
        payload,
        status,
        attempt,
        attempts as Json,
        response_code,
        last_error,
        next_attempt_at,
        delivered_at,
        created_at,
    }
}

impl Delivery {
    /// As a customer sees it: user and password in the URL are between the app and its receiver.
    fn for_workspace(mut self) -> Self {
        if let Ok(mut url) = Url::parse(&self.target_url)
            && (url.username() != "" || url.password().is_some())
            && url.set_username("").is_ok()
            && url.set_password(None).is_ok()
        {
            self.target_url = url.into();
        }
        self
    }
}

impl DeliveryRow {
    pub(crate) fn view(self) -> Delivery {
        let waits = self.status == DeliveryStatus::Failed;
        Delivery {
            id: self.id,
            event_id: self.event_id,
            event_type: self.event_type,
            target_url: self.target_url,
            status: self.status,
            attempt: self.attempt,
            response_code: self.response_code,
            last_error: self.last_error,
            next_retry_at: self.next_attempt_at.filter(|_| waits),
            delivered_at: self.delivered_at,
            created_at: self.created_at,
            // What we serialised ourselves can be read.
            payload: serde_json::from_str(&self.payload).unwrap_or_default(),
            endpoint_id: (!is_of_profile(self.endpoint, self.app)).then_some(self.endpoint),
        }
    }

    fn detailed(self) -> DetailedDelivery {
        let (attempts, position, fact) = (self.attempts.clone(), self.position, self.fact);
        DetailedDelivery { delivery: self.view(), attempts, position, audit_entry_id: fact.map(audit_entry) }
    }
}

pub(crate) fn routes() -> web::Routes<Signals> {
    http::routes().merge(admin_http::routes()).merge(testing::routes()).merge(recovery::routes())
}
