//! The calls: who asks, how, with which key; and what is answered.

use http::{HeaderMap, Method, StatusCode, request::Parts};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{
    SECRET_KEY,
    forms::{self, bad},
    kept::Kept,
};

/// Why a call is refused.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) param: Option<String>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, kind: &'static str, message: &str) -> Self {
        Self { status, kind, message: message.to_owned(), param: None }
    }
}

fn invalid(status: StatusCode, message: &str) -> Refusal {
    Refusal::new(status, "invalid_request_error", message)
}

fn missing(id: &str) -> Refusal {
    Refusal { param: Some("id".to_owned()), ..invalid(StatusCode::NOT_FOUND, &format!("No such object: '{id}'")) }
}

type Form = Vec<(String, String)>;

pub(super) fn act(kept: &mut Kept, parts: &Parts, body: &[u8]) -> Result<Value, Refusal> {
    let Some(path) = parts.uri.path().strip_prefix("/v1/") else {
        return Err(invalid(StatusCode::NOT_FOUND, "Unrecognized request URL"));
    };
    check_headers(&parts.headers)?;
    match parts.method {
        Method::GET if !body.is_empty() => Err(invalid(StatusCode::BAD_REQUEST, "a GET with a body")),
        Method::GET => get(kept, path, parts.uri.query().unwrap_or_default()),
        Method::POST => write(kept, parts, path, body),
        Method::DELETE => delete(kept, path),
        _ => Err(invalid(StatusCode::METHOD_NOT_ALLOWED, "Unrecognized request method")),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Credentials and the version of the API, which is a date, perhaps with a name.
fn check_headers(headers: &HeaderMap) -> Result<(), Refusal> {
    if header(headers, "authorization") != format!("Bearer {SECRET_KEY}") {
        return Err(invalid(StatusCode::UNAUTHORIZED, "Invalid API Key provided"));
    }
    let version = header(headers, "stripe-version");
    let date = version.split('.').next().unwrap_or_default();
    let is_date = date.len() == 10 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_date { Ok(()) } else { Err(invalid(StatusCode::BAD_REQUEST, "Invalid Stripe API version")) }
}

/// A write: a form with a key. The same key answers the same, and refuses anything else.
fn write(kept: &mut Kept, parts: &Parts, path: &str, body: &[u8]) -> Result<Value, Refusal> {
    if !header(&parts.headers, "content-type").starts_with("application/x-www-form-urlencoded") {
        return Err(invalid(StatusCode::BAD_REQUEST, "the body must be a form"));
    }
    let key = header(&parts.headers, "idempotency-key").to_owned();
    if key.is_empty() || key.len() > 255 {
        return Err(invalid(StatusCode::BAD_REQUEST, "an idempotency key of 1 to 255 characters is missing"));
    }
    let request = format!("{path}?{}", String::from_utf8_lossy(body));
    if let Some((before, answer)) = kept.answered.get(&key) {
        if *before == request {
            return Ok(answer.clone());
        }
        let message =
            "Keys for idempotent requests can only be used with the same parameters they were first used with.";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "idempotency_error", message));
    }
    let Some(parameters) = forms::parameters(path) else {
        return Err(invalid(StatusCode::NOT_FOUND, "Unrecognized request URL"));
    };
    let form: Form = form_urlencoded::parse(body).into_owned().collect();
    let judged = forms::judge(kept, parameters, &form)?;
    let answer = post(kept, path, judged)?;
    kept.answered.insert(key, (request, answer.clone()));
    kept.calls.push(format!("POST {path}"));
    Ok(answer)
}

