//! The mail templates that an app may put its own in the place of.

use kernel::Problems;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::text_enum;
use web::Validate;

use super::MAX_CONTENT;
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
    #[schemars(length(min = 1), regex(pattern = "\\S"))]
    pub content: String,
    /// Gets a sample of the mail.
    #[schemars(regex(pattern = mails::ADDRESS))]
    pub test_recipient: Option<String>,
}

impl Validate for TemplateChange {
    fn validate(&self, problems: &mut Problems) {
        problems.check("content", !self.content.trim().is_empty(), "must not be empty");
        problems.text_up_to("content", &self.content, MAX_CONTENT);
        if let Some(recipient) = &self.test_recipient {
            problems.check("testRecipient", mails::is_address(recipient), "must be an email address");
        }
    }
}

pub(super) fn default_content(app: &App, name: TemplateName) -> String {
    match name {
        TemplateName::Base => mails::default_base(&app.profile),
        _ => mails::WITH_BUTTON.to_owned(),
    }
}
