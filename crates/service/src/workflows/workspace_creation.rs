//! `POST /account/tenant`: a workspace with its plan and its first owner, in one transaction.

use kernel::{EMAIL_PATTERN, Locale, Problems, Result, is_email};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Tx;
use tenancy::{
    App, Tenancy, apps,
    callers::{AppCaller, TenantWrite},
    members::{self, Joining},
    people, roles,
    workspaces::{self, BillingView, Metadata, NewWorkspace, SignupBy, Tenant, check_logo, check_metadata},
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
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub name: Option<String>,
    /// The key of a plan of the app.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub plan: Option<String>,
    /// English without it.
    pub locale: Option<Locale>,
    /// An absolute http or https URL.
    #[schemars(url)]
    pub logo: Option<String>,
    pub onboarded: Option<bool>,
    pub metadata: Option<Metadata>,
    /// Whether the owner gets no invitation by mail.
    pub mute_notifications: Option<bool>,
}

/// The person who becomes OWNER.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewOwner {
    #[schemars(length(min = 3, max = 254), regex(pattern = EMAIL_PATTERN))]
    pub email: String,
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub first_name: String,
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub last_name: String,
}

impl Validate for NewTenant {
    fn validate(&self, problems: &mut Problems) {
        problems.check("owner.email", is_email(&self.owner.email), "must be an email address");
        problems.text("owner.firstName", &self.owner.first_name);
        problems.text("owner.lastName", &self.owner.last_name);
        for (field, text) in [("name", &self.name), ("plan", &self.plan)] {
            if let Some(text) = text {
                problems.text(field, text);
            }
        }
        check_logo(problems, self.logo.as_ref());
        check_metadata(problems, self.metadata.as_ref());
    }
}

impl NewTenant {
    fn to_workspace(&self, billing: BillingView) -> NewWorkspace {
        let signup_by = SignupBy {
            email: self.owner.email.clone(),
            first_name: self.owner.first_name.trim().to_owned(),
            last_name: self.owner.last_name.trim().to_owned(),
        };
        let name = match &self.name {
            Some(name) => name.trim().to_owned(),
            None => people::full_name(&signup_by.first_name, &signup_by.last_name),
        };
        NewWorkspace {
            name,
            locale: self.locale.unwrap_or(Locale::ENGLISH),
            logo: self.logo.clone(),
            onboarded: self.onboarded.unwrap_or(false),
            metadata: self.metadata.clone().unwrap_or_default(),
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
    Ok(Json(core.db.write(move |tx| create_workspace(tx, &tenancy, &app, &new)).await?))
}

/// Makes the workspace, its plan's view and its OWNER, who is invited by mail unless that is muted.
pub fn create_workspace(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, new: &NewTenant) -> Result<Tenant> {
    apps::hold(tx, app.id)?;
    let billing = billing::view_for_new_workspace(tx, app, "plan", new.plan.as_deref())?;
    let tenant = workspaces::create(tx, app.id, &new.to_workspace(billing))?;
    let owner = Joining {
        email: &new.owner.email,
        first_name: &new.owner.first_name,
        last_name: &new.owner.last_name,
        role: &roles::assign(tx, app.id, Some(roles::OWNER))?,
        invite: !new.mute_notifications.unwrap_or_default(),
    };
    members::add(tx, tenancy, app, &tenant, &owner)?;
    Ok(tenant)
}
