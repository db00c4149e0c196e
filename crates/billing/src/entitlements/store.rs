//! The SQL of entitlements and overrides.

use ::store::{Db, FromRow, Json, Row, Tx, args};
use kernel::{AppId, Result, TenantId, Timestamp};

use super::rules::{Entitlements, Overrides, Terms};

/// The stored set, unless time or a change of the plan made it old.
const FRESH: &str = "SELECT entitlements FROM entitlement_sets WHERE app_id = $1 AND tenant_id = $2 \
     AND (next_at IS NULL OR next_at > $3) AND (plan_id IS NULL OR EXISTS (SELECT 1 FROM plans \
     WHERE plans.id = entitlement_sets.plan_id AND plans.revision = entitlement_sets.plan_revision))";

pub(super) fn fresh(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<Entitlements>> {
    let found: Option<(Json<Entitlements>,)> = tx.opt(FRESH, &args![app, tenant, tx.now()])?;
    Ok(found.map(|(Json(entitlements),)| entitlements))
}

/// The same as a single round trip.
pub(super) async fn fresh_now(db: &Db, app: AppId, tenant: TenantId) -> Result<Option<Entitlements>> {
    let found: Option<(Json<Entitlements>,)> = db.get_one(FRESH, &args![app, tenant, db.clock().now()]).await?;
    Ok(found.map(|(Json(entitlements),)| entitlements))
}

/// The set that was told last, held until this transaction ends.
pub(super) fn hold(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Entitlements> {
    let (Json(told),): (Json<Entitlements>,) = tx.one(
        "INSERT INTO entitlement_sets (tenant_id, app_id, entitlements) VALUES ($1, $2, '{}') \
         ON CONFLICT (tenant_id) DO UPDATE SET app_id = excluded.app_id RETURNING entitlements",
        &args![tenant, app],
    )?;
    Ok(told)
}

pub(super) fn put(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    entitlements: &Entitlements,
    terms: &Terms,
    next_at: Option<Timestamp>,
) -> Result<()> {
    let plan = terms.plan.as_ref();
    tx.run(
        "UPDATE entitlement_sets SET entitlements = $3, plan_id = $4, plan_revision = $5, next_at = $6 \
         WHERE app_id = $1 AND tenant_id = $2",
        &args![app, tenant, Json(entitlements), plan.map(|plan| plan.id), plan.map(|plan| plan.revision), next_at],
    )
}

/// The set differs from what was told before.
pub(super) fn note_change(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<()> {
    tx.run(
        "UPDATE entitlement_sets SET changed_at = $3 WHERE app_id = $1 AND tenant_id = $2",
        &args![app, tenant, tx.now()],
    )
}

pub(super) fn set_changed(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<Timestamp>> {
    let found: Option<(Option<Timestamp>,)> =
        tx.opt("SELECT changed_at FROM entitlement_sets WHERE app_id = $1 AND tenant_id = $2", &args![app, tenant])?;
    Ok(found.and_then(|(at,)| at))
}

pub(super) fn overrides_changed(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<Timestamp>> {
    let found: Option<(Option<Timestamp>,)> = tx.opt(
        "SELECT changed_at FROM entitlement_overrides WHERE app_id = $1 AND tenant_id = $2",
        &args![app, tenant],
    )?;
    Ok(found.and_then(|(at,)| at))
}

struct Overridden {
    tenant: TenantId,
    overrides: Overrides,
}

impl FromRow for Overridden {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let overrides = Overrides {
            entitlements: row.get::<Json<_>>("entitlements")?.0,
            quotas: row.get::<Json<_>>("quotas")?.0,
            until: row.get("until")?,
        };
        Ok(Self { tenant: row.get("tenant_id")?, overrides })
    }
}

pub(super) fn overrides(tx: &mut Tx<'_>, owners: &[(AppId, TenantId)]) -> Result<Vec<(TenantId, Overrides)>> {
    let (apps, tenants): (Vec<AppId>, Vec<TenantId>) = owners.iter().copied().unzip();
    let found: Vec<Overridden> = tx.all(
        "SELECT tenant_id, entitlements, quotas, until FROM entitlement_overrides \
         WHERE app_id = ANY($1) AND tenant_id = ANY($2)",
        &args![apps, tenants],
    )?;
    Ok(found.into_iter().map(|Overridden { tenant, overrides }| (tenant, overrides)).collect())
}

pub(super) fn put_overrides(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    overrides: Option<&Overrides>,
) -> Result<()> {
    let Some(Overrides { entitlements, quotas, until }) = overrides else {
        return tx.run("DELETE FROM entitlement_overrides WHERE app_id = $1 AND tenant_id = $2", &args![app, tenant]);
    };
    tx.run(
        "INSERT INTO entitlement_overrides (tenant_id, app_id, entitlements, quotas, until, changed_at) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant_id) DO UPDATE SET entitlements = excluded.entitlements, \
         quotas = excluded.quotas, until = excluded.until, changed_at = excluded.changed_at",
        &args![tenant, app, Json(entitlements), Json(quotas), *until, tx.now()],
    )
}

/// A workspace whose set may differ from what was told.
pub(super) struct Stale {
    pub(super) app: AppId,
    pub(super) tenant: TenantId,
}

impl FromRow for Stale {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self { app: row.get("app_id")?, tenant: row.get("tenant_id")? })
    }
}

pub(super) const DUE: &str =
    "SELECT app_id, tenant_id FROM entitlement_sets WHERE next_at <= $1 ORDER BY next_at LIMIT $2";
pub(super) const NEXT_DUE: &str = "SELECT min(next_at) FROM entitlement_sets WHERE next_at IS NOT NULL";
pub(super) const OF_CHANGED_PLANS: &str = "SELECT entitlement_sets.app_id, entitlement_sets.tenant_id FROM plans \
     JOIN entitlement_sets ON entitlement_sets.plan_id = plans.id \
     WHERE entitlement_sets.plan_revision < plans.revision LIMIT $1";
/// Of a workspace that is gone and not purged yet.
pub(super) const FORGET: &str = "DELETE FROM entitlement_sets WHERE app_id = $1 AND tenant_id = $2";
