//! What the published document says about a body is what the server accepts. Every request schema is taken from the
//! document, and the edge values of each member are sent to the real route: what fits is not refused, and what does not
//! fit is answered with 400 and the member's name. A new body is covered as soon as it is registered.

use std::{collections::BTreeSet, sync::Mutex};

use http::Method;
use serde_json::{Map, Value, json};
use testkit::{
    Answer, Caller, TestApp,
    members::{member, workspace},
    on_both_engines,
    routes::path,
};

on_both_engines!(the_document_and_the_server_agree_on_every_edge);

/// Bodies that are right, where required members alone do not make one.
const BASES: &[(&str, &str)] = &[
    ("POST /account/subscription/change", r#"{ "planKey": "free" }"#),
    ("POST /account/subscription/checkout", r#"{ "planKey": "free" }"#),
    ("POST /account/app/checkoutId", r#"{ "planKey": "free" }"#),
    ("POST /admin/apps/{app_id}/export", r#"{ "passphrase": "correct horse" }"#),
    ("POST /admin/test-clock", r#"{ "advanceSeconds": 0 }"#),
    ("POST /event-log", r#"{ "appId": "a", "eventName": "a", "timestamp": "2020-01-31T09:30:00Z", "parameters": {} }"#),
    ("POST /account/tenant/upload/prepare", r#"{ "fileName": "a", "contentType": "a/b" }"#),
    ("POST /auth/token", r#"{ "client_id": "x", "grant_type": "refresh_token", "refresh_token": "x" }"#),
    ("POST /auth/auth/startMfaUserSetup", r#"{ "session": "x", "mode": "sdk", "phoneNumber": "+4930123456" }"#),
    ("POST /auth/auth/finishMfaUserSetup", r#"{ "session": "x", "mode": "sdk", "mfaCode": "123456" }"#),
    ("POST /auth/auth/challengeMfa", r#"{ "session": "x", "mode": "sdk" }"#),
    ("POST /auth/auth/commitMfaCode", r#"{ "session": "x", "mode": "sdk", "mfaCode": "123456" }"#),
    ("POST /auth/auth/resetUserMfaSetup", r#"{ "session": "x", "mode": "sdk", "backupCode": "123456" }"#),
];

/// Members whose right form is not enough: they must also name something that exists, or go with another member.
const NOT_BY_FORM_ALONE: &[(&str, &str)] = &[
    ("POST /account/api-token/app", "privileges"),
    ("POST /account/api-token/app", "expireAt"),
    ("POST /account/api-token/me/app", "privileges"),
    ("POST /account/api-token/me/app", "expireAt"),
    ("POST /account/api-token/workspace", "privileges"),
    ("POST /account/api-token/workspace", "expireAt"),
    ("POST /account/scim/token", "expireAt"),
    ("POST /account/federation/connection", "signedRequest"),
    ("POST /account/federation/connection", "loginUrl"),
    ("POST /account/federation/connection", "certificate"),
    ("POST /account/federation/metadata", "metadataXml"),
    ("POST /account/federation/metadata", "metadataUrl"),
    ("POST /account/payments/plan", "trial"),
    ("POST /account/import/tenantsFromFile", "fileUrl"),
    ("POST /account/import/validateTenantsFromFile", "fileUrl"),
    ("POST /account/tenant/upload/prepare", "contentType"),
    ("POST /account/role", "privileges"),
    ("POST /account/app/checkoutId", "planKey"),
    ("POST /account/app/checkoutId", "priceOffer"),
    ("POST /account/tenant/{tenant_id}/checkoutId", "planKey"),
    ("POST /account/subscription/change", "planKey"),
    ("POST /account/subscription/checkout", "planKey"),
    ("POST /account/subscription/checkout", "priceOffer"),
    ("POST /account/subscription/change", "priceOffer"),
    ("POST /account/subscription/select", "planKey"),
    ("POST /billing/subscriptions", "planSlug"),
    ("POST /billing/trial/start", "planSlug"),
    ("POST /event-log", "timestamp"),
    ("POST /event-log/query", "from"),
    ("POST /usage/ingest", "timestamp"),
    ("POST /account/tenant", "plan"),
    ("POST /account/tenant/user", "role"),
    ("POST /admin/apps/{app_id}/explain", "entitlement"),
    ("POST /admin/apps/{app_id}/export", "key"),
    ("POST /admin/apps/{app_id}/export", "passphrase"),
    ("POST /admin/apps/{app_id}/webhook/recover", "since"),
    ("POST /admin/apps/{app_id}/flags", "state"),
    ("POST /admin/apps/{app_id}/flags", "valueType"),
    ("POST /admin/apps/{app_id}/flags", "rule"),
    ("POST /admin/apps/{app_id}/flags", "onValue"),
    ("POST /admin/apps/{app_id}/flags", "offValue"),
    ("POST /admin/apps/{app_id}/flags/apply", "flags"),
    ("POST /admin/apps/{app_id}/flags/apply", "groups"),
    ("POST /admin/apps/{app_id}/flag-groups", "branches"),
    ("POST /auth/auth/challengeMfa", "session"),
    ("POST /auth/auth/commitMfaCode", "session"),
    ("POST /auth/auth/finishMfaUserSetup", "session"),
    ("POST /auth/auth/resetUserMfaSetup", "session"),
    ("POST /auth/auth/startMfaUserSetup", "phoneNumber"),
    ("POST /auth/auth/startMfaUserSetup", "session"),
    ("POST /auth/token", "refresh_token"),
    ("POST /auth/token/{grant_type}/{app_id}", "code"),
    // What fits takes the operator key away from this test.
    ("POST /admin/operator-key", "key"),
    ("POST /admin/operator-key", "now"),
    ("POST /admin/test-clock", "advanceSeconds"),
    ("POST /admin/test-clock", "now"),
    ("PUT /account/app", "operatorTenantId"),
    ("PUT /admin/apps/{app_id}", "operatorTenantId"),
    ("PUT /communication/email/template/{templateName}", "type"),
    ("PUT /auth/auth/password", "password"),
];

/// Read by parsers of their own: a context is taken as it comes, and entries of a batch are judged one by one.
const CONTEXTS: &[&str] = &["EvaluationContext", "OpenFeatureRequest", "UsageBatch", "EventBatch", "ImportBatch"];

/// Texts of each form: the shortest and the longest that fit, and some that do not.
fn texts_of_format(format: &str) -> (Vec<String>, Vec<String>) {
    let long = |start: &str, length: usize| format!("{start}{}", "a".repeat(length - start.len()));
    let (good, bad): (Vec<String>, Vec<String>) = match format {
        "email" => {
            let host = ["a".repeat(60), "b".repeat(60), "c".repeat(60)].join(".");
            let longest = format!("{}@{host}.example", "l".repeat(254 - host.len() - 9));
            assert_eq!(longest.len(), 254);
            let beyond = longest.replace(".example", ".examples");
            (vec!["a@b".into(), longest], vec!["a@".into(), format!("{}@b", "l".repeat(65)), beyond])
        }
        "web-url" => {
            let other =
                ["http://localhost:65535", "https://[2001:db8::1]/", "https://10.1.2.3", "https://bücher.example/é"];
            let good = other.iter().map(|url| (*url).to_owned()).chain([long("https://a/", 2_048)]).collect();
            (good, vec!["a.example".into(), "ftp://a.example".into(), long("https://a/", 2_049)])
        }
        "redirect-uri" => {
            let good = vec!["com.example.app:/cb".into(), "http://127.0.0.1:65535/".into(), long("https://a/", 2_048)];
            (good, vec!["/cb".into(), "https://a/#b".into(), "https://u@a/".into(), long("https://a/", 2_049)])
        }
        "web-origin" => {
            let good = vec!["https://a.example".into(), "http://[::1]:65535".into()];
            (good, vec!["*".into(), "https://a.example/b".into(), "https://a.example:65536".into()])
        }
        "hostname" => {
            let longest = [&"a".repeat(63)[..], &"b".repeat(63), &"c".repeat(63), &"d".repeat(61)].join(".");
            (vec!["a".into(), longest.clone()], vec!["-a".into(), format!("{longest}d"), "a..b".into()])
        }
        "phone-number" => (vec!["+4930123456".into(), "+49 30 123456".into()], vec!["030 123456".into(), "+1".into()]),
        "date-time" => (
            vec!["2030-01-31T09:30:00+02:00".into(), "9999-12-31T23:59:59Z".into()],
            vec!["2030-01-31".into(), "10000-01-01T00:00:00Z".into(), "2030-02-30T00:00:00Z".into()],
        ),
        "country-code" => (vec!["DE".into(), "de".into()], vec!["XX".into(), "DEU".into()]),
        "currency-code" => (vec!["EUR".into(), "eur".into()], vec!["XXQ".into(), "EU".into()]),
        "css" => (vec!["a{}".into()], vec!["</style>".into(), "<!--".into()]),
        "pem-certificate" => (vec![crate::account::federation::CERTIFICATE.into()], vec!["x".into()]),
        "pem-private-key" => (vec![crate::account::federation::KEY.into()], vec!["x".into()]),
        other => panic!("this test knows no text of the format {other}"),
    };
    (good, bad)
}

/// A text for each pattern there is, to be made longer by repeating its last character, and one that does not fit.
fn text_of_pattern(pattern: &str) -> (String, Option<String>) {
    if let Some(prefix) = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix("_[0-7][0-9a-hjkmnp-tv-z]{25}$"))
    {
        return (format!("{prefix}_{:026}", 7), Some(format!("{prefix}_{:025}", 7)));
    }
    let wrong = match pattern {
        r"[^\s\uFEFF]" => " \n ",
        "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$" | "^[A-Za-z0-9._:-]{1,128}$" => "a b",
        "^[!-~]*$" | r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$" => "a b",
        "^([!-~]([ -~]*[!-~])?)?$" => " between spaces ",
        pattern if pattern.contains(r"\x7f-\x9f") => "a\nb",
        other => panic!("this test knows no text of the pattern {other}"),
    };
    ("a".to_owned(), Some(wrong.to_owned()))
}

/// `?name=x` for the query parameters that an operation asks for.
fn required_query(operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let required = parameters.filter(|parameter| parameter["in"] == "query" && parameter["required"] == true);
    let pairs: Vec<String> = required.filter_map(|one| one["name"].as_str()).map(|name| format!("{name}=x")).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

struct Document(Value);

/// A value for a member, and whether it fits.
type Edge = (Value, bool);

impl Document {
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => self.resolve(self.0.pointer(&reference[1..]).expect("a reference leads somewhere")),
            None => schema,
        }
    }

    /// The schema without "or null", and whether null fits.
    fn plain<'a>(&'a self, schema: &'a Value) -> (&'a Value, bool) {
        let schema = self.resolve(schema);
        let null = types(schema).contains(&"null");
        match schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
            Some(choices) if choices.iter().all(|choice| choice.get("const").is_none()) => {
                let (nulls, real): (Vec<_>, Vec<_>) = choices.iter().partition(|choice| choice["type"] == "null");
                (self.resolve(real[0]), !nulls.is_empty())
            }
            _ => (schema, null),
        }
    }

    /// The least that fits.
    fn sample(&self, schema: &Value) -> Value {
        let (schema, _) = self.plain(schema);
        if let Some(values) = values(schema) {
            return values[0].clone();
        }
        match types(schema).first().copied() {
            Some("object") => {
                let members = schema["properties"].as_object().cloned().unwrap_or_default();
                let required = schema["required"].as_array().cloned().unwrap_or_default();
                let names = required.iter().filter_map(Value::as_str);
                names.map(|name| (name.to_owned(), self.sample(&members[name]))).collect::<Map<_, _>>().into()
            }
            Some("array") => {
                let length = schema["minItems"].as_u64().unwrap_or(0);
                (0..length).map(|_| self.sample(&schema["items"])).collect()
            }
            Some("boolean") => json!(true),
            Some("integer" | "number") => {
                schema.get("minimum").filter(|least| least.as_f64() >= Some(-1.0)).cloned().unwrap_or(json!(1))
            }
            Some("string") => texts(schema).0[0].clone().into(),
            _ => json!("anything"),
        }
    }

    fn edges(&self, schema: &Value) -> Vec<Edge> {
        let (schema, nullable) = self.plain(schema);
        let mut edges = vec![(Value::Null, nullable || (types(schema).is_empty() && values(schema).is_none()))];
        if let Some(values) = values(schema) {
            edges.extend(values.iter().filter(|value| !value.is_null()).map(|value| (value.clone(), true)));
            edges.extend([(json!("no such value"), false), (json!(7), false), (json!([]), false)]);
            return edges;
        }
        let types = types(schema);
        let wrong = [("string", json!("a")), ("boolean", json!(true)), ("array", json!([])), ("object", json!({}))];
        if !types.is_empty() {
            edges.extend(wrong.into_iter().filter(|(name, _)| !types.contains(name)).map(|(_, value)| (value, false)));
        }
        match types.first().copied() {
            Some("boolean") => edges.extend([(json!(true), true), (json!(false), true), (json!(1), false)]),
            Some(kind @ ("integer" | "number")) => edges.extend(numbers(schema, kind)),
            Some("string") => {
                let (good, bad) = texts(schema);
                edges.extend(good.into_iter().map(|text| (text.into(), true)));
                edges.extend(bad.into_iter().map(|text| (text.into(), false)));
                edges.extend((!types.contains(&"number") && !types.contains(&"integer")).then_some((json!(7), false)));
            }
            Some("array") => {
                let of = |count: u64| Value::from(vec![self.sample(&schema["items"]); count as usize]);
                let (least, most) = (schema["minItems"].as_u64().unwrap_or(0), schema["maxItems"].as_u64());
                edges.push((of(least), true));
                edges.extend(least.checked_sub(1).map(|fewer| (of(fewer), false)));
                edges.extend(most.map(|most| (of(most + 1), false)));
            }
            Some("object") => edges.extend(objects(schema)),
            _ => {}
        }
        edges
    }

    /// Sends the edges of everything inside `schema`, which stands at `place` in the body.
    async fn walk(&self, route: &Route<'_>, schema: &Value, place: &[Step]) -> usize {
        let (schema, _) = self.plain(schema);
        let mut sent = 0;
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, of_member) in schema["properties"].as_object().into_iter().flatten() {
            let inner = [place, &[Step::Member(name.clone())]].concat();
            if required.contains(&name.as_str()) {
                sent += route.expect(&inner, None, false).await;
            }
            for (value, fits) in self.edges(of_member) {
                sent += route.expect(&inner, Some(value), fits).await;
            }
            sent += Box::pin(self.walk_inside(route, of_member, &inner)).await;
        }
        sent
    }

    async fn walk_inside(&self, route: &Route<'_>, schema: &Value, place: &[Step]) -> usize {
        let (plain, _) = self.plain(schema);
        // Schemas may contain themselves.
        if place.len() > 6 {
            return 0;
        }
        match types(plain).first().copied() {
            Some("object") => self.walk(route, plain, place).await,
            Some("array") => {
                let inner = [place, &[Step::Entry]].concat();
                let mut sent = 0;
                for (value, fits) in self.edges(&plain["items"]) {
                    sent += route.expect(&inner, Some(value), fits).await;
                }
                sent + Box::pin(self.walk_inside(route, &plain["items"], &inner)).await
            }
            _ => 0,
        }
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn values(schema: &Value) -> Option<Vec<Value>> {
    let of = |schema: &Value| match (&schema["enum"], schema.get("const")) {
        (Value::Array(values), _) => Some(values.clone()),
        (_, Some(value)) => Some(vec![value.clone()]),
        _ => None,
    };
    let described = schema["oneOf"].as_array().map(|choices| choices.iter().map(of).collect::<Option<Vec<_>>>());
    of(schema).or_else(|| described.flatten().map(|lists| lists.concat()))
}

fn texts(schema: &Value) -> (Vec<String>, Vec<String>) {
    if let Some(format) = schema["format"].as_str() {
        return texts_of_format(format);
    }
    let (start, wrong) = schema["pattern"].as_str().map_or_else(|| ("a".to_owned(), None), text_of_pattern);
    let mut bad: Vec<String> = wrong.into_iter().chain(["a\0".to_owned()]).collect();
    let mut good = vec![start.clone()];
    let longest = schema["maxLength"].as_u64().or_else(|| start.eq("a").then_some(128)).map(|length| length as usize);
    if let Some(longest) = longest {
        good.push("a".repeat(longest));
        bad.push("a".repeat(longest + 1));
        if takes_any_letter(schema) {
            let bytes = schema["x-maxBytes"].as_u64().map_or(usize::MAX, |bytes| bytes as usize);
            good.push(widest(longest.min(bytes / 4)));
        }
    }
    match schema["minLength"].as_u64().unwrap_or(0) as usize {
        0 if schema.get("pattern").is_none() => good.push(String::new()),
        0 => {}
        least => {
            good[0] = "a".repeat(least);
            bad.push("a".repeat(least - 1));
        }
    }
    (good, bad)
}

fn takes_any_letter(schema: &Value) -> bool {
    let pattern = schema["pattern"].as_str();
    pattern.is_none_or(|pattern| pattern == r"[^\s\uFEFF]" || pattern.contains(r"\x7f-\x9f"))
}

/// Letters of four bytes each in an order that no engine can compress: the most that so many characters can weigh.
fn widest(length: usize) -> String {
    let mut state = 7_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_u32(0x2_0000 + (state >> 16) % 0xA000).expect("an ideograph")
    };
    (0..length).map(|_| letter()).collect()
}

fn numbers(schema: &Value, kind: &str) -> Vec<Edge> {
    let mut edges = vec![(json!("1"), false)];
    if kind == "integer" {
        edges.push((json!(1.5), false));
    }
    // Beyond these a number is no longer exact in JSON.
    let exact = |bound: &&Value| bound.as_f64().is_some_and(|bound| bound.abs() < 9e15);
    if let Some(least) = schema.get("minimum").filter(exact).and_then(Value::as_f64) {
        edges.extend([(number(least), true), (number(least - 1.0), false)]);
    }
    if let Some(most) = schema.get("maximum").filter(exact).and_then(Value::as_f64) {
        edges.extend([(number(most), true), (number(most + 1.0), false)]);
    }
    edges
}

fn number(value: f64) -> Value {
    json!(value as i64)
}

fn objects(schema: &Value) -> Vec<Edge> {
    let mut edges = Vec::new();
    let entry = if schema["additionalProperties"]["type"] == "boolean" { json!(true) } else { json!("a") };
    let filled = |count: u64| (0..count).map(|n| (format!("k{n}"), entry.clone())).collect::<Map<_, _>>();
    if let Some(most) = schema["maxProperties"].as_u64() {
        edges.extend([(filled(most).into(), true), (filled(most + 1).into(), false)]);
    }
    if let Some(most) = schema["x-maxBytes"].as_u64().map(|most| most as usize) {
        let of = |length: usize| json!({ "k": "a".repeat(length - json!({ "k": "" }).to_string().len()) });
        edges.extend([(of(most), true), (of(most + 1), false)]);
    }
    if let Some(longest) = schema["propertyNames"]["maxLength"].as_u64().map(|length| length as usize) {
        let named = |length: usize| Value::from(Map::from_iter([("k".repeat(length), entry.clone())]));
        edges.extend([(named(longest), true), (named(longest + 1), false)]);
    }
    edges
}

#[derive(Clone)]
enum Step {
    Member(String),
    Entry,
}

/// `prices[0].amount`.
fn field(place: &[Step]) -> String {
    place.iter().fold(String::new(), |field, step| match step {
        Step::Member(name) if field.is_empty() => name.clone(),
        Step::Member(name) => format!("{field}.{name}"),
        Step::Entry => format!("{field}[0]"),
    })
}

/// One operation: who may call it, and a body that it takes.
struct Route<'a> {
    name: String,
    caller: Caller,
    method: Method,
    path: String,
    schema: &'a Value,
    document: &'a Document,
    base: Value,
    disagreements: &'a Mutex<Vec<String>>,
}

impl Route<'_> {
    /// The base with something else, or nothing, at the place.
    fn body(&self, place: &[Step], value: Option<Value>) -> Value {
        let mut body = self.base.clone();
        self.put(&mut body, self.schema, place, value);
        body
    }

    fn put(&self, body: &mut Value, schema: &Value, place: &[Step], value: Option<Value>) {
        let (schema, _) = self.document.plain(schema);
        let (step, rest) = place.split_first().expect("a place is somewhere");
        let (inside, of_inside) = match step {
            Step::Member(name) => {
                if !body.is_object() {
                    *body = self.document.sample(schema);
                }
                let members = body.as_object_mut().expect("an object");
                if rest.is_empty() {
                    match value {
                        Some(value) => drop(members.insert(name.clone(), value)),
                        None => drop(members.shift_remove(name)),
                    }
                    return;
                }
                (members.entry(name.clone()).or_insert(Value::Null), &schema["properties"][name])
            }
            Step::Entry => {
                *body = json!([self.document.sample(&schema["items"])]);
                (&mut body[0], &schema["items"])
            }
        };
        match (rest, value) {
            ([], Some(value)) => *inside = value,
            (rest, value) => self.put(inside, of_inside, rest, value),
        }
    }

    async fn expect(&self, place: &[Step], value: Option<Value>, fits: bool) -> usize {
        let (field, first) = (field(place), field(&place[..1]));
        if fits && NOT_BY_FORM_ALONE.contains(&(self.name.as_str(), first.as_str())) {
            return 0;
        }
        let body = self.body(place, value);
        let answer = self.caller.call(self.method.clone(), &self.path, Some(body.clone())).await;
        let refused = answer.status() == 400 && names(&answer, &field);
        if refused == fits || answer.status() == 500 {
            let shown: String = body.to_string().chars().take(300).collect();
            let expected = if fits { "fits" } else { "does not fit" };
            let told = format!("{}: {field} {expected} in {shown}, and the answer is {answer:?}", self.name);
            self.disagreements.lock().expect("nobody panicked").push(told);
        }
        1
    }
}

/// Whether a refusal is about the field or something inside of it.
fn names(answer: &Answer, field: &str) -> bool {
    let body = answer.json();
    let details = body["details"].as_array().cloned().unwrap_or_default();
    let described = body["error_description"].as_str().unwrap_or_default();
    details.iter().filter_map(|one| one["field"].as_str()).any(|told| told.starts_with(field))
        || described.contains(field)
}

async fn the_document_and_the_server_agree_on_every_edge(app: TestApp) {
    let document = Document(app.anon().get("/openapi.json").await.expect(200).json());
    let tenant = workspace(&app).await;
    let owner = member(&app, tenant, "OWNER").await;
    let user = app.anon().with_access_token(app.app_id(), &owner.access_token(&app, "openid TENANT_READ TENANT_WRITE"));
    let (mut sent, mut seen, disagreements) = (0, BTreeSet::new(), Mutex::default());
    for (template, operations) in document.0["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            let Some(schema) = operation.pointer("/requestBody/content/application~1json/schema") else { continue };
            let caller = match operation["security"].to_string() {
                security if security.contains("operatorKey") => app.operator(),
                security if security.contains("apiKey") => app.key().in_workspace(tenant),
                security if security.contains("accessToken") => user.clone(),
                _ => app.anon(),
            };
            let reference = schema["$ref"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
            if CONTEXTS.contains(&reference) {
                continue;
            }
            let method: Method = method.to_uppercase().parse().expect("a method");
            let name = format!("{method} {template}");
            let base = BASES.iter().find(|(named, _)| *named == name).map(|(_, body)| body.parse().expect("JSON"));
            let base = base.unwrap_or_else(|| document.sample(schema));
            let path = format!("{}{}", path(&app, template), required_query(operation));
            seen.insert(name.clone());
            let route =
                Route { name, caller, method, path, schema, document: &document, base, disagreements: &disagreements };
            sent += document.walk(&route, schema, &[]).await;
        }
    }
    let disagreements = disagreements.into_inner().expect("nobody panicked");
    assert!(disagreements.is_empty(), "{} disagreements:\n{}", disagreements.len(), disagreements.join("\n"));
    assert!(seen.len() >= 60 && sent >= 2_000, "{sent} requests to {} operations are too few", seen.len());
    app.drain().await;
}
