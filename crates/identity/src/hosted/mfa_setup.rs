//! Setting up a second factor during a login: the choice, the first code, and the backup code, which is shown once.
//! A set-up under way is kept with the login, so that showing its page again changes nothing.

use http::StatusCode;
use kernel::{Code, Result, text::e164};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{
    LimitClass, Params, Routes, State,
    pages::{Field, FieldKind, HostedPage},
};

use super::{
    ButtonForm, Reply, Sent, Visit,
    cookies::Cookie,
    finish,
    flash::{self, Flash},
    known_browser,
    mfa::{self, CodeForm, code_field, leads_over, masked, over, page_of, stage, without_spaces},
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

/// Where a flash keeps the backup code.
const BACKUP_CODE: &str = "backup_code";

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
    let left = flash::left_for(&visit, paths::MFA_SETUP);
    let page = match stage(&visit).await? {
        None => return over(&visit),
        Some((session, Stage::Passed)) if session.mfa == MfaState::Completed => {
            // Shown again however often the page is loaded, until the button is pressed.
            return Ok(visit.show(match left.typed_in(BACKUP_CODE) {
                Some(code) => backup_page(&visit, code)?,
                None => done_page(&visit)?,
            }));
        }
        Some((_, stage @ (Stage::Challenge(_) | Stage::Passed))) => {
            return Ok(Reply::found(visit.path(page_of(&stage))?));
        }
        Some(_) if query.choose.is_some() => {
            choice_page(&visit, left.typed_in("phone").unwrap_or_default(), left.problem_of("phone"))?
        }
        Some((_, stage)) => setup_page(&visit, &stage, left.problem_of("code"), query.sent.is_some())?,
    };
    let status = match (left.problem_of("code"), left.problem_of("phone")) {
        (Some(_), _) => StatusCode::UNAUTHORIZED,
        (_, Some(_)) => StatusCode::BAD_REQUEST,
        (None, None) => StatusCode::OK,
    };
    Ok(visit.show_once(page.status(status)))
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

async fn choose(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<Choice>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
        let session = match stage(&visit).await? {
            None => return leads_over(&visit),
            Some((_, Stage::Challenge(_))) => return Ok(Reply::see(visit.path(paths::MFA)?)),
            Some((_, Stage::Passed)) => return Ok(Reply::see(visit.path(paths::MFA_SETUP)?)),
            Some((session, Stage::Choose | Stage::Phone(_) | Stage::App(_))) => session,
        };
        let setup = match (form.method, e164(&form.phone)) {
            (Method::Totp, _) => Setup::Totp,
            (_, Some(phone)) => Setup::Sms { phone },
            (_, None) => {
                let problem = visit.say("Enter a phone number with its country code, such as +49 170 1234567.");
                let left = Flash::new().typed("phone", &form.phone).problem("phone", problem);
                return flash::back(&visit, format!("{}&choose=1", visit.path(paths::MFA_SETUP)?), left);
            }
        };
        match flows::start_setup(&identity, &visit.app, session, setup).await {
            Ok(_) => Ok(Reply::see(visit.path(paths::MFA_SETUP)?)),
            Err(error) if is_over(error.code()) => leads_over(&visit),
            Err(error) => Err(error),
        }
    })
    .await
}

/// The login ended meanwhile, or a factor was set up in another one, which has to be shown first.
fn is_over(code: Code) -> bool {
    matches!(code, Code::InvalidCredential | Code::MfaRequired)
}

async fn submit(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<CodeForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
        let session = match stage(&visit).await? {
            None => return leads_over(&visit),
            Some((session, Stage::Phone(_) | Stage::App(_))) => session,
            Some((_, Stage::Challenge(_))) => return Ok(Reply::see(visit.path(paths::MFA)?)),
            Some((_, Stage::Choose | Stage::Passed)) => return Ok(Reply::see(visit.path(paths::MFA_SETUP)?)),
        };
        match flows::finish_setup(&identity, &known_browser::source(&visit), session, without_spaces(&form.code)).await
        {
            Ok((session, backup_code)) => {
                // The code stands in no address: the page finds it in a sealed cookie, until its button is pressed.
                let left = Flash::new().typed(BACKUP_CODE, &backup_code);
                let reply = flash::back(&visit, visit.path(paths::MFA_SETUP)?, left)?;
                Ok(reply.with_cookie(finish::login_cookie(&visit, &session)))
            }
            Err(error) if is_over(error.code()) => leads_over(&visit),
            Err(error) => {
                let problem = mfa::problem(&visit, error)?;
                flash::back(&visit, visit.path(paths::MFA_SETUP)?, Flash::new().problem("code", problem))
            }
        }
    })
    .await
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

async fn go_on(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<ButtonForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
        match stage(&visit).await? {
            None => leads_over(&visit),
            Some((session, Stage::Passed)) => {
                Ok(finish::resume(&visit, session).await?.with_cookie(visit.clear(Cookie::Flash)))
            }
            Some((_, elsewhere)) => Ok(Reply::see(visit.path(page_of(&elsewhere))?)),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_key_is_read_in_groups() {
        assert_eq!(super::grouped("ABCDEFGHIJ"), "ABCD EFGH IJ");
    }
}
