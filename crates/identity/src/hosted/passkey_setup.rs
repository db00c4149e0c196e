//! Setting up a passkey on the hosted pages: asking for the mailed link, and the page that the link leads to. The link
//! is used up when the passkey is stored, not before.

use http::StatusCode;
use kernel::{Code, Error, Problems, Result, is_email};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::links::{self, Purpose};
use web::{
    Form, Json, LimitClass, Params, Routes, State, Validate, WithHeaders,
    pages::{Field, FieldKind, HostedPage},
};

use super::{
    At, Reply, Visit,
    passkeys::{Answered, ceremony, with_button, with_script},
    paths,
};
use crate::{
    Identity,
    authorize::LoginRequest,
    browser::Request,
    passkeys::{self, http::OptionsAnswer},
    tokens::unstored,
};

const SENT: &str = "/auth/login/passkey-link/sent";
const SETUP: &str = "/auth/login/passkey-setup";
const OPTIONS: &str = "/auth/login/passkey-setup/options";
const READY: &str = "/auth/login/passkey-ready";

pub(super) fn routes() -> Routes<Identity> {
    Routes::new("Hosted login")
        .get(paths::PASSKEY_LINK, show_link, "Ask where to mail the link that sets up a passkey")
        .page()
        .hidden()
        .post(paths::PASSKEY_LINK, mail_link, "Mail a link that sets up a passkey")
        .page()
        .hidden()
        .limited(LimitClass::Message)
        .get(SENT, sent, "Say that the link was mailed")
        .page()
        .hidden()
        .get(SETUP, show, "Show the page behind a mailed link that sets up a passkey")
        .page()
        .hidden()
        .post(OPTIONS, options, "WebAuthn creation options for a hosted page")
        .hidden()
        .post(SETUP, submit, "Store a new passkey")
        .page()
        .hidden()
        .limited(LimitClass::Credential)
        .get(READY, ready, "Say that the passkey is ready")
        .page()
        .hidden()
}

async fn show_link(request: Request, State(identity): State<Identity>, Params(At { r }): Params<At>) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    passkeys::check_enabled(&visit.app)?;
    Ok(visit.show(link_page(&visit, visit.request.username.as_deref().unwrap_or_default(), None)?))
}

fn link_page(visit: &Visit, typed: &str, problem: Option<&str>) -> Result<HostedPage> {
    let field = Field::new(FieldKind::Username, "username", &visit.say("E-mail address"));
    let field = field.value(typed).error(problem).focused();
    let form = visit.form(paths::PASSKEY_LINK)?.field(field).button(&visit.say("Send the link"));
    Ok(visit
        .page("Set up a passkey")
        .paragraph(
            &visit.say(
                "With a passkey you sign in by fingerprint, face or screen lock. We mail you a link to set it up.",
            ),
        )
        .form(&form)
        .link("", &visit.say("Back to the sign-in page"), &visit.path(paths::IDENTIFIER)?))
}

/// To whom to mail.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Who {
    r: String,
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    username: String,
}

impl Validate for Who {
    fn validate(&self, _: &mut Problems) {}
}

async fn mail_link(request: Request, State(identity): State<Identity>, Form(form): Form<Who>) -> Result<Reply> {
    let mut visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
    let username = form.username.trim();
    if !is_email(username) {
        let problem = visit.say("Enter an e-mail address, such as ada@example.com.");
        return Ok(visit.show(link_page(&visit, username, Some(&problem))?.status(StatusCode::BAD_REQUEST)));
    }
    passkeys::mail_setup_link(&identity, &visit.app, username).await?;
    visit.request.username = Some(username.to_owned());
    Ok(Reply::see(visit.path(SENT)?))
}

/// The same for addresses with and without an account.
async fn sent(request: Request, State(identity): State<Identity>, Params(At { r }): Params<At>) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    let text =
        visit.say("If {email} has an account, a link that sets up a passkey is on its way. It works for one hour.");
    let page = visit
        .page("Check your mail")
        .paragraph(&text.replace("{email}", visit.request.username.as_deref().unwrap_or_default()))
        .link("", &visit.say("Back to the sign-in page"), &visit.path(paths::IDENTIFIER)?);
    Ok(visit.show(page))
}

