//! The SQL of workspaces.

use ::store::{FromRow, Row, Tx, args};
use kernel::{AppId, Error, Page, Result, TenantId, UserId};

use super::{BillingView, Holdings, Metadata, NewWorkspace, PaymentStatus, SignupBy, Tenant};

/// `$1` is the present time, which decides whether a trial is running.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT tenants.id, tenants.name, tenants.locale, tenants.logo, tenants.mfa, tenants.onboarded, ",
            "tenants.metadata, tenants.federation_connection_id, tenants.jit_provisioning, tenants.signup_email, ",
            "tenants.signup_first_name, tenants.signup_last_name, tenants.plan_key, tenants.should_select_plan, ",
            "tenants.should_setup_payments, tenants.payments_enabled, tenants.payment_provider, tenants.created_at, ",
            "COALESCE(tenants.trial_ends_at > $1, FALSE) AS trial FROM tenants ",
            $rest
        )
    };
}

impl FromRow for Tenant {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (metadata, locale): (String, String) = (row.get("metadata")?, row.get("locale")?);
        Ok(Self {
            id: row.get("id")?,
            plan: row.get("plan_key")?,
            trial: row.get("trial")?,
            payment_status: PaymentStatus {
                should_select_plan: row.get("should_select_plan")?,
                should_setup_payments: row.get("should_setup_payments")?,
                payments_enabled: row.get("payments_enabled")?,
                provider: row.get("payment_provider")?,
            },
            mfa: row.get("mfa")?,
            locale: locale.parse().map_err(Error::internal)?,
            name: row.get("name")?,
            logo: row.get("logo")?,
            metadata: serde_json::from_str(&metadata).map_err(Error::internal)?,
            onboarded: row.get("onboarded")?,
            federation_connection: row.get("federation_connection_id")?,
            jit_provisioning: row.get("jit_provisioning")?,
            signup_by: SignupBy {
                email: row.get("signup_email")?,
                first_name: row.get("signup_first_name")?,
                last_name: row.get("signup_last_name")?,
            },
            created_at: row.get("created_at")?,
        })
    }
}

fn to_text(metadata: &Metadata) -> Result<String> {
    serde_json::to_string(metadata).map_err(Error::internal)
}

pub(super) fn insert(tx: &mut Tx<'_>, app: AppId, id: TenantId, new: &NewWorkspace) -> Result<()> {
    let NewWorkspace { name, locale, logo, onboarded, metadata, jit_provisioning, signup_by, billing } = new;
    tx.exec(
        "INSERT INTO tenants (id, app_id, name, locale, logo, mfa, onboarded, metadata, jit_provisioning, \
         signup_email, signup_first_name, signup_last_name, should_select_plan, should_setup_payments, \
         payments_enabled, created_at) \
         VALUES ($1, $2, $3, $4, $5, FALSE, $6, $7, $8, $9, $10, $11, FALSE, FALSE, FALSE, $12)",
        &args![
            id,
            app,
            name,
            locale.code(),
            logo,
            *onboarded,
            to_text(metadata)?,
            *jit_provisioning,
            signup_by.email,
            signup_by.first_name,
            signup_by.last_name,
            tx.now()
        ],
    )?;
    set_billing_view(tx, app, id, billing).map(|_| ())
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, id: TenantId) -> Result<Option<Tenant>> {
    tx.opt(select!("WHERE app_id = $2 AND id = $3"), &args![tx.now(), app, id])
}

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Tenant>> {
    tx.all(
        select!("WHERE app_id = $2 ORDER BY id DESC LIMIT $3 OFFSET $4"),
        &args![tx.now(), app, page.limit_or_all(), page.offset()],
    )
}

pub(super) fn list_of(tx: &mut Tx<'_>, app: AppId, user: UserId, page: Page) -> Result<Vec<Tenant>> {
    tx.all(
        select!(
            "JOIN members ON members.tenant_id = tenants.id WHERE tenants.app_id = $2 AND members.user_id = $3 \
             AND members.enabled ORDER BY tenants.id DESC LIMIT $4 OFFSET $5"
        ),
        &args![tx.now(), app, user, page.limit_or_all(), page.offset()],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, tenant: &Tenant) -> Result<()> {
    tx.run(
        "UPDATE tenants SET name = $3, locale = $4, logo = $5, mfa = $6, onboarded = $7, metadata = $8, \
         federation_connection_id = $9, jit_provisioning = $10 WHERE app_id = $1 AND id = $2",
        &args![
            app,
            tenant.id,
            tenant.name,
            tenant.locale.code(),
            tenant.logo,
            tenant.mfa,
            tenant.onboarded,
            to_text(&tenant.metadata)?,
            tenant.federation_connection,
            tenant.jit_provisioning
        ],
    )
}

/// False when there is no such workspace.
pub(super) fn set_billing_view(tx: &mut Tx<'_>, app: AppId, id: TenantId, view: &BillingView) -> Result<bool> {
    let price = view.price.as_ref();
    tx.changes_one(
        "UPDATE tenants SET plan_key = $3, price_currency = $4, price_interval = $5, trial_ends_at = $6, \
         should_select_plan = $7, should_setup_payments = $8, payments_enabled = $9, payment_provider = $10 \
         WHERE app_id = $1 AND id = $2",
        &args![
            app,
            id,
            view.plan_key,
            price.map(|(currency, _)| currency.code()),
            price.map(|(_, interval)| interval.as_str()),
            view.trial_ends_at,
            view.should_select_plan,
            view.should_setup_payments,
            view.payments_enabled,
            view.provider
        ],
    )
}

impl FromRow for BillingView {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let currency: Option<String> = row.get("price_currency")?;
        let currency = currency.map(|code| code.parse().map_err(Error::internal)).transpose()?;
        Ok(Self {
            plan_key: row.get("plan_key")?,
            price: currency.zip(row.get("price_interval")?),
            trial_ends_at: row.get("trial_ends_at")?,
            should_select_plan: row.get("should_select_plan")?,
            should_setup_payments: row.get("should_setup_payments")?,
            payments_enabled: row.get("payments_enabled")?,
            provider: row.get("payment_provider")?,
        })
    }
}

pub(super) fn billing_view(tx: &mut Tx<'_>, app: AppId, id: TenantId) -> Result<Option<BillingView>> {
    tx.opt(
        "SELECT plan_key, price_currency, price_interval, trial_ends_at, should_select_plan, should_setup_payments, \
         payments_enabled, payment_provider FROM tenants WHERE app_id = $1 AND id = $2",
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
