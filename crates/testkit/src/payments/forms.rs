//! What each call takes: names, forms of values, what is required. Whatever is not listed is refused, as the real API does.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{api::Refusal, kept::Kept};

/// What a value has to look like.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Url,
    Flag,
    Whole,
    Decimal,
    /// An amount in minor units, with up to twelve decimals.
    Fine,
    Currency,
    Country,
    /// An object of this kind that exists.
    Id(&'static str),
    OneOf(&'static [&'static str]),
}

use Kind::{Country, Currency, Decimal, Fine, Flag, Id, OneOf, Text, Url, Whole};

/// A parameter; `*` in its name stands for any member, `#` for any number.
type Parameter = (&'static str, Kind, bool);

const METADATA: Parameter = ("metadata[*]", Text, false);

pub(super) fn parameters(path: &str) -> Option<&'static [Parameter]> {
    Some(match path {
        "customers" => &[("name", Text, false), ("email", Text, false), METADATA],
        "products" => &[("name", Text, true), METADATA],
        "prices" => &[
            ("product", Id("prod"), true),
            ("currency", Currency, true),
            ("unit_amount", Whole, false),
            ("unit_amount_decimal", Fine, false),
            ("billing_scheme", OneOf(&["per_unit", "tiered"]), false),
            ("tiers_mode", OneOf(&["graduated", "volume"]), false),
            ("tiers[#][up_to]", Text, false),
            ("tiers[#][unit_amount]", Whole, false),
            ("tiers[#][unit_amount_decimal]", Fine, false),
            ("recurring[interval]", OneOf(&["day", "week", "month", "year"]), true),
            ("recurring[usage_type]", OneOf(&["licensed", "metered"]), false),
            ("recurring[meter]", Id("mtr"), false),
            METADATA,
        ],
        "tax_rates" => &[
            ("display_name", Text, true),
            ("percentage", Decimal, true),
            ("inclusive", Flag, true),
            ("country", Country, false),
            METADATA,
        ],
        "checkout/sessions" => &[
            ("mode", OneOf(&["subscription"]), true),
            ("customer", Id("cus"), false),
            ("line_items[#][price]", Id("price"), true),
            ("line_items[#][quantity]", Whole, false),
            ("line_items[#][dynamic_tax_rates][#]", Id("txr"), false),
            ("success_url", Url, true),
            ("cancel_url", Url, false),
            ("client_reference_id", Text, false),
            METADATA,
            ("subscription_data[metadata][*]", Text, false),
        ],
        path if path.starts_with("checkout/sessions/") && path.ends_with("/expire") => &[],
        "billing_portal/sessions" => &[("customer", Id("cus"), true), ("return_url", Url, false)],
        "billing/meters" => &[
            ("display_name", Text, true),
            ("event_name", Text, true),
            ("default_aggregation[formula]", OneOf(&["sum", "count", "last"]), true),
            ("customer_mapping[type]", OneOf(&["by_id"]), false),
            ("customer_mapping[event_payload_key]", Text, false),
            ("value_settings[event_payload_key]", Text, false),
        ],
        "billing/meter_events" => &[
            ("event_name", Text, true),
            ("identifier", Text, false),
            ("timestamp", Whole, false),
            ("payload[stripe_customer_id]", Id("cus"), true),
            ("payload[value]", Whole, true),
        ],
        "webhook_endpoints" => &[("url", Url, true), ("enabled_events[#]", Text, true)],
        path if path.strip_prefix("subscriptions/").is_some_and(|id| !id.contains('/')) => &[
            ("cancel_at_period_end", Flag, false),
            ("items[#][id]", Id("si"), false),
            ("items[#][price]", Id("price"), false),
            ("items[#][deleted]", Flag, false),
            ("proration_behavior", OneOf(&["create_prorations", "none", "always_invoice"]), false),
        ],
        "event_summaries" => &[("customer", Id("cus"), true), ("start_time", Whole, true), ("end_time", Whole, true)],
        _ => return None,
    })
}

