//! Setting up a second factor during a login: the choice, the first code, and the backup code, which is shown once.
//! A set-up under way is kept with the login, so that showing its page again changes nothing.

use http::StatusCode;
use kernel::{Code, Result, text::e164};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{
    Form, LimitClass, Params, Routes, State,
    pages::{Field, FieldKind, HostedPage},
};

use super::{
    ButtonForm, Reply, Visit, finish, known_browser,
    mfa::{self, CodeForm, code_field, masked, over, page_of, stage, without_spaces},
    paths,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
    mfa::{NewSecret, Setup, Stage, flows},
    proof::MfaState,
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login")
        .get(paths::MFA_SETUP, show, "Ask to set up a second factor")
        .post(paths::MFA_SETUP, choose, "Start setting up a second factor")
        .limited(LimitClass::Message)
        .post(paths::MFA_SETUP_FINISH, submit, "Finish setting up a second factor")
        .post(paths::MFA_CONTINUE, go_on, "Continue after the backup code was shown")
}

/// The query of the page.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SetupPage {
    r: String,
    /// Present after another code was sent.
    sent: Option<String>,
    /// Present to choose once more.
    choose: Option<String>,
}

async fn show(request: Request, State(identity): State<Identity>, Params(query): Params<SetupPage>) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &query.r).await?;
    let page = match stage(&visit).await? {
        None => return over(&visit),
        Some((session, Stage::Passed)) if session.mfa == MfaState::Completed => done_page(&visit)?,
        Some((_, stage @ (Stage::Challenge(_) | Stage::Passed))) => {
            return Ok(Reply::found(visit.path(page_of(&stage))?));
        }
        Some(_) if query.choose.is_some() => choice_page(&visit, "", None)?,
        Some((_, stage)) => setup_page(&visit, &stage, None, query.sent.is_some())?,
    };
    Ok(visit.show(page))
}

/// The page of a set-up, as far as it has come.
fn setup_page(visit: &Visit, stage: &Stage, problem: Option<&str>, sent: bool) -> Result<HostedPage> {
    match stage {
        Stage::Phone(phone) => phone_page(visit, phone, problem, sent),
        Stage::App(secret) => app_page(visit, secret, problem),
        Stage::Choose | Stage::Challenge(_) | Stage::Passed => choice_page(visit, "", problem),
    }
}

fn choice_page(visit: &Visit, typed: &str, problem: Option<&str>) -> Result<HostedPage> {
    let field = Field::new(FieldKind::Phone, "phone", &visit.say("Phone number"));
    let field =
        field.value(typed).hint(&visit.say("Include the country code, for example +49 170 1234567.")).error(problem);
    let app = visit.form(paths::MFA_SETUP)?.hidden("method", "totp").button(&visit.say("Use an authenticator app"));
    let sms = visit.form(paths::MFA_SETUP)?.hidden("method", "sms").field(field).quiet();
    Ok(visit
        .page("Set up two-step verification")
        .paragraph(&visit.say("When you sign in, {appName} will also ask for a code that only you can get."))
        .form(&app)
        .form(&sms.button(&visit.say("Get codes by SMS"))))
}

fn phone_page(visit: &Visit, phone: &str, problem: Option<&str>, sent: bool) -> Result<HostedPage> {
    let mut page = visit.page("Set up two-step verification");
    if sent {
        page = page.notice(&visit.say("We have sent a new code."));
    }
    let form = visit.form(paths::MFA_SETUP_FINISH)?.field(code_field(visit, problem)).button(&visit.say("Continue"));
    page = page
        .paragraph(&visit.say("Enter the code we sent to {phone}.").replace("{phone}", &masked(phone)))
        .form(&form)
        .form(&visit.form(paths::MFA_RESEND)?.quiet().button(&visit.say("Resend code")));
    choose_again(visit, page)
}

fn app_page(visit: &Visit, secret: &NewSecret, problem: Option<&str>) -> Result<HostedPage> {
    let form = visit.form(paths::MFA_SETUP_FINISH)?.field(code_field(visit, problem)).button(&visit.say("Continue"));
    let page = visit
        .page("Set up two-step verification")
        .paragraph(&visit.say("Scan this QR code with your authenticator app, then enter the code it shows."))
        .qr_code(&visit.say("QR code for your authenticator app"), &secret.url)?
        .aside(&visit.say("Or enter this key in the app:"))
        .code(&grouped(&secret.base32))
        .link("", &visit.say("Open your authenticator app on this device"), &secret.url)
        .form(&form);
    choose_again(visit, page)
}

fn choose_again(visit: &Visit, page: HostedPage) -> Result<HostedPage> {
    let again = format!("{}&choose=1", visit.path(paths::MFA_SETUP)?);
    Ok(page.link("", &visit.say("Choose another method"), &again))
}

