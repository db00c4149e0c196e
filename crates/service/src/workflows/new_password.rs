//! `PUT /auth/auth/password`: sets a password with a mailed link. After a sign-up it also makes the person and the
//! workspace, which is why it stands here and not with the other login flows.

use identity::login::{NewPassword, Outcome, SignUpRequest};
use kernel::{Error, Locale, Problems, Result, Secret, UserId};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Tx;
use tenancy::{
    App, Tenancy, apps,
    members::{self, Joining},
    people, roles,
    workspaces::{self, Metadata, NewWorkspace, SignupBy},
};
use web::{ClientAddress, Routes, State, Success, Valid, Validate};

use crate::Core;

pub(super) fn routes() -> Routes<Core> {
    Routes::new("JSON login")
        .put("/auth/auth/password", set, "Set a password with a mailed link")
        .answers(401, "The link is not valid or has expired")
        .answers(429, "Too many attempts; see Retry-After")
}

/// The body of `PUT /auth/auth/password`.
#[derive(Deserialize, JsonSchema)]
struct SetPassword {
    /// From the mailed link: of an invitation, a reset or a sign-up.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    token: String,
    /// At least 8 characters, and not easy to guess.
    #[schemars(length(min = 8, max = 512))]
    password: String,
}

impl Validate for SetPassword {
    fn validate(&self, problems: &mut Problems) {
        problems.text("token", &self.token);
    }
}

async fn set(
    ClientAddress(client): ClientAddress,
    State(core): State<Core>,
    Valid(body): Valid<SetPassword>,
) -> Result<Success> {
    core.identity.addresses.check(client)?;
    let prepared = NewPassword::prepare(&core.identity, &body.token, Secret::new(body.password)).await;
    let new = prepared.inspect_err(|error| {
        if error.code() == kernel::Code::InvalidCredential {
            core.identity.addresses.fail(client);
        }
    })?;
    let app = core.tenancy.apps.find(new.app).await?.ok_or_else(|| Error::not_found("app"))?;
    let tenancy = core.tenancy.clone();
    core.db
        .write(move |tx| {
            if let Outcome::SignUp(request) = new.apply(tx, &app)? {
                let user = complete_sign_up(tx, &tenancy, &app, &request)?;
                new.set_for(tx, user)?;
            }
            Ok(())
        })
        .await?;
    Ok(Success)
}

/// Makes the person and a workspace whose OWNER they are.
fn complete_sign_up(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, request: &SignUpRequest) -> Result<UserId> {
    apps::hold(tx, app.id)?;
    let SignUpRequest { email, first_name, last_name } = request;
    let named = people::full_name(first_name, last_name);
    let new = NewWorkspace {
        name: if named.is_empty() { email.clone() } else { named },
        locale: Locale::ENGLISH,
        logo: None,
        onboarded: false,
        metadata: Metadata::new(),
        jit_provisioning: true,
        signup_by: SignupBy { email: email.clone(), first_name: first_name.clone(), last_name: last_name.clone() },
        billing: billing::view_for_new_workspace(tx, app, "plan", None)?,
    };
    let tenant = workspaces::create(tx, app.id, &new)?;
    let role = roles::assign(tx, app.id, Some(roles::OWNER))?;
    let owner = Joining { email, first_name, last_name, role: &role, invite: false };
    Ok(members::add(tx, tenancy, app, &tenant, &owner)?.user_id)
}
