//! `/admin/apps/{app_id}/events/…` for the operator: settings and erasures.

use ::store::Tx;
use kernel::{AppId, Error, Label, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{apps, callers::Operator};
use web::{Accepted, Json, Path, Routes, State, Valid};

use super::{
    EventSettings, EventSettingsChange, change,
    erasure::{self, ErasureId, ErasureProgress},
    settings,
};
use crate::{EventLog, facts::EntityErasureBegun};

pub(crate) fn routes() -> Routes<EventLog> {
    Routes::new("Event log")
        .get("/admin/apps/{app_id}/events/settings", get, "Get how long an app's events are kept")
        .put("/admin/apps/{app_id}/events/settings", put, "Change how long an app's events are kept")
        .description(
            "Events, journeys and audit entries that are older are deleted in the background; buckets stay. Events that are \
             older when they are sent are refused.",
        )
        .delete("/admin/apps/{app_id}/events/entities/{entity_type}/{entity_value}", erase, "Erase an entity")
        .description(
            "In the background its value becomes `__erased__` in events, in counters and in the audit trail, and its journey \
             is deleted; counts stay. `entity_type` is a parameter's name (`userId`, `email`) or, where no parameter is \
             called so, its stem (`user`). In the service's own entries every identifier with that value is erased.",
        )
        .get("/admin/apps/{app_id}/events/erasures/{job_id}", progress, "Get how far an erasure is")
}

async fn get(_: Operator, State(log): State<EventLog>, Path(app): Path<AppId>) -> Result<Json<EventSettings>> {
    let read = move |tx: &mut Tx<'_>| {
        apps::get(tx, app)?;
        settings(tx, app)
    };
    Ok(Json(log.db.read(read).await?))
}

async fn put(
    caller: Operator,
    State(log): State<EventLog>,
    Path(app): Path<AppId>,
    Valid(wanted): Valid<EventSettingsChange>,
) -> Result<Json<EventSettings>> {
    let changed = log.db.by(&caller).write(move |tx| {
        apps::hold(tx, app)?;
        change(tx, app, wanted)
    });
    Ok(Json(changed.await?))
}

/// What a path names an entity of an app by.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct ErasurePath {
    app_id: AppId,
    entity_type: String,
    entity_value: String,
}

/// An erasure that was begun.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ErasureBegun {
    job_id: ErasureId,
}

async fn erase(
    caller: Operator,
    State(log): State<EventLog>,
    Path(ErasurePath { app_id: app, entity_type, entity_value }): Path<ErasurePath>,
) -> Result<Accepted<ErasureBegun>> {
    // What no parameter can be called is not found.
    let entity_type: Label = entity_type.parse().map_err(|_| Error::not_found("entity type"))?;
    let begun = log.db.by(&caller).write(move |tx| {
        apps::hold(tx, app)?;
        let id = erasure::begin(tx, app, &entity_type, &entity_value)?;
        // The value is left out: what is erased must not stand in the trail.
        spine::emit(tx, app, &EntityErasureBegun { job_id: id, entity_type: entity_type.to_string() })?;
        Ok(id)
    });
    Ok(Accepted(ErasureBegun { job_id: begun.await? }))
}

async fn progress(
    _: Operator,
    State(log): State<EventLog>,
    Path((app, id)): Path<(AppId, ErasureId)>,
) -> Result<Json<ErasureProgress>> {
    Ok(Json(log.db.snapshot(move |tx| erasure::progress(tx, app, id)).await?))
}
