//! The SQL of apps.

use ::store::{Json, Tx, args, row, sql};
use kernel::{AppId, Page, Result};

use super::App;

row! { App = "apps" { id, profile as Json, created_at, version } }

/// The condition under which the app with the id `$id`, a column or a parameter, exists.
#[macro_export]
macro_rules! app_exists {
    ($id:literal) => {
        concat!("EXISTS (SELECT 1 FROM apps WHERE apps.id = ", $id, ")")
    };
}

pub(super) const VERSION: &str = "SELECT version FROM apps WHERE id = $1";

/// False when the domain is taken.
pub(super) fn insert(tx: &mut Tx<'_>, app: &App) -> Result<bool> {
    tx.changes_one(
        "INSERT INTO apps (id, domain, profile, version, created_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (domain) DO NOTHING",
        &args![app.id, app.profile.domain, Json(&app.profile), app.version, app.created_at],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: &App) -> Result<()> {
    tx.run("UPDATE apps SET profile = $2, version = $3 WHERE id = $1", &args![app.id, Json(&app.profile), app.version])
}

pub(super) fn find(tx: &mut Tx<'_>, id: AppId) -> Result<Option<App>> {
    tx.opt(sql!("SELECT ", App::COLUMNS, " FROM apps WHERE id = $1"), &args![id])
}

pub(super) fn exists(tx: &mut Tx<'_>, id: AppId) -> Result<bool> {
    tx.exists("SELECT 1 FROM apps WHERE id = $1", &args![id])
}

/// Whether there is an app with the number of this one.
pub(super) fn has_number(tx: &mut Tx<'_>, id: AppId) -> Result<bool> {
    tx.exists("SELECT 1 FROM apps WHERE substr(id, 19) = substr(CAST($1 AS TEXT), 19)", &args![id])
}

pub(super) fn has_domain(tx: &mut Tx<'_>, domain: &str) -> Result<bool> {
    tx.exists("SELECT 1 FROM apps WHERE domain = $1", &args![domain])
}

/// The app as it stands in the table, which has its domain in a column of its own.
pub(super) fn domain_of(tx: &mut Tx<'_>, id: AppId) -> Result<Option<String>> {
    let found: Option<(String,)> = tx.opt("SELECT domain FROM apps WHERE id = $1", &args![id])?;
    Ok(found.map(|(domain,)| domain))
}

pub(super) fn list(tx: &mut Tx<'_>, page: Page) -> Result<Vec<App>> {
    tx.all(
        sql!("SELECT ", App::COLUMNS, " FROM apps ORDER BY id DESC LIMIT $1 OFFSET $2"),
        &args![page.limit_or_all(), page.offset()],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, id: AppId) -> Result<()> {
    tx.run("DELETE FROM apps WHERE id = $1", &args![id])
}
