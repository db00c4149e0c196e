//! The page for somebody who has forgotten their password: a mail is on its way, whether there is an account or not.

use http::StatusCode;
use kernel::{Problems, Result, is_email};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{
    Form, LimitClass, Params, Routes, State, Validate,
    pages::{Field, FieldKind, HostedPage},
};

use super::{At, Reply, Visit, paths};
use crate::{Identity, browser::Request, login};

pub(super) fn routes() -> Routes<Identity> {
    Routes::new("Hosted login")
        .get(paths::FORGOT, show, "Ask whose password was forgotten")
        .page()
        .hidden()
        .post(paths::FORGOT, submit, "Mail a link that sets a new password")
        .page()
        .hidden()
        .limited(LimitClass::Message)
}

async fn show(request: Request, State(identity): State<Identity>, Params(At { r }): Params<At>) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    let page = page(&visit, visit.request.username.as_deref().unwrap_or_default(), None)?;
    Ok(visit.show(page))
}

fn page(visit: &Visit, typed: &str, problem: Option<&str>) -> Result<HostedPage> {
    let field = Field::new(FieldKind::Username, "username", &visit.say("E-mail address"));
    let form = visit
        .form(paths::FORGOT)?
        .field(field.value(typed).error(problem).focused())
        .button(&visit.say("Mail me a link"));
    Ok(visit
        .page("Choose a new password")
        .paragraph(&visit.say("We mail you a link with which you choose a new password."))
        .form(&form)
        .link("", &visit.say("Back to signing in"), &visit.path(paths::IDENTIFIER)?))
}

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

async fn submit(request: Request, State(identity): State<Identity>, Form(form): Form<Who>) -> Result<Reply> {
    let mut visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
    let username = form.username.trim();
    if !is_email(username) {
        let problem = visit.say("Enter an e-mail address, such as ada@example.com.");
        let page = page(&visit, username, Some(&problem))?.status(StatusCode::BAD_REQUEST);
        return Ok(visit.show(page));
    }
    visit.request.username = Some(username.to_owned());
    login::forgotten(&identity, &visit.app, username, Some(visit.request.clone())).await?;
    Ok(Reply::see(visit.path(paths::LINK_SENT)?))
}
