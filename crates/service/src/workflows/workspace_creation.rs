//! `POST /account/tenant`: a workspace with its plan and its first owner, in one transaction.

use billing::subscriptions;
use kernel::{Email, Locale, Name, Result, WebUrl, Words, text::MAX_NAME};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Tx;
use tenancy::{
    App, Tenancy,
    apps::{self, parameters::Parameters},
    callers::{AppCaller, TenantWrite},
    members::{self, Joining},
    people, roles,
    workspaces::{self, BillingView, MAX_METADATA, Metadata, NewWorkspace, SignupBy, Tenant},
};
use web::{Json, Routes, State, Valid, Validate};

use crate::Core;

pub(super) fn routes() -> Routes<Core> {
    Routes::new("Workspaces").post("/account/tenant", create, "Create a workspace and invite its owner")
}

/// The body of `POST /account/tenant`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewTenant {
    pub owner: NewOwner,
    /// The owner's full name without it.
    pub name: Option<Name>,
    /// The key of a plan of the app.
    pub plan: Option<Words>,
    /// English without it.
    pub locale: Option<Locale>,
    /// An absolute http or https URL.
    pub logo: Option<WebUrl>,
    pub onboarded: Option<bool>,
    #[schemars(extend("x-maxBytes" = MAX_METADATA))]
    pub metadata: Option<Metadata>,
    /// Written by the app alone.
    #[schemars(extend("x-maxBytes" = MAX_METADATA))]
    pub app_metadata: Option<Metadata>,
    /// Whether the owner gets no invitation by mail.
    pub mute_notifications: Option<bool>,
}

/// The person who becomes OWNER.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewOwner {
    pub email: Email,
    pub first_name: Name,
    pub last_name: Name,
}

impl Validate for NewTenant {}

impl NewTenant {
    fn to_workspace(&self, billing: BillingView) -> NewWorkspace {
        let signup_by = SignupBy {
            email: self.owner.email.to_string(),
            first_name: self.owner.first_name.to_string(),
            last_name: self.owner.last_name.to_string(),
        };
        let name = match &self.name {
            Some(name) => name.to_string(),
            None => people::full_name(&signup_by.first_name, &signup_by.last_name).chars().take(MAX_NAME).collect(),
        };
        NewWorkspace {
            name,
            locale: self.locale.unwrap_or(Locale::ENGLISH),
            logo: self.logo.clone().map(String::from),
            onboarded: self.onboarded.unwrap_or(false),
            metadata: self.metadata.clone().unwrap_or_default(),
            app_metadata: self.app_metadata.clone().unwrap_or_default(),
            jit_provisioning: true,
            signup_by,
            billing,
        }
    }
}

async fn create(
    caller: AppCaller<TenantWrite>,
    State(core): State<Core>,
    Valid(new): Valid<NewTenant>,
) -> Result<Json<Tenant>> {
    let (app, tenancy) = (caller.app.clone(), core.tenancy.clone());
    Ok(Json(core.db.by(&caller).write(move |tx| create_workspace(tx, &tenancy, &app, &new)).await?))
}

/// Makes the workspace, its subscription and its OWNER, who is invited by mail unless that is muted.
pub fn create_workspace(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, new: &NewTenant) -> Result<Tenant> {
    apps::hold(tx, app.id)?;
    let first = subscriptions::prepare_first(tx, app, "plan", new.plan.as_deref())?;
    let tenant = workspaces::create(tx, app.id, &new.to_workspace(first.view.clone()))?;
    subscriptions::begin_first(tx, app, tenant.id, &first)?;
    let owner = Joining {
        email: &new.owner.email,
        first_name: &new.owner.first_name,
        last_name: &new.owner.last_name,
        role: &roles::assign(tx, app.id, Some(roles::OWNER))?,
        onboarded: false,
        parameters: &Parameters::default(),
        email_verified: false,
        invite: !new.mute_notifications.unwrap_or_default(),
    };
    members::add(tx, tenancy, app, &tenant, &owner)?;
    Ok(tenant)
}