/// For reading it off.
fn grouped(key: &str) -> String {
    let letters: Vec<char> = key.chars().collect();
    let groups: Vec<String> = letters.chunks(4).map(|group| group.iter().collect()).collect();
    groups.join(" ")
}

/// What to set up.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Method {
    Totp,
    Sms,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Choice {
    r: String,
    #[serde(default)]
    csrf: String,
    method: Method,
    #[serde(default)]
    #[schemars(length(max = 64))]
    phone: String,
}

async fn choose(request: Request, ForRequest(identity): ForRequest, Form(form): Form<Choice>) -> Result<Reply> {
    let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
    let session = match stage(&visit).await? {
        None => return over(&visit),
        Some((_, Stage::Challenge(_))) => return Ok(Reply::see(visit.path(paths::MFA)?)),
        Some((_, Stage::Passed)) => return Ok(Reply::see(visit.path(paths::MFA_SETUP)?)),
        Some((session, Stage::Choose | Stage::Phone(_) | Stage::App(_))) => session,
    };
    let setup = match (form.method, e164(&form.phone)) {
        (Method::Totp, _) => Setup::Totp,
        (_, Some(phone)) => Setup::Sms { phone },
        (_, None) => {
            let problem = visit.say("Enter a phone number with its country code, such as +49 170 1234567.");
            let page = choice_page(&visit, &form.phone, Some(&problem))?.status(StatusCode::BAD_REQUEST);
            return Ok(visit.show(page));
        }
    };
    match flows::start_setup(&identity, &visit.app, session, setup).await {
        Ok(_) => Ok(Reply::see(visit.path(paths::MFA_SETUP)?)),
        Err(error) if is_over(error.code()) => over(&visit),
        Err(error) => Err(error),
    }
}

/// The login ended meanwhile, or a factor was set up in another one, which has to be shown first.
fn is_over(code: Code) -> bool {
    matches!(code, Code::InvalidCredential | Code::MfaRequired)
}

async fn submit(request: Request, ForRequest(identity): ForRequest, Form(form): Form<CodeForm>) -> Result<Reply> {
    let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
    let session = match stage(&visit).await? {
        None => return over(&visit),
        Some((session, Stage::Phone(_) | Stage::App(_))) => session,
        Some((_, Stage::Challenge(_))) => return Ok(Reply::see(visit.path(paths::MFA)?)),
        Some((_, Stage::Choose | Stage::Passed)) => return Ok(Reply::see(visit.path(paths::MFA_SETUP)?)),
    };
    match flows::finish_setup(&identity, &known_browser::source(&visit), session, without_spaces(&form.code)).await {
        Ok((session, backup_code)) => {
            // Not a redirect: the code stands on this one page, and in no address.
            let reply = visit.show(backup_page(&visit, &backup_code)?);
            Ok(reply.with_cookie(finish::login_cookie(&visit, &session)))
        }
        Err(error) if is_over(error.code()) => over(&visit),
        Err(error) => {
            let problem = mfa::problem(&visit, error)?;
            let Some((_, stage @ (Stage::Phone(_) | Stage::App(_)))) = stage(&visit).await? else {
                return over(&visit);
            };
            Ok(visit.show(setup_page(&visit, &stage, Some(&problem), false)?.status(StatusCode::UNAUTHORIZED)))
        }
    }
}

fn backup_page(visit: &Visit, backup_code: &str) -> Result<HostedPage> {
    Ok(visit
        .page("Save your backup code")
        .paragraph(
            &visit.say("Two-step verification is on. If you lose your phone, you can sign in once with this code:"),
        )
        .code(backup_code)
        .paragraph(&visit.say("Write it down or save it in a password manager. It will not be shown again."))
        .form(&visit.form(paths::MFA_CONTINUE)?.button(&visit.say("I have saved it"))))
}

/// For somebody who comes back to the page when all is done.
fn done_page(visit: &Visit) -> Result<HostedPage> {
    Ok(visit
        .page("Two-step verification is on")
        .paragraph(&visit.say("You can now continue to {appName}."))
        .form(&visit.form(paths::MFA_CONTINUE)?.button(&visit.say("Continue"))))
}

async fn go_on(request: Request, ForRequest(identity): ForRequest, Form(form): Form<ButtonForm>) -> Result<Reply> {
    let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
    match stage(&visit).await? {
        None => over(&visit),
        Some((session, Stage::Passed)) => finish::resume(&visit, session).await,
        Some((_, elsewhere)) => Ok(Reply::see(visit.path(page_of(&elsewhere))?)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_key_is_read_in_groups() {
        assert_eq!(super::grouped("ABCDEFGHIJ"), "ABCD EFGH IJ");
    }
}
