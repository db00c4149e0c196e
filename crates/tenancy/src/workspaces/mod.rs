//! Workspaces: the customers of an app; `tenant` on the wire. Each has members, settings of its own and what billing
//! says about it. Deleting one ends all access to it in a single transaction.

pub mod http;
mod rules;
mod store;

use ::store::{Db, Owner, Tx, args};
use kernel::{AppId, Code, Currency, Error, Locale, Page, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use spine::{emit, purge};

use rules::Own;
pub use rules::{MAX_METADATA, TenantChanges};

use crate::{
    Authority, Tenancy, api_tokens, apps,
    callers::SignedIn,
    facts::{TenantCreated, TenantDeleted, TenantUpdated, WorkspaceData},
    federation, links,
    locks::Lock,
    logins::{self, Login},
};

/// What a workspace carries beside its members.
pub type Metadata = Map<String, Value>;

/// A workspace as it goes over the wire.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tenant {
    pub id: TenantId,
    /// The key of the plan it is on.
    pub plan: Option<String>,
    /// Whether a trial is running.
    pub trial: bool,
    pub payment_status: PaymentStatus,
    /// Whether its members must have a second factor.
    pub mfa: bool,
    pub locale: Locale,
    pub name: String,
    pub logo: Option<String>,
    pub metadata: Metadata,
    /// Written by the app alone, unlike `metadata`: what rules may rely on.
    pub app_metadata: Metadata,
    pub onboarded: bool,
    /// The connection that its members sign in through.
    pub federation_connection: Option<String>,
    /// Whether an unknown person who comes in through the connection becomes a member.
    pub jit_provisioning: bool,
    /// Whether its members, OWNERs apart, come in through the connection only.
    pub sso_required: bool,
    /// Who it was created for.
    pub signup_by: SignupBy,
    pub created_at: Timestamp,
}

/// What the workspace still has to do about payments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentStatus {
    pub should_select_plan: bool,
    pub should_setup_payments: bool,
    /// Whether a payment method is set up.
    pub payments_enabled: bool,
    pub provider: Option<String>,
}

/// The first owner, as named at creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignupBy {
    pub email: String,
    pub first_name: String,
    pub last_name: String,
}

/// What billing says about a workspace. Written by billing alone, read with every workspace. Whether the app has a provider
/// is no part of it: that may be switched at any time, for all of its workspaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillingView {
    pub plan_key: Option<String>,
    /// Whether the plan is not a free one.
    pub is_paid: bool,
    /// Currency and recurrence interval of the price it pays.
    pub price: Option<(Currency, String)>,
    pub trial_ends_at: Option<Timestamp>,
    pub should_select_plan: bool,
    pub payments_enabled: bool,
}

impl BillingView {
    /// A provider would have to be paid, and cannot be.
    fn lacks_payment_method(&self) -> bool {
        self.is_paid && self.trial_ends_at.is_none() && !self.payments_enabled
    }

    /// What is said of it while the app has a provider, or has none.
    pub fn payment_status(&self, has_provider: bool) -> PaymentStatus {
        PaymentStatus {
            should_select_plan: self.should_select_plan,
            should_setup_payments: self.lacks_payment_method() && has_provider,
            payments_enabled: self.payments_enabled,
            provider: has_provider.then(|| PROVIDER.to_owned()),
        }
    }
}

/// What `provider` is called where there is one.
const PROVIDER: &str = "payprovider";

/// A workspace to be made.
#[derive(Clone, Debug)]
pub struct NewWorkspace {
    pub name: String,
    pub locale: Locale,
    pub logo: Option<String>,
    pub onboarded: bool,
    pub metadata: Metadata,
    pub app_metadata: Metadata,
    pub jit_provisioning: bool,
    pub signup_by: SignupBy,
    pub billing: BillingView,
}

/// What goes when a workspace is deleted, as far as this room knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdings {
    pub users: i64,
    pub users_only_here: i64,
    pub api_tokens: i64,
}

/// What rules about one workspace and its members take before they read.
pub fn lock(tx: &mut Tx<'_>, tenant: TenantId) -> Result<()> {
    tx.lock(&Lock::Workspace(tenant))
}

/// Whether the workspace exists in this app.
pub async fn exists(db: &Db, app: AppId, tenant: TenantId) -> Result<bool> {
    let found: Option<(i64,)> =
        db.get_one("SELECT CAST(1 AS BIGINT) FROM tenants WHERE app_id = $1 AND id = $2", &args![app, tenant]).await?;
    Ok(found.is_some())
}

/// Those of these workspaces that exist in the app.
pub fn existing(tx: &mut Tx<'_>, app: AppId, tenants: &[TenantId]) -> Result<Vec<TenantId>> {
    store::existing(tx, app, tenants)
}

