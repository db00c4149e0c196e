//! What the mails say. Each text is looked up in the app's translations on its own; `{appName}`, `{workspace}` and
//! `{inviter}` stand for the names, in the translation as in the original.

use super::AppMail;
use super::TemplateName;

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
pub(super) const COPY_LINK: &str = "If the button does not work, copy and paste this link into your browser:";

impl Words {
    /// A mail that asks for nothing, unless somebody else was at work.
    fn notice(subject: &'static str, title: &'static str, paragraphs: &'static [&'static str]) -> Self {
        let note = "If it was not you, reset your password right away and contact the support of {appName}.";
        Self { template: None, subject, title, paragraphs, action: None, note }
    }
}

impl AppMail {
    pub(super) fn words(&self) -> Words {
        match self {
            Self::InviteNew { .. } => Words {
                template: Some(TemplateName::InviteNew),
                subject: "Join {workspace} on {appName}",
                title: "Join {workspace}",
                paragraphs: &[
                    "You have been invited to join {workspace} on {appName}. Choose a password to get started.",
                ],
                action: Some("Accept invitation"),
                note: "This link expires in 7 days and can be used once. If you were not expecting an invitation, you can ignore this email.",
            },
            Self::InviteExisting { .. } => Words {
                template: Some(TemplateName::InviteExisting),
                subject: "You have been added to {workspace}",
                title: "Welcome to {workspace}",
                paragraphs: &[
                    "You have been added to {workspace} on {appName}. Sign in with your existing account to open it.",
                ],
                action: Some("Open {appName}"),
                note: "If you were not expecting this, you can ignore this email.",
            },
            Self::Invitation { .. } => Words {
                template: Some(TemplateName::InviteNew),
                subject: "Join {workspace} on {appName}",
                title: "Join {workspace}",
                paragraphs: &["{inviter} has invited you to join {workspace} on {appName}."],
                action: Some("Accept invitation"),
                note: "This link expires in 7 days and can be used once. If you were not expecting an invitation, you can ignore this email.",
            },
            Self::ResetPassword { .. } => Words {
                template: Some(TemplateName::ResetPassword),
                subject: "Reset your {appName} password",
                title: "Reset your password",
                paragraphs: &[
                    "We received a request to reset the password of your {appName} account. If it was you, choose a new password now.",
                ],
                action: Some("Reset password"),
                note: "This link expires in one hour and can be used once. If it was not you, ignore this email: your password will not change.",
            },
            Self::SignUp { .. } => Words {
                template: Some(TemplateName::SignUp),
                subject: "Confirm your email address for {appName}",
                title: "Confirm your email address",
                paragraphs: &[
                    "Thank you for signing up for {appName}. Confirm your email address to finish creating your account.",
                ],
                action: Some("Confirm email address"),
                note: "This link expires in 24 hours and can be used once. If you did not sign up, you can ignore this email.",
            },
            Self::SignUpExisting { .. } => Words {
                template: None,
                subject: "You already have a {appName} account",
                title: "You already have an account",
                paragraphs: &[
                    "Someone tried to sign up for {appName} with this email address, which already has an account. If it was you, sign in instead.",
                ],
                action: Some("Sign in"),
                note: "If it was not you, you can ignore this email. Your account has not changed.",
            },
            Self::MagicLink { .. } => Words {
                template: None,
                subject: "Sign in to {appName}",
                title: "Sign in to {appName}",
                paragraphs: &["Use this link to sign in. You do not need a password."],
                action: Some("Sign in"),
                note: "This link expires in 15 minutes and can be used once. If you did not request it, you can ignore this email.",
            },
            Self::PasskeySetup { .. } => Words {
                template: None,
                subject: "Set up a passkey for {appName}",
                title: "Set up a passkey",
                paragraphs: &[
                    "A passkey lets you sign in to {appName} with your fingerprint, face or screen lock instead of a password.",
                ],
                action: Some("Set up a passkey"),
                note: "This link expires in one hour and can be used once. If you did not request it, you can ignore this email.",
            },
            Self::VerifySender { .. } => Words {
                template: None,
                subject: "Allow {appName} to send email from this address?",
                title: "Confirm this sender address",
                paragraphs: &["{appName} wants to send email from this address. Confirm that you allow it."],
                action: Some("Confirm email address"),
                note: "This link expires in 24 hours and can be used once. If you were not expecting this, ignore this email: nothing will be sent from your address.",
            },
            Self::ConfirmAddress { .. } => Words {
                template: None,
                subject: "Confirm your new email address for {appName}",
                title: "Confirm your new email address",
                paragraphs: &["You asked to use this email address for your {appName} account from now on."],
                action: Some("Confirm email address"),
                note: "This link expires in 24 hours and can be used once. If it was not you, ignore this email: nothing will change.",
            },
            Self::AddressChanging => Words::notice(
                "Your {appName} email address is about to change",
                "Your email address is about to change",
                &[
                    "Someone who is signed in to your {appName} account asked to use another email address for it. It changes once that address is confirmed.",
                ],
            ),
            Self::AddressChanged => Words {
                template: None,
                subject: "Your {appName} email address was changed",
                title: "Your email address was changed",
                paragraphs: &[
                    "Your {appName} account now uses another email address. This one no longer works for signing in.",
                ],
                action: None,
                note: "If it was not you, contact the support of {appName} right away.",
            },
            Self::PaymentFailure { .. } => Words {
                template: Some(TemplateName::PaymentFailure),
                subject: "Payment failed for {workspace}",
                title: "Payment failed",
                paragraphs: &[
                    "We could not process the last payment for {workspace} on {appName}. Update your payment details to keep your plan.",
                ],
                action: Some("Update payment details"),
                note: "If you have already paid, you can ignore this email.",
            },
            Self::PasswordChanged => Words::notice(
                "Your {appName} password was changed",
                "Your password was changed",
                &["The password of your {appName} account was changed, and you were signed out everywhere else."],
            ),
            Self::PasskeyAdded => Words::notice(
                "A passkey was added to your {appName} account",
                "A passkey was added",
                &["You can now sign in to {appName} with a new passkey."],
            ),
            Self::PasskeyRemoved => Words::notice(
                "A passkey was removed from your {appName} account",
                "A passkey was removed",
                &["You can no longer sign in to {appName} with that passkey."],
            ),
            Self::FactorSetUp => Words::notice(
                "Two-step sign-in was set up for your {appName} account",
                "Two-step sign-in was set up",
                &["Signing in to {appName} now asks for a code as well."],
            ),
            Self::FactorRemoved => Words::notice(
                "Two-step sign-in was turned off for your {appName} account",
                "Two-step sign-in was turned off",
                &["Signing in to {appName} no longer asks for a code or a passkey, until you set one up again."],
            ),
        }
    }

