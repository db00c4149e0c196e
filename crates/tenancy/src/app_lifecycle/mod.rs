//! The life of an app: made with its parts, changed, and deleted with them. Stands above the parts, which only know the
//! app itself.

pub mod http;
mod sender;
mod sender_page;
mod webhook;

use ::store::Tx;
use kernel::{AppId, Error, Name, Result};

use crate::{
    Authority, Tenancy, api_tokens,
    apps::{self, App, NewApp, ProfileChange, parameters::ParameterDefinition},
    branding, credentials,
    keys::{self, NewKey},
    mails, roles, workspaces,
};

/// An app together with its first key, which is shown this once.
pub struct AppWithKey {
    pub app: App,
    pub api_key: String,
}

/// Makes an app with its roles, its first API key and the secret of its API tokens.
pub fn create(tx: &mut Tx<'_>, tenancy: &Tenancy, new: &NewApp) -> Result<AppWithKey> {
    let app = apps::insert(tx, &tenancy.apps, new)?;
    roles::seed(tx, app.id)?;
    api_tokens::create_secret(tx, &tenancy.keyring, app.id)?;
    let key = keys::create(tx, app.id, &NewKey { name: Name::from_static("First key"), privileges: None })?;
    Ok(AppWithKey { app, api_key: key.key })
}

/// Changes the profile; a new sender's address gets a mail with the link that verifies it.
pub fn update(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    id: AppId,
    authority: &Authority,
    change: ProfileChange,
) -> Result<App> {
    let mut app = apps::locked(tx, id)?;
    if let Some(tenant) = change.operator_tenant_id.value() {
        // Held, so that it is not deleted meanwhile.
        workspaces::lock(tx, *tenant)?;
        if workspaces::existing(tx, id, &[*tenant])?.is_empty() {
            return Err(Error::invalid("operatorTenantId", "must be a workspace of this app"));
        }
    }
    let before = app.profile.clone();
    let sender = sender::asked_for(&before, &change);
    change.apply(&mut app.profile);
    authority.may_change(&before, &app.profile, &apps::changed_settings(&before, &app.profile)?)?;
    if let Some(sender) = sender {
        app.profile.email_sender_verified = false;
        sender::ask(tx, tenancy, &app, &sender)?;
    }
    apps::save(tx, &tenancy.apps, &before, &mut app)?;
    Ok(app)
}

/// Defines what the app keeps about members. What members have already stays as it is.
pub fn define_parameters(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    id: AppId,
    definitions: &[ParameterDefinition],
) -> Result<Vec<ParameterDefinition>> {
    let mut app = apps::locked(tx, id)?;
    let before = app.profile.clone();
    app.profile.user_parameters = definitions.to_vec();
    apps::save(tx, &tenancy.apps, &before, &mut app)?;
    Ok(app.profile.user_parameters)
}

/// Lets everybody see an app whose rows were all put in.
pub fn arrive(tx: &mut Tx<'_>, tenancy: &Tenancy, id: AppId, load: apps::moving::Load) -> Result<App> {
    let app = apps::moving::arrive(tx, &tenancy.apps, id, load)?;
    forget_callers_on_commit(tx, tenancy);
    Ok(app)
}

/// Ends all access at once; what belonged to the app is purged in the background by whoever owns it.
pub fn delete(tx: &mut Tx<'_>, tenancy: &Tenancy, id: AppId) -> Result<()> {
    let app = apps::locked(tx, id)?;
    keys::delete_all(tx, id)?;
    // A handful of rows, some of them secrets: these do not wait.
    branding::purge(tx, id)?;
    mails::purge(tx, id)?;
    credentials::purge(tx, id)?;
    apps::remove(tx, &tenancy.apps, &app)?;
    forget_callers_on_commit(tx, tenancy);
    Ok(())
}

/// What is known of keys and tokens, also that there are none of that kind.
fn forget_callers_on_commit(tx: &mut Tx<'_>, tenancy: &Tenancy) {
    let tenancy = tenancy.clone();
    tx.on_commit(move || {
        tenancy.keys.forget();
        tenancy.api_tokens.forget_all();
    });
}
