//! Signing in with a passkey on the hosted pages. It belongs to this service's own host, whatever origins the app
//! allows. The one script there is runs the ceremony; its outcome comes as a form like any other.

use http::header;
use kernel::{Code, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{
    Form, Json, Routes, Script, WithHeaders,
    pages::{HostedPage, PostForm},
};

use super::{
    ButtonForm, Guest, Reply, Sent, Visit,
    flash::{self, Flash},
    go_on, paths,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
    passkeys::{self, Ceremony, http::OptionsAnswer},
    tokens::unstored,
};

const SCRIPT: &str = "/cloud-views/passkey.js";

pub(super) fn routes() -> Routes<Identity> {
    let ceremony = Routes::new("Hosted login")
        .get(SCRIPT, script, "The passkey ceremonies of the hosted pages")
        .hidden()
        .post(paths::PASSKEY_OPTIONS, options, "WebAuthn request options for a hosted page")
        .hidden();
    Routes::pages("Hosted login").post(paths::PASSKEY, submit, "Sign in with a passkey").merge(ceremony)
}

async fn script() -> Result<WithHeaders<Script>> {
    let script = Script(include_str!("passkey.js"));
    Ok(WithHeaders::new(script).with(header::CACHE_CONTROL, "public, max-age=300"))
}

/// Offers to sign in with a passkey, and to set one up, where the app has them switched on.
pub(super) fn offer(visit: &Visit, page: HostedPage) -> Result<HostedPage> {
    if !passkeys::are_possible(&visit.identity, &visit.app) {
        return Ok(page);
    }
    let link = visit.path(paths::PASSKEY_LINK)?;
    let page = page.form(&button(visit)?.quiet()).script(SCRIPT);
    Ok(page.link("", &visit.say("Set up a passkey"), &link))
}

/// On a page that is about nothing else.
pub(super) fn with_button(visit: &Visit, page: HostedPage) -> Result<HostedPage> {
    Ok(page.form(&button(visit)?).script(SCRIPT))
}

/// Beside another way.
pub(super) fn with_quiet_button(visit: &Visit, page: HostedPage) -> Result<HostedPage> {
    if !passkeys::are_possible(&visit.identity, &visit.app) {
        return Ok(page);
    }
    Ok(page.form(&button(visit)?.quiet()).script(SCRIPT))
}

/// Shows only where a script runs and the browser knows passkeys.
fn button(visit: &Visit) -> Result<PostForm> {
    let form = ceremony(visit, visit.form(paths::PASSKEY)?, "get", paths::PASSKEY_OPTIONS)
        .button(&visit.say("Sign in with a passkey"));
    Ok(form.data("cancelled", &visit.say("No passkey was used. Try again, or sign in another way.")))
}

/// A form that the script fills in after a ceremony.
pub(super) fn ceremony(guest: &Guest, form: PostForm, ceremony: &str, options: &str) -> PostForm {
    form.id("passkey")
        .hidden("challenge", "")
        .hidden("credential", "")
        .data("ceremony", ceremony)
        .data("options", options)
        .data("failed", &guest.say("Something went wrong. Reload the page and try again."))
        .needs_script()
}

pub(super) fn with_script(page: HostedPage) -> HostedPage {
    page.script(SCRIPT)
}

async fn options(
    request: Request,
    ForRequest(identity): ForRequest,
    Form(form): Form<ButtonForm>,
) -> Result<WithHeaders<Json<OptionsAnswer>>> {
    let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
    passkeys::check_enabled(&visit.app)?;
    let options = passkeys::authentication_options(&identity, &visit.app, &passkeys::own_origin(&identity))?;
    Ok(unstored(OptionsAnswer::of(options)))
}

/// What the script sends after a ceremony.
#[derive(Deserialize, JsonSchema)]
pub(super) struct PasskeyForm {
    /// The login request, when somebody signs in.
    #[serde(default)]
    r: String,
    #[serde(default)]
    pub(super) csrf: String,
    /// The mailed token, when a passkey is set up.
    #[serde(default)]
    pub(super) token: String,
    #[serde(default)]
    challenge: String,
    #[serde(default)]
    credential: String,
}

impl PasskeyForm {
    /// What is not JSON is not a credential either, which the check finds.
    pub(super) fn ceremony(&self, identity: &Identity) -> Ceremony {
        Ceremony {
            origin: passkeys::own_origin(identity),
            challenge_token: self.challenge.clone(),
            credential: serde_json::from_str(&self.credential).unwrap_or_default(),
        }
    }
}

async fn submit(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<PasskeyForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
        let shown = form.ceremony(&identity);
        match passkeys::sign_in(&identity, &visit.app, visit.client, shown).await {
            Ok(session) => go_on(&visit, session).await,
            Err(error) if error.code() == Code::InvalidCredential => {
                let problem = visit.say("This passkey is not registered here, or it could not be verified. Try again.");
                flash::back(&visit, visit.path(paths::IDENTIFIER)?, Flash::new().problem("passkey", problem))
            }
            Err(error) => Err(error),
        }
    })
    .await
}
