//! What the mails say. Each text is looked up in the app's translations on its own; `{appName}` and `{workspace}` stand
//! for the names, in the translation as in the original.

use super::AppMail;
use crate::branding::TemplateName;

/// The texts of one mail.
pub(super) struct Words {
    /// The template an app may put its own in the place of.
    pub(super) template: Option<TemplateName>,
    pub(super) subject: &'static str,
    pub(super) title: &'static str,
    pub(super) paragraphs: &'static [&'static str],
    /// What the button says.
    pub(super) action: Option<&'static str>,
    /// Below the button, smaller.
    pub(super) note: &'static str,
}

/// Before the address, for mail programs that show no buttons.
pub(super) const COPY_LINK: &str = "If the button does not work, copy this address into your browser:";

impl AppMail {
    pub(super) fn words(&self) -> Words {
        match self {
            Self::InviteNew { .. } => Words {
                template: Some(TemplateName::InviteNew),
                subject: "Join {workspace} on {appName}",
                title: "Join {workspace}",
                paragraphs: &[
                    "You have been invited to the workspace {workspace} on {appName}. Choose a password to begin.",
                ],
                action: Some("Accept the invitation"),
                note: "This link works once, within 7 days. If you did not expect an invitation, you can ignore this mail.",
            },
            Self::InviteExisting { .. } => Words {
                template: Some(TemplateName::InviteExisting),
                subject: "You are now a member of {workspace}",
                title: "Welcome to {workspace}",
                paragraphs: &[
                    "You have been added to the workspace {workspace} on {appName}. Sign in with the account you already have.",
                ],
                action: Some("Open {appName}"),
                note: "If you did not expect this, you can ignore this mail.",
            },
            Self::ResetPassword { .. } => Words {
                template: Some(TemplateName::ResetPassword),
                subject: "Choose a new {appName} password",
                title: "Choose a new password",
                paragraphs: &[
                    "Somebody asked for a new password for your {appName} account. If it was you, choose one now.",
                ],
                action: Some("Choose a new password"),
                note: "This link works once, within one hour. If it was not you, ignore this mail: your password stays as it is.",
            },
            Self::SignUp { .. } => Words {
                template: Some(TemplateName::SignUp),
                subject: "Confirm your e-mail address for {appName}",
                title: "Confirm your e-mail address",
                paragraphs: &[
                    "Thank you for signing up for {appName}. Confirm that this address is yours, and your account is ready.",
                ],
                action: Some("Confirm the address"),
                note: "This link works once, within 24 hours. If you did not sign up, you can ignore this mail.",
            },
            Self::SignUpExisting { .. } => Words {
                template: None,
                subject: "You already have a {appName} account",
                title: "You already have an account",
                paragraphs: &[
                    "Somebody tried to sign up for {appName} with this address, which has an account already. If it was you, simply sign in.",
                ],
                action: Some("Sign in"),
                note: "If it was not you, you can ignore this mail. Nothing has changed.",
            },
            Self::MagicLink { .. } => Words {
                template: None,
                subject: "Sign in to {appName}",
                title: "Sign in to {appName}",
                paragraphs: &["Use this link to sign in. No password needed."],
                action: Some("Sign in"),
                note: "This link works once, within 15 minutes. If you did not ask for it, you can ignore this mail.",
            },
            Self::PasskeySetup { .. } => Words {
                template: None,
                subject: "Set up a passkey for {appName}",
                title: "Set up a passkey",
                paragraphs: &[
                    "With a passkey you sign in to {appName} by fingerprint, face or screen lock instead of a password.",
                ],
                action: Some("Set up a passkey"),
                note: "This link works once, within one hour. If you did not ask for it, you can ignore this mail.",
            },
            Self::VerifySender { .. } => Words {
                template: None,
                subject: "May {appName} send mail from this address?",
                title: "Confirm this sender address",
                paragraphs: &["{appName} would like to send its mail from this address. Confirm that it may."],
                action: Some("Confirm the address"),
                note: "This link works once, within 24 hours. If this is news to you, ignore this mail: nothing will be sent in your name.",
            },
            Self::MfaCode { .. } => Words {
                template: None,
                subject: "Your {appName} sign-in code",
                title: "Your sign-in code",
                paragraphs: &["Enter this code to finish signing in to {appName}:"],
                action: None,
                note: "The code works once, within 5 minutes. Nobody from {appName} will ever ask you for it.",
            },
            Self::PaymentFailure { .. } => Words {
                template: Some(TemplateName::PaymentFailure),
                subject: "A payment for {workspace} failed",
                title: "A payment failed",
                paragraphs: &[
                    "The last payment for the workspace {workspace} on {appName} did not go through. Check the payment details so that nothing is interrupted.",
                ],
                action: Some("Check the payment details"),
                note: "If you have paid in the meantime, you can ignore this mail.",
            },
        }
    }

    pub(super) fn workspace(&self) -> &str {
        match self {
            Self::InviteNew { workspace, .. }
            | Self::InviteExisting { workspace, .. }
            | Self::PaymentFailure { workspace, .. } => workspace,
            _ => "",
        }
    }

    pub(super) fn link(&self) -> Option<&str> {
        match self {
            Self::InviteNew { link, .. }
            | Self::InviteExisting { link, .. }
            | Self::ResetPassword { link }
            | Self::SignUp { link }
            | Self::SignUpExisting { link }
            | Self::MagicLink { link }
            | Self::PasskeySetup { link }
            | Self::VerifySender { link }
            | Self::PaymentFailure { link, .. } => Some(link),
            Self::MfaCode { .. } => None,
        }
    }

    pub(super) fn code(&self) -> Option<&str> {
        match self {
            Self::MfaCode { code } => Some(code),
            _ => None,
        }
    }

    /// One of each, for trying templates and for looking at.
    pub fn samples() -> Vec<Self> {
        let (workspace, link) =
            (|| "Acme Corporation".to_owned(), || "https://example.com/sample?token=sample".to_owned());
        vec![
            Self::InviteNew { workspace: workspace(), link: link() },
            Self::InviteExisting { workspace: workspace(), link: link() },
            Self::ResetPassword { link: link() },
            Self::SignUp { link: link() },
            Self::SignUpExisting { link: link() },
            Self::MagicLink { link: link() },
            Self::PasskeySetup { link: link() },
            Self::VerifySender { link: link() },
            Self::MfaCode { code: "482 913".to_owned() },
            Self::PaymentFailure { workspace: workspace(), link: link() },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_listed_for_translators() {
        let page = include_str!("../../../../docs/branding.md");
        for mail in AppMail::samples() {
            let Words { subject, title, paragraphs, action, note, .. } = mail.words();
            let texts = [subject, title, note, COPY_LINK].into_iter().chain(paragraphs.iter().copied()).chain(action);
            for text in texts {
                assert!(page.contains(&format!("\n- {text}\n")), "docs/branding.md lacks: {text}");
            }
        }
    }
}