/// Makes a workspace, which has no members yet.
pub fn create(tx: &mut Tx<'_>, app: AppId, new: &NewWorkspace) -> Result<Tenant> {
    let id: TenantId = tx.new_id();
    store::insert(tx, app, id, new)?;
    let tenant = get(tx, app, id)?;
    emit(tx, (app, id), &TenantCreated(told(&tenant)))?;
    Ok(tenant)
}

pub fn get(tx: &mut Tx<'_>, app: AppId, id: TenantId) -> Result<Tenant> {
    store::find(tx, app, id)?.ok_or_else(|| Error::not_found("workspace"))
}

/// Newest first.
pub fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Tenant>> {
    store::list(tx, app, page)
}

/// The workspaces that a person belongs to and may sign in to, newest first. What a workspace keeps to those who may read
/// it is left out where the person's role does not, or where the login has not shown the factor that it asks for; and
/// everywhere where the token may not read workspaces.
pub fn list_of(tx: &mut Tx<'_>, user: &SignedIn, page: Page) -> Result<Vec<Tenant>> {
    let login = user.claims.sid.parse().map_err(|_| logins::ended())?;
    let Login { mfa: two_factors, reach, .. } = logins::live(tx, user.app(), login)?;
    let listed = store::list_of(tx, user.app(), user.user(), reach, page)?;
    let may_read = user.holds("TENANT_READ");
    let seen = |own: Own| Own { may_read: own.may_read && may_read, ..own }.seen_with(two_factors, reach);
    Ok(listed.into_iter().map(seen).collect())
}

pub fn update(
    tx: &mut Tx<'_>,
    app: AppId,
    authority: &Authority,
    id: TenantId,
    changes: &TenantChanges,
) -> Result<Tenant> {
    lock(tx, id)?;
    let before = get(tx, app, id)?;
    if let Some(connection) = changes.federation_connection.value() {
        federation::assign(tx, app, connection)?;
    }
    let after = changes.apply(&before);
    if after == before {
        return Ok(after);
    }
    if after.app_metadata != before.app_metadata {
        authority.for_whole_app("appMetadata")?;
    }
    if after.federation_connection != before.federation_connection {
        authority.for_whole_app("federationConnection")?;
    }
    if after.sso_required != before.sso_required {
        authority.for_whole_app("ssoRequired")?;
    }
    if after.sso_required && after.federation_connection.is_none() {
        return Err(Error::invalid("ssoRequired", "can be true only while the workspace has a federationConnection"));
    }
    store::update(tx, app, &after)?;
    emit(tx, (app, id), &TenantUpdated(told(&after)))?;
    Ok(after)
}

pub fn billing_view(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<BillingView> {
    store::billing_view(tx, app, tenant)?.ok_or_else(|| Error::not_found("workspace"))
}

/// Takes over what billing says. No fact: billing tells its own.
pub fn set_billing_view(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, view: &BillingView) -> Result<()> {
    if store::set_billing_view(tx, app, tenant, view)? { Ok(()) } else { Err(Error::not_found("workspace")) }
}

pub fn holdings(tx: &mut Tx<'_>, app: AppId, id: TenantId) -> Result<Holdings> {
    store::holdings(tx, app, id)
}

/// Ends all access at once: the workspace, its memberships and tokens are gone, invitations to it are void, and so are
/// people who belonged nowhere else. What is left of them is purged in the background.
pub fn delete(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, id: TenantId) -> Result<()> {
    lock(tx, id)?;
    let tenant = get(tx, app, id)?;
    if acts_for_app(tx, app, id)? {
        return Err(Error::new(Code::WorkspaceInUse, ACTS_FOR_APP));
    }
    links::revoke_invitations(tx, app, id)?;
    api_tokens::revoke_of_workspace(tx, &tenancy.api_tokens, app, id)?;
    let gone = store::delete(tx, app, id)?;
    purge::remember(tx, app, Owner::Workspace, &[id])?;
    purge::remember(tx, app, Owner::Person, &gone)?;
    emit(tx, (app, id), &TenantDeleted(told(&tenant)))
}

/// Without such a workspace nobody could act for the app any more, and nobody could tell why.
pub const ACTS_FOR_APP: &str = "This is the app's operator workspace. Change the app's operatorTenantId first.";

/// Whether the workspace's members act for the whole app. Whoever makes it so holds the workspace's lock.
pub fn acts_for_app(tx: &mut Tx<'_>, app: AppId, id: TenantId) -> Result<bool> {
    Ok(apps::get(tx, app)?.profile.operator_tenant_id == Some(id))
}

/// What others are told of it.
fn told(tenant: &Tenant) -> WorkspaceData {
    WorkspaceData { id: tenant.id, name: tenant.name.clone(), plan: tenant.plan.clone() }
}
