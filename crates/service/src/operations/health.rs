//! `/healthz`, `/readyz` and `/metrics`, for whoever watches the service.

use std::{sync::atomic::Ordering, time::Duration};

use kernel::{Code, Error, Result};
use schemars::JsonSchema;
use serde::Serialize;
use tenancy::callers::Operator;
use web::{Json, Routes, State, Text};

use super::metrics;
use crate::{Core, MIGRATIONS};

/// `/metrics` asks for the operator key unless the installation says otherwise.
pub fn routes(metrics_public: bool) -> Routes<Core> {
    let routes = Routes::new("Health")
        .get("/healthz", alive, "Whether the process is up")
        .always_admitted()
        .get("/readyz", ready, "Whether the storage answers, can be written and has a current schema")
        .always_admitted()
        .answers(503, "The storage cannot be reached or written, or is being migrated");
    let summary = "Metrics in the Prometheus text format";
    if metrics_public {
        routes.get("/metrics", open_metrics, summary).always_admitted()
    } else {
        routes.get("/metrics", guarded_metrics, summary).always_admitted()
    }
}

#[derive(Serialize, JsonSchema)]
struct Status {
    status: &'static str,
}

async fn alive() -> Result<Json<Status>> {
    Ok(Json(Status { status: "up" }))
}

#[derive(Serialize, JsonSchema)]
struct Readiness {
    status: &'static str,
    storage: String,
}

/// Whoever asks wants to know within a second; a database that is away is waited for much longer.
const PATIENCE: Duration = Duration::from_millis(800);

async fn ready(State(core): State<Core>) -> Result<Json<Readiness>> {
    if core.stopping.load(Ordering::Relaxed) {
        return Err(Error::new(Code::ShuttingDown, "This node is stopping.").with_retry_after(PATIENCE));
    }
    let asked = async {
        core.db.check_writable().await?;
        core.db.is_migrated(MIGRATIONS).await
    };
    let asked = tokio::time::timeout(PATIENCE, asked).await;
    let slow = || Error::new(Code::StorageUnavailable, "The storage does not answer.").with_retry_after(PATIENCE);
    if !asked.map_err(|_| slow())?? {
        return Err(Error::new(Code::StorageUnavailable, "The schema is being migrated."));
    }
    Ok(Json(Readiness { status: "ready", storage: core.db.engine().to_string() }))
}

async fn open_metrics(State(core): State<Core>) -> Result<Text> {
    Ok(Text(metrics::render(&core).await))
}

async fn guarded_metrics(_: Operator, State(core): State<Core>) -> Result<Text> {
    Ok(Text(metrics::render(&core).await))
}
