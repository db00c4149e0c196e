//! What the provider keeps, and what happens to it there.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use kernel::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Trouble, api::whole};

pub(super) struct Kept {
    next_id: u32,
    pub(super) now: i64,
    /// Every object by its id.
    pub(super) objects: BTreeMap<String, Value>,
    /// What was answered to a key, and to which request.
    pub(super) answered: BTreeMap<String, (String, Value)>,
    pub(super) calls: Vec<String>,
    pub(super) events: Vec<Value>,
    /// Meter, customer, time and value.
    metered: Vec<(String, String, i64, i64)>,
    /// What is wrong with the totals it tells.
    pub(super) off_by: i64,
    pub(super) trouble: VecDeque<Trouble>,
    pub(super) sometimes: Option<(u64, Vec<Trouble>)>,
    chance: u64,
    /// Told of each call that is never answered.
    pub(super) hung: Arc<Notify>,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            next_id: 0,
            now: 1_800_000_000,
            objects: BTreeMap::new(),
            answered: BTreeMap::new(),
            calls: Vec::new(),
            events: Vec::new(),
            metered: Vec::new(),
            off_by: 0,
            trouble: VecDeque::new(),
            sometimes: None,
            chance: 0x9E37_79B9_7F4A_7C15,
            hung: Arc::default(),
        }
    }
}

impl Kept {
    fn new_id(&mut self, prefix: &str) -> String {
        self.next_id += 1;
        format!("{prefix}_{:08}", self.next_id)
    }

    pub(super) fn next_trouble(&mut self) -> Option<Trouble> {
        if let Some(planned) = self.trouble.pop_front() {
            return Some(planned);
        }
        let (one_in, kinds) = self.sometimes.as_ref()?;
        // A xorshift: the same run meets the same trouble.
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let hit = self.chance.is_multiple_of(*one_in);
        let place = usize::try_from(self.chance >> 33).unwrap_or_default() % kinds.len();
        hit.then(|| kinds[place])
    }

    fn tell(&mut self, kind: &str, object: &Value) {
        let id = self.new_id("evt");
        let event =
            json!({ "id": id, "object": "event", "type": kind, "created": self.now, "data": { "object": object } });
        self.events.push(event);
    }

    /// A new object of the kind that the path names.
    pub(super) fn create(&mut self, path: &str, mut object: Value) -> Value {
        let (prefix, kind) = match path {
            "customers" => ("cus", "customer"),
            "products" => ("prod", "product"),
            "prices" => ("price", "price"),
            "tax_rates" => ("txr", "tax_rate"),
            "checkout/sessions" => ("cs_test", "checkout.session"),
            "billing_portal/sessions" => ("bps", "billing_portal.session"),
            "billing/meters" => ("mtr", "billing.meter"),
            _ => ("we", "webhook_endpoint"),
        };
        let id = self.new_id(prefix);
        object["id"] = json!(id);
        object["object"] = json!(kind);
        object["created"] = json!(self.now);
        object["livemode"] = json!(false);
        match prefix {
            "price" => {
                let amount = object.get("unit_amount").map(whole);
                object["unit_amount"] = json!(amount);
            }
            "cs_test" => {
                object["status"] = json!("open");
                object["payment_status"] = json!("unpaid");
                object["url"] = json!(format!("https://pay.example/c/{id}"));
            }
            "bps" => object["url"] = json!(format!("https://pay.example/p/{id}")),
            "we" => object["secret"] = json!(format!("whsec_{id}")),
            "mtr" => object["status"] = json!("active"),
            _ => {}
        }
        self.objects.insert(id, object.clone());
        object
    }

    fn period(&self, price: &Value) -> (i64, i64) {
        let interval = self.objects[price.as_str().expect("a price")]["recurring"]["interval"].clone();
        let start = Timestamp::from_seconds(self.now);
        let end = match interval.as_str() {
            Some("day") => self.now + 86_400,
            Some("week") => self.now + 7 * 86_400,
            Some("year") => start.plus_months(12).as_seconds(),
            _ => start.plus_months(1).as_seconds(),
        };
        (self.now, end)
    }

    pub(super) fn pay(&mut self, session: &str) -> String {
        let checkout = self.objects.get(session).cloned().expect("a checkout session");
        assert_eq!(checkout["status"], "open", "nobody can pay it");
        let id = self.new_id("sub");
        let lines: Vec<Value> = checkout["line_items"].as_object().expect("lines").values().cloned().collect();
        let data: Vec<Value> = lines.iter().map(|line| self.new_item(&line["price"])).collect();
        let items = json!({ "object": "list", "data": data });
        let subscription = json!({
            "id": id, "object": "subscription", "status": "active", "cancel_at_period_end": false,
            "customer": checkout["customer"], "items": items, "metadata": checkout["subscription_data"]["metadata"],
        });
        self.objects.insert(id.clone(), subscription.clone());
        let checkout = self.objects.get_mut(session).expect("a checkout session");
        checkout["payment_status"] = json!("paid");
        checkout["status"] = json!("complete");
        checkout["subscription"] = json!(id);
        let checkout = checkout.clone();
        self.tell("customer.subscription.created", &subscription);
        self.tell_invoice(&subscription, true, 1);
        self.tell("checkout.session.completed", &checkout);
        id
    }

