//! `/admin/brand/css` and `/cloud-views/brand`.

use http::header;
use kernel::{AppId, Result};
use web::{Css, Json, Path, Routes, State, Success, Valid, WithHeaders};

use super::{NewStyle, Style, Translations};
use crate::{
    Tenancy, apps,
    callers::{AppCaller, AppRead, AppWrite},
};

/// Content that is written as JSON may be several times as long as it is.
pub(crate) const BODY_LIMIT: usize = 4 * 1024 * 1024;

pub fn routes() -> Routes<Tenancy> {
    Routes::new("Branding")
        .get("/admin/brand/css", style, "Get the style of the hosted pages")
        .post("/admin/brand/css", set_style, "Replace the style of the hosted pages")
        .body_limit(BODY_LIMIT)
        .delete("/admin/brand/css", reset_style, "Restore the default style")
        .get("/cloud-views/brand/translations", translations, "Get the translations of hosted pages and mails")
        .post("/cloud-views/brand/translations", set_translations, "Replace the translations of hosted pages and mails")
        .description("Each text is translated on its own. Names in braces, such as `{appName}`, stay as they are.")
        .body_limit(BODY_LIMIT)
        .get("/cloud-views/brand/{app_id}/style.css", style_sheet, "The style of an app's hosted pages")
        .hidden()
}

async fn style(caller: AppCaller<AppRead>, State(tenancy): State<Tenancy>) -> Result<Json<Style>> {
    let app = caller.app_id();
    Ok(Json(tenancy.db.read(move |tx| super::style(tx, app)).await?))
}

async fn set_style(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Valid(new): Valid<NewStyle>,
) -> Result<Json<Style>> {
    let app = caller.app_id();
    Ok(Json(tenancy.db.by(&caller).write(move |tx| super::set_style(tx, app, &new)).await?))
}

async fn reset_style(caller: AppCaller<AppWrite>, State(tenancy): State<Tenancy>) -> Result<Success> {
    let app = caller.app_id();
    tenancy.db.by(&caller).write(move |tx| super::reset_style(tx, app)).await?;
    Ok(Success)
}

async fn translations(caller: AppCaller<AppRead>, State(tenancy): State<Tenancy>) -> Result<Json<Translations>> {
    let app = caller.app_id();
    Ok(Json(tenancy.db.read(move |tx| super::translations(tx, app)).await?))
}

async fn set_translations(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Valid(translations): Valid<Translations>,
) -> Result<Json<Translations>> {
    let (app, stored) = (caller.app_id(), translations.clone());
    tenancy.db.by(&caller).write(move |tx| super::set_translations(tx, app, &stored)).await?;
    Ok(Json(translations))
}

async fn style_sheet(State(tenancy): State<Tenancy>, Path(app): Path<AppId>) -> Result<WithHeaders<Css>> {
    let style = tenancy
        .db
        .read(move |tx| {
            apps::get(tx, app)?;
            super::style(tx, app)
        })
        .await?;
    Ok(WithHeaders::new(Css(style.content)).with(header::CACHE_CONTROL, "public, max-age=300"))
}