/// The mailed token.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Link {
    token: String,
}

impl Validate for Link {
    fn validate(&self, _: &mut Problems) {}
}

async fn show(
    request: Request,
    State(identity): State<Identity>,
    Params(Link { token }): Params<Link>,
) -> Result<Reply> {
    let peeked = token.clone();
    let link = identity.tenancy.db.read(move |tx| links::peek(tx, Purpose::PasskeySetup, &peeked)).await?;
    let app = identity.app(&request, link.app)?;
    let back = LoginRequest::to_default(&app).ok_or_else(|| {
        Error::new(Code::Conflict, "This app has no address to sign in to. Tell the people who run it.")
    })?;
    let visit = Visit::for_request(&identity, &request, back).await?;
    passkeys::check_enabled(&visit.app)?;
    Ok(visit.show(setup_page(&visit, &token, None)?))
}

fn setup_page(visit: &Visit, token: &str, problem: Option<&str>) -> Result<HostedPage> {
    let form = ceremony(visit, visit.form(SETUP)?.hidden("token", token), "create", OPTIONS)
        .button(&visit.say("Set up a passkey"))
        .data("cancelled", &visit.say("No passkey was made. You can try again."))
        .data("known", &visit.say("This device has a passkey for this account already. You can sign in with it."))
        .data("unsupported", &visit.say("This browser knows no passkeys. Open the link in another one."));
    let mut page = visit.page("Set up a passkey");
    if let Some(problem) = problem {
        page = page.alert(problem);
    }
    Ok(with_script(page)
        .paragraph(
            &visit.say(
                "With a passkey you sign in to {appName} by fingerprint, face or screen lock instead of a password.",
            ),
        )
        .without_script(&visit.say("Passkeys need JavaScript. Switch it on, or open the link in another browser."))
        .form(&form))
}

/// What the options are for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Asked {
    r: String,
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    token: String,
}

impl Validate for Asked {
    fn validate(&self, _: &mut Problems) {}
}

async fn options(
    request: Request,
    State(identity): State<Identity>,
    Form(form): Form<Asked>,
) -> Result<WithHeaders<Json<OptionsAnswer>>> {
    let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
    passkeys::check_enabled(&visit.app)?;
    let origin = passkeys::own_origin(&identity);
    let options = passkeys::registration_options(&identity, &visit.app, &origin, &form.token).await?;
    Ok(unstored(OptionsAnswer::of(options)))
}

async fn submit(request: Request, State(identity): State<Identity>, Form(form): Form<Answered>) -> Result<Reply> {
    let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
    passkeys::check_enabled(&visit.app)?;
    match passkeys::verify_registration(&identity, &visit.app, &form.token, form.ceremony(&identity)).await {
        Ok(()) => Ok(Reply::see(visit.path(READY)?)),
        Err(error) if error.code() == Code::PasskeyRejected => {
            let problem = visit.say("This did not work. Please try again.");
            Ok(visit.show(setup_page(&visit, &form.token, Some(&problem))?.status(StatusCode::BAD_REQUEST)))
        }
        Err(error) if error.code() == Code::InvalidCredential => {
            let page = visit
                .page("This link does not work any more")
                .status(StatusCode::UNAUTHORIZED)
                .paragraph(&visit.say("It was used, replaced, or has expired."))
                .link("", &visit.say("Send me another link"), &visit.path(paths::PASSKEY_LINK)?);
            Ok(visit.show(page))
        }
        Err(error) => Err(error),
    }
}

async fn ready(request: Request, State(identity): State<Identity>, Params(At { r }): Params<At>) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    let page = visit.page("Your passkey is ready").paragraph(&visit.say("From now on, you can sign in with it."));
    let page = with_button(&visit, page)?;
    Ok(visit.show(page.link("", &visit.say("Back to the sign-in page"), &visit.path(paths::IDENTIFIER)?)))
}
