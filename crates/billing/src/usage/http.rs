//! `/usage` for members and for backends.

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{AppId, Code, Error, Label, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Tx;
use tenancy::callers::{AnyMember, TenantCaller, TenantRead, TenantWrite, UserOrKey};
use web::{Created, Describe, Failure, Json, Operation, Path, Routes, State, Success, Valid, Validate};

use super::{
    QuotaSnapshot, Recorded, SyncAnswer, UsageEventId, UsageRow, UsageSignal, UsageSnapshot,
    batch::ingest_batch,
    rules::{MAX_VALUE, NewUsage, OUT_OF_TIME, is_in_time},
};
use crate::{Billing, entitlements::Entitlements};

/// Of a batch.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;

pub fn routes() -> Routes<Billing> {
    Routes::new("Usage")
        .post("/usage/ingest", ingest, "Record usage")
        .description(
            "Durable when it answers, and never refused for the plan's state or the quota's level. With `Prefer: \
             return=representation` the answer also has the `quota` and the `entitlements` as this event left them.",
        )
        .post("/usage/ingest/batch", ingest_batch, "Record up to 1,000 events")
        .description(
            "`{ events: […] }` or a bare list. Each entry is answered in its place: as by the single operation, or with its \
             `error` while the others are stored. A key without `x-tenant-id` names the workspace in each entry.",
        )
        .body_limit(MAX_BATCH_BYTES)
        .get("/usage/quota/{metric}", quota, "Get how a metric stands against its quota")
        .description("`null` when the plan has no quota for the metric.")
        .put("/usage/gauge/{metric}", set_gauge, "Set what a metric stands at")
        .description("The next period begins with it, unless something else is recorded after it.")
        .get("/usage/{workspace_id}", snapshot, "Get what the workspace used in the present period")
        .post("/usage/sync/{workspace_id}", sync, "Send the present period's usage to the payment provider")
        .description("A repeat replaces what was sent before. Without a subscription at the provider there is nothing to send.")
        .delete("/usage/events/{event_id}", void, "Take a mistaken event out of its period")
        .description("For keys and tokens of the whole app only. Its idempotency key stays used.")
}

/// Whether the answer tells how the workspace stands afterwards: `Prefer: return=representation`.
pub struct WantsRepresentation(pub bool);

impl<S: Sync> FromRequestParts<S> for WantsRepresentation {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let values = parts.headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        let mut preferences = values.flat_map(|value| value.split(',')).map(str::trim);
        Ok(Self(preferences.any(|preference| preference.eq_ignore_ascii_case("return=representation"))))
    }
}

impl Describe for WantsRepresentation {
    fn describe(operation: &mut Operation) {
        operation.header("prefer", false, "`return=representation` adds quota and entitlements to the answer");
    }
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngestAnswer {
    pub accepted: bool,
    /// Whether the event was counted before; `eventId` is the first one's then.
    pub deduped: bool,
    pub event_id: UsageEventId,
    /// When asked for; `null` when the plan has no quota for the metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<QuotaSnapshot>")]
    pub quota: Option<Option<QuotaSnapshot>>,
    /// When asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entitlements: Option<Entitlements>,
}

impl From<Recorded> for IngestAnswer {
    fn from(recorded: Recorded) -> Self {
        let Recorded { id, deduped, representation, .. } = recorded;
        let (quota, entitlements) = representation.map(|seen| (seen.quota, seen.entitlements)).unzip();
        Self { accepted: true, deduped, event_id: id, quota, entitlements }
    }
}

/// An event of a workspace, if it lies where it may.
pub(super) fn row(
    (app, tenant): (AppId, TenantId),
    new: NewUsage,
    now: Timestamp,
    represent: bool,
) -> Result<UsageRow> {
    if new.timestamp.is_some_and(|at| !is_in_time(at, now)) {
        return Err(Error::invalid("timestamp", OUT_OF_TIME));
    }
    Ok(UsageRow {
        app,
        tenant,
        metric: new.metric.into(),
        value: new.value.unwrap_or(1),
        idempotency_key: new.idempotency_key.map(Into::into),
        at: new.timestamp,
        represent,
    })
}

/// 403 for members while the app takes usage from keys only.
pub(super) async fn may_record<U, K>(billing: &Billing, caller: &UserOrKey<U, K>) -> Result<()> {
    let UserOrKey::User(user, _) = caller else { return Ok(()) };
    let app = billing.tenancy.apps.find(user.app()).await?.ok_or_else(|| Error::not_found("app"))?;
    if app.profile.usage_from_users {
        return Ok(());
    }
    Err(Error::new(Code::Forbidden, "This app takes usage from its own backends only."))
}

async fn ingest(
    caller: UserOrKey<AnyMember, TenantWrite>,
    State(billing): State<Billing>,
    WantsRepresentation(represent): WantsRepresentation,
    Valid(new): Valid<NewUsage>,
) -> Result<Created<IngestAnswer>> {
    may_record(&billing, &caller).await?;
    let row = row((caller.app_id(), caller.tenant()), new, billing.tenancy.db.clock().now(), represent)?;
    Ok(Created(billing.tell(billing.usage.store(row).await?).into()))
}

impl Billing {
    /// Tells streams of an event that was stored.
    pub(super) fn tell(&self, mut recorded: Recorded) -> Recorded {
        if let Some(signal) = recorded.signal.take() {
            signal.send(&self.usage_signals);
        }
        recorded
    }
}

/// A metric as a path names it; what cannot be one has no quota and no gauge.
fn metric(name: &str) -> Result<Label> {
    name.parse().map_err(|problem: String| Error::invalid("metric", problem))
}

async fn quota(
    caller: UserOrKey<AnyMember, TenantRead>,
    State(billing): State<Billing>,
    Path(name): Path<String>,
) -> Result<Json<Option<QuotaSnapshot>>> {
    let (app, tenant, metric) = (caller.app_id(), caller.tenant(), metric(&name)?);
    let read = move |tx: &mut Tx<'_>| super::quota(tx, app, tenant, &metric);
    Ok(Json(billing.tenancy.db.snapshot(read).await?))
}

/// The body of `PUT /usage/gauge/{metric}`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub struct GaugeValue {
    #[schemars(range(min = 0, max = MAX_VALUE))]
    value: i64,
}

