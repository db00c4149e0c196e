//! `/account/tenant/{tenant_id}/overrides`: what the app grants one workspace instead of its plan's values.

use std::collections::BTreeMap;

use kernel::{AppId, Error, Problems, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Tx;
use tenancy::{
    callers::{AppCaller, TenantWrite},
    workspaces,
};
use web::{Json, Patch, Path, Routes, State, Success, Valid, Validate};

use super::rules::{Entitlements, Overrides, QuotaOverride};
use crate::{Billing, catalog::plans::EntitlementsSchema};

const PATH: &str = "/account/tenant/{tenant_id}/overrides";
const ABOUT: &str = "They go before the plan's values and before a quota that is used up, but not before the state of the \
                     subscription. For keys and tokens of the whole app only.";

pub fn routes() -> Routes<Billing> {
    Routes::new("Entitlements")
        .get(PATH, get, "Get what a workspace is granted beside its plan")
        .put(PATH, put, "Grant a workspace something beside its plan")
        .description(ABOUT)
        .delete(PATH, delete, "Take back what a workspace is granted beside its plan")
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Overrides")]
pub struct OverridesView {
    pub entitlements: Entitlements,
    pub quotas: Vec<QuotaOverride>,
    /// `null` while they last until they are taken back.
    pub until: Option<Timestamp>,
}

impl From<Overrides> for OverridesView {
    fn from(Overrides { entitlements, quotas, until }: Overrides) -> Self {
        Self { entitlements, quotas, until }
    }
}

/// The body of `PUT …/overrides`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OverridesChange {
    #[schemars(with = "Patch<EntitlementsSchema>")]
    pub entitlements: Patch<BTreeMap<String, bool>>,
    /// At most one for each metric.
    pub quotas: Patch<Vec<QuotaOverride>>,
    pub until: Patch<Timestamp>,
}

impl Validate for OverridesChange {
    fn validate(&self, problems: &mut Problems) {
        let quotas = self.quotas.value().map(Vec::as_slice).unwrap_or_default();
        for (index, quota) in quotas.iter().enumerate() {
            let repeated = quotas.iter().take(index).any(|other| other.metric == quota.metric);
            problems.check(&format!("quotas[{index}].metric"), !repeated, "already has a limit");
        }
    }
}

async fn get(
    caller: AppCaller<TenantWrite>,
    State(billing): State<Billing>,
    Path(tenant): Path<TenantId>,
) -> Result<Json<OverridesView>> {
    let app = caller.app_id();
    Ok(Json(billing.tenancy.db.snapshot(move |tx| find(tx, app, tenant)).await?.into()))
}

fn find(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Overrides> {
    workspaces::billing_view(tx, app, tenant)?;
    let found = super::store::overrides(tx, &[(app, tenant)])?.pop();
    Ok(found.map(|(_, overrides)| overrides).unwrap_or_default())
}

async fn put(
    caller: AppCaller<TenantWrite>,
    State(billing): State<Billing>,
    Path(tenant): Path<TenantId>,
    Valid(change): Valid<OverridesChange>,
) -> Result<Json<OverridesView>> {
    let app = caller.app_id();
    let changed = billing.tenancy.db.by(&caller).write(move |tx| {
        workspaces::lock(tx, tenant)?;
        let before = find(tx, app, tenant)?;
        let OverridesChange { entitlements, quotas, until } = change.clone();
        if until.value().is_some_and(|until| *until <= tx.now()) {
            return Err(Error::invalid("until", "must be in the future"));
        }
        let after = Overrides {
            entitlements: entitlements.apply(Some(before.entitlements)).unwrap_or_default(),
            quotas: quotas.apply(Some(before.quotas)).unwrap_or_default(),
            until: until.apply(before.until),
        };
        super::change_overrides(tx, app, tenant, Some(&after))?;
        Ok(after)
    });
    Ok(Json(changed.await?.into()))
}

async fn delete(
    caller: AppCaller<TenantWrite>,
    State(billing): State<Billing>,
    Path(tenant): Path<TenantId>,
) -> Result<Success> {
    let app = caller.app_id();
    let deleted = billing.tenancy.db.by(&caller).write(move |tx| {
        workspaces::lock(tx, tenant)?;
        super::change_overrides(tx, app, tenant, None)
    });
    deleted.await?;
    Ok(Success)
}
