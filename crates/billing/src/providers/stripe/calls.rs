//! The calls that are made, and as much of their answers as is used. Unknown members do no harm, missing ones little.

use kernel::{Money, TenantId, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::{
    client::{Account, Called},
    form::ApiForm,
    intents::{Bought, Overage},
};
use crate::{
    catalog::{Interval, taxes::Tax},
    subscriptions::Period,
};

/// Any object: its id.
#[derive(Clone, Debug, Deserialize)]
pub struct Object {
    pub id: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ApiCheckoutSession {
    pub id: String,
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default)]
    pub payment_status: Option<String>,
    /// An id, or the object itself.
    #[serde(default)]
    pub subscription: Value,
    #[serde(default)]
    pub customer: Value,
}

impl ApiCheckoutSession {
    pub fn is_paid(&self) -> bool {
        matches!(self.payment_status.as_deref(), Some("paid" | "no_payment_required"))
    }
}

/// An id, also of an object that was written out.
pub fn id_of(value: &Value) -> Option<String> {
    value.as_str().or_else(|| value.get("id").and_then(Value::as_str)).map(str::to_owned)
}

#[derive(Clone, Debug, Deserialize)]
pub struct ApiSubscription {
    pub id: String,
    #[serde(default)]
    pub status: String,
    /// An id, or the object itself.
    #[serde(default)]
    pub customer: Value,
    #[serde(default)]
    pub cancel_at_period_end: bool,
    #[serde(default)]
    pub current_period_start: Option<i64>,
    #[serde(default)]
    pub current_period_end: Option<i64>,
    #[serde(default)]
    pub items: Items,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Items {
    #[serde(default)]
    pub data: Vec<Item>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Item {
    pub id: String,
    /// An id, or the object itself.
    #[serde(default)]
    pub price: Value,
    #[serde(default)]
    pub current_period_start: Option<i64>,
    #[serde(default)]
    pub current_period_end: Option<i64>,
}

impl ApiSubscription {
    /// The period that is paid for: of the subscription, else of its first item.
    pub fn period(&self) -> Option<Period> {
        let item = self.items.data.first();
        let start = self.current_period_start.or(item.and_then(|item| item.current_period_start))?;
        let end = self.current_period_end.or(item.and_then(|item| item.current_period_end))?;
        Some(Period { start: Timestamp::from_seconds(start), end: Timestamp::from_seconds(end) })
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "canceled" | "incomplete_expired")
    }

    /// What the plan itself is paid by, among what is metered.
    pub fn plan_item(&self) -> Option<&Item> {
        let is_metered =
            |item: &&Item| item.price.pointer("/recurring/usage_type").is_some_and(|usage| usage == "metered");
        self.items.data.iter().find(|item| !is_metered(item))
    }

    /// What it is for.
    pub fn price(&self) -> Option<String> {
        self.plan_item().and_then(|item| id_of(&item.price))
    }
}

/// What is made once: the key is derived from what it is, so that another name makes another call.
fn once(kind: &str, form: &ApiForm) -> String {
    let digest: String = vault::hash_token(&form.encoded()).chars().take(32).collect();
    format!("tenantry-{kind}-{digest}")
}

impl Account {
    pub async fn create_customer(&self, name: &str, email: Option<&str>, tenant: TenantId) -> Called<Object> {
        let form = ApiForm::new()
            .set("name", name)
            .set_some("email", email)
            .set_members("metadata", [("tenantId", tenant.to_string())]);
        self.post("customers", &form, &once("customer", &form)).await
    }

    pub async fn create_product(&self, name: &str, plan: &str) -> Called<Object> {
        let form = ApiForm::new().set("name", name).set_members("metadata", [("planId", plan.to_owned())]);
        self.post("products", &form, &once("product", &form)).await
    }

