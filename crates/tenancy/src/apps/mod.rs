//! Apps: the products that this installation serves. Each has its own people, workspaces, keys and settings.

mod change;
mod directory;
mod events;
pub mod moving;
pub mod parameters;
mod profile;
#[cfg(test)]
mod properties;
mod rules;
mod store;

use ::store::{Owner, Tx};
use kernel::{AppId, Code, Error, Page, Result};
use serde_json::{Map, Value};
use spine::{emit, purge};

pub use change::ProfileChange;
pub use directory::AppDirectory;
pub use events::{EVENTS, EventType};
pub use profile::{App, OnboardingFlow, Profile};
pub use rules::{NewApp, demo_address, first_app};

use crate::{
    facts::{AppChanged, AppCreated, AppData, AppDeleted, AppWebhookChanged},
    locks::Lock,
};

/// A new app, without anything in it. 409 when another one has its domain.
pub(crate) fn insert(tx: &mut Tx<'_>, directory: &AppDirectory, new: &NewApp) -> Result<App> {
    let app = App { id: tx.new_id(), created_at: tx.now(), version: 1, profile: new.to_profile() };
    if !store::insert(tx, &app)? {
        let domain = &app.profile.domain;
        return Err(Error::new(Code::DomainTaken, format!("Another app already has the domain {domain}.")));
    }
    emit(tx, app.id, &AppCreated(told(&app)))?;
    put_on_commit(tx, directory, &app);
    Ok(app)
}

/// Serialises whatever changes what a whole app shares (its roles, its catalog), also with the deletion of the app, after
/// which nothing may be added to it.
pub fn hold(tx: &mut Tx<'_>, id: AppId) -> Result<()> {
    locked(tx, id).map(|_| ())
}

pub fn exists(tx: &mut Tx<'_>, id: AppId) -> Result<bool> {
    store::exists(tx, id)
}

pub fn get(tx: &mut Tx<'_>, id: AppId) -> Result<App> {
    store::find(tx, id)?.ok_or_else(|| Error::not_found("app"))
}

/// The app, which neither changes nor goes away before `tx` ends.
pub(crate) fn locked(tx: &mut Tx<'_>, id: AppId) -> Result<App> {
    tx.lock(&Lock::App(id))?;
    get(tx, id)
}

/// Stores a changed profile as the next version, and tells what changed. The app has to be [`locked`].
pub(crate) fn save(tx: &mut Tx<'_>, directory: &AppDirectory, before: &Profile, app: &mut App) -> Result<()> {
    let after = &app.profile;
    if before == after {
        return Ok(());
    }
    emit(tx, app.id, &AppChanged { settings: changed_settings(before, after)? })?;
    if webhook(before) != webhook(after) {
        emit(tx, app.id, &webhook(after))?;
    }
    app.version += 1;
    store::update(tx, app)?;
    put_on_commit(tx, directory, app);
    Ok(())
}

/// The names of the members that differ, as the wire has them.
pub(crate) fn changed_settings(before: &Profile, after: &Profile) -> Result<Vec<String>> {
    let members = |profile| serde_json::from_value::<Map<String, Value>>(serde_json::to_value(profile)?);
    let (before, after) = (members(before).map_err(Error::internal)?, members(after).map_err(Error::internal)?);
    Ok(after.into_iter().filter(|(name, value)| before.get(name) != Some(value)).map(|(name, _)| name).collect())
}

fn webhook(profile: &Profile) -> AppWebhookChanged {
    AppWebhookChanged {
        url: profile.webhook_url.clone(),
        enabled: profile.webhook_enabled,
        events: profile.webhook_events.clone(),
    }
}

/// Newest first.
pub fn list(tx: &mut Tx<'_>, page: Page) -> Result<Vec<App>> {
    store::list(tx, page)
}

/// Removes the app itself, which has to be [`locked`]; what belonged to it is purged in the background by whoever owns it.
pub(crate) fn remove(tx: &mut Tx<'_>, directory: &AppDirectory, app: &App) -> Result<()> {
    let (directory, id) = (directory.clone(), app.id);
    store::delete(tx, id)?;
    purge::remember(tx, id, Owner::App, &[id])?;
    emit(tx, id, &AppDeleted(told(app)))?;
    tx.on_commit(move || directory.remove(id));
    Ok(())
}

/// What others are told of it.
fn told(app: &App) -> AppData {
    AppData { name: app.profile.name.clone(), domain: app.profile.domain.clone() }
}

fn put_on_commit(tx: &mut Tx<'_>, directory: &AppDirectory, app: &App) {
    let (directory, app) = (directory.clone(), app.clone());
    tx.on_commit(move || directory.put(app));
}
