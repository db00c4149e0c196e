//! The second factor of a login: the page that asks for its code, and the way out with the backup code. Five wrong
//! codes end the login; whoever comes back to one that is over is led to its start.

use http::StatusCode;
use kernel::{Code, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{
    LimitClass, Params, Routes, State,
    pages::{Field, FieldKind, HostedPage},
};

use super::{
    ButtonForm, PageQuery, Reply, Sent, Visit, finish,
    flash::{self, Flash},
    go_on, known_browser, passkeys, paths,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
    mfa::{Enrolled, SecondFactor, Setup, Stage, flows},
    sessions::LoginClaims,
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login")
        .get(paths::MFA, show, "Ask for the second factor")
        .post(paths::MFA, submit, "Take the second factor's code")
        .post(paths::MFA_RESEND, resend, "Resend the code by SMS")
        .limited(LimitClass::Message)
        .get(paths::MFA_BACKUP, show_backup, "Ask for the backup code")
        .post(paths::MFA_BACKUP, submit_backup, "Reset the second factor with the backup code")
}

/// The login under way and what it waits for; `None` when it is over.
pub(super) async fn stage(visit: &Visit) -> Result<Option<(LoginClaims, Stage)>> {
    let found = match visit.login() {
        Ok(session) => flows::stage(&visit.identity, &visit.app, session.clone()).await.map(|stage| (session, stage)),
        Err(error) => Err(error),
    };
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code() == Code::InvalidCredential => Ok(None),
        Err(error) => Err(error),
    }
}

/// The page of a login that is over.
pub(super) fn over(visit: &Visit) -> Result<Reply> {
    let page = visit
        .page("Session expired")
        .status(StatusCode::UNAUTHORIZED)
        .paragraph(
            &visit
                .say("This sign-in has expired, is already complete, or had too many incorrect codes. Sign in again."),
        )
        .link("", &visit.say("Back to sign-in"), &visit.path(paths::IDENTIFIER)?);
    Ok(visit.show_once(page))
}

/// The problem that has no field: the login is over.
const OVER: &str = "over";

/// Leads from a form to the page of a login that is over.
pub(super) fn leads_over(visit: &Visit) -> Result<Reply> {
    flash::back(visit, visit.path(paths::MFA)?, Flash::new().problem(OVER, ""))
}

/// What is wrong with a code that was refused; any other error is not the code's.
pub(super) fn problem(visit: &Visit, error: Error) -> Result<String> {
    match error.code() {
        Code::WrongCode => Ok(visit.say("The code is incorrect, has expired, or has already been used.")),
        _ => Err(error),
    }
}

/// Where a login goes that waits for something else than its page is about.
pub(super) fn page_of(stage: &Stage) -> &'static str {
    match stage {
        Stage::Challenge(_) => paths::MFA,
        Stage::Choose | Stage::Phone(_) | Stage::App(_) => paths::MFA_SETUP,
        Stage::Passed => paths::WORKSPACE,
    }
}

/// As much of a number as its owner needs to know it by.
pub(super) fn masked(phone: &str) -> String {
    let kept = phone.char_indices().rev().nth(1).map_or(0, |(at, _)| at);
    format!("•••{}", &phone[kept..])
}

/// People type codes with spaces, as they are printed.
pub(super) fn without_spaces(code: &str) -> String {
    code.chars().filter(|c| !c.is_whitespace()).collect()
}

pub(super) fn code_field(visit: &Visit, problem: Option<&str>) -> Field {
    Field::new(FieldKind::OneTimeCode, "code", &visit.say("Code")).error(problem).focused()
}

fn challenge_page(visit: &Visit, enrolled: &Enrolled, problem: Option<&str>, sent: bool) -> Result<HostedPage> {
    match &enrolled.factor {
        Some(factor) => {
            let page = code_page(visit, factor, problem, sent)?;
            if enrolled.passkeys { passkeys::with_quiet_button(visit, page) } else { Ok(page) }
        }
        None => passkey_page(visit),
    }
}

/// For somebody whose only second factor is a passkey: signing in with it meets what is asked for.
fn passkey_page(visit: &Visit) -> Result<HostedPage> {
    let page = visit.page("Use your passkey").paragraph(&visit.say("{appName} requires your passkey to sign you in."));
    let page = passkeys::with_button(visit, page)?;
    Ok(page.link("", &visit.say("Use a different email address"), &visit.path(paths::IDENTIFIER)?))
}

fn code_page(visit: &Visit, factor: &SecondFactor, problem: Option<&str>, sent: bool) -> Result<HostedPage> {
    let ask = match factor {
        SecondFactor::Sms { phone } => {
            visit.say("Enter the code we sent to {phone}.").replace("{phone}", &masked(phone))
        }
        SecondFactor::Totp { .. } => visit.say("Enter the code from your authenticator app."),
    };
    let mut page = visit.page("Enter your code");
    if sent {
        page = page.notice(&visit.say("We have sent a new code."));
    }
    let form = visit.form(paths::MFA)?.field(code_field(visit, problem)).button(&visit.say("Continue"));
    page = page.paragraph(&ask).form(&form);
    if matches!(factor, SecondFactor::Sms { .. }) {
        page = page.form(&visit.form(paths::MFA_RESEND)?.quiet().button(&visit.say("Resend code")));
    }
    Ok(page.link(&visit.say("Lost your phone?"), &visit.say("Use your backup code"), &visit.path(paths::MFA_BACKUP)?))
}