impl Validate for GaugeValue {}

/// Against its quota, or alone.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum GaugeView {
    Limited(QuotaSnapshot),
    Unlimited { metric: String, used: i64 },
}

async fn set_gauge(
    caller: UserOrKey<TenantWrite, TenantWrite>,
    State(billing): State<Billing>,
    Path(name): Path<String>,
    Valid(GaugeValue { value }): Valid<GaugeValue>,
) -> Result<Json<GaugeView>> {
    may_record(&billing, &caller).await?;
    let (app, tenant, metric) = (caller.app_id(), caller.tenant(), metric(&name)?);
    let set = billing.tenancy.db.by(&caller).write(move |tx| super::set_gauge(tx, app, tenant, &metric, value)).await?;
    let quota = set.quota();
    let signal = UsageSignal { app, tenant, metric: set.metric.clone(), value, used: value, quota: quota.clone() };
    signal.send(&billing.usage_signals);
    Ok(Json(match quota {
        Some(quota) => GaugeView::Limited(quota),
        None => GaugeView::Unlimited { metric: set.metric, used: set.used },
    }))
}

/// 403 for a workspace that is not the caller's.
fn own<U, K>(caller: &UserOrKey<U, K>, named: &str) -> Result<(AppId, TenantId)> {
    if named.parse() == Ok(caller.tenant()) {
        return Ok((caller.app_id(), caller.tenant()));
    }
    Err(Error::new(Code::Forbidden, "This is not the caller's workspace."))
}

async fn snapshot(
    caller: UserOrKey<TenantRead, TenantRead>,
    State(billing): State<Billing>,
    Path(workspace): Path<String>,
) -> Result<Json<UsageSnapshot>> {
    let (app, tenant) = own(&caller, &workspace)?;
    let read = move |tx: &mut Tx<'_>| super::snapshot(tx, app, tenant);
    Ok(Json(billing.tenancy.db.snapshot(read).await?))
}

async fn sync(
    caller: UserOrKey<TenantWrite, TenantWrite>,
    State(billing): State<Billing>,
    Path(workspace): Path<String>,
) -> Result<Json<SyncAnswer>> {
    let (app, tenant) = own(&caller, &workspace)?;
    Ok(Json(billing.sync(&caller, app, tenant).await?))
}

async fn void(
    caller: TenantCaller<TenantWrite>,
    State(billing): State<Billing>,
    Path(event): Path<UsageEventId>,
) -> Result<Success> {
    caller.for_whole_app()?;
    let (app, tenant) = (caller.app_id(), caller.tenant());
    billing.tenancy.db.by(&caller).write(move |tx| super::void(tx, app, tenant, event)).await?;
    Ok(Success)
}
