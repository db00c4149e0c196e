//! `/communication/email/template`.

use kernel::{Error, Result};
use web::{Json, Path, Routes, State, Success, Valid};

use super::{
    budget::TOO_MANY_MAILS,
    templates::{self, Template, TemplateChange, TemplateName},
};
use crate::{
    Tenancy,
    branding::http::BODY_LIMIT,
    callers::{AppCaller, AppRead, AppWrite},
};

const VARIABLES: &str = "The variables `{{appName}}`, `{{appLogo}}`, `{{appUrl}}`, `{{emailTitle}}`, `{{emailBody}}`, \
                         `{{ctaTitle}}`, `{{ctaUrl}}` and `{{currentYear}}` are replaced, escaped for HTML; unknown \
                         ones are left out. `BASE` is the layout around all mails: there, `{{emailBody}}` is the \
                         whole mail inside. A template that is a whole HTML document is not put into the layout. One \
                         template serves all languages.";

pub fn routes() -> Routes<Tenancy> {
    Routes::new("Branding")
        .get("/communication/email/template/{templateName}", template, "Get an email template, or its default")
        .put("/communication/email/template/{templateName}", set_template, "Replace an email template")
        .answers(429, TOO_MANY_MAILS)
        .description(VARIABLES)
        .body_limit(BODY_LIMIT)
        .delete("/communication/email/template/{templateName}", reset_template, "Restore the default template")
}

async fn template(
    caller: AppCaller<AppRead>,
    State(tenancy): State<Tenancy>,
    Path(name): Path<TemplateName>,
) -> Result<Json<Template>> {
    let app = caller.app.clone();
    Ok(Json(tenancy.db.read(move |tx| templates::current_template(tx, &app, name)).await?))
}

async fn set_template(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Path(name): Path<TemplateName>,
    Valid(change): Valid<TemplateChange>,
) -> Result<Json<Template>> {
    if change.name != name {
        return Err(Error::invalid("type", format!("must be {}, as in the path", name.as_str())));
    }
    // Mails carry the links by which people come in, and a template decides where these go.
    let (app, db) = (caller.app_id(), tenancy.db.by(&caller));
    Ok(Json(db.write(move |tx| templates::set_template(tx, &tenancy, app, &change)).await?))
}

async fn reset_template(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Path(name): Path<TemplateName>,
) -> Result<Success> {
    let app = caller.app_id();
    tenancy.db.by(&caller).write(move |tx| templates::reset_template(tx, app, name)).await?;
    Ok(Success)
}
