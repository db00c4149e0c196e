//! The mail templates that an app may put its own in the place of.

use ::store::{Tx, text_enum};
use kernel::{AppId, Content, Email, Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::emit;
use web::Validate;

use super::{budget, fits, layout, queue_sample, store};
use crate::{App, Tenancy, apps, facts::TemplateChanged};

text_enum! {
    /// The templates by their names on the wire.
    #[derive(Hash)]
    wire pub enum TemplateName {
        ResetPassword = "RESET-PASSWORD",
        SignUp = "SIGNUP",
        InviteNew = "INVITE_NEW",
        InviteExisting = "INVITE_EXISTING",
        PaymentFailure = "PAYMENT_FAILURE",
        Base = "BASE",
    }
}

/// A template as it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Template {
    #[serde(rename = "type")]
    pub name: TemplateName,
    /// HTML with variables.
    pub content: String,
}

/// The body of `PUT /communication/email/template/{templateName}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateChange {
    /// The same name as in the path.
    #[serde(rename = "type")]
    pub name: TemplateName,
    /// HTML with variables, at most 512 KiB. A whole document is the whole mail; anything less stands inside `BASE`.
    pub content: Content,
    /// Gets a sample of the mail.
    pub test_recipient: Option<Email>,
}

impl Validate for TemplateChange {}

fn default_content(app: &App, name: TemplateName) -> String {
    match name {
        TemplateName::Base => layout::base(&app.profile),
        _ => layout::WITH_BUTTON.to_owned(),
    }
}

/// The template as it is now.
pub fn current_template(tx: &mut Tx<'_>, app: &App, name: TemplateName) -> Result<Template> {
    let own = store::template(tx, app.id, name)?;
    Ok(Template { name, content: own.unwrap_or_else(|| default_content(app, name)) })
}

/// Puts the app's own template in the place of the default, and mails a sample of it when asked to.
pub fn set_template(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, change: &TemplateChange) -> Result<Template> {
    let app = apps::locked(tx, app)?;
    let TemplateChange { name, content, test_recipient } = change;
    if !fits(tx, &app, *name, content)? {
        return Err(Error::invalid("content", "repeats its variables so often that the email becomes too large"));
    }
    store::put_template(tx, app.id, *name, content)?;
    emit(tx, app.id, &TemplateChanged { template: *name, custom: true })?;
    if let Some(recipient) = test_recipient {
        budget::count(tx, app.id, recipient)?;
        queue_sample(tx, tenancy, &app, recipient, *name)?;
    }
    Ok(Template { name: *name, content: content.to_string() })
}

pub fn reset_template(tx: &mut Tx<'_>, app: AppId, name: TemplateName) -> Result<()> {
    store::delete_template(tx, app, name)?;
    emit(tx, app, &TemplateChanged { template: name, custom: false })
}
