//! The first page, which asks who somebody is, and the second, which asks for the password or offers another way. Both
//! are the same for addresses with and without an account.

use http::StatusCode;
use kernel::{Code, Error, Result, Secret};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{
    Params, Routes, State,
    pages::{Field, FieldKind, HostedPage},
};

use super::{
    PageQuery, Reply, Sent, Visit,
    address::{self, AddressForm, AddressStep},
    flash::{self, Flash},
    go_on, known_browser, passkeys, paths, ways,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
    login,
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login")
        .get(paths::IDENTIFIER, show, "Ask who is signing in")
        .post(paths::IDENTIFIER, submit, "Take the address of who is signing in")
        .get(paths::PASSWORD, show_password, "Ask for the password")
        .post(paths::PASSWORD, submit_password, "Sign in with a password")
}

async fn show(
    request: Request,
    State(identity): State<Identity>,
    Params(PageQuery { r }): Params<PageQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    address::show(&visit, paths::IDENTIFIER, identifier_page)
}

fn identifier_page(visit: &Visit, typed: &str, problem: Option<&str>) -> Result<HostedPage> {
    let field = address::field(visit, typed, problem);
    let form = visit.form(paths::IDENTIFIER)?.field(field).button(&visit.say("Continue"));
    let mut page = visit.page("Sign in to {appName}");
    if let Some(problem) = flash::left_for(visit, paths::IDENTIFIER).problem_of("passkey") {
        page = page.alert(problem);
    }
    page = ways::offer_providers(visit, passkeys::offer(visit, page.form(&form))?)?;
    if visit.federated {
        // Browsers hold the redirect to an identity provider against the policy of the page whose form led there.
        page = page.form_anywhere(visit.identity.tenancy.base_url.starts_with("https:"));
    }
    if visit.app.profile.tenant_self_signup {
        let (words, label) = (visit.say("New to {appName}?"), visit.say("Create an account"));
        page = page.link(&words, &label, &visit.path(paths::SIGN_UP)?);
    }
    Ok(page)
}

async fn submit(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<AddressForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        match address::take(&identity, &request, &form, paths::IDENTIFIER).await? {
            AddressStep::Again(page) => Ok(page),
            AddressStep::Address(visit, email) => Ok(Reply::see(ways::first(&visit, &email).await?)),
        }
    })
    .await
}

async fn show_password(
    request: Request,
    ForRequest(identity): ForRequest,
    Params(PageQuery { r }): Params<PageQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    if visit.request.username.is_none() {
        return Ok(Reply::found(visit.path(paths::IDENTIFIER)?));
    }
    let left = flash::left_for(&visit, paths::PASSWORD);
    let page = password_page(&visit, left.problem_of("password"))?;
    Ok(visit.show_once(if left.is_problem() { page.status(StatusCode::UNAUTHORIZED) } else { page }))
}

fn password_page(visit: &Visit, problem: Option<&str>) -> Result<HostedPage> {
    let username = visit.request.username.as_deref().unwrap_or_default();
    let form = visit
        .form(paths::PASSWORD)?
        .field(Field::new(FieldKind::Username, "username", &visit.say("Email address")).value(username).fixed())
        .field(Field::new(FieldKind::Password, "password", &visit.say("Password")).error(problem).focused())
        .button(&visit.say("Sign in"));
    let mut page = visit.page("Sign in to {appName}").form(&form);
    if visit.app.profile.magic_link_enabled {
        page = page.form(&visit.form(paths::SEND_LINK)?.button(&visit.say("Email me a sign-in link")).quiet());
    }
    let page = page.link("", &visit.say("Forgot your password?"), &visit.path(paths::FORGOT)?);
    Ok(page.link("", &visit.say("Use a different email address"), &visit.path(paths::IDENTIFIER)?))
}

#[derive(Deserialize, JsonSchema)]
struct WithPassword {
    r: String,
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    #[schemars(length(max = 4096))]
    password: String,
}

async fn submit_password(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<WithPassword>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
        let username = visit.request.username.clone().ok_or_else(|| Error::invalid("username", "is required"))?;
        let password = Secret::new(form.password);
        match login::password(&identity, &visit.app, &known_browser::source(&visit), &username, password).await {
            Ok(session) => go_on(&visit, session).await,
            Err(error) if error.code() == Code::InvalidCredential => {
                login::mail_first_password(&identity, &visit.app, &username, visit.request.clone()).await?;
                // Said to everybody alike, whoever they are.
                let wrong = visit.say("Incorrect email address or password.");
                let hint = visit.say("If you have not set a password yet, we have emailed you a link to set one.");
                let problem = format!("{wrong} {hint}");
                flash::back(&visit, visit.path(paths::PASSWORD)?, Flash::new().problem("password", problem))
            }
            Err(error) => Err(error),
        }
    })
    .await
}
