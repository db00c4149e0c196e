//! The SQL of plans and their prices.

use std::collections::HashMap;

use ::store::{FromRow, Json, Row, Tx, args, row, sql};
use kernel::{AppId, Money, Page, Result, TenantId};

use super::{Plan, PlanId, Price, PriceId};

row! {
    Plan = "plans" {
        id,
        key,
        name,
        description,
        trial,
        trial_days,
        entitlements as Json,
        quotas as Json,
        created_at,
        revision,
    }
    // Read by a statement of their own.
    prices: Vec::new(),
}

/// A price and the plan that has it.
struct Offered {
    plan: PlanId,
    price: Price,
}

impl FromRow for Offered {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let amount = Money::from_minor(row.get("amount_minor")?, row.get("currency")?);
        let price = Price { id: row.get("id")?, amount, interval: row.get("recurrence_interval")? };
        Ok(Self { plan: row.get("plan_id")?, price })
    }
}

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Plan>> {
    let plans = tx.all(
        sql!("SELECT ", Plan::COLUMNS, " FROM plans WHERE app_id = $1 ORDER BY id DESC LIMIT $2 OFFSET $3"),
        &args![app, page.limit_or_all(), page.offset()],
    )?;
    with_prices(tx, app, plans)
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, id: PlanId) -> Result<Option<Plan>> {
    let plan: Option<Plan> =
        tx.opt(sql!("SELECT ", Plan::COLUMNS, " FROM plans WHERE app_id = $1 AND id = $2"), &args![app, id])?;
    Ok(with_prices(tx, app, plan.into_iter().collect())?.pop())
}

pub(super) fn find_by_key(tx: &mut Tx<'_>, app: AppId, key: &str) -> Result<Option<Plan>> {
    let plan: Option<Plan> =
        tx.opt(sql!("SELECT ", Plan::COLUMNS, " FROM plans WHERE app_id = $1 AND key = $2"), &args![app, key])?;
    Ok(with_prices(tx, app, plan.into_iter().collect())?.pop())
}

/// A plan and its app.
struct OfApp(AppId, Plan);

impl FromRow for OfApp {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self(row.get("app_id")?, Plan::from_row(row)?))
    }
}

pub(super) fn of_keys(tx: &mut Tx<'_>, owners: &[(AppId, TenantId)], keys: &[String]) -> Result<Vec<(AppId, Plan)>> {
    let apps: Vec<AppId> = owners.iter().map(|(app, _)| *app).collect();
    let plans: Vec<OfApp> = tx.all(
        sql!("SELECT plans.app_id, ", Plan::COLUMNS, " FROM plans WHERE app_id = ANY($1) AND key = ANY($2)"),
        &args![apps, keys],
    )?;
    Ok(plans.into_iter().map(|OfApp(app, plan)| (app, plan)).collect())
}

fn with_prices(tx: &mut Tx<'_>, app: AppId, mut plans: Vec<Plan>) -> Result<Vec<Plan>> {
    if plans.is_empty() {
        return Ok(plans);
    }
    let ids: Vec<PlanId> = plans.iter().map(|plan| plan.id).collect();
    let offered: Vec<Offered> = tx.all(
        "SELECT id, plan_id, amount_minor, currency, recurrence_interval FROM prices \
         WHERE app_id = $1 AND plan_id = ANY($2) ORDER BY plan_id, position",
        &args![app, ids],
    )?;
    let mut by_plan: HashMap<PlanId, Vec<Price>> = HashMap::new();
    for Offered { plan, price } in offered {
        by_plan.entry(plan).or_default().push(price);
    }
    for plan in &mut plans {
        plan.prices = by_plan.remove(&plan.id).unwrap_or_default();
    }
    Ok(plans)
}

/// False when the key is taken.
pub(super) fn insert(tx: &mut Tx<'_>, app: AppId, plan: &Plan) -> Result<bool> {
    let inserted = tx.changes_one(
        "INSERT INTO plans (id, app_id, key, name, description, trial, trial_days, entitlements, quotas, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (app_id, key) DO NOTHING",
        &args![
            plan.id,
            app,
            plan.key,
            plan.name,
            plan.description,
            plan.trial,
            plan.trial_days,
            Json(&plan.entitlements),
            Json(&plan.quotas),
            plan.created_at
        ],
    )?;
    if inserted {
        insert_prices(tx, app, plan)?;
    }
    Ok(inserted)
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, plan: &Plan) -> Result<()> {
    tx.exec(
        "UPDATE plans SET key = $3, name = $4, description = $5, trial = $6, trial_days = $7, entitlements = $8, \
         quotas = $9, revision = $10 WHERE app_id = $1 AND id = $2",
        &args![
            app,
            plan.id,
            plan.key,
            plan.name,
            plan.description,
            plan.trial,
            plan.trial_days,
            Json(&plan.entitlements),
            Json(&plan.quotas),
            plan.revision
        ],
    )?;
    let kept: Vec<PriceId> = plan.prices.iter().map(|price| price.id).collect();
    tx.exec(
        "DELETE FROM prices WHERE app_id = $1 AND plan_id = $2 AND NOT (id = ANY($3))",
        &args![app, plan.id, kept],
    )?;
    insert_prices(tx, app, plan)
}

/// Those that are there already only take their new place in the list.
fn insert_prices(tx: &mut Tx<'_>, app: AppId, plan: &Plan) -> Result<()> {
    let now = tx.now();
    let row = |(position, price): (i64, &Price)| {
        let Price { id, amount: Money { minor, currency }, interval } = *price;
        (id, app, plan.id, position, minor, currency, interval, now)
    };
    let rows: Vec<_> = (0..).zip(&plan.prices).map(row).collect();
    tx.insert_all(
        "INSERT INTO prices (id, app_id, plan_id, position, amount_minor, currency, recurrence_interval, created_at) \
         SELECT id, app_id, plan_id, position, amount_minor, currency, recurrence_interval, created_at FROM {rows} \
         WHERE true ON CONFLICT (id) DO UPDATE SET position = excluded.position",
        ["id", "app_id", "plan_id", "position", "amount_minor", "currency", "recurrence_interval", "created_at"],
        &rows,
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, plan: PlanId) -> Result<()> {
    tx.exec("DELETE FROM prices WHERE app_id = $1 AND plan_id = $2", &args![app, plan])?;
    tx.run("DELETE FROM plans WHERE app_id = $1 AND id = $2", &args![app, plan])
}
