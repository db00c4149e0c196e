//! The ways in which somebody can sign in: through the identity providers of their workspaces, or by means of their own.

use kernel::Result;
use tenancy::federation::{self, WaysIn};
use web::{Params, Routes, State, pages::HostedPage};

use super::{PageQuery, Reply, Visit, paths};
use crate::{Identity, authorize::Forced, browser::Request};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login").get(paths::WAYS, show, "Offer the ways to sign in")
}

async fn of(visit: &Visit, email: &str) -> Result<WaysIn> {
    if !visit.federated {
        return Ok(WaysIn::default());
    }
    let (app, email) = (visit.app.id, email.to_owned());
    let mut ways = visit.identity.tenancy.db.read(move |tx| federation::ways_in(tx, app, &email)).await?;
    ways.connections.retain(|way| match visit.request.forced {
        None => true,
        Some(Forced::Connection(id, _)) => way.id == id,
        Some(Forced::AnyOf(protocol)) => way.protocol == protocol,
        Some(Forced::Provider(_)) => false,
    });
    Ok(ways)
}

/// Where somebody with this address continues: straight to their provider when it is the only way.
pub(super) async fn first(visit: &Visit, email: &str) -> Result<String> {
    let ways = of(visit, email).await?;
    match (ways.connections.as_slice(), visit.request.forced) {
        ([], None) => visit.path(paths::PASSWORD),
        // An app that insists on a provider is not served by the person's other ways in.
        ([only], forced) if forced.is_some() || !ways.others => {
            visit.path(&paths::connection_login(only.protocol.as_str(), only.id))
        }
        _ => visit.path(paths::WAYS),
    }
}

/// The page with a button for each provider of the app that suits what it asked for.
pub(super) fn offer_providers(visit: &Visit, mut page: HostedPage) -> Result<HostedPage> {
    for (provider, name) in &visit.providers {
        if visit.request.forced.is_none_or(|forced| forced == Forced::Provider(*provider)) {
            let label = visit.say("Continue with {provider}").replace("{provider}", name);
            page = page.link_button(&label, &visit.path(&paths::provider_login(provider.as_str()))?);
        }
    }
    Ok(page)
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
    // The app wants an identity provider, and this person has none: there is nothing to choose.
    let has_none = ways.connections.is_empty() && !matches!(visit.request.forced, None | Some(Forced::Provider(_)));
    let mut page = visit.page("Sign in to {appName}");
    page = match has_none {
        true => page.alert(&visit.say("This email address belongs to no identity provider. Ask your administrator.")),
        false => page.paragraph(&visit.say_of("Choose how to sign in as {email}.", &email)),
    };
    for way in &ways.connections {
        let label = visit.say("Continue with {provider}").replace("{provider}", &way.name);
        page = page.link_button(&label, &visit.path(&paths::connection_login(way.protocol.as_str(), way.id))?);
    }
    page = offer_providers(&visit, page)?;
    if visit.request.forced.is_none() {
        page = page.link("", &visit.say("Sign in another way"), &visit.path(paths::PASSWORD)?);
    }
    let page = page.link("", &visit.say("Use a different email address"), &visit.path(paths::IDENTIFIER)?);
    Ok(visit.show(page))
}
