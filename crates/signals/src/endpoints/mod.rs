//! Where an app's events go: the webhook of its profile, and further endpoints beside it.
//!
//! An endpoint has two faces. What its owner sees and changes is the app's profile, or a row of `webhook_endpoints`. What
//! decides about an event is a row of `webhook_targets`, which the consumer of the outbox keeps: it applies changes and
//! makes deliveries in one order, so that an event goes where its endpoint pointed when it happened.

mod http;
mod rules;
mod store;
mod targets;

use std::collections::HashMap;

use ::store::{Tx, row};
use kernel::{AppId, Code, Error, Result, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::Serialize;
use spine::emit;
use tenancy::{Authority, app_lifecycle, apps};
use vault::Keyring;

pub(crate) use http::routes;
pub use rules::{EndpointChange, NewEndpoint};
pub use targets::{GivenUp, Target};
pub(crate) use targets::{MOST_EXHAUSTED, apply, backfill, count_ended, forget, forget_app, given_up, of_app, states};

use crate::{
    facts::{EndpointChanged, EndpointDeleted},
    secrets,
};

id_kinds! {
    /// An endpoint.
    EndpointId(EndpointKind) = "endpoint";
}

/// Endpoints that an app may have beside that of its profile.
pub const MOST: usize = 20;

/// The endpoint of an app's profile has the app's own id, under another prefix.
pub fn of_profile(app: AppId) -> EndpointId {
    EndpointId::from_u128(app.as_u128())
}

pub fn is_of_profile(id: EndpointId, app: AppId) -> bool {
    id == of_profile(app)
}

/// An endpoint beside that of the profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    pub id: EndpointId,
    pub url: String,
    pub enabled: bool,
    /// Event types to send; empty means all.
    pub events: Vec<String>,
    pub description: String,
    pub created_at: Timestamp,
}

row! { Endpoint = "webhook_endpoints" { id, url, enabled, events as Json, description, created_at } }

/// Newest first.
pub fn list(tx: &mut Tx<'_>, app: AppId, page: kernel::Page) -> Result<Vec<Endpoint>> {
    store::list(tx, app, page)
}

pub fn get(tx: &mut Tx<'_>, app: AppId, id: EndpointId) -> Result<Endpoint> {
    store::find(tx, app, id)?.ok_or_else(|| Error::not_found("endpoint"))
}

/// Adds an endpoint with a secret of its own, which is shown this once.
pub fn create(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId, new: &NewEndpoint) -> Result<(Endpoint, String)> {
    apps::hold(tx, app)?;
    if store::count(tx, app)? >= MOST {
        let message = format!("must not exceed {MOST} for an app: delete one first");
        return Err(Error::invalid("endpoints", message));
    }
    let endpoint = new.to_endpoint(tx.new_id(), tx.now());
    store::insert(tx, app, &endpoint)?;
    let secret = secrets::current(tx, keyring, app, endpoint.id)?;
    tell(tx, app, &endpoint)?;
    Ok((endpoint, secret.secret))
}

pub fn update(tx: &mut Tx<'_>, app: AppId, id: EndpointId, change: EndpointChange) -> Result<Endpoint> {
    apps::hold(tx, app)?;
    let before = get(tx, app, id)?;
    let after = change.apply(before.clone());
    if after != before {
        store::update(tx, app, &after)?;
        tell(tx, app, &after)?;
    }
    Ok(after)
}

pub fn delete(tx: &mut Tx<'_>, app: AppId, id: EndpointId) -> Result<()> {
    apps::hold(tx, app)?;
    if !store::delete(tx, app, id)? {
        return Err(Error::not_found("endpoint"));
    }
    secrets::delete(tx, app, id)?;
    emit(tx, app, &EndpointDeleted { endpoint_id: id })
}

/// Where an event goes that is sent to this endpoint now; 409 where that is nowhere.
pub fn current_url(tx: &mut Tx<'_>, app: AppId, id: EndpointId) -> Result<String> {
    let (url, enabled) = if is_of_profile(id, app) {
        let profile = apps::get(tx, app)?.profile;
        (profile.webhook_url, profile.webhook_enabled)
    } else {
        store::find(tx, app, id)?.map_or((None, true), |endpoint| (Some(endpoint.url), endpoint.enabled))
    };
    match url {
        None => Err(Error::new(Code::NoWebhookUrl, "There is no URL to send to. Set the webhook's URL first.")),
        Some(_) if !enabled => Err(Error::new(Code::WebhookDisabled, "The webhook is disabled. Enable it first.")),
        Some(url) => Ok(url),
    }
}

/// The same for one endpoint, or for all of the app's that can be sent to: 409 when there is none.
pub fn current_urls(tx: &mut Tx<'_>, app: AppId, only: Option<EndpointId>) -> Result<HashMap<EndpointId, String>> {
    if let Some(only) = only {
        get(tx, app, only)?;
        return Ok(HashMap::from([(only, current_url(tx, app, only)?)]));
    }
    let further = list(tx, app, kernel::Page::ALL)?.into_iter().filter(|endpoint| endpoint.enabled);
    let mut urls: HashMap<EndpointId, String> = further.map(|endpoint| (endpoint.id, endpoint.url)).collect();
    match current_url(tx, app, of_profile(app)) {
        Ok(url) => drop(urls.insert(of_profile(app), url)),
        Err(error) if urls.is_empty() || error.code() == Code::NotFound => return Err(error),
        Err(_) => {}
    }
    Ok(urls)
}

/// Turns an endpoint off; false when it was off, or is gone.
pub(crate) fn disable(tx: &mut Tx<'_>, tenancy: &tenancy::Tenancy, app: AppId, id: EndpointId) -> Result<bool> {
    if is_of_profile(id, app) {
        if !apps::exists(tx, app)? {
            return Ok(false);
        }
        let change = apps::ProfileChange { webhook_enabled: web::Given(Some(false)), ..Default::default() };
        let was_enabled = apps::get(tx, app)?.profile.webhook_enabled;
        app_lifecycle::update(tx, tenancy, app, &Authority::unlimited(), change)?;
        return Ok(was_enabled);
    }
    apps::hold(tx, app)?;
    let Some(mut endpoint) = store::find(tx, app, id)?.filter(|endpoint| endpoint.enabled) else { return Ok(false) };
    endpoint.enabled = false;
    store::update(tx, app, &endpoint)?;
    tell(tx, app, &endpoint)?;
    Ok(true)
}

fn tell(tx: &mut Tx<'_>, app: AppId, endpoint: &Endpoint) -> Result<()> {
    let Endpoint { id, url, enabled, events, .. } = endpoint.clone();
    emit(tx, app, &EndpointChanged { endpoint_id: id, url, enabled, events })
}
