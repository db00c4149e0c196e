//! JSON bodies: refused in the caller's words, or read the same again from what was written.
#![no_main]

use kernel::{Code, Timestamp, Words};
use libfuzzer_sys::fuzz_target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use web::Validate;

/// As in the tests of `web`, whose corpus is the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Order {
    name: Words,
    count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    #[serde(default)]
    gift: bool,
    #[serde(default)]
    lines: Vec<Line>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    #[serde(flatten)]
    way: Way,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Line {
    product: String,
    size: Size,
    tags: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Way {
    carrier: Option<String>,
    zone: Option<i64>,
}

impl Validate for Order {}

fuzz_target!(|bytes: &[u8]| match web::from_json::<Order>(bytes) {
    Ok(order) => {
        // Times are written with milliseconds, whatever they were read with.
        let order = Order { due: None, ..order };
        let written = serde_json::to_vec(&order).expect("JSON");
        assert_eq!(web::from_json::<Order>(&written).expect("reads what was written"), order);
    }
    Err(error) => {
        assert!(matches!(error.code(), Code::MalformedJson | Code::ValidationFailed), "{error:?}");
        assert!(error.details().len() <= 101);
    }
});