    pub(super) fn is_metered(&self, price: &Value) -> bool {
        let price = price.as_str().and_then(|id| self.objects.get(id));
        price.is_some_and(|price| price["recurring"]["usage_type"] == "metered")
    }

    fn new_item(&mut self, price: &Value) -> Value {
        let (id, (start, end)) = (self.new_id("si"), self.period(price));
        json!({
            "id": id, "object": "subscription_item", "price": self.objects[price.as_str().expect("an id")],
            "current_period_start": start, "current_period_end": end,
        })
    }

    fn tell_invoice(&mut self, subscription: &Value, paid: bool, attempt: u32) {
        let amount = whole(&subscription["items"]["data"][0]["price"]["unit_amount"]);
        // What could not be paid is tried again with the same invoice.
        let earlier = subscription["latest_invoice"].as_str().filter(|_| attempt > 1).map(str::to_owned);
        let id = earlier.unwrap_or_else(|| self.new_id("in"));
        if let Some(kept) = subscription["id"].as_str().and_then(|id| self.objects.get_mut(id)) {
            kept["latest_invoice"] = json!(id);
        }
        let invoice = json!({
            "id": id, "object": "invoice", "customer": subscription["customer"],
            "currency": subscription["items"]["data"][0]["price"]["currency"],
            "parent": { "subscription_details": { "subscription": subscription["id"] } },
            "amount_paid": if paid { amount } else { 0 }, "amount_due": amount, "attempt_count": attempt,
            "hosted_invoice_url": format!("https://pay.example/i/{id}"),
        });
        if paid {
            self.tell("invoice.payment_succeeded", &invoice);
        }
        self.tell(if paid { "invoice.paid" } else { "invoice.payment_failed" }, &invoice);
    }

    pub(super) fn renew(&mut self, id: &str, paid: bool, attempt: u32) {
        let subscription = self.objects[id].clone();
        let (start, end) = self.period(&subscription["items"]["data"][0]["price"]["id"]);
        let mut items = subscription["items"].clone();
        items["data"][0]["current_period_start"] = json!(start);
        items["data"][0]["current_period_end"] = json!(end);
        let status = if paid { "active" } else { "past_due" };
        self.change(id, &json!({ "status": status, "items": items }));
        self.tell_invoice(&subscription, paid, attempt);
    }

    /// The items of a subscription with some changed, removed and added; another interval begins another period.
    pub(super) fn with_items<'a>(
        &mut self,
        subscription: &Value,
        entries: impl Iterator<Item = &'a Value>,
    ) -> Option<Value> {
        let mut items = subscription["items"]["data"].as_array()?.clone();
        for entry in entries {
            let known = items.iter().position(|item| item["id"] == entry["id"]);
            match (entry.get("id"), known) {
                (Some(_), None) => return None,
                (Some(_), Some(place)) if entry["deleted"] == "true" => drop(items.remove(place)),
                (Some(_), Some(place)) => {
                    let item = &mut items[place];
                    let price = self.objects[entry["price"].as_str()?].clone();
                    if price["recurring"]["interval"] != item["price"]["recurring"]["interval"] {
                        let (start, end) = self.period(&price["id"]);
                        (item["current_period_start"], item["current_period_end"]) = (json!(start), json!(end));
                    }
                    item["price"] = price;
                }
                (None, _) => items.push(self.new_item(&entry["price"])),
            }
        }
        Some(json!({ "object": "list", "data": items }))
    }

    pub(super) fn change(&mut self, id: &str, members: &Value) {
        let object = self.objects.get_mut(id).expect("an object of the provider");
        for (name, value) in members.as_object().expect("members") {
            object[name] = value.clone();
        }
        let object = object.clone();
        let ended = object["status"] == "canceled";
        self.tell(if ended { "customer.subscription.deleted" } else { "customer.subscription.updated" }, &object);
    }

    pub(super) fn meter(&self, event: &Value) -> Option<String> {
        let meter = self.objects.iter().find(|(id, known)| id.starts_with("mtr_") && known["event_name"] == *event);
        meter.map(|(id, _)| id.clone())
    }

    pub(super) fn meter_event(&mut self, mut event: Value) -> Option<Value> {
        let meter = self.meter(&event["event_name"])?;
        let customer = event["payload"]["stripe_customer_id"].as_str()?.to_owned();
        self.metered.push((meter, customer, whole(&event["timestamp"]), whole(&event["payload"]["value"])));
        event["object"] = json!("billing.meter_event");
        Some(event)
    }

    /// The newest value of those that came last.
    pub(super) fn summary(&self, meter: &str, customer: &str, from: i64, until: i64) -> Option<i64> {
        let within =
            self.metered.iter().filter(|(of, by, at, _)| of == meter && by == customer && (from..until).contains(at));
        within.max_by_key(|(_, _, at, _)| *at).map(|(_, _, _, value)| value + self.off_by)
    }

    pub(super) fn newest_total(&self, customer: &str, metric: &str) -> Option<i64> {
        let named = |meter: &str| self.objects[meter]["display_name"] == metric;
        let of = self.metered.iter().filter(|(meter, by, ..)| by == customer && named(meter));
        of.max_by_key(|(_, _, at, _)| *at).map(|(_, _, _, value)| *value)
    }
}
