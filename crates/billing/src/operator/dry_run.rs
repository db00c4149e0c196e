//! Dry runs: what a changed plan, or another plan for one workspace, would do to all who are concerned, before anything is
//! saved. Nothing is written.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{AppId, Currency, Money, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Number;
use store::Tx;
use tenancy::{
    callers::{AppCaller, AppRead, TenantRead},
    workspaces,
};
use web::{Json, Path, Routes, State, Valid};

use crate::{
    Billing,
    catalog::{
        PlanId, find_plan_by_key,
        plans::{self, PlanChange, chosen_price},
    },
    entitlements::{
        self,
        rules::{Terms, Usage},
    },
    payment_details::PlanChoice,
    subscriptions::{self, Purchase},
    usage,
};

/// Workspaces that are listed one by one.
const LISTED: usize = 1_000;
/// Workspaces that are read at once.
const CHUNK: usize = 500;

pub(super) fn routes() -> Routes<Billing> {
    Routes::new("Billing")
        .post(
            "/account/payments/plan/{plan_id}/dry-run",
            change_plan,
            "See what a change of a plan would do to the workspaces on it",
        )
        .description("Takes what `PUT /account/payments/plan/{plan_id}` takes. Nothing is changed.")
        .post(
            "/account/tenant/{tenant_id}/planDetails/dry-run",
            change_workspace,
            "See what another plan would do to a workspace",
        )
        .description("Takes what `POST /account/tenant/{tenant_id}/planDetails` takes. Nothing is changed.")
}

