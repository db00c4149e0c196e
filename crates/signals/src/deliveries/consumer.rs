//! From facts to deliveries. One reader of the outbox applies changes of endpoints and makes deliveries in the facts'
//! order, in the transaction that moves its cursor: each fact has its deliveries exactly once, and goes where its
//! endpoints pointed when it was made.

use ::store::Tx;
use kernel::{AppId, Result};
use spine::{Fact, Signal};
use tenancy::{
    App, apps,
    facts::{AppCreated, AppDeleted, AppWebhookChanged},
};
use vault::Keyring;

use super::{Unsent, store};
use crate::{
    endpoints::{self, EndpointId, Target, of_profile},
    events::{Envelope, EventDefinition},
    facts::{EndpointChanged, EndpointDeleted},
    secrets,
};

/// Handles one fact. `due` is rung once there is something to send.
pub(crate) fn consume(tx: &mut Tx<'_>, keyring: &Keyring, due: &Signal, fact: &Fact) -> Result<()> {
    let Some(app) = fact.app else { return Ok(()) };
    if EventDefinition::find(&fact.kind).is_some() {
        if fact.quiet {
            return Ok(());
        }
        return deliver(tx, due, app, fact);
    }
    if let Some(changed) = fact.read::<AppWebhookChanged>()? {
        return endpoints::apply(tx, app, &target_of_profile(app, changed));
    }
    if let Some(EndpointChanged { endpoint_id: endpoint, url, enabled, events }) = fact.read()? {
        return endpoints::apply(tx, app, &Target { endpoint, url: Some(url), enabled, events });
    }
    if let Some(EndpointDeleted { endpoint_id }) = fact.read()? {
        return endpoints::forget(tx, app, endpoint_id);
    }
    if fact.is::<AppCreated>() && apps::exists(tx, app)? {
        return secrets::ensure(tx, keyring, app, of_profile(app));
    }
    if fact.is::<AppDeleted>() {
        return endpoints::forget_app(tx, app);
    }
    Ok(())
}

fn target_of_profile(app: AppId, changed: AppWebhookChanged) -> Target {
    let AppWebhookChanged { url, enabled, events } = changed;
    Target { endpoint: of_profile(app), url, enabled, events }
}

/// One delivery per endpoint that takes the event.
fn deliver(tx: &mut Tx<'_>, due: &Signal, app: AppId, fact: &Fact) -> Result<()> {
    let targets = endpoints::of_app(tx, app)?;
    let taking: Vec<&Target> = targets.iter().filter(|target| target.takes(&fact.kind)).collect();
    if taking.is_empty() {
        return Ok(());
    }
    let envelope = Envelope::of(fact, app);
    let payload = envelope.to_json()?;
    for target in taking {
        let Some(url) = &target.url else { continue };
        let unsent = Unsent {
            app,
            tenant: fact.tenant,
            endpoint: target.endpoint,
            event_id: &envelope.id,
            event_type: envelope.event_type,
            position: fact.position,
            target_url: url,
            payload: &payload,
        };
        match target.enabled {
            true => store::queue(tx, &unsent)?,
            false => store::keep(tx, &unsent)?,
        };
    }
    let due = due.clone();
    tx.on_commit(move || due.wake());
    Ok(())
}

/// Apps that are handled in one transaction.
const BATCH: usize = 500;

/// At start: apps that were made before this room was get their first secret, and their webhook counts from here on.
pub(crate) async fn settle_apps(signals: &crate::Signals) -> Result<()> {
    let apps = signals.db.scan(|tx| apps::list(tx, kernel::Page::ALL)).await?;
    let mut unknown: Vec<App> = Vec::new();
    for batch in apps.chunks(BATCH) {
        let profiles: Vec<EndpointId> = batch.iter().map(|app| of_profile(app.id)).collect();
        let without = signals.db.read(move |tx| secrets::without_secret(tx, &profiles)).await?;
        let settled = |app: &&App| without.contains(&of_profile(app.id));
        unknown.extend(batch.iter().filter(settled).cloned());
    }
    for batch in unknown.chunks(BATCH) {
        let (batch, keyring) = (batch.to_vec(), signals.tenancy.keyring.clone());
        signals.db.write(move |tx| batch.iter().try_for_each(|app| settle(tx, &keyring, app))).await?;
    }
    Ok(())
}

fn settle(tx: &mut Tx<'_>, keyring: &Keyring, app: &App) -> Result<()> {
    let endpoint = of_profile(app.id);
    secrets::ensure(tx, keyring, app.id, endpoint)?;
    let profile = &app.profile;
    let target = Target {
        endpoint,
        url: profile.webhook_url.clone(),
        enabled: profile.webhook_enabled,
        events: profile.webhook_events.clone(),
    };
    if target.url.is_some() { endpoints::backfill(tx, app.id, &target) } else { Ok(()) }
}
