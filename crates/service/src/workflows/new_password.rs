//! Setting a password with a mailed link: `PUT /auth/auth/password`, and the form of the hosted page. After a sign-up
//! both also make the person and the workspace, which is why they stand here and not with the other login flows.

use billing::subscriptions::{self, FirstPlan};
use identity::{
    abuse::LIMITED,
    authorize::SignUpPreferences,
    hosted::{self, Reply, Sent, SetPasswordPage},
    login::{NewPassword, PasswordOutcome, SignUpRequest},
};
use kernel::{Actor, Code, Error, Locale, Name, Password, Result, Secret, UserId, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use store::Tx;
use tenancy::{
    App, Tenancy,
    apps::{self, parameters::Parameters},
    members::{self, Joining},
    paths, people, roles,
    workspaces::{self, Metadata, NewWorkspace, SignupBy},
};
use web::{Anyone, Routes, Scope, State, Success, Valid, Validate};

use crate::Core;

pub(super) fn routes() -> Routes<Core> {
    Routes::new("JSON login")
        .put("/auth/auth/password", set, "Set a password with a mailed link")
        .answers(401, "The link is not valid or has expired")
        .answers(429, LIMITED)
        .merge(Routes::pages("Hosted login").post(paths::SET_PASSWORD, submit, "Set a password and sign in"))
}

/// The body of `PUT /auth/auth/password`.
#[derive(Deserialize, JsonSchema)]
struct SetPassword {
    /// From the mailed link: of an invitation, a reset or a sign-up.
    token: Words,
    /// At least 8 characters, and not easy to guess.
    #[schemars(length(min = vault::passwords::MIN_LENGTH))]
    password: Secret<Password>,
}

impl Validate for SetPassword {}

async fn set(caller: Anyone, State(core): State<Core>, Valid(body): Valid<SetPassword>) -> Result<Success> {
    set_password(&core, &caller.0, &body.token, body.password.map(String::from), None).await?;
    Ok(Success)
}

/// The form of the hosted page.
#[derive(Deserialize, JsonSchema)]
struct PasswordForm {
    #[serde(default)]
    token: String,
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    #[schemars(length(max = 4096))]
    password: String,
    /// The name of the workspace, when one is made.
    #[serde(default)]
    workspace: String,
}

async fn submit(
    request: hosted::Request,
    State(core): State<Core>,
    Sent { form, once }: Sent<PasswordForm>,
) -> Result<Reply> {
    let tenancy = core.tenancy.clone();
    let submitted = async move {
        let identity = core.identity.by(&request);
        let opened = SetPasswordPage::submitted(&identity, &request, &form.token, &form.csrf).await?;
        let Ok(page) = opened else { return Ok(SetPasswordPage::over(&form.token)) };
        let name = form.workspace.trim();
        if let Some(problem) = Name::problem(name).filter(|_| page.asks_for_name()) {
            return page.refused(name, &Error::invalid("workspace", problem));
        }
        let named = page.asks_for_name().then(|| name.to_owned());
        match set_password(&core, request.scope(), &form.token, Secret::new(form.password), named).await {
            Ok(user) => page.signed_in(user).await,
            Err(error) if error.code() == Code::ValidationFailed => page.refused(name, &error),
            Err(error) if error.code() == Code::InvalidCredential => Ok(SetPasswordPage::over(&form.token)),
            Err(error) => Err(error),
        }
    };
    Box::pin(once.run(tenancy, submitted)).await
}

/// Sets the password that a link allows to set; whose it is. `workspace` names the one that a sign-up makes.
async fn set_password(
    core: &Core,
    scope: &Scope,
    token: &str,
    password: Secret<String>,
    workspace: Option<String>,
) -> Result<UserId> {
    let new = match NewPassword::prepare(&core.identity, token, password).await {
        // A good link works whatever others did from the same address; only those that are not valid are counted.
        Err(error) if error.code() == Code::InvalidCredential => {
            core.identity.addresses.take(scope.client())?;
            return Err(error);
        }
        prepared => prepared?,
    };
    let app = core.tenancy.apps.find(new.app).await?.ok_or_else(|| Error::not_found("app"))?;
    let tenancy = core.tenancy.clone();
    let set = core.db.by(scope).write(move |tx| match new.apply(tx, &app)? {
        PasswordOutcome::Set(user) => Ok(user),
        PasswordOutcome::SignUp(request) => {
            let user = complete_sign_up(tx, &tenancy, &app, &request, workspace.as_deref())?;
            new.set_for(tx, user)?;
            Ok(user)
        }
    });
    set.await
}

/// Makes the person and a workspace whose OWNER they are.
pub(super) fn complete_sign_up(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    request: &SignUpRequest,
    workspace: Option<&str>,
) -> Result<UserId> {
    apps::hold(tx, app.id)?;
    let SignUpRequest { email, first_name, last_name, preferences, .. } = request;
    let (person, _) = people::find_or_create(tx, app.id, email, first_name.trim(), last_name.trim())?;
    tx.acting_as(Actor::user(person.id));
    people::name_themselves(tx, app.id, person.id, first_name.trim(), last_name.trim())?;
    let (first, metadata) = begin_with(tx, app, preferences)?;
    let new = NewWorkspace {
        name: workspace.map_or_else(|| request.workspace_name(), str::to_owned),
        locale: Locale::ENGLISH,
        logo: None,
        onboarded: false,
        metadata,
        app_metadata: Metadata::new(),
        jit_provisioning: true,
        signup_by: SignupBy { email: email.clone(), first_name: first_name.clone(), last_name: last_name.clone() },
        billing: first.view.clone(),
    };
    let tenant = workspaces::create(tx, app.id, &new)?;
    subscriptions::begin_first(tx, app, tenant.id, &first)?;
    let role = roles::assign(tx, app.id, Some(roles::OWNER))?;
    let owner = Joining {
        email,
        first_name,
        last_name,
        role: &role,
        onboarded: false,
        parameters: &Parameters::default(),
        email_verified: false,
        invite: false,
    };
    Ok(members::add(tx, tenancy, app, &tenant, &owner)?.member.user_id)
}

/// The plan that somebody chose when they signed up: a free one is theirs at once, any other has to be paid for
/// first and is remembered until then.
fn begin_with(tx: &mut Tx<'_>, app: &App, preferences: &SignUpPreferences) -> Result<(FirstPlan, Metadata)> {
    // A plan that was deleted since cannot be given any more.
    let plan = match &preferences.plan {
        Some(key) => billing::catalog::find_plan_by_key(tx, app.id, key)?,
        None => None,
    };
    let free = plan.as_ref().filter(|plan| plan.is_free()).map(|plan| plan.key.as_str());
    let first = subscriptions::prepare_first(tx, app, "plan", free)?;
    let mut metadata = Metadata::new();
    if let Some(plan) = plan.as_ref().filter(|plan| !plan.is_free()) {
        let chosen =
            json!({ "plan": plan.key, "currency": preferences.currency, "recurrenceInterval": preferences.interval });
        metadata.insert("signup".into(), chosen);
    }
    Ok((first, metadata))
}