/// The form as an object, once every value is right.
pub(super) fn judge(kept: &Kept, parameters: &[Parameter], form: &[(String, String)]) -> Result<Value, Refusal> {
    let mut seen = std::collections::BTreeSet::new();
    for (name, value) in form {
        let general = generalized(name, parameters);
        let Some((_, kind, _)) = parameters.iter().find(|(known, ..)| *known == general) else {
            return Err(bad(name, &format!("Received unknown parameter: {name}")));
        };
        if !seen.insert(name) {
            return Err(bad(name, &format!("Given twice: {name}")));
        }
        fits(kept, *kind, value).map_err(|problem| bad(name, &format!("{problem}: {name}={value}")))?;
    }
    let given = |wanted: &str| form.iter().any(|(name, _)| generalized(name, parameters) == wanted);
    match parameters.iter().find(|(name, _, required)| *required && !given(name)) {
        Some((missing, ..)) => Err(bad(missing, &format!("Missing required param: {missing}."))),
        None => Ok(nested(form)),
    }
}

/// `line_items[0][price]` as `line_items[#][price]`, `metadata[x]` as `metadata[*]`.
fn generalized(name: &str, parameters: &[Parameter]) -> String {
    let parts = name.split('[').map(|part| {
        let inner = part.trim_end_matches(']');
        if part.ends_with(']') && !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_digit()) {
            "#]".to_owned()
        } else if part == "]" {
            // Lists without numbers, as some clients write them.
            "#]".to_owned()
        } else {
            part.to_owned()
        }
    });
    let numbered = parts.collect::<Vec<_>>().join("[");
    if parameters.iter().any(|(known, ..)| *known == numbered) {
        return numbered;
    }
    match numbered.rfind('[') {
        Some(at) => format!("{}[*]", &numbered[..at]),
        None => numbered,
    }
}

fn fits(kept: &Kept, kind: Kind, value: &str) -> Result<(), &'static str> {
    let is = |fits: bool, problem| if fits { Ok(()) } else { Err(problem) };
    match kind {
        Text => is(!value.is_empty() && value.len() <= 5_000, "Invalid string"),
        Url => is(url::Url::parse(value).is_ok_and(|url| url.has_host()), "Not a valid URL"),
        Flag => is(matches!(value, "true" | "false"), "Invalid boolean"),
        Whole => is(value.parse::<i64>().is_ok_and(|number| number >= 0), "Invalid integer"),
        Decimal => is(value.parse::<f64>().is_ok_and(|number| (0.0..=100.0).contains(&number)), "Invalid decimal"),
        Fine => {
            let decimals = value.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            is(value.parse::<f64>().is_ok_and(|number| number >= 0.0) && decimals <= 12, "Invalid decimal")
        }
        Currency => {
            let lower = value.len() == 3 && value.bytes().all(|byte| byte.is_ascii_lowercase());
            is(lower, "Invalid currency")
        }
        Country => is(value.len() == 2 && value.bytes().all(|byte| byte.is_ascii_uppercase()), "Invalid country"),
        Id(prefix) => {
            let right = value.starts_with(&format!("{prefix}_"));
            is(right && (prefix == "si" || kept.objects.contains_key(value)), "No such object")
        }
        OneOf(choices) => is(choices.contains(&value), "Invalid choice"),
    }
}

pub(super) fn bad(param: &str, message: &str) -> Refusal {
    Refusal { param: Some(param.to_owned()), ..Refusal::new(StatusCode::BAD_REQUEST, "invalid_request_error", message) }
}

/// `a[b]=c` as `{ "a": { "b": "c" } }`; numbers stay names.
fn nested(form: &[(String, String)]) -> Value {
    let mut object = Value::Object(Map::new());
    for (name, value) in form {
        let mut place = &mut object;
        for part in name.split(['[', ']']).filter(|part| !part.is_empty()) {
            place = &mut place[part];
        }
        *place = json!(value);
    }
    object
}