    pub(super) fn workspace(&self) -> &str {
        match self {
            Self::InviteNew { workspace, .. }
            | Self::InviteExisting { workspace, .. }
            | Self::Invitation { workspace, .. }
            | Self::PaymentFailure { workspace, .. } => workspace,
            _ => "",
        }
    }

    pub(super) fn inviter(&self) -> &str {
        match self {
            Self::Invitation { inviter, .. } => inviter,
            _ => "",
        }
    }

    pub(super) fn link(&self) -> Option<&str> {
        match self {
            Self::InviteNew { link, .. }
            | Self::InviteExisting { link, .. }
            | Self::Invitation { link, .. }
            | Self::ResetPassword { link }
            | Self::SignUp { link }
            | Self::SignUpExisting { link }
            | Self::MagicLink { link }
            | Self::PasskeySetup { link }
            | Self::VerifySender { link }
            | Self::ConfirmAddress { link }
            | Self::PaymentFailure { link, .. } => Some(link),
            Self::PasswordChanged
            | Self::PasskeyAdded
            | Self::PasskeyRemoved
            | Self::FactorSetUp
            | Self::FactorRemoved
            | Self::AddressChanging
            | Self::AddressChanged => None,
        }
    }

    /// One of each, for trying templates and for looking at.
    pub fn samples() -> Vec<Self> {
        let (workspace, link) =
            (|| "Acme Corporation".to_owned(), || "https://example.com/sample?token=sample".to_owned());
        vec![
            Self::InviteNew { workspace: workspace(), link: link() },
            Self::InviteExisting { workspace: workspace(), link: link() },
            Self::Invitation { workspace: workspace(), inviter: "Ada Lovelace".to_owned(), link: link() },
            Self::ResetPassword { link: link() },
            Self::SignUp { link: link() },
            Self::SignUpExisting { link: link() },
            Self::MagicLink { link: link() },
            Self::PasskeySetup { link: link() },
            Self::VerifySender { link: link() },
            Self::ConfirmAddress { link: link() },
            Self::AddressChanging,
            Self::AddressChanged,
            Self::PaymentFailure { workspace: workspace(), link: link() },
            Self::PasswordChanged,
            Self::PasskeyAdded,
            Self::PasskeyRemoved,
            Self::FactorSetUp,
            Self::FactorRemoved,
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