/// The query of a page to which another code may just have been sent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct ChallengeQuery {
    r: String,
    /// Present after another code was sent.
    sent: Option<String>,
}

async fn show(
    request: Request,
    State(identity): State<Identity>,
    Params(query): Params<ChallengeQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &query.r).await?;
    let left = flash::left_for(&visit, paths::MFA);
    match stage(&visit).await? {
        Some(_) if left.problem_of(OVER).is_some() => over(&visit),
        None => over(&visit),
        Some((_, Stage::Challenge(enrolled))) => {
            let page = challenge_page(&visit, &enrolled, left.problem_of("code"), query.sent.is_some())?;
            Ok(visit.show_once(if left.is_problem() { page.status(StatusCode::UNAUTHORIZED) } else { page }))
        }
        Some((_, elsewhere)) => Ok(Reply::found(visit.path(page_of(&elsewhere))?)),
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CodeForm {
    pub(super) r: String,
    #[serde(default)]
    pub(super) csrf: String,
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) code: String,
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
            Some((session, Stage::Challenge(_))) => session,
            Some((_, elsewhere)) => return Ok(Reply::see(visit.path(page_of(&elsewhere))?)),
        };
        match flows::commit(&identity, &known_browser::source(&visit), session, without_spaces(&form.code)).await {
            Ok(session) => go_on(&visit, session).await,
            Err(error) if error.code() == Code::InvalidCredential => leads_over(&visit),
            Err(error) => {
                let problem = problem(&visit, error)?;
                flash::back(&visit, visit.path(paths::MFA)?, Flash::new().problem("code", problem))
            }
        }
    })
    .await
}

/// For a factor that is asked for, and for a phone that is being set up.
async fn resend(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<ButtonForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
        let Some((session, stage)) = stage(&visit).await? else { return leads_over(&visit) };
        let page = page_of(&stage);
        let sent = match stage {
            Stage::Challenge(_) => flows::challenge(&identity, &visit.app, session).await.map(|_| ()),
            Stage::Phone(phone) => {
                flows::start_setup(&identity, &visit.app, session, Setup::Sms { phone }).await.map(|_| ())
            }
            Stage::Choose | Stage::App(_) | Stage::Passed => return Ok(Reply::see(visit.path(page)?)),
        };
        match sent {
            Ok(()) => Ok(Reply::see(format!("{}&sent=1", visit.path(page)?))),
            Err(error) if matches!(error.code(), Code::InvalidCredential | Code::MfaRequired) => leads_over(&visit),
            Err(error) => Err(error),
        }
    })
    .await
}

async fn show_backup(
    request: Request,
    ForRequest(identity): ForRequest,
    Params(PageQuery { r }): Params<PageQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    match stage(&visit).await? {
        None => over(&visit),
        Some((_, Stage::Challenge(_))) => {
            let left = flash::left_for(&visit, paths::MFA_BACKUP);
            let page = backup_page(&visit, left.problem_of("code"))?;
            Ok(visit.show_once(if left.is_problem() { page.status(StatusCode::UNAUTHORIZED) } else { page }))
        }
        Some((_, elsewhere)) => Ok(Reply::found(visit.path(page_of(&elsewhere))?)),
    }
}

fn backup_page(visit: &Visit, problem: Option<&str>) -> Result<HostedPage> {
    let field = Field::new(FieldKind::Text, "code", &visit.say("Backup code")).error(problem).focused();
    let form = visit.form(paths::MFA_BACKUP)?.field(field).button(&visit.say("Continue"));
    Ok(visit
        .page("Use your backup code")
        .paragraph(
            &visit.say(
                "You received it when you set up two-step verification. It works once; after that, set up two-step verification again.",
            ),
        )
        .form(&form)
        .link("", &visit.say("Enter a verification code instead"), &visit.path(paths::MFA)?))
}

async fn submit_backup(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<CodeForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
        let session = match stage(&visit).await? {
            None => return leads_over(&visit),
            Some((session, Stage::Challenge(_))) => session,
            Some((_, elsewhere)) => return Ok(Reply::see(visit.path(page_of(&elsewhere))?)),
        };
        match flows::reset(&identity, &known_browser::source(&visit), session, without_spaces(&form.code)).await {
            Ok(session) => finish::ask_factor(&visit, &session),
            Err(error) if error.code() == Code::InvalidCredential => leads_over(&visit),
            Err(error) => {
                let problem = problem(&visit, error)?;
                flash::back(&visit, visit.path(paths::MFA_BACKUP)?, Flash::new().problem("code", problem))
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_number_shows_its_end_alone() {
        assert_eq!(super::masked("+491701234567"), "•••67");
        assert_eq!((super::masked("7").as_str(), super::masked("").as_str()), ("•••7", "•••"));
    }
}
