//! `GET /`, `/account` and `/tick`: which service answers here, and what time it thinks it is.

use std::time::Duration;

use kernel::{Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use web::{Json, Params, Routes, State};

use crate::{Core, VERSION};

pub fn routes() -> Routes<Core> {
    Routes::new("Diagnostics")
        .get("/", greet, "Get the service's name, version and documentation")
        .get("/account", greet, "The same, at the account area's address")
        .get("/tick", tick, "The service's time, after an optional wait")
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Greeting {
    service: &'static str,
    version: &'static str,
    time: Timestamp,
    documentation: String,
}

async fn greet(State(core): State<Core>) -> Result<Json<Greeting>> {
    Ok(Json(Greeting {
        service: "tenantry",
        version: VERSION,
        time: core.db.clock().now(),
        documentation: format!("{}/docs", core.base_url),
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Wait {
    /// Milliseconds to wait before answering; at most 10,000 are waited, and none while many others wait.
    sleep_ms: Option<u64>,
}

const LONGEST_WAIT: u64 = 10_000;

/// Each wait keeps a place that requests with work to do could have; nobody needs more at once.
static WAITING: Semaphore = Semaphore::const_new(32);

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Tick {
    service: &'static str,
    version: &'static str,
    time: Timestamp,
    slept_ms: u64,
}

async fn tick(State(core): State<Core>, Params(wait): Params<Wait>) -> Result<Json<Tick>> {
    let asked = wait.sleep_ms.unwrap_or(0).min(LONGEST_WAIT);
    let slept_ms = match WAITING.try_acquire() {
        Ok(_place) => {
            tokio::time::sleep(Duration::from_millis(asked)).await;
            asked
        }
        Err(_) => 0,
    };
    Ok(Json(Tick { service: "tenantry", version: VERSION, time: core.db.clock().now(), slept_ms }))
}
