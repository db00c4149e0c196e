//! From facts to deliveries. One reader of the outbox applies changes of endpoints and makes deliveries in the facts'
//! order, in the transaction that moves its cursor: each fact has its deliveries exactly once, and goes where its
//! endpoints pointed when it was made.

use std::collections::{HashMap, hash_map::Entry};

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

/// Handles facts in their order. `due` is rung once there is something to send.
pub(crate) fn consume(tx: &mut Tx<'_>, keyring: &Keyring, due: &Signal, facts: &[Fact]) -> Result<()> {
    let mut making = Making::default();
    for fact in facts {
        let Some(app) = fact.app else { continue };
        if EventDefinition::find(&fact.kind).is_none() {
            making.targets.remove(&app);
            follow(tx, keyring, app, fact)?;
        } else if !fact.quiet {
            making.deliver(tx, app, fact)?;
        }
    }
    if !making.unsent.is_empty() {
        store::insert(tx, &making.unsent)?;
        let due = due.clone();
        tx.on_commit(move || due.wake());
    }
    Ok(())
}

/// Deliveries of several facts, which are written together.
#[derive(Default)]
struct Making<'a> {
    /// Where events go at the present fact, of the apps that were looked at.
    targets: HashMap<AppId, Vec<Target>>,
    unsent: Vec<Unsent<'a>>,
}

impl<'a> Making<'a> {
    /// One delivery per endpoint that takes the event.
    fn deliver(&mut self, tx: &mut Tx<'_>, app: AppId, fact: &'a Fact) -> Result<()> {
        let targets = match self.targets.entry(app) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(endpoints::of_app(tx, app)?),
        };
        for target in targets.iter().filter(|target| target.takes(&fact.kind)) {
            let Some(url) = &target.url else { continue };
            let envelope = Envelope::of(fact, app);
            self.unsent.push(Unsent {
                app,
                tenant: fact.tenant,
                endpoint: target.endpoint,
                due: target.enabled,
                payload: envelope.to_json()?,
                event_id: envelope.id,
                event_type: envelope.event_type,
                position: fact.position,
                fact: Some(fact.id),
                target_url: url.clone(),
            });
        }
        Ok(())
    }
}

/// Applies what a fact changes about where events go.
fn follow(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId, fact: &Fact) -> Result<()> {
    match Change::read(fact, app)? {
        Some(Change::Applies(target)) => endpoints::apply(tx, app, &target),
        Some(Change::Deleted(endpoint)) => endpoints::forget(tx, app, endpoint),
        Some(Change::AppDeleted) => endpoints::forget_app(tx, app),
        None if fact.is::<AppCreated>() && apps::exists(tx, app)? => secrets::ensure(tx, keyring, app, of_profile(app)),
        None => Ok(()),
    }
}

/// What a fact changes about where events go.
pub(super) enum Change {
    /// These are the endpoint's values from here on.
    Applies(Target),
    Deleted(EndpointId),
    AppDeleted,
}

impl Change {
    pub(super) fn read(fact: &Fact, app: AppId) -> Result<Option<Self>> {
        if let Some(AppWebhookChanged { url, enabled, events }) = fact.read()? {
            return Ok(Some(Self::Applies(Target { endpoint: of_profile(app), url, enabled, events })));
        }
        if let Some(EndpointChanged { endpoint_id: endpoint, url, enabled, events }) = fact.read()? {
            return Ok(Some(Self::Applies(Target { endpoint, url: Some(url), enabled, events })));
        }
        if let Some(EndpointDeleted { endpoint_id }) = fact.read()? {
            return Ok(Some(Self::Deleted(endpoint_id)));
        }
        Ok(fact.is::<AppDeleted>().then_some(Self::AppDeleted))
    }
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
