//! `GET /event-log/names`, `GET /event-log/events` and `GET /event-log/events/{event_id}`: what there is.

use std::collections::BTreeSet;

use ::store::{Tx, args};
use kernel::{AppId, Error, Label, Result, Timestamp, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tenancy::callers::{AppCaller, EventRead};
use web::{Json, Page, Params, Path, State};

use crate::{
    EventLog, LoggedEventId,
    grain::Grain,
    names, require_own_app,
    scans::{Allowance, Stop},
    storage::{self, EventReader, KeptEvent, Order, Series},
};

/// A name is listed at about the price of so many rows.
const ROWS_OF_NAME: usize = 100;
const DEFAULT_LIMIT: u32 = 100;

/// The app whose events are listed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedApp {
    app_id: Words,
}

/// What is sent under a name.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedEvent {
    event_name: String,
    count: i64,
    /// Those that were ever counted or summed.
    parameters: BTreeSet<String>,
}

pub(super) async fn list_names(
    caller: AppCaller<EventRead>,
    State(log): State<EventLog>,
    Params(ListedApp { app_id }): Params<ListedApp>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<NamedEvent>>> {
    let app = caller.app_id();
    require_own_app(app, &app_id)?;
    let ask = move |tx: &mut Tx<'_>, allowance: &Allowance| named(tx, app, page, allowance);
    Ok(Json(log.scans.ask(&log.db, app, ask).await?))
}

const NAMES: &str = "SELECT id, name FROM event_names WHERE app_id = $1 ORDER BY name LIMIT $2 OFFSET $3";
const COUNT: &str = "SELECT CAST(coalesce(sum(events), 0) AS BIGINT) FROM event_buckets \
                     WHERE app_id = $1 AND name_id = $2 AND grain = $3";
const SUMMED: &str = "SELECT DISTINCT parameter_id FROM event_sums WHERE app_id = $1 AND name_id = $2 AND grain = $3";
const COUNTED: &str =
    "SELECT DISTINCT parameter_id FROM event_counts WHERE app_id = $1 AND name_id = $2 AND grain = $3";

fn named(tx: &mut Tx<'_>, app: AppId, page: Page, allowance: &Allowance) -> Result<Vec<NamedEvent>, Stop> {
    let grain = Grain::Month.number();
    let mut listed = Vec::new();
    for (id, event_name) in tx.all::<(i64, String)>(NAMES, &args![app, page.limit_or_all(), page.offset()])? {
        allowance.check(listed.len() * ROWS_OF_NAME)?;
        let (count,) = tx.one::<(i64,)>(COUNT, &args![app, id, grain])?;
        let mut ids: BTreeSet<i64> = BTreeSet::new();
        for statement in [SUMMED, COUNTED] {
            ids.extend(tx.all::<(i64,)>(statement, &args![app, id, grain])?.into_iter().map(|(id,)| id));
        }
        let ids: Vec<i64> = ids.into_iter().collect();
        let parameters = names::parameters_by_id(tx, app, &ids)?.into_values().collect();
        listed.push(NamedEvent { event_name, count, parameters });
    }
    Ok(listed)
}

/// Which events.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventsQuery {
    app_id: Words,
    event_name: Label,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    /// 100 unless given.
    #[schemars(range(min = 1, max = Page::MAX_LIMIT))]
    limit: Option<u32>,
    offset: Option<u32>,
}

/// An event as it was sent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RawEvent {
    /// `rawEventId` in the audit trail.
    id: LoggedEventId,
    app_id: AppId,
    event_name: String,
    timestamp: Timestamp,
    /// When it arrived.
    ingested_at: Timestamp,
    parameters: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ingest_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ingest_source: Option<String>,
}

impl RawEvent {
    pub(crate) fn id(&self) -> LoggedEventId {
        self.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.event_name
    }
}

impl RawEvent {
    pub(crate) fn of(app: AppId, name: &str, event: KeptEvent) -> Result<Self> {
        Ok(Self {
            id: event.id,
            app_id: app,
            event_name: name.to_owned(),
            timestamp: event.at,
            ingested_at: event.ingested_at,
            parameters: serde_json::from_str(&event.parameters).map_err(Error::internal)?,
            ingest_id: event.ingest_id,
            ingest_source: event.source,
        })
    }
}

pub(super) async fn list_events(
    caller: AppCaller<EventRead>,
    State(log): State<EventLog>,
    Params(query): Params<EventsQuery>,
) -> Result<Json<Vec<RawEvent>>> {
    let app = caller.app_id();
    let (from, to) = (query.from.unwrap_or(Timestamp::MIN), query.to.unwrap_or(Timestamp::MAX));
    if from > to {
        return Err(Error::invalid("from", "must not be after to"));
    }
    require_own_app(app, &query.app_id)?;
    let page = Page { limit: query.limit.or(Some(DEFAULT_LIMIT)), offset: query.offset };
    let ask = move |tx: &mut Tx<'_>, allowance: &Allowance| {
        let Some(name) = names::find(tx, app, &query.event_name)? else { return Ok(Vec::new()) };
        let mut reader = EventReader::new(Order::NewestFirst(Series { app, name }), (from, to), allowance);
        let found = newest(tx, &mut reader, page)?;
        Ok(found.into_iter().map(|event| RawEvent::of(app, &query.event_name, event)).collect::<Result<_>>()?)
    };
    Ok(Json(log.scans.ask(&log.db, app, ask).await?))
}

/// Events that are passed over are read too, a part at a time.
const PASSED_AT_ONCE: usize = 1_000;

fn newest(tx: &mut Tx<'_>, reader: &mut EventReader<'_>, page: Page) -> Result<Vec<KeptEvent>, Stop> {
    let mut to_pass = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    while to_pass > 0 {
        let passed = reader.page(tx, to_pass.min(PASSED_AT_ONCE))?;
        if passed.is_empty() {
            return Ok(Vec::new());
        }
        to_pass -= passed.len();
    }
    reader.page(tx, usize::try_from(page.limit_or_all()).unwrap_or(usize::MAX))
}

pub(super) async fn get_event(
    caller: AppCaller<EventRead>,
    State(log): State<EventLog>,
    Path(id): Path<LoggedEventId>,
    Params(ListedApp { app_id }): Params<ListedApp>,
) -> Result<Json<RawEvent>> {
    let app = caller.app_id();
    require_own_app(app, &app_id)?;
    let ask = move |tx: &mut Tx<'_>, allowance: &Allowance| {
        let event = storage::find(tx, app, id, allowance)?.ok_or_else(|| Error::not_found("event"))?;
        let names = names::by_id(tx, app, &[event.name])?;
        let name = names.get(&event.name).cloned().unwrap_or_default();
        Ok(RawEvent::of(app, &name, event)?)
    };
    Ok(Json(log.scans.ask(&log.db, app, ask).await?))
}