    pub async fn create_price(&self, product: &str, price: &str, amount: Money, interval: Interval) -> Called<Object> {
        let form = ApiForm::new()
            .set("product", product)
            .set("currency", &amount.currency.code().to_ascii_lowercase())
            .set("unit_amount", &amount.minor)
            .set("recurring[interval]", &interval)
            .set_members("metadata", [("priceId", price.to_owned())]);
        self.post("prices", &form, &once("price", &form)).await
    }

    /// What units of a meter cost beyond a limit.
    pub(super) async fn create_overage_price(
        &self,
        product: &str,
        meter: &str,
        bought: &Bought,
        overage: &Overage,
    ) -> Called<Object> {
        let form = ApiForm::new()
            .set("product", product)
            .set("currency", &bought.amount().currency.code().to_ascii_lowercase())
            .set("recurring[interval]", &bought.interval)
            .set("recurring[usage_type]", "metered")
            .set("recurring[meter]", meter);
        let form = if overage.limit == 0 {
            form.set("billing_scheme", "per_unit").set("unit_amount_decimal", &overage.unit)
        } else {
            form.set("billing_scheme", "tiered")
                .set("tiers_mode", "graduated")
                .set("tiers[0][up_to]", &overage.limit)
                .set("tiers[0][unit_amount]", &0)
                .set("tiers[1][up_to]", "inf")
                .set("tiers[1][unit_amount_decimal]", &overage.unit)
        };
        self.post("prices", &form, &once("overage", &form)).await
    }

    pub async fn create_tax_rate(&self, tax: &Tax) -> Called<Object> {
        let form = ApiForm::new()
            .set("display_name", &tax.name)
            .set("percentage", &tax.percentage)
            .set("inclusive", &false)
            .set("country", &tax.country_code)
            .set_members("metadata", [("taxId", tax.id.to_string())]);
        self.post("tax_rates", &form, &once("tax", &form)).await
    }

    pub async fn create_session(&self, order: &Order<'_>, key: &str) -> Called<ApiCheckoutSession> {
        let metadata = [("tenantId", order.tenant.to_string()), ("planKey", order.plan.to_owned())];
        let mut form = ApiForm::new()
            .set("mode", "subscription")
            .set("customer", order.customer)
            .set("line_items[0][price]", order.price)
            .set("line_items[0][quantity]", &1)
            .set_list("line_items[0][dynamic_tax_rates]", order.tax_rates);
        for (place, price) in (1..).zip(order.overages) {
            form = form
                .set(&format!("line_items[{place}][price]"), price)
                .set_list(&format!("line_items[{place}][dynamic_tax_rates]"), order.tax_rates);
        }
        form = form
            .set("success_url", order.success_url)
            .set_some("cancel_url", order.cancel_url)
            .set("client_reference_id", &order.tenant)
            .set_members("metadata", metadata.clone())
            .set_members("subscription_data[metadata]", metadata);
        self.post("checkout/sessions", &form, key).await
    }

    pub async fn session(&self, id: &str) -> Called<ApiCheckoutSession> {
        self.get(&format!("checkout/sessions/{id}")).await
    }

    /// From now on it cannot be paid. Refused when it was paid before.
    pub async fn expire_session(&self, id: &str, key: &str) -> Called<ApiCheckoutSession> {
        self.post(&format!("checkout/sessions/{id}/expire"), &ApiForm::new(), key).await
    }

    pub async fn create_portal(&self, customer: &str, return_url: Option<&str>, key: &str) -> Called<PortalSession> {
        let form = ApiForm::new().set("customer", customer).set_some("return_url", return_url);
        self.post("billing_portal/sessions", &form, key).await
    }

    pub async fn subscription(&self, id: &str) -> Called<ApiSubscription> {
        self.get(&format!("subscriptions/{id}")).await
    }

    /// Without refund or proration.
    pub async fn cancel_at_period_end(&self, id: &str, cancel: bool, key: &str) -> Called<ApiSubscription> {
        let form = ApiForm::new().set("cancel_at_period_end", &cancel);
        self.post(&format!("subscriptions/{id}"), &form, key).await
    }

