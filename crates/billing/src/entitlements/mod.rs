//! Entitlements: what a workspace may use now. The rules are pure ([`rules`]); the set is worked out again in the transaction
//! that changes anything it depends on, and told when it differs from what was told last.

pub mod http;
pub mod overrides;
mod refreshing;
pub mod rules;
mod store;

use std::collections::HashMap;

use ::store::{Db, Tx};
use kernel::{AppId, Result, TenantId, Timestamp};
use spine::emit;
use tenancy::workspaces;

pub use refreshing::Refreshing;
pub use rules::{Entitlements, Terms};

use crate::{catalog::plans, facts::EntitlementsChanged, subscriptions, usage};

/// All that decides about a workspace, usage apart, as it is now.
pub fn terms(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Terms> {
    Ok(terms_of(tx, &[(app, tenant)])?.remove(&tenant).unwrap_or_default())
}

/// The same for many workspaces at once.
pub(crate) fn terms_of(tx: &mut Tx<'_>, owners: &[(AppId, TenantId)]) -> Result<HashMap<TenantId, Terms>> {
    let mut terms: HashMap<TenantId, Terms> = owners.iter().map(|(_, tenant)| (*tenant, Terms::default())).collect();
    let agreements = subscriptions::agreements(tx, owners)?;
    let keys: Vec<String> = agreements.iter().map(|(_, _, agreement)| agreement.bought.plan.key.clone()).collect();
    let plans = plans::of_keys(tx, owners, &keys)?;
    for (app, tenant, agreement) in agreements {
        let terms = terms.entry(tenant).or_default();
        let key = &agreement.bought.plan.key;
        terms.plan = plans.iter().find(|(of, plan)| *of == app && plan.key == *key).map(|(_, plan)| plan.clone());
        terms.agreement = Some(agreement);
    }
    for (tenant, overrides) in store::overrides(tx, owners)? {
        terms.entry(tenant).or_default().overrides = Some(overrides);
    }
    Ok(terms)
}

/// What the app grants a workspace beside its plan.
pub(crate) fn overrides_of(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<rules::Overrides>> {
    Ok(store::overrides(tx, &[(app, tenant)])?.pop().map(|(_, overrides)| overrides))
}

/// When what the app grants a workspace was last changed.
pub(crate) fn overrides_changed(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<Timestamp>> {
    store::overrides_changed(tx, app, tenant)
}

/// When the set last differed from what was told before.
pub(crate) fn set_changed(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<Timestamp>> {
    store::set_changed(tx, app, tenant)
}

/// What the workspace may use: one row, unless something that it was worked out from has changed since.
pub fn get(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Entitlements> {
    if let Some(known) = store::fresh(tx, app, tenant)? {
        return Ok(known);
    }
    let terms = terms(tx, app, tenant)?;
    let used = usage::used(tx, app, tenant, terms.period(tx.now()))?;
    Ok(terms.entitlements(&used, tx.now()))
}

/// The same for whoever has no transaction of their own.
pub(crate) async fn now(db: &Db, app: AppId, tenant: TenantId) -> Result<Entitlements> {
    match store::fresh_now(db, app, tenant).await? {
        Some(known) => Ok(known),
        None => db.snapshot(move |tx| get(tx, app, tenant)).await,
    }
}

/// Works the set out again after a change of plan, state or overrides, under the workspace's lock. The counters of its
/// quotas are held first, so that of this change and events that arrive meanwhile one sees the other.
pub(crate) fn refresh(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Entitlements> {
    let terms = terms(tx, app, tenant)?;
    let (now, period) = (tx.now(), terms.period(tx.now()));
    let quotas = terms.quotas(now);
    usage::hold(tx, app, tenant, period, &quotas)?;
    usage::tell_used_up(tx, app, tenant, period, &quotas)?;
    settle(tx, app, tenant, &terms)
}

/// Works the set out from these terms and the usage as it is now, and tells it when it differs.
pub(crate) fn settle(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, terms: &Terms) -> Result<Entitlements> {
    let told = store::hold(tx, app, tenant)?;
    let now = tx.now();
    let used = usage::used(tx, app, tenant, terms.period(now))?;
    let entitlements = terms.entitlements(&used, now);
    let changed = rules::changed(&told, &entitlements);
    store::put(tx, app, tenant, &entitlements, terms, terms.next_change(&used, now))?;
    if !changed.is_empty() {
        store::note_change(tx, app, tenant)?;
        let fact = EntitlementsChanged { workspace_id: tenant, entitlements: entitlements.clone(), changed };
        emit(tx, (app, tenant), &fact)?;
    }
    Ok(entitlements)
}

/// What the app grants a workspace beside its plan, changed.
fn change_overrides(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, overrides: Option<&rules::Overrides>) -> Result<()> {
    workspaces::billing_view(tx, app, tenant)?;
    store::put_overrides(tx, app, tenant, overrides)?;
    emit(tx, (app, tenant), &crate::facts::OverridesChanged { workspace_id: tenant })?;
    refresh(tx, app, tenant).map(|_| ())
}
