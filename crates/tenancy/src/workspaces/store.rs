//! The SQL of workspaces.

use ::store::{FromRow, Json, Row, Tx, args, row, sql};
use kernel::{AppId, Currency, Page, Result, TenantId, UserId};

use super::{BillingView, Holdings, NewWorkspace, PROVIDER, PaymentStatus, SignupBy, Tenant, rules::Own};
use crate::{credentials, logins::Reach, standing::lacks_payment_method};

impl PaymentStatus {
    const COLUMNS: &'static str = concat!(
        "tenants.should_select_plan, tenants.payments_enabled, ",
        lacks_payment_method!(),
        " AS lacks_payment_method"
    );
}

/// As it is while the app has a provider; `in_app` takes away what holds only then.
impl FromRow for PaymentStatus {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            should_select_plan: row.get("should_select_plan")?,
            should_setup_payments: row.get("lacks_payment_method")?,
            payments_enabled: row.get("payments_enabled")?,
            provider: Some(PROVIDER.to_owned()),
        })
    }
}

row! {
    Own = "tenants" {
        tenant of Tenant,
        is_owner = "EXISTS (SELECT 1 FROM roles WHERE roles.id = members.role_id AND roles.key = 'OWNER')",
        may_read = "EXISTS (SELECT 1 FROM role_privileges JOIN privileges ON privileges.id = role_privileges.privilege_id \
                    WHERE role_privileges.role_id = members.role_id AND role_privileges.app_id = members.app_id \
                    AND privileges.app_id = members.app_id AND privileges.key = 'TENANT_READ')",
    }
}

row! { SignupBy = "tenants" { email: "signup_email", first_name: "signup_first_name", last_name: "signup_last_name" } }

// `$1` is the present time, which decides whether a trial is running.
row! {
    Tenant = "tenants" {
        id,
        plan: "plan_key",
        trial = "COALESCE(tenants.trial_ends_at > $1, FALSE)",
        payment_status of PaymentStatus,
        mfa,
        locale,
        name,
        logo,
        metadata as Json,
        app_metadata as Json,
        onboarded,
        federation_connection: "federation_connection_id",
        jit_provisioning,
        sso_required,
        signup_by of SignupBy,
        created_at,
    }
}

pub(super) fn insert(tx: &mut Tx<'_>, app: AppId, id: TenantId, new: &NewWorkspace) -> Result<()> {
    let NewWorkspace { name, locale, logo, onboarded, metadata, app_metadata, jit_provisioning, signup_by, billing } =
        new;
    tx.exec(
        "INSERT INTO tenants (id, app_id, name, locale, logo, mfa, onboarded, metadata, jit_provisioning, \
         signup_email, signup_first_name, signup_last_name, should_select_plan, should_setup_payments, \
         payments_enabled, created_at, app_metadata) \
         VALUES ($1, $2, $3, $4, $5, FALSE, $6, $7, $8, $9, $10, $11, FALSE, FALSE, FALSE, $12, $13)",
        &args![
            id,
            app,
            name,
            *locale,
            logo,
            *onboarded,
            Json(metadata),
            *jit_provisioning,
            signup_by.email,
            signup_by.first_name,
            signup_by.last_name,
            tx.now(),
            Json(app_metadata)
        ],
    )?;
    set_billing_view(tx, app, id, billing).map(|_| ())
}

/// Their rows know nothing of the app's provider, which may come and go for all of them at once.
fn in_app<'a>(tx: &mut Tx<'_>, app: AppId, found: impl IntoIterator<Item = &'a mut Tenant>) -> Result<()> {
    if !credentials::has_payprovider(tx, app)? {
        for Tenant { payment_status, .. } in found {
            payment_status.should_setup_payments = false;
            payment_status.provider = None;
        }
    }
    Ok(())
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, id: TenantId) -> Result<Option<Tenant>> {
    let mut found: Option<Tenant> = tx.opt(
        sql!("SELECT ", Tenant::COLUMNS, " FROM tenants WHERE app_id = $2 AND id = $3"),
        &args![tx.now(), app, id],
    )?;
    in_app(tx, app, &mut found)?;
    Ok(found)
}

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Tenant>> {
    let mut found: Vec<Tenant> = tx.all(
        sql!("SELECT ", Tenant::COLUMNS, " FROM tenants WHERE app_id = $2 ORDER BY id DESC LIMIT $3 OFFSET $4"),
        &args![tx.now(), app, page.limit_or_all(), page.offset()],
    )?;
    in_app(tx, app, &mut found)?;
    Ok(found)
}

pub(super) fn list_of(tx: &mut Tx<'_>, app: AppId, user: UserId, reach: Reach, page: Page) -> Result<Vec<Own>> {
    let mut found: Vec<Own> = tx.all(
        sql!(
            "SELECT ",
            Own::COLUMNS,
            " FROM tenants JOIN members ON members.tenant_id = tenants.id WHERE tenants.app_id = $2 AND members.user_id = $3 \
             AND members.enabled AND (CAST($6 AS TEXT) IS NULL OR tenants.federation_connection_id = $6) \
             ORDER BY tenants.id DESC LIMIT $4 OFFSET $5"
        ),
        &args![tx.now(), app, user, page.limit_or_all(), page.offset(), reach.connection],
    )?;
    in_app(tx, app, found.iter_mut().map(|own| &mut own.tenant))?;
    Ok(found)
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, tenant: &Tenant) -> Result<()> {
    tx.run(
        "UPDATE tenants SET name = $3, locale = $4, logo = $5, mfa = $6, onboarded = $7, metadata = $8, \
         federation_connection_id = $9, jit_provisioning = $10, app_metadata = $11, sso_required = $12 WHERE app_id = $1 AND id = $2",
        &args![
            app,
            tenant.id,
            tenant.name,
            tenant.locale,
            tenant.logo,
            tenant.mfa,
            tenant.onboarded,
            Json(&tenant.metadata),
            tenant.federation_connection,
            tenant.jit_provisioning,
            Json(&tenant.app_metadata),
            tenant.sso_required
        ],
    )
}

