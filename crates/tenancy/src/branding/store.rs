//! The SQL of branding.

use ::store::{Json, Tx, args};
use kernel::{AppId, Result, Timestamp};

use super::Translations;

pub(super) fn style(tx: &mut Tx<'_>, app: AppId) -> Result<Option<String>> {
    let found: Option<(String,)> = tx.opt("SELECT content FROM brand_styles WHERE app_id = $1", &args![app])?;
    Ok(found.map(|(content,)| content))
}

/// When the app last changed its style; `None` while it has none.
pub(super) fn style_changed_at(tx: &mut Tx<'_>, app: AppId) -> Result<Option<Timestamp>> {
    let found: Option<(Timestamp,)> = tx.opt("SELECT updated_at FROM brand_styles WHERE app_id = $1", &args![app])?;
    Ok(found.map(|(at,)| at))
}

pub(super) fn put_style(tx: &mut Tx<'_>, app: AppId, content: &str) -> Result<()> {
    tx.run(
        "INSERT INTO brand_styles (app_id, content, updated_at) VALUES ($1, $2, $3) \
         ON CONFLICT (app_id) DO UPDATE SET content = excluded.content, updated_at = excluded.updated_at",
        &args![app, content, tx.now()],
    )
}

pub(super) fn delete_style(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.run("DELETE FROM brand_styles WHERE app_id = $1", &args![app])
}

pub(super) fn translations(tx: &mut Tx<'_>, app: AppId) -> Result<Option<Translations>> {
    let found: Option<(Json<Translations>,)> =
        tx.opt("SELECT content FROM brand_translations WHERE app_id = $1", &args![app])?;
    Ok(found.map(|(Json(content),)| content))
}

pub(super) fn put_translations(tx: &mut Tx<'_>, app: AppId, translations: &Translations) -> Result<()> {
    tx.run(
        "INSERT INTO brand_translations (app_id, content, updated_at) VALUES ($1, $2, $3) \
         ON CONFLICT (app_id) DO UPDATE SET content = excluded.content, updated_at = excluded.updated_at",
        &args![app, Json(translations), tx.now()],
    )
}

/// At most a handful of rows.
pub(super) fn purge(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.exec("DELETE FROM brand_styles WHERE app_id = $1", &args![app])?;
    tx.run("DELETE FROM brand_translations WHERE app_id = $1", &args![app])
}
