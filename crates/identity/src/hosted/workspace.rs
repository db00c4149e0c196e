//! The choice of a workspace, for people who belong to several.

use kernel::{Code, MemberId, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::standing::{self, Standing};
use web::{Params, Routes, State};

use super::{
    PageQuery, Reply, Sent, Visit,
    cookies::Cookie,
    finish::{self, SignInProof},
    mfa, paths,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
    browser_sessions, sessions,
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login").get(paths::WORKSPACE, show, "Ask for the workspace to sign in to").post(
        paths::WORKSPACE,
        submit,
        "Sign in to a workspace",
    )
}

/// Who is choosing: the login under way, else whoever is signed in and may be taken at their word.
async fn chooser(visit: &Visit) -> Result<Option<(SignInProof, Vec<Standing>)>> {
    let login = visit.login().ok().filter(|claims| claims.mfa.is_met());
    let (app, cookie) = (visit.app.id, visit.cookie(Cookie::SignedIn).map(str::to_owned));
    let not_before = visit.request.not_before;
    let found = visit.identity.tenancy.db.read(move |tx| {
        if let Some(claims) = &login
            && sessions::check_live(tx, claims).is_ok_and(|at| not_before.is_none_or(|not_before| at >= not_before))
        {
            return Ok(Some((
                SignInProof::Login(claims.clone()),
                standing::of_user(tx, app, claims.sub, claims.reach)?,
            )));
        }
        let Some(cookie) = &cookie else { return Ok(None) };
        let session = browser_sessions::live(tx, app, cookie)?;
        let session = session.filter(|at| not_before.is_none_or(|not_before| at.authenticated_at > not_before));
        let Some(session) = session else { return Ok(None) };
        Ok(Some((SignInProof::Browser(cookie.clone()), standing::of_user(tx, app, session.user, session.reach())?)))
    });
    Ok(found.await?.filter(|(_, standings)| !standings.is_empty()))
}

async fn show(
    request: Request,
    State(identity): State<Identity>,
    Params(PageQuery { r }): Params<PageQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    let Some((_, standings)) = chooser(&visit).await? else {
        return Ok(Reply::found(visit.path(paths::IDENTIFIER)?));
    };
    let mut form = visit.form(paths::WORKSPACE)?;
    for standing in &standings {
        form = form.choice("member", &standing.member.to_string(), &standing.tenant_name);
    }
    let person = standings.first().map(|standing| standing.email.as_str()).unwrap_or_default();
    let page = visit
        .page("Choose a workspace")
        .paragraph(&visit.say_of("You are signed in as {email}.", person))
        .form(&form)
        .link("", &visit.say("Use a different email address"), &visit.path(paths::IDENTIFIER)?);
    Ok(visit.show(page))
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct WorkspaceForm {
    r: String,
    #[serde(default)]
    csrf: String,
    member: MemberId,
}

async fn submit(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<WorkspaceForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
        match chooser(&visit).await? {
            Some((proof, _)) => match finish::finish(&visit, proof, Some(form.member)).await {
                // A membership that has ended, or a login that another tab has finished.
                Err(error) if error.code() == Code::InvalidCredential => mfa::leads_over(&visit),
                finished => finished,
            },
            None => Ok(Reply::see(visit.path(paths::IDENTIFIER)?)),
        }
    })
    .await
}
