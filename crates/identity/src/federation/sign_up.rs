//! Signing up with a provider that has proven the address: names and a workspace, and no mail. What was proven travels sealed in the
//! page's address, for this browser alone. The form is taken by the service, because it makes a workspace.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use kernel::{Error, Name, OptionalName, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{App, apps::OnboardingFlow, paths};
use vault::Place;
use web::{
    Params, Routes, State,
    pages::{Field, FieldKind},
};

use super::Newcomer;
use crate::{
    Identity,
    browser::Request,
    hosted::{
        Reply, Visit,
        flash::{self, Flash},
        go_on,
    },
    login::{self, SignUpRequest},
    sessions::BegunSession,
};

const LIFETIME: Duration = Duration::from_secs(3600);

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login").get(paths::PROVIDER_SIGN_UP, show, "Ask somebody whom a provider knows to sign up")
}

fn place(visit: &Visit) -> Place<'static> {
    Place { table: "newcomers", column: "url", row: "", app: Some(visit.app.id) }
}

/// The address of the page for somebody.
pub(super) fn path(visit: &Visit, newcomer: &Newcomer) -> Result<String> {
    let until = visit.identity.tenancy.db.clock().now().plus(LIFETIME);
    let json = serde_json::to_vec(&(until, visit.browser(), newcomer)).map_err(Error::internal)?;
    let sealed = visit.identity.tenancy.keyring.seal_for_page(&place(visit), &json);
    Ok(address(visit.path(paths::PROVIDER_SIGN_UP)?, &sealed))
}

fn address(page: String, proof: &str) -> String {
    page + "&proof=" + proof
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct ProviderSignUpQuery {
    r: String,
    /// What the provider has proven, sealed.
    proof: String,
}

/// Somebody on the page.
pub struct ProviderSignUpPage {
    visit: Visit,
    pub newcomer: Newcomer,
    proof: String,
}

async fn show(
    request: Request,
    State(identity): State<Identity>,
    Params(ProviderSignUpQuery { r, proof }): Params<ProviderSignUpQuery>,
) -> Result<Reply> {
    ProviderSignUpPage::of(Visit::open(&identity, &request, &r).await?, proof)?.ask()
}

impl ProviderSignUpPage {
    /// 400 unless this service sealed the proof, not too long ago, for this browser.
    fn of(visit: Visit, proof: String) -> Result<Self> {
        login::check_sign_up(&visit.app)?;
        let broken = || Error::invalid("proof", "is not valid any more. Go back to the app and sign in again");
        let tenancy = &visit.identity.tenancy;
        let json = tenancy.keyring.open_from_page(&place(&visit), &proof).map_err(|_| broken())?;
        let (until, browser, newcomer): (Timestamp, String, Newcomer) =
            serde_json::from_slice(json.expose()).map_err(|_| broken())?;
        if until <= tenancy.db.clock().now() || !visit.is_browser(&browser) {
            return Err(broken());
        }
        Ok(Self { visit, newcomer, proof })
    }

    /// A form that was sent from this page, by this browser: 403 otherwise.
    pub async fn submitted(identity: &Identity, from: &Request, r: &str, csrf: &str, proof: &str) -> Result<Self> {
        Self::of(Visit::submitted(identity, from, r, csrf).await?, proof.to_owned())
    }

    pub fn app(&self) -> Arc<App> {
        Arc::clone(&self.visit.app)
    }

    /// Whether the form asks for the name of the workspace.
    pub fn asks_for_name(&self) -> bool {
        self.visit.app.profile.onboarding_flow == OnboardingFlow::B2B
    }

    /// What is made of the form.
    pub fn request(&self, first_name: &str, last_name: &str) -> SignUpRequest {
        SignUpRequest {
            email: self.newcomer.email.clone(),
            first_name: first_name.to_owned(),
            last_name: last_name.to_owned(),
            preferences: self.visit.request.sign_up.clone().unwrap_or_default(),
            request: None,
        }
    }

    fn ask(&self) -> Result<Reply> {
        let visit = &self.visit;
        let left = flash::left_for(visit, paths::PROVIDER_SIGN_UP);
        let typed = |field: &str, known: &str| left.typed_in(field).unwrap_or(known).to_owned();
        let Newcomer { email, first_name, last_name, .. } = &self.newcomer;
        let first = Field::new(FieldKind::GivenName, "first_name", &visit.say("First name"));
        let last = Field::new(FieldKind::FamilyName, "last_name", &visit.say("Last name (optional)"));
        let mut form = visit
            .form(paths::PROVIDER_SIGN_UP)?
            .hidden("proof", &self.proof)
            .field(Field::new(FieldKind::Username, "username", &visit.say("Email address")).value(email).fixed())
            .field(first.value(&typed("first_name", first_name)).error(left.problem_of("first_name")).focused())
            .field(last.value(&typed("last_name", last_name)).error(left.problem_of("last_name")).optional());
        if self.asks_for_name() {
            let default = self.request(first_name, last_name).workspace_name();
            let name = Field::new(FieldKind::Organization, "workspace", &visit.say("Workspace name"));
            form = form.field(
                name.value(&typed("workspace", &default))
                    .hint(&visit.say("For example, the name of your company or team."))
                    .error(left.problem_of("workspace")),
            );
        }
        let page = visit.page("Sign up for {appName}").form(&form.button(&visit.say("Create an account"))).link(
            &visit.say("Already have an account?"),
            &visit.say("Sign in"),
            &visit.path(paths::IDENTIFIER)?,
        );
        Ok(visit.show_once(if left.is_problem() { page.status(StatusCode::BAD_REQUEST) } else { page }))
    }

    /// Leads back to the form when something in it is wrong.
    pub fn refused(&self, first_name: &str, last_name: &str, workspace: &str) -> Result<Option<Reply>> {
        let visit = &self.visit;
        let mut left = Flash::new();
        if Name::problem(first_name).is_some() {
            left = left.problem("first_name", visit.say("Enter your first name."));
        }
        if OptionalName::problem(last_name).is_some() {
            left = left.problem("last_name", visit.say("Enter a shorter last name."));
        }
        if self.asks_for_name() && Name::problem(workspace).is_some() {
            left = left.problem("workspace", visit.say("Enter a name for the workspace."));
        }
        if !left.is_problem() {
            return Ok(None);
        }
        let left = left.typed("first_name", first_name).typed("last_name", last_name).typed("workspace", workspace);
        flash::back(visit, address(visit.path(paths::PROVIDER_SIGN_UP)?, &self.proof), left).map(Some)
    }

    /// Continues as after any login.
    pub async fn signed_in(&self, begun: BegunSession) -> Result<Reply> {
        go_on(&self.visit, begun.sign(&self.visit.identity.tenancy)?).await
    }
}
