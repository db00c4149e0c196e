//! The event types: which there are, when each fires and what its `data` looks like.
//!
//! A type is one struct: the fact's payload is the webhook's `data` as it stands, and the sample and the published schema
//! come from the same struct. To define a further type, add its struct and one row to [`TYPES`].

mod envelope;
mod http;
mod live;
mod samples;

use kernel::TenantId;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use spine::FactKind;

pub(crate) use envelope::renamed;
pub use envelope::{Envelope, ReplayedEventId, TestEventId};
pub(crate) use live::Watchers;
use samples::Sample;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    Tenant,
    TenantUser,
    Billing,
}

/// One event type.
pub struct EventDefinition {
    pub name: &'static str,
    pub category: Category,
    pub description: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    sample: fn(TenantId) -> Value,
}

const fn event<T: FactKind + Sample>(category: Category, description: &'static str) -> EventDefinition {
    EventDefinition { name: T::KIND, category, description, schema: schema_of::<T>, sample: sample_of::<T> }
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn sample_of<T: FactKind + Sample>(workspace: TenantId) -> Value {
    serde_json::to_value(T::sample(workspace)).unwrap_or_default()
}

/// Every event type, in the order in which they are listed.
pub static TYPES: [EventDefinition; 19] = {
    use Category::{Billing, Tenant, TenantUser};
    use billing::facts as paid;
    use tenancy::facts as known;
    [
        event::<known::TenantCreated>(Tenant, "A workspace was created"),
        event::<known::TenantUpdated>(Tenant, "Workspace fields were updated"),
        event::<known::TenantDeleted>(Tenant, "A workspace was deleted"),
        event::<known::TenantUserCreated>(TenantUser, "A user joined a workspace"),
        event::<known::TenantUserUpdated>(TenantUser, "A workspace user was updated"),
        event::<known::TenantUserDeleted>(TenantUser, "A user left or was removed"),
        event::<paid::SubscriptionCreated>(Billing, "A subscription was created"),
        event::<paid::SubscriptionPlanChanged>(Billing, "The workspace switched plans"),
        event::<paid::SubscriptionTrialStarted>(Billing, "A trial on a paid plan started"),
        event::<paid::SubscriptionTrialEnded>(Billing, "The trial elapsed without conversion"),
        event::<paid::SubscriptionPastDue>(Billing, "A renewal payment failed and the subscription is past due"),
        event::<paid::SubscriptionReactivated>(Billing, "A cancel-at-period-end subscription was reactivated"),
        event::<paid::SubscriptionCanceled>(
            Billing,
            "The subscription was canceled; `endsAt` in data is when access ends",
        ),
        event::<paid::PaymentSucceeded>(Billing, "An invoice was paid"),
        event::<paid::PaymentFailed>(Billing, "A renewal payment failed; `pastDueReason` drives messaging"),
        event::<paid::QuotaExhausted>(Billing, "A metered quota crossed 100% of the plan limit"),
        event::<paid::EntitlementsChanged>(Billing, "The workspace entitlement set changed"),
        event::<paid::UsageDriftResolved>(Billing, "Usage drift against the payment provider was auto-healed"),
        event::<paid::UsageDriftUnrecoverable>(Billing, "Drift healing exhausted its retries"),
    ]
};

impl EventDefinition {
    pub fn find(name: &str) -> Option<&'static Self> {
        TYPES.iter().find(|event| event.name == name)
    }

    /// What `data` of such an event may look like.
    pub fn sample_data(&self, workspace: TenantId) -> Value {
        (self.sample)(workspace)
    }
}

pub(crate) fn routes() -> web::Routes<crate::Signals> {
    http::routes().merge(live::routes())
}

/// `webhooks` of the OpenAPI document: each type with its envelope. The schemas stand where they are used.
pub fn openapi() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let entries = TYPES.iter().map(|event| {
        let data = (event.schema)(&mut generator);
        (event.name.to_owned(), operation(event, &data.to_value()))
    });
    Value::Object(entries.collect::<Map<String, Value>>())
}

fn operation(event: &EventDefinition, data: &Value) -> Value {
    let envelope = json!({
        "type": "object",
        "required": ["id", "type", "created", "app_id", "data"],
        "properties": {
            "id": { "type": "string", "description": "The same at every attempt: deduplicate by it" },
            "type": { "const": event.name },
            "created": { "type": "integer", "description": "Unix seconds: order by it" },
            "app_id": { "type": "string" },
            "workspace_id": { "type": "string" },
            "data": data,
        },
    });
    json!({ "post": {
        "tags": ["Events"],
        "summary": event.description,
        "operationId": format!("receive-{}", event.name),
        "requestBody": { "required": true, "content": { "application/json": { "schema": envelope } } },
        "responses": { "2XX": { "description": "Received. Any other answer, or none within 10 seconds, is retried" } },
    } })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The filter of an app names the same types, and the consumer reads them all.
    #[test]
    fn there_is_one_list_of_types() {
        let names: Vec<&str> = TYPES.iter().map(|event| event.name).collect();
        assert_eq!(names, tenancy::apps::EVENTS);
        assert!(names.iter().all(|name| crate::facts::CONSUMER.reads(name)));
    }

    /// A schema says of every member of a sample which type it has, and the sample has every member that it requires.
    #[test]
    fn every_sample_fits_its_schema() {
        let webhooks = openapi();
        for event in &TYPES {
            let data = event.sample_data(TenantId::from_u128(2));
            let schema = &webhooks[event.name]["post"]["requestBody"]["content"]["application/json"]["schema"];
            check(event.name, &data, &schema["properties"]["data"]);
            assert!(data.get("workspaceId").or(data.get("id")).is_some(), "{} names its workspace", event.name);
        }
    }

    fn check(place: &str, value: &Value, schema: &Value) {
        let types: BTreeSet<&str> = match &schema["type"] {
            Value::String(one) => BTreeSet::from([one.as_str()]),
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => panic!("{place} has a schema without a type: {schema}"),
        };
        let fits = |name: &str| match (name, value) {
            ("integer", Value::Number(number)) => number.is_i64() || number.is_u64(),
            ("number", Value::Number(_)) | ("string", Value::String(_)) | ("boolean", Value::Bool(_)) => true,
            ("object", Value::Object(_)) | ("array", Value::Array(_)) | ("null", Value::Null) => true,
            _ => false,
        };
        assert!(types.iter().any(|name| fits(name)), "{place} is {value}, and its schema is {schema}");
        if let Some(choices) = schema["enum"].as_array() {
            assert!(choices.contains(value), "{place} is {value}");
        }
        let Value::Object(members) = value else { return };
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(members.contains_key(required), "{place} lacks {required}");
        }
        for (name, member) in members {
            let schema = match &schema["properties"][name] {
                Value::Null => &schema["additionalProperties"],
                own => own,
            };
            check(&format!("{place}.{name}"), member, schema);
        }
    }
}
