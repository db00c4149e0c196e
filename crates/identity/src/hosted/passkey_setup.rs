//! Setting up a passkey on the hosted pages: asking for the mailed link, and the page that the link leads to. The link
//! is used up when the passkey is stored, not before, and then leads on to where the app asked for the login.

use http::StatusCode;
use kernel::{Code, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::links::LinkPurpose;
use web::{Form, Json, LimitClass, Params, Routes, State, WithHeaders, pages::HostedPage};

use super::{
    Guest, PageQuery, Reply, Sent, Visit,
    address::{self, AddressForm, AddressStep},
    done,
    flash::{self, Flash},
    magic_link::MailedWhat,
    mailed::{FollowedLink, LinkPlace, LinkQuery, OpenedLink, to_link},
    passkeys::{PasskeyForm, ceremony, with_button, with_script},
    paths,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
    passkeys::{self, http::OptionsAnswer},
    tokens::unstored,
};

pub(super) fn routes() -> Routes<Identity> {
    let ceremony = Routes::new("Hosted login")
        .post(paths::PASSKEY_SETUP_OPTIONS, options, "WebAuthn creation options for a hosted page")
        .hidden();
    Routes::pages("Hosted login")
        .get(paths::PASSKEY_LINK, show_link, "Ask where to mail the link that sets up a passkey")
        .post(paths::PASSKEY_LINK, mail_link, "Email a link that sets up a passkey")
        .limited(LimitClass::Message)
        .get(paths::PASSKEY_SETUP, show, "Show the page behind a mailed link that sets up a passkey")
        .post(paths::PASSKEY_SETUP, submit, "Store a new passkey")
        .get(paths::PASSKEY_READY, ready, "Say that the passkey is ready")
        .merge(ceremony)
}

async fn show_link(
    request: Request,
    State(identity): State<Identity>,
    Params(PageQuery { r }): Params<PageQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    passkeys::check_enabled(&visit.app)?;
    address::show(&visit, paths::PASSKEY_LINK, link_page)
}

fn link_page(visit: &Visit, typed: &str, problem: Option<&str>) -> Result<HostedPage> {
    let field = address::field(visit, typed, problem);
    let form = visit.form(paths::PASSKEY_LINK)?.field(field).button(&visit.say("Email me a link"));
    Ok(visit
        .page("Set up a passkey")
        .paragraph(
            &visit.say(
                "A passkey lets you sign in with your fingerprint, face or screen lock. We will email you a link to set one up.",
            ),
        )
        .form(&form)
        .link("", &visit.say("Back to sign-in"), &visit.path(paths::IDENTIFIER)?))
}

async fn mail_link(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<AddressForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        match address::take(&identity, &request, &form, paths::PASSKEY_LINK).await? {
            AddressStep::Again(page) => Ok(page),
            AddressStep::Address(visit, username) => {
                passkeys::mail_setup_link(&identity, &visit.app, &username, Some(visit.request.clone())).await?;
                MailedWhat::Passkey.lead(&visit)
            }
        }
    })
    .await
}

async fn open(identity: &Identity, request: &Request, token: &str) -> Result<OpenedLink> {
    FollowedLink::open(identity, request, &[LinkPurpose::PasskeySetup], token).await
}

async fn show(
    request: Request,
    State(identity): State<Identity>,
    Params(LinkQuery { token }): Params<LinkQuery>,
) -> Result<Reply> {
    let mailed = match open(&identity, &request, &token).await? {
        OpenedLink::Valid(mailed) => mailed,
        OpenedLink::Over(page) => return Ok(page),
    };
    passkeys::check_enabled(&mailed.place.app)?;
    let left = flash::left_for(&mailed.place, paths::PASSKEY_SETUP);
    let page = setup_page(&mailed, left.problem_of("passkey"));
    Ok(mailed.place.show_once(if left.is_problem() { page.status(StatusCode::BAD_REQUEST) } else { page }))
}

fn setup_page(mailed: &FollowedLink, problem: Option<&str>) -> HostedPage {
    let place = &mailed.place;
    let form = ceremony(place, mailed.form(paths::PASSKEY_SETUP), "create", paths::PASSKEY_SETUP_OPTIONS)
        .button(&place.say("Set up a passkey"))
        .data("cancelled", &place.say("No passkey was created. You can try again."))
        .data("known", &place.say("This device already has a passkey for this account. You can sign in with it."))
        .data(
            "unsupported",
            &place.say("This browser does not support passkeys. Open the link in a different browser."),
        );
    let mut page = place.page("Set up a passkey");
    if let Some(problem) = problem {
        page = page.alert(problem);
    }
    let why = place.say(
        "A passkey lets you sign in to {appName} with your fingerprint, face or screen lock instead of a password.",
    );
    with_script(page)
        .paragraph(&why)
        .highlight(&mailed.email)
        .without_script(&place.say("Passkeys need JavaScript. Turn it on, or open the link in a different browser."))
        .form(&form)
}

/// What the options are for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SetupOptionsForm {
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    token: String,
}

async fn options(
    request: Request,
    ForRequest(identity): ForRequest,
    Form(form): Form<SetupOptionsForm>,
) -> Result<WithHeaders<Json<OptionsAnswer>>> {
    let OpenedLink::Valid(mailed) = open(&identity, &request, &form.token).await? else {
        return Err(passkeys::invalid_setup());
    };
    mailed.place.check_form(&form.csrf)?;
    passkeys::check_enabled(&mailed.place.app)?;
    let origin = passkeys::own_origin(&identity);
    let options = passkeys::registration_options(&identity, &mailed.place.app, &origin, &form.token).await?;
    Ok(unstored(OptionsAnswer::of(options)))
}

async fn submit(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<PasskeyForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let mailed = match open(&identity, &request, &form.token).await? {
            OpenedLink::Valid(mailed) => mailed,
            OpenedLink::Over(_) => return Ok(Reply::see(to_link(paths::PASSKEY_SETUP, &form.token))),
        };
        let place = &mailed.place;
        place.check_form(&form.csrf)?;
        passkeys::check_enabled(&place.app)?;
        match passkeys::verify_registration(&identity, &place.app, &form.token, form.ceremony(&identity)).await {
            Ok(()) => match place {
                LinkPlace::Login(visit) => Ok(Reply::see(visit.path(paths::PASSKEY_READY)?)),
                LinkPlace::DeadEnd(guest) => done::lead(guest, done::PASSKEY),
            },
            Err(error) if matches!(error.code(), Code::PasskeyRejected | Code::InvalidCredential) => {
                // The link, or the challenge alone: its page knows.
                let left = Flash::new().problem("passkey", place.say("Something went wrong. Try again."));
                flash::back(place, to_link(paths::PASSKEY_SETUP, &form.token), left)
            }
            Err(error) => Err(error),
        }
    })
    .await
}

fn ready_page(guest: &Guest, page: HostedPage) -> HostedPage {
    page.paragraph(&guest.say("You can now use it to sign in."))
}

async fn ready(
    request: Request,
    State(identity): State<Identity>,
    Params(PageQuery { r }): Params<PageQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    let page = with_button(&visit, ready_page(&visit, visit.page("Your passkey is ready")))?;
    Ok(visit.show(page.link("", &visit.say("Sign in another way"), &visit.path(paths::IDENTIFIER)?)))
}
