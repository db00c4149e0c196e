//! The ways in which somebody can sign in: through the identity providers of their workspaces, or by means of their own.

use kernel::Result;
use tenancy::federation::{self, WaysIn};
use web::{Params, Routes, State};

use super::{PageQuery, Reply, Visit, paths};
use crate::{Identity, browser::Request};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login").get(paths::WAYS, show, "Offer the ways to sign in")
}

async fn of(visit: &Visit, email: &str) -> Result<WaysIn> {
    if !visit.federated {
        return Ok(WaysIn::default());
    }
    let (app, email) = (visit.app.id, email.to_owned());
    visit.identity.tenancy.db.read(move |tx| federation::ways_in(tx, app, &email)).await
}

/// Where somebody with this address continues: straight to their provider when it is the only way.
pub(super) async fn first(visit: &Visit, email: &str) -> Result<String> {
    let ways = of(visit, email).await?;
    match (ways.connections.as_slice(), visit.request.forced) {
        ([], None) => visit.path(paths::PASSWORD),
        ([(only, _)], _) if !ways.others => visit.path(&paths::saml_login(*only)),
        _ => visit.path(paths::WAYS),
    }
}

async fn show(
    request: Request,
    State(identity): State<Identity>,
    Params(PageQuery { r }): Params<PageQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    let Some(email) = visit.request.username.clone() else {
        return Ok(Reply::found(visit.path(paths::IDENTIFIER)?));
    };
    let ways = of(&visit, &email).await?;
    let mut page =
        visit.page("Sign in to {appName}").paragraph(&visit.say_of("Choose how to sign in as {email}.", &email));
    for (connection, name) in &ways.connections {
        let label = visit.say("Continue with {provider}").replace("{provider}", name);
        page = page.link("", &label, &visit.path(&paths::saml_login(*connection))?);
    }
    if ways.connections.is_empty() && visit.request.forced.is_some() {
        page = page.alert(&visit.say("This email address belongs to no identity provider. Ask your administrator."));
    }
    if visit.request.forced.is_none() {
        page = page.link("", &visit.say("Sign in another way"), &visit.path(paths::PASSWORD)?);
    }
    let page = page.link("", &visit.say("Use a different email address"), &visit.path(paths::IDENTIFIER)?);
    Ok(visit.show(page))
}