/// False when there is no such workspace. The release before reads `should_setup_payments`, and hears at least when it is over.
pub(super) fn set_billing_view(tx: &mut Tx<'_>, app: AppId, id: TenantId, view: &BillingView) -> Result<bool> {
    let price = view.price.as_ref();
    tx.changes_one(
        "UPDATE tenants SET plan_key = $3, price_currency = $4, price_interval = $5, trial_ends_at = $6, \
         should_select_plan = $7, payments_enabled = $8, paid_plan_key = $9, \
         should_setup_payments = (should_setup_payments AND $10) WHERE app_id = $1 AND id = $2",
        &args![
            app,
            id,
            view.plan_key,
            price.map(|(currency, _)| *currency),
            price.map(|(_, interval)| interval.as_str()),
            view.trial_ends_at,
            view.should_select_plan,
            view.payments_enabled,
            view.plan_key.as_deref().filter(|_| view.is_paid),
            view.lacks_payment_method()
        ],
    )
}

impl FromRow for BillingView {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let currency: Option<Currency> = row.get("price_currency")?;
        let (plan_key, paid): (Option<String>, Option<String>) = (row.get("plan_key")?, row.get("paid_plan_key")?);
        Ok(Self {
            is_paid: paid.is_some() && paid == plan_key,
            plan_key,
            price: currency.zip(row.get("price_interval")?),
            trial_ends_at: row.get("trial_ends_at")?,
            should_select_plan: row.get("should_select_plan")?,
            payments_enabled: row.get("payments_enabled")?,
        })
    }
}

pub(super) fn existing(tx: &mut Tx<'_>, app: AppId, tenants: &[TenantId]) -> Result<Vec<TenantId>> {
    let found: Vec<(TenantId,)> =
        tx.all("SELECT id FROM tenants WHERE app_id = $1 AND id = ANY($2)", &args![app, tenants])?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

pub(super) fn billing_view(tx: &mut Tx<'_>, app: AppId, id: TenantId) -> Result<Option<BillingView>> {
    tx.opt(
        "SELECT plan_key, paid_plan_key, price_currency, price_interval, trial_ends_at, should_select_plan, \
         payments_enabled FROM tenants WHERE app_id = $1 AND id = $2",
        &args![app, id],
    )
}

pub(super) fn holdings(tx: &mut Tx<'_>, app: AppId, id: TenantId) -> Result<Holdings> {
    let count = |(count,): (i64,)| count;
    Ok(Holdings {
        users: count(tx.one("SELECT count(*) FROM members WHERE app_id = $1 AND tenant_id = $2", &args![app, id])?),
        users_only_here: count(tx.one(
            "SELECT count(*) FROM members WHERE app_id = $1 AND tenant_id = $2 AND NOT EXISTS \
             (SELECT 1 FROM members AS others WHERE others.user_id = members.user_id AND others.tenant_id <> $2)",
            &args![app, id],
        )?),
        api_tokens: count(
            tx.one("SELECT count(*) FROM api_tokens WHERE app_id = $1 AND tenant_id = $2", &args![app, id])?,
        ),
    })
}

/// In this order: people are held before it is seen who belongs nowhere else, and memberships tell who they are.
const HOLD_PEOPLE: &str = "UPDATE users SET email_key = email_key WHERE app_id = $1 AND id IN \
     (SELECT user_id FROM members WHERE tenant_id = $2)";
const DELETE_LINKS: &str = "DELETE FROM one_time_links WHERE app_id = $1 AND user_id IN \
     (SELECT user_id FROM members WHERE tenant_id = $2 AND NOT EXISTS \
     (SELECT 1 FROM members AS others WHERE others.user_id = members.user_id AND others.tenant_id <> $2))";
const DELETE_PEOPLE: &str = "DELETE FROM users WHERE app_id = $1 AND id IN \
     (SELECT user_id FROM members WHERE tenant_id = $2 AND NOT EXISTS \
     (SELECT 1 FROM members AS others WHERE others.user_id = members.user_id AND others.tenant_id <> $2)) RETURNING id";
const DELETE_MEMBERS: &str = "DELETE FROM members WHERE app_id = $1 AND tenant_id = $2";
const DELETE: &str = "DELETE FROM tenants WHERE app_id = $1 AND id = $2";

/// The people who belonged nowhere else and are gone too.
pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, id: TenantId) -> Result<Vec<UserId>> {
    let of_both = &args![app, id];
    tx.run(HOLD_PEOPLE, of_both)?;
    tx.run(DELETE_LINKS, of_both)?;
    let gone: Vec<(UserId,)> = tx.all(DELETE_PEOPLE, of_both)?;
    tx.run(DELETE_MEMBERS, of_both)?;
    tx.run(DELETE, of_both)?;
    Ok(gone.into_iter().map(|(user,)| user).collect())
}
