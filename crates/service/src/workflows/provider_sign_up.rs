//! Signing up with a provider that has proven the address: makes the person, the workspace and the login in one transaction.

use identity::{
    federation::ProviderSignUpPage,
    hosted::{self, Reply, Sent},
};
use kernel::Result;
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{apps, paths, people};
use web::{Routes, State};

use super::new_password::complete_sign_up;
use crate::Core;

pub(super) fn routes() -> Routes<Core> {
    Routes::pages("Hosted login").post(paths::PROVIDER_SIGN_UP, submit, "Sign up somebody whom a provider knows")
}

#[derive(Deserialize, JsonSchema)]
struct ProviderSignUpForm {
    r: String,
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    proof: String,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: String,
    /// The name of the workspace, when it is asked for.
    #[serde(default)]
    workspace: String,
}

async fn submit(
    request: hosted::Request,
    State(core): State<Core>,
    Sent { form, once }: Sent<ProviderSignUpForm>,
) -> Result<Reply> {
    once.run(core.tenancy.clone(), async move {
        let identity = core.identity.by(&request);
        let page = ProviderSignUpPage::submitted(&identity, &request, &form.r, &form.csrf, &form.proof).await?;
        let (first, last, workspace) = (form.first_name.trim(), form.last_name.trim(), form.workspace.trim());
        if let Some(back) = page.refused(first, last, workspace)? {
            return Ok(back);
        }
        let (sign_up, newcomer) = (page.request(first, last), page.newcomer.clone());
        let named = page.asks_for_name().then(|| workspace.to_owned());
        let (tenancy, app, room) = (core.tenancy.clone(), page.app(), identity.clone());
        let begun = identity.tenancy.db.write(move |tx| {
            // Before anything is looked at: of two sign-ups with one address the second sees what the first has made.
            apps::hold(tx, app.id)?;
            let user = match people::find_by_email(tx, app.id, &newcomer.email)? {
                Some(known) => known.id,
                None => complete_sign_up(tx, &tenancy, &app, &sign_up, named.as_deref())?,
            };
            newcomer.enter(tx, &room, &app, user)
        });
        page.signed_in(begun.await?).await
    })
    .await
}
