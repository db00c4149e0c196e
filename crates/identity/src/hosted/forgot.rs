//! The page for somebody who has forgotten their password: a mail is on its way, whether there is an account or not.

use kernel::Result;
use web::{LimitClass, Params, Routes, State, pages::HostedPage};

use super::{
    PageQuery, Reply, Sent, Visit,
    address::{self, AddressForm, AddressStep},
    magic_link::MailedWhat,
    paths,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
    login,
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login")
        .get(paths::FORGOT, show, "Ask whose password was forgotten")
        .post(paths::FORGOT, submit, "Email a password reset link")
        .limited(LimitClass::Message)
}

async fn show(
    request: Request,
    State(identity): State<Identity>,
    Params(PageQuery { r }): Params<PageQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    address::show(&visit, paths::FORGOT, page)
}

fn page(visit: &Visit, typed: &str, problem: Option<&str>) -> Result<HostedPage> {
    let field = address::field(visit, typed, problem);
    let form = visit.form(paths::FORGOT)?.field(field).button(&visit.say("Email me a link"));
    Ok(visit
        .page("Reset your password")
        .paragraph(&visit.say("Enter your email address and we will send you a link to choose a new password."))
        .form(&form)
        .link("", &visit.say("Back to sign-in"), &visit.path(paths::IDENTIFIER)?))
}

async fn submit(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<AddressForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        match address::take(&identity, &request, &form, paths::FORGOT).await? {
            AddressStep::Again(page) => Ok(page),
            AddressStep::Address(visit, username) => {
                login::forgotten(&identity, &visit.app, &username, Some(visit.request.clone())).await?;
                MailedWhat::Reset.lead(&visit)
            }
        }
    })
    .await
}
