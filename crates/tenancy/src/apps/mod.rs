//! Apps: the products that this installation serves. Each has its own people, workspaces, keys and settings.

mod change;
mod directory;
pub mod http;
mod profile;
#[cfg(test)]
mod properties;
mod rules;
mod sender;
mod sender_page;
mod store;
pub mod webhook;

use ::store::{Owner, Tx};
use kernel::{AppId, Code, Error, Name, Page, Result};
use serde_json::{Map, Value};
use spine::{emit, purge};

pub use change::ProfileChange;
pub use directory::AppDirectory;
pub use profile::{App, OnboardingFlow, Profile};
pub use rules::{NewApp, first_app};

use crate::{
    Authority, Tenancy, api_tokens, branding, credentials,
    facts::{AppChanged, AppCreated, AppData, AppDeleted, AppWebhookChanged},
    keys::{self, NewKey},
    locks::Lock,
    roles, workspaces,
};

/// An app together with its first key, which is shown this once.
pub struct AppWithKey {
    pub app: App,
    pub api_key: String,
}

/// Makes an app with its roles, its first API key and the secret of its API tokens.
pub fn create(tx: &mut Tx<'_>, tenancy: &Tenancy, new: &NewApp) -> Result<AppWithKey> {
    let app = App { id: tx.new_id(), created_at: tx.now(), version: 1, profile: new.to_profile() };
    if !store::insert(tx, &app)? {
        let domain = &app.profile.domain;
        return Err(Error::new(Code::DomainTaken, format!("Another app already has the domain {domain}.")));
    }
    roles::seed(tx, app.id)?;
    api_tokens::create_secret(tx, &tenancy.keyring, app.id)?;
    emit(tx, app.id, &AppCreated(told(&app)))?;
    let key = keys::create(tx, app.id, &NewKey { name: Name::from_static("First key"), privileges: None })?;
    put_on_commit(tx, tenancy, &app);
    Ok(AppWithKey { app, api_key: key.key })
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

/// Changes the profile; a new sender's address gets a mail with the link that verifies it.
pub fn update(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    id: AppId,
    authority: &Authority,
    change: ProfileChange,
) -> Result<App> {
    let mut app = locked(tx, id)?;
    if let Some(tenant) = change.operator_tenant_id.value() {
        // Held, so that it is not deleted meanwhile.
        workspaces::lock(tx, *tenant)?;
        if !store::has_workspace(tx, id, *tenant)? {
            return Err(Error::invalid("operatorTenantId", "must be a workspace of this app"));
        }
    }
    let before = app.profile.clone();
    let sender = sender::asked_for(&before, &change);
    change.apply(&mut app.profile);
    authority.may_change(&before, &app.profile, &changed_settings(&before, &app.profile)?)?;
    if let Some(sender) = sender {
        app.profile.email_sender_verified = false;
        sender::ask(tx, tenancy, &app, &sender)?;
    }
    save(tx, tenancy, &before, &mut app)?;
    Ok(app)
}

/// Stores a changed profile as the next version, and tells what changed. The app has to be [`locked`].
fn save(tx: &mut Tx<'_>, tenancy: &Tenancy, before: &Profile, app: &mut App) -> Result<()> {
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
    put_on_commit(tx, tenancy, app);
    Ok(())
}

/// The names of the members that differ, as the wire has them.
fn changed_settings(before: &Profile, after: &Profile) -> Result<Vec<String>> {
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

/// Ends all access at once; what belonged to the app is purged in the background by whoever owns it.
pub fn delete(tx: &mut Tx<'_>, tenancy: &Tenancy, id: AppId) -> Result<()> {
    let app = locked(tx, id)?;
    keys::delete_all(tx, id)?;
    // A handful of rows, some of them secrets: these do not wait.
    branding::purge(tx, id)?;
    credentials::purge(tx, id)?;
    store::delete(tx, id)?;
    purge::remember(tx, id, Owner::App, &[id])?;
    emit(tx, id, &AppDeleted(told(&app)))?;
    let tenancy = tenancy.clone();
    tx.on_commit(move || {
        tenancy.apps.remove(id);
        tenancy.keys.forget();
        tenancy.api_tokens.forget_all();
    });
    Ok(())
}

/// What others are told of it.
fn told(app: &App) -> AppData {
    AppData { name: app.profile.name.clone(), domain: app.profile.domain.clone() }
}

fn put_on_commit(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App) {
    let (directory, app) = (tenancy.apps.clone(), app.clone());
    tx.on_commit(move || directory.put(app));
}
