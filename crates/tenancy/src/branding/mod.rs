//! An app's looks and words: the style of its hosted pages, and translations of pages and mails.
//!
//! Each is a default until the app puts its own in the place, and the default again once that is deleted.

pub mod http;
mod store;
mod style;
mod translations;

use ::store::Tx;
use kernel::{AppId, Result};
use spine::emit;
use web::pages::Brand;

pub use style::{NewStyle, Style};
pub use translations::Translations;

use crate::{
    App, apps,
    facts::{StyleChanged, TranslationsChanged},
};

/// Empty until the app has a style of its own.
pub fn style(tx: &mut Tx<'_>, app: AppId) -> Result<Style> {
    Ok(Style { content: store::style(tx, app)?.unwrap_or_default() })
}

pub fn set_style(tx: &mut Tx<'_>, app: AppId, new: &NewStyle) -> Result<Style> {
    apps::locked(tx, app)?;
    store::put_style(tx, app, &new.content)?;
    emit(tx, app, &StyleChanged { custom: true })?;
    Ok(Style { content: new.content.to_string() })
}

pub fn reset_style(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    store::delete_style(tx, app)?;
    emit(tx, app, &StyleChanged { custom: false })
}

/// Empty until the app has some.
pub fn translations(tx: &mut Tx<'_>, app: AppId) -> Result<Translations> {
    Ok(store::translations(tx, app)?.unwrap_or_default())
}

/// Replaces all translations.
pub fn set_translations(tx: &mut Tx<'_>, app: AppId, translations: &Translations) -> Result<()> {
    apps::locked(tx, app)?;
    store::put_translations(tx, app, translations)?;
    emit(tx, app, &TranslationsChanged {})
}

/// How the app's hosted pages look.
pub fn brand(tx: &mut Tx<'_>, app: &App) -> Result<Brand> {
    let style = store::style_changed_at(tx, app.id)?;
    Ok(Brand {
        app_name: app.profile.name.clone(),
        logo: app.profile.logo.clone(),
        // A new path after each change, so that the browser does not show the former style.
        style: style.map(|at| format!("/cloud-views/brand/{}/style.css?v={}", app.id, at.as_micros())),
    })
}

/// Removes what belonged to an app that is gone.
pub(crate) fn purge(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    store::purge(tx, app)
}