fn post(kept: &mut Kept, path: &str, form: Value) -> Result<Value, Refusal> {
    if let Some(id) = path.strip_prefix("subscriptions/") {
        return update(kept, id, &form);
    }
    if let Some(id) = path.strip_prefix("checkout/sessions/").and_then(|rest| rest.strip_suffix("/expire")) {
        return expire(kept, id);
    }
    match path {
        "billing/meter_events" => kept.meter_event(form).ok_or_else(|| bad("event_name", "No active meter found")),
        "billing/meters" if kept.meter(&form["event_name"]).is_some() => {
            Err(bad("event_name", "An active meter with the same event name already exists"))
        }
        "prices" => {
            let has_amount = form.get("unit_amount").or(form.get("unit_amount_decimal")).is_some();
            let is_metered = form["recurring"]["usage_type"] == "metered";
            if has_amount == (form["billing_scheme"] == "tiered") {
                return Err(bad("unit_amount", "Missing required param: unit_amount, or tiers instead of it."));
            }
            if is_metered != form["recurring"].get("meter").is_some() {
                return Err(bad("recurring[meter]", "A metered price, and no other, must be backed by a meter."));
            }
            Ok(kept.create(path, form))
        }
        "checkout/sessions" => {
            for line in form["line_items"].as_object().into_iter().flat_map(|lines| lines.values()) {
                let is_metered = kept.is_metered(&line["price"]);
                if is_metered == line.get("quantity").is_some() {
                    return Err(bad("line_items[0][quantity]", "A quantity is for prices that are not metered."));
                }
            }
            Ok(kept.create(path, form))
        }
        _ => Ok(kept.create(path, form)),
    }
}

fn expire(kept: &mut Kept, id: &str) -> Result<Value, Refusal> {
    let known = kept.objects.get_mut(id).filter(|_| id.starts_with("cs_")).ok_or_else(|| missing(id))?;
    if known["status"] != "open" {
        let message = "Only Checkout Sessions with a status in [\"open\"] can be expired.";
        return Err(invalid(StatusCode::BAD_REQUEST, message));
    }
    known["status"] = json!("expired");
    Ok(known.clone())
}

fn update(kept: &mut Kept, id: &str, form: &Value) -> Result<Value, Refusal> {
    let known = kept.objects.get(id).filter(|_| id.starts_with("sub_")).ok_or_else(|| missing(id))?.clone();
    if known["status"] == "canceled" {
        return Err(invalid(
            StatusCode::BAD_REQUEST,
            "A canceled subscription can only update its cancellation_details",
        ));
    }
    let mut changed = json!({});
    if let Some(cancel) = form.get("cancel_at_period_end") {
        changed["cancel_at_period_end"] = json!(cancel == "true");
    }
    if let Some(entries) = form["items"].as_object() {
        changed["items"] =
            kept.with_items(&known, entries.values()).ok_or_else(|| bad("items[0][id]", "No such item"))?;
    }
    kept.change(id, &changed);
    Ok(kept.objects[id].clone())
}

fn delete(kept: &mut Kept, path: &str) -> Result<Value, Refusal> {
    let id = path.strip_prefix("subscriptions/").unwrap_or_default();
    if kept.objects.get(id).is_none_or(|known| known["status"] == "canceled") {
        return Err(missing(id));
    }
    kept.change(id, &json!({ "status": "canceled" }));
    kept.calls.push(format!("DELETE {path}"));
    Ok(kept.objects[id].clone())
}

fn get(kept: &mut Kept, path: &str, query: &str) -> Result<Value, Refusal> {
    if let Some(meter) = path.strip_prefix("billing/meters/").and_then(|rest| rest.strip_suffix("/event_summaries")) {
        let form: Form = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let parameters = forms::parameters("event_summaries").unwrap_or_default();
        let asked = forms::judge(kept, parameters, &form)?;
        if ["start_time", "end_time"].iter().any(|name| whole(&asked[*name]) % 60 != 0) {
            return Err(bad("start_time", "start_time and end_time must be aligned with minute boundaries"));
        }
        kept.objects.get(meter).ok_or_else(|| missing(meter))?;
        let customer = asked["customer"].as_str().unwrap_or_default();
        let total = kept.summary(meter, customer, whole(&asked["start_time"]), whole(&asked["end_time"]));
        let entry =
            |value: i64| json!({ "object": "billing.meter_event_summary", "meter": meter, "aggregated_value": value });
        let data: Vec<Value> = total.map(entry).into_iter().collect();
        return Ok(json!({ "object": "list", "data": data, "has_more": false }));
    }
    if !query.is_empty() {
        return Err(invalid(StatusCode::BAD_REQUEST, "Received unknown parameters in the query"));
    }
    let id = path.rsplit('/').next().unwrap_or_default().to_owned();
    let found = kept.objects.get(&id).cloned().ok_or_else(|| missing(&id))?;
    kept.calls.push(format!("GET {path}"));
    Ok(found)
}

pub(super) fn whole(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_str().and_then(|text| text.parse().ok())).unwrap_or_default()
}