    pub async fn change_price(&self, id: &str, change: &PriceChange, key: &str) -> Called<ApiSubscription> {
        let PriceChange { item, price, removed, added, resume } = change;
        let mut form = ApiForm::new().set("items[0][id]", item).set("items[0][price]", price);
        for (place, item) in (1..).zip(removed) {
            form = form.set(&format!("items[{place}][id]"), item).set(&format!("items[{place}][deleted]"), &true);
        }
        for (place, price) in (1 + removed.len()..).zip(added) {
            form = form.set(&format!("items[{place}][price]"), price);
        }
        form = form
            .set("proration_behavior", "create_prorations")
            .set_some("cancel_at_period_end", resume.then_some("false"));
        self.post(&format!("subscriptions/{id}"), &form, key).await
    }

    /// At once.
    pub async fn end_subscription(&self, id: &str, key: &str) -> Called<ApiSubscription> {
        self.delete(&format!("subscriptions/{id}"), key).await
    }
}

/// What a subscription is to be paid by from now on.
pub struct PriceChange {
    /// What the plan itself is paid by, and its new price.
    pub item: String,
    pub price: String,
    /// What was metered for the plan before, and is for the new one.
    pub removed: Vec<String>,
    pub added: Vec<String>,
    /// It was about to end, and is not any more.
    pub resume: bool,
}

/// What is to be bought.
pub struct Order<'a> {
    pub tenant: TenantId,
    pub customer: &'a str,
    pub price: &'a str,
    pub plan: &'a str,
    /// What is metered beside it.
    pub overages: &'a [String],
    pub tax_rates: &'a [String],
    pub success_url: &'a str,
    pub cancel_url: Option<&'a str>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct PortalSession {
    pub url: String,
}

/// An address that events are sent to.
#[derive(Clone, Debug, Deserialize)]
pub struct Endpoint {
    /// What they are signed with; told once.
    #[serde(default)]
    pub secret: Option<String>,
}

/// The totals of a meter.
#[derive(Clone, Debug, Deserialize)]
pub struct Summaries {
    #[serde(default)]
    pub data: Vec<Summary>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Summary {
    #[serde(default)]
    pub aggregated_value: f64,
}

impl Account {
    pub async fn create_endpoint(&self, url: &str, events: &[&str], key: &str) -> Called<Endpoint> {
        let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
        let form = ApiForm::new().set("url", url).set_list("enabled_events", &events);
        self.post("webhook_endpoints", &form, key).await
    }

    /// A meter whose newest value counts: sending a total again replaces it.
    pub async fn create_meter(&self, event: &str, metric: &str) -> Called<Object> {
        let form = ApiForm::new()
            .set("display_name", metric)
            .set("event_name", event)
            .set("default_aggregation[formula]", "last")
            .set("customer_mapping[type]", "by_id")
            .set("customer_mapping[event_payload_key]", "stripe_customer_id")
            .set("value_settings[event_payload_key]", "value");
        self.post("billing/meters", &form, &once("meter", &form)).await
    }

    pub async fn send_total(&self, event: &str, customer: &str, total: i64, at: i64, key: &str) -> Called<Value> {
        let form = ApiForm::new()
            .set("event_name", event)
            .set("identifier", key)
            .set("timestamp", &at)
            .set("payload[stripe_customer_id]", customer)
            .set("payload[value]", &total);
        self.post("billing/meter_events", &form, key).await
    }

    /// Of whole minutes.
    pub async fn totals(&self, meter: &str, customer: &str, from: i64, until: i64) -> Called<Summaries> {
        let query = ApiForm::new().set("customer", customer).set("start_time", &from).set("end_time", &until);
        self.get(&format!("billing/meters/{meter}/event_summaries?{}", query.encoded())).await
    }
}
