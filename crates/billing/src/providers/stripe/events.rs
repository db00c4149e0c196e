//! Events of the provider, read: what they are about. Whatever does not look like one that is known asks for nothing. Pure.

use serde::Deserialize;
use serde_json::Value;

use super::{calls::id_of, invoice::Invoice};

/// The types of events that mean something here.
pub const EVENTS: [&str; 8] = [
    "checkout.session.completed",
    "checkout.session.async_payment_succeeded",
    "customer.subscription.created",
    "customer.subscription.updated",
    "customer.subscription.deleted",
    "invoice.paid",
    "invoice.payment_succeeded",
    "invoice.payment_failed",
];

/// Whether there is anything to do about an event of this type.
pub fn matters(kind: &str) -> bool {
    EVENTS.contains(&kind)
}

/// What an event is about.
#[derive(Debug)]
pub enum ProviderEvent {
    Session(String),
    Subscription(String),
    Invoice { invoice: Box<Invoice>, paid: bool },
    Nothing,
}

impl ProviderEvent {
    pub fn read(payload: &str) -> Self {
        #[derive(Deserialize)]
        struct Event {
            #[serde(rename = "type")]
            kind: String,
            data: Data,
        }
        #[derive(Deserialize)]
        struct Data {
            object: Value,
        }
        let Ok(Event { kind, data: Data { object } }) = serde_json::from_str(payload) else { return Self::Nothing };
        let Some(id) = id_of(&object).filter(|id| is_id(id) && matters(&kind)) else { return Self::Nothing };
        match kind.split('.').next() {
            Some("checkout") => Self::Session(id),
            Some("customer") => Self::Subscription(id),
            _ => serde_json::from_value(object).map_or(Self::Nothing, |invoice| Self::Invoice {
                invoice: Box::new(invoice),
                paid: !kind.ends_with("_failed"),
            }),
        }
    }

    pub fn subject(&self) -> Subject {
        match self {
            Self::Session(id) => Subject::Session(id.clone()),
            Self::Subscription(id) => Subject::Subscription(id.clone()),
            Self::Invoice { invoice, .. } => invoice.subscription().map_or(Subject::Nothing, Subject::Subscription),
            Self::Nothing => Subject::Nothing,
        }
    }
}

/// What is to be read at the provider because of an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Session(String),
    Subscription(String),
    Nothing,
}

/// Ids become part of addresses.
pub(super) fn is_id(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
