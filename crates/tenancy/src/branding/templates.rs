//! The mail templates that an app may put its own in the place of.

use kernel::{Content, Email};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::text_enum;
use web::Validate;

use crate::{App, mails};

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

pub(super) fn default_content(app: &App, name: TemplateName) -> String {
    match name {
        TemplateName::Base => mails::default_base(&app.profile),
        _ => mails::WITH_BUTTON.to_owned(),
    }
}
