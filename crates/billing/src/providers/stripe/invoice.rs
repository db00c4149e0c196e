//! The invoice in a signed event: what was paid or is due, and why it was not paid. Versions of the API differ in where they put
//! things; every place is looked at. Pure.

use kernel::{Currency, Money};
use serde::Deserialize;
use serde_json::Value;

use super::{calls::id_of, events::is_id};

/// As much of an invoice as is used.
#[derive(Debug, Deserialize)]
pub struct Invoice {
    pub id: String,
    #[serde(default)]
    customer: Value,
    #[serde(default)]
    amount_paid: i64,
    #[serde(default)]
    amount_due: i64,
    #[serde(default)]
    currency: String,
    #[serde(default)]
    attempt_count: u32,
    #[serde(default)]
    pub hosted_invoice_url: Option<String>,
    #[serde(flatten)]
    rest: Value,
}

/// Where the subscription's id may be.
const SUBSCRIPTION: [&str; 2] = ["/subscription", "/parent/subscription_details/subscription"];
/// Where the reason for a failure may be.
const REASON: [&str; 7] = [
    "/payment_intent/last_payment_error/decline_code",
    "/payment_intent/last_payment_error/code",
    "/last_payment_error/decline_code",
    "/last_payment_error/code",
    "/charge/failure_code",
    "/last_finalization_error/decline_code",
    "/last_finalization_error/code",
];
const LAST4: [&str; 4] = [
    "/payment_intent/last_payment_error/payment_method/card/last4",
    "/last_payment_error/payment_method/card/last4",
    "/charge/payment_method_details/card/last4",
    "/default_payment_method/card/last4",
];
/// Lists of taxes, whose amounts are added.
const TAXES: [&str; 2] = ["/total_taxes", "/total_tax_amounts"];

impl Invoice {
    pub fn customer(&self) -> Option<String> {
        id_of(&self.customer)
    }

    pub fn subscription(&self) -> Option<String> {
        SUBSCRIPTION.iter().find_map(|place| self.rest.pointer(place).and_then(id_of)).filter(|id| is_id(id))
    }

    fn money(&self, minor: i64) -> Option<Money> {
        let currency = self.currency.to_ascii_uppercase().parse::<Currency>().ok()?;
        Some(Money::from_minor(minor, currency))
    }

    pub fn paid(&self) -> Option<Money> {
        self.money(self.amount_paid)
    }

    pub fn due(&self) -> Option<Money> {
        self.money(self.amount_due)
    }

    /// Included in what was paid.
    pub fn tax(&self) -> Option<Money> {
        let listed = TAXES.iter().find_map(|place| self.rest.pointer(place).and_then(Value::as_array));
        let sum = listed.filter(|taxes| !taxes.is_empty()).map(|taxes| {
            let amounts = taxes.iter().filter_map(|tax| tax.get("amount").and_then(Value::as_i64));
            amounts.fold(0i64, i64::saturating_add)
        });
        let minor = self.rest.get("tax").and_then(Value::as_i64).or(sum)?;
        self.money(minor)
    }

    pub fn attempt(&self) -> u32 {
        self.attempt_count.max(1)
    }

    pub fn reason(&self) -> &str {
        self.first_text(&REASON).unwrap_or("payment_failed")
    }

    pub fn card_last4(&self) -> Option<&str> {
        self.first_text(&LAST4)
    }

    fn first_text(&self, places: &[&str]) -> Option<&str> {
        places.iter().find_map(|place| self.rest.pointer(place).and_then(Value::as_str))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn invoice(value: Value) -> Invoice {
        serde_json::from_value(value).expect("an invoice")
    }

    #[test]
    fn every_version_is_read() {
        let old = invoice(json!({
            "id": "in_1", "customer": "cus_1", "subscription": "sub_1", "amount_paid": 3451, "amount_due": 3451,
            "currency": "eur", "tax": 551, "attempt_count": 2, "charge": { "failure_code": "expired_card" },
        }));
        assert_eq!((old.subscription().as_deref(), old.customer().as_deref()), (Some("sub_1"), Some("cus_1")));
        assert_eq!(old.paid().map(Money::to_major), Some("34.51".parse().expect("a number")));
        assert_eq!((old.tax().map(|tax| tax.minor), old.attempt(), old.reason()), (Some(551), 2, "expired_card"));
        let new = invoice(json!({
            "id": "in_1", "customer": { "id": "cus_1" }, "currency": "eur", "amount_due": 2900,
            "parent": { "subscription_details": { "subscription": "sub_1" } },
            "total_taxes": [{ "amount": 500 }, { "amount": 51 }],
        }));
        assert_eq!((new.subscription().as_deref(), new.customer().as_deref()), (Some("sub_1"), Some("cus_1")));
        assert_eq!((new.tax().map(|tax| tax.minor), new.attempt(), new.reason()), (Some(551), 1, "payment_failed"));
        assert_eq!((new.due().map(|due| due.minor), new.card_last4()), (Some(2900), None));
    }

    #[test]
    fn an_invoice_of_another_sort_is_no_problem() {
        let odd = invoice(json!({ "id": "in_1", "currency": "zzz?", "subscription": null, "total_taxes": "x" }));
        assert!(odd.paid().is_none() && odd.subscription().is_none() && odd.tax().is_none());
    }
}