#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
struct Effects {
    /// How many were looked at.
    workspaces: usize,
    /// By name.
    entitlements: Vec<EntitlementEffect>,
    /// By metric.
    quotas: Vec<QuotaEffect>,
    /// What is paid for a period as it stands now, usage beyond the limits included, by currency.
    cost: Vec<CostEffect>,
    /// Those who gain or lose something; at most 1,000.
    affected: Vec<Affected>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct EntitlementEffect {
    name: String,
    /// Workspaces.
    gained: usize,
    lost: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct QuotaEffect {
    metric: String,
    /// Workspaces that would have used it up.
    crossing: usize,
    /// Workspaces that would not have used it up any more.
    freed: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CostEffect {
    currency: Currency,
    before: Number,
    after: Number,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Affected {
    workspace_id: TenantId,
    gained: Vec<String>,
    lost: Vec<String>,
    crossing: Vec<String>,
    freed: Vec<String>,
}

/// The counts behind [`Effects`].
#[derive(Default)]
struct Sums {
    workspaces: usize,
    entitlements: BTreeMap<String, (usize, usize)>,
    quotas: BTreeMap<String, (usize, usize)>,
    cost: BTreeMap<Currency, (i64, i64)>,
    affected: Vec<Affected>,
}

impl Sums {
    fn add(&mut self, tenant: TenantId, before: &Terms, after: &Terms, used: &Usage, now: Timestamp) {
        self.workspaces += 1;
        let (had, has) = (before.entitlements(used, now), after.entitlements(used, now));
        let names: BTreeSet<&String> = had.keys().chain(has.keys()).collect();
        let value = |set: &BTreeMap<String, bool>, name: &str| set.get(name).copied().unwrap_or(false);
        let mut affected = Affected {
            workspace_id: tenant,
            gained: Vec::new(),
            lost: Vec::new(),
            crossing: Vec::new(),
            freed: Vec::new(),
        };
        for name in names {
            match (value(&had, name), value(&has, name)) {
                (false, true) => affected.gained.push(name.clone()),
                (true, false) => affected.lost.push(name.clone()),
                _ => {}
            }
        }
        let used_up = |terms: &Terms| -> BTreeSet<String> {
            terms.quotas(now).into_iter().filter(|quota| quota.is_used_up(used)).map(|quota| quota.metric).collect()
        };
        let (up_before, up_after) = (used_up(before), used_up(after));
        affected.crossing = up_after.difference(&up_before).cloned().collect();
        affected.freed = up_before.difference(&up_after).cloned().collect();
        for (terms, is_after) in [(before, false), (after, true)] {
            if let Some(cost) = terms.cost(used, now) {
                let (old, new) = self.cost.entry(cost.currency).or_default();
                let sum = if is_after { new } else { old };
                *sum = sum.saturating_add(cost.minor);
            }
        }
        self.count(affected);
    }

    fn count(&mut self, affected: Affected) {
        let Affected { gained, lost, crossing, freed, .. } = &affected;
        gained.iter().for_each(|name| self.entitlements.entry(name.clone()).or_default().0 += 1);
        lost.iter().for_each(|name| self.entitlements.entry(name.clone()).or_default().1 += 1);
        crossing.iter().for_each(|metric| self.quotas.entry(metric.clone()).or_default().0 += 1);
        freed.iter().for_each(|metric| self.quotas.entry(metric.clone()).or_default().1 += 1);
        let is_affected = [gained, lost, crossing, freed].iter().any(|names| !names.is_empty());
        if is_affected && self.affected.len() < LISTED {
            self.affected.push(affected);
        }
    }

    fn finish(self) -> Effects {
        let entitlement = |(name, (gained, lost))| EntitlementEffect { name, gained, lost };
        let quota = |(metric, (crossing, freed))| QuotaEffect { metric, crossing, freed };
        let cost = |(currency, (before, after)): (Currency, (i64, i64))| CostEffect {
            currency,
            before: Money::from_minor(before, currency).to_major(),
            after: Money::from_minor(after, currency).to_major(),
        };
        Effects {
            workspaces: self.workspaces,
            entitlements: self.entitlements.into_iter().map(entitlement).collect(),
            quotas: self.quotas.into_iter().map(quota).collect(),
            cost: self.cost.into_iter().map(cost).collect(),
            affected: self.affected,
        }
    }
}

async fn change_plan(
    caller: AppCaller<AppRead>,
    State(billing): State<Billing>,
    Path(id): Path<PlanId>,
    Valid(change): Valid<PlanChange>,
) -> Result<Json<Effects>> {
    let app = caller.app_id();
    let looked = billing.tenancy.db.scan(move |tx| of_plan(tx, app, id, &change));
    Ok(Json(looked.await?))
}

fn of_plan(tx: &mut Tx<'_>, app: AppId, id: PlanId, change: &PlanChange) -> Result<Effects> {
    let (before, after) = plans::changed(tx, app, id, change)?;
    let (owners, now) = (subscriptions::on_plan(tx, app, &before.key)?, tx.now());
    let has_quotas = !before.quotas.is_empty() || !after.quotas.is_empty();
    let has_own = |terms: &Terms| terms.overrides(now).is_some_and(|overrides| !overrides.quotas.is_empty());
    let mut sums = Sums::default();
    for chunk in owners.chunks(CHUNK) {
        let terms = entitlements::terms_of(tx, chunk)?;
        let needs_usage = has_quotas || terms.values().any(has_own);
        let used = if needs_usage { usage::used_of(tx, app, &terms)? } else { BTreeMap::new() };
        for (tenant, before) in &terms {
            let changed = Terms { plan: Some(after.clone()), ..before.clone() };
            let nothing = Usage::new();
            sums.add(*tenant, before, &changed, used.get(tenant).unwrap_or(&nothing), now);
        }
    }
    Ok(sums.finish())
}

async fn change_workspace(
    caller: AppCaller<TenantRead>,
    State(billing): State<Billing>,
    Path(tenant): Path<TenantId>,
    Valid(choice): Valid<PlanChoice>,
) -> Result<Json<Effects>> {
    let app = caller.app_id();
    let looked = billing.tenancy.db.snapshot(move |tx| of_workspace(tx, app, tenant, &choice));
    Ok(Json(looked.await?))
}

fn of_workspace(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, choice: &PlanChoice) -> Result<Effects> {
    workspaces::billing_view(tx, app, tenant)?;
    let plan = find_plan_by_key(tx, app, &choice.plan_key)?
        .ok_or_else(|| kernel::Error::invalid("planKey", "must be the key of a plan of this app"))?;
    let price = chosen_price(&plan, choice.price_offer)?;
    let now = tx.now();
    let before = entitlements::terms(tx, app, tenant)?;
    let used = usage::used(tx, app, tenant, before.period(now))?;
    let agreement = subscriptions::if_assigned(before.agreement.as_ref(), Purchase::of(&plan, price.as_ref()), now);
    let after = Terms { agreement: Some(agreement), plan: Some(plan), overrides: before.overrides.clone() };
    let mut sums = Sums::default();
    sums.add(tenant, &before, &after, &used, now);
    Ok(sums.finish())
}
