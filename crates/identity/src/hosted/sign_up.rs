//! Signing up: names and an address, then a mail. Nothing is made before its link was followed, and an address that has
//! an account gets a mail that says so, so that the pages tell nobody.

use http::StatusCode;
use kernel::{Name, OptionalName, Result, is_email};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{
    LimitClass, Params, Routes, State,
    pages::{Field, FieldKind, HostedPage},
};

use super::{
    PageQuery, Reply, Sent, Visit,
    flash::{self, Flash},
    paths, ways,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
    login::{self, SignUpRequest},
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login")
        .get(paths::SIGN_UP, show, "Ask who is signing up")
        .post(paths::SIGN_UP, submit, "Email a link that completes a sign-up")
        .limited(LimitClass::Message)
        .get(paths::SIGN_UP_SENT, sent, "Say that the mail about a sign-up is on its way")
}

async fn show(
    request: Request,
    State(identity): State<Identity>,
    Params(PageQuery { r }): Params<PageQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    login::check_sign_up(&visit.app)?;
    let left = flash::left_for(&visit, paths::SIGN_UP);
    let page = page(&visit, &left)?;
    Ok(visit.show_once(if left.is_problem() { page.status(StatusCode::BAD_REQUEST) } else { page }))
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
struct Typed {
    #[serde(default)]
    r: String,
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    email: String,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: String,
}

fn page(visit: &Visit, left: &Flash) -> Result<HostedPage> {
    let typed = |field: &str| left.typed_in(field).unwrap_or_default().to_owned();
    let known = visit.request.username.clone().unwrap_or_default();
    let address = left.typed_in("email").map_or(known, str::to_owned);
    let first = Field::new(FieldKind::GivenName, "first_name", &visit.say("First name"));
    let last = Field::new(FieldKind::FamilyName, "last_name", &visit.say("Last name (optional)"));
    let email = Field::new(FieldKind::Email, "email", &visit.say("Email address"));
    let form = visit
        .form(paths::SIGN_UP)?
        .field(first.value(&typed("first_name")).error(left.problem_of("first_name")).focused())
        .field(last.value(&typed("last_name")).error(left.problem_of("last_name")).optional())
        .field(email.value(&address).error(left.problem_of("email")))
        .button(&visit.say("Create an account"));
    let (words, label) = (visit.say("Already have an account?"), visit.say("Sign in"));
    let page = ways::offer_providers(visit, visit.page("Sign up for {appName}").form(&form))?;
    let mut page = page.link(&words, &label, &visit.path(paths::IDENTIFIER)?);
    let profile = &visit.app.profile;
    for (label, address) in [
        (visit.say("Privacy policy"), &profile.privacy_policy_url),
        (visit.say("Terms of service"), &profile.terms_of_service_url),
    ] {
        if let Some(address) = address {
            page = page.link("", &label, address);
        }
    }
    Ok(page)
}

async fn submit(request: Request, ForRequest(identity): ForRequest, Sent { form, once }: Sent<Typed>) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let mut visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
        login::check_sign_up(&visit.app)?;
        let (email, first_name) = (form.email.trim().to_owned(), form.first_name.trim().to_owned());
        let last_name = form.last_name.trim().to_owned();
        let mut left = Flash::new();
        if !is_email(&email) {
            left = left.problem("email", visit.say("Enter a valid email address, such as ada@example.com."));
        }
        if Name::problem(&first_name).is_some() {
            left = left.problem("first_name", visit.say("Enter your first name."));
        }
        if OptionalName::problem(&last_name).is_some() {
            left = left.problem("last_name", visit.say("Enter a shorter last name."));
        }
        if left.is_problem() {
            let left = left.typed("email", &email).typed("first_name", &first_name).typed("last_name", &last_name);
            return flash::back(&visit, visit.path(paths::SIGN_UP)?, left);
        }
        visit.request.username = Some(email.clone());
        let sign_up = SignUpRequest {
            email,
            first_name,
            last_name,
            preferences: visit.request.sign_up.clone().unwrap_or_default(),
            request: Some(visit.request.seal(&identity.tenancy)?),
        };
        login::sign_up(&identity, &visit.app, sign_up).await?;
        Ok(Reply::see(visit.path(paths::SIGN_UP_SENT)?))
    })
    .await
}

async fn sent(
    request: Request,
    State(identity): State<Identity>,
    Params(PageQuery { r }): Params<PageQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    let Some(email) = &visit.request.username else {
        return Ok(Reply::found(visit.path(paths::SIGN_UP)?));
    };
    let page = visit
        .page("Check your inbox")
        .notice(&visit.say_of("We have sent an email to {email}. Open the link in it to continue.", email))
        .aside(&visit.say("The email can take a minute to arrive. If you do not see it, check your spam folder."))
        .link("", &visit.say("Send again"), &visit.path(paths::SIGN_UP)?)
        .link("", &visit.say("Use a different email address"), &visit.path(paths::SIGN_UP)?);
    Ok(visit.show(page))
}
