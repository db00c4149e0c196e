//! `GET /event-log/audit`, `GET /event-log/audit/workspace` and `GET /admin/apps/{app_id}/events/audit/verify`.

use ::store::Tx;
use kernel::{AppId, Error, Label, Result, Timestamp, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tenancy::{
    apps,
    callers::{AppCaller, EventRead, Operator, OwnerOrAdmin, UserCaller},
};
use web::{Json, Params, Path, Routes, State};

use super::{
    chain::Verdict,
    download::download,
    trail::{FoundEntry, WantedEntries, Whose, find},
};
use crate::{EventLog, LoggedEventId, require_own_app, scans::Allowance};

const DEFAULT_LIMIT: u32 = 100;

pub(crate) fn routes() -> Routes<EventLog> {
    Routes::new("Event log")
        .get("/event-log/audit", audit, "List the audit trail, newest first")
        .description(
            "Events with an identifier, or with `email`, `plan`, `billingSource` or `origin`, and the service's own, whose \
             names begin with `tenantry.`. `action` is an event's name, `actor` any of `actorId`, `userId`, `user_id` and \
             `email`, `target` any other identifier; all that are given must match.",
        )
        .answers(503, TOO_WIDE)
        .get("/event-log/audit/workspace", workspace, "List what was done in the caller's workspace, newest first")
        .description("The service's own entries about it. For OWNERs and ADMINs.")
        .answers(503, TOO_WIDE)
        .get("/event-log/audit/workspace/download", download, "Download the trail of the caller's workspace, newest first")
        .description(
            "Answers up to 2,000 entries as a file. While there are more, the header `x-next-cursor` has the `cursor` of the \
             next part; the parts can be put together. In CSV a text that a spreadsheet would take for a formula begins with an \
             apostrophe. For OWNERs and ADMINs.",
        )
        .answers(503, TOO_WIDE)
        .get("/admin/apps/{app_id}/events/audit/verify", verify, "Verify the service's own entries")
        .description(
            "They form a chain of digests. `ok` is false when an entry was changed, removed or put in; `firstBad` is the \
             first such entry, as far as it can be named. Erased values and entries beyond the retention are not missed.",
        )
        .answers(409, "There are so many entries that they are still being verified; asking again waits for the result")
}

const TOO_WIDE: &str = "The question takes over ten seconds";

/// Which entries of the trail.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrailQuery {
    /// An event's name.
    action: Option<Label>,
    /// Who did it.
    actor: Option<Words>,
    /// To whom or what it was done.
    target: Option<Words>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    /// 100 unless given.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
    offset: Option<u32>,
}

/// The app whose trail it is.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrailApp {
    app_id: Words,
}

/// An entry of the trail.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    timestamp: Timestamp,
    event_name: String,
    /// Identifiers and listed fields of the event; of the service's own entries all members.
    extracted: Map<String, Value>,
    raw_event_id: LoggedEventId,
}

impl From<FoundEntry> for AuditEntry {
    fn from(found: FoundEntry) -> Self {
        let FoundEntry { at, name, id, extracted } = found;
        Self { timestamp: at, event_name: name, extracted, raw_event_id: id }
    }
}

async fn audit(
    caller: AppCaller<EventRead>,
    State(log): State<EventLog>,
    Params(TrailApp { app_id }): Params<TrailApp>,
    Params(query): Params<TrailQuery>,
) -> Result<Json<Vec<AuditEntry>>> {
    require_own_app(caller.app_id(), &app_id)?;
    entries(&log, caller.app_id(), Whose::App, query).await
}

async fn workspace(
    UserCaller(user, _): UserCaller<OwnerOrAdmin>,
    State(log): State<EventLog>,
    Params(query): Params<TrailQuery>,
) -> Result<Json<Vec<AuditEntry>>> {
    entries(&log, user.app(), Whose::Workspace(user.tenant()), query).await
}

async fn verify(_: Operator, State(log): State<EventLog>, Path(app): Path<AppId>) -> Result<Json<Verdict>> {
    log.db.read(move |tx| apps::get(tx, app)).await?;
    Ok(Json(log.verifications.verify(&log.db, &log.folder, app).await?))
}

async fn entries(log: &EventLog, app: AppId, whose: Whose, query: TrailQuery) -> Result<Json<Vec<AuditEntry>>> {
    let TrailQuery { action, actor, target, from, to, limit, offset } = query;
    let (from, to) = (from.unwrap_or(Timestamp::MIN), to.unwrap_or(Timestamp::MAX));
    if from > to {
        return Err(Error::invalid("from", "must not be after to"));
    }
    let places = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let wanted = WantedEntries {
        action: action.map(Into::into),
        actor: actor.map(Into::into),
        target: target.map(Into::into),
        limit: places(limit.unwrap_or(DEFAULT_LIMIT)),
        offset: places(offset.unwrap_or(0)),
        ..WantedEntries::all(whose, from, to)
    };
    let ask = move |tx: &mut Tx<'_>, allowance: &Allowance| find(tx, app, &wanted, allowance);
    let found = log.scans.ask(&log.db, app, ask).await?;
    Ok(Json(found.into_iter().map(Into::into).collect()))
}
