//! The mails that people get in an app's name: in its words and looks, from its address once that is verified.
//!
//! A mail is queued in the transaction that calls for it, so that nothing is mailed about what never happened.

pub(crate) mod budget;
pub mod http;
mod layout;
mod letter;
mod store;
mod templates;
mod variables;
mod words;

use ::store::Tx;
use kernel::{AppId, Result};
use spine::{NewMail, queue_mail};

pub(crate) use letter::header_line;
use letter::{Letter, Overrides};
pub use templates::TemplateName;
use variables::Unknown;
pub use variables::VARIABLES;

use crate::{
    App, Tenancy,
    apps::Profile,
    branding::{self, Translations},
};

/// An occasion for a mail. Links are absolute and lead to a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppMail {
    /// To somebody who has no account yet.
    InviteNew {
        workspace: String,
        link: String,
    },
    InviteExisting {
        workspace: String,
        link: String,
    },
    /// From a workspace, to somebody who may have an account or not: the mail does not tell.
    Invitation {
        workspace: String,
        inviter: String,
        link: String,
    },
    ResetPassword {
        link: String,
    },
    SignUp {
        link: String,
    },
    /// Somebody signed up with an address that has an account.
    SignUpExisting {
        link: String,
    },
    MagicLink {
        link: String,
    },
    PasskeySetup {
        link: String,
    },
    VerifySender {
        link: String,
    },
    /// To the address that somebody wants to have from now on.
    ConfirmAddress {
        link: String,
    },
    /// To the address that they had before.
    AddressChanging,
    AddressChanged,
    PaymentFailure {
        workspace: String,
        link: String,
    },
    /// To the person themselves, about what changed in how they sign in.
    PasswordChanged,
    PasskeyAdded,
    PasskeyRemoved,
    FactorSetUp,
    FactorRemoved,
}

/// Queues a mail to `to`; it leaves once `tx` has committed.
pub fn queue(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, to: &str, mail: &AppMail) -> Result<()> {
    let letter = Letter::new(mail, app, &branding::translations(tx, app.id)?);
    let overrides = overrides(tx, app, letter.template)?;
    send(tx, tenancy, app, to, &letter, &overrides, Unknown::Empty)
}

/// Queues a sample of the template as it is now, in which variables that do not exist can be seen.
fn queue_sample(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, to: &str, name: TemplateName) -> Result<()> {
    let mut letter = Letter::new(&sample(name), app, &branding::translations(tx, app.id)?);
    letter.subject = format!("[Test] {}", letter.subject);
    let overrides = overrides(tx, app, letter.template)?;
    send(tx, tenancy, app, to, &letter, &overrides, Unknown::Visible)
}

/// Whether a mail made with this content stays within reason, taken together with the layout as it is now.
fn fits(tx: &mut Tx<'_>, app: &App, name: TemplateName, content: &str) -> Result<bool> {
    let letter = Letter::new(&sample(name), app, &Translations::default());
    let mut overrides = overrides(tx, app, letter.template)?;
    match name {
        TemplateName::Base => overrides = Overrides { base: Some(content.to_owned()), occasion: None },
        _ => overrides.occasion = Some(content.to_owned()),
    }
    Ok(letter.html_with(app, &overrides, &year(tx), Unknown::Visible).is_some())
}

fn send(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    to: &str,
    letter: &Letter,
    overrides: &Overrides,
    unknown: Unknown,
) -> Result<()> {
    let mail = NewMail {
        app: Some(app.id),
        to: to.to_owned(),
        from_name: sender_name(&app.profile),
        from_address: app.profile.verified_sender().map(str::to_owned),
        reply_to: None,
        subject: letter.subject.clone(),
        text: letter.text(app),
        html: letter.html(app, overrides, &year(tx), unknown),
    };
    queue_mail(tx, &tenancy.keyring, &mail).map(|_| ())
}

fn sender_name(profile: &Profile) -> String {
    header_line(profile.email_sender_name.as_deref().unwrap_or(&profile.name))
}

fn overrides(tx: &mut Tx<'_>, app: &App, occasion: Option<TemplateName>) -> Result<Overrides> {
    let base = store::template(tx, app.id, TemplateName::Base)?;
    let occasion = match occasion {
        Some(name) => store::template(tx, app.id, name)?,
        None => None,
    };
    Ok(Overrides { base, occasion })
}

/// Removes what belonged to an app that is gone.
pub(crate) fn purge(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    store::purge(tx, app)
}

fn year(tx: &Tx<'_>) -> String {
    tx.now().to_string().chars().take_while(char::is_ascii_digit).collect()
}

/// The mail to try a template with; the layout is tried with one that has everything.
fn sample(name: TemplateName) -> AppMail {
    let wanted = if name == TemplateName::Base { TemplateName::ResetPassword } else { name };
    let mut samples = AppMail::samples().into_iter();
    samples.find(|mail| mail.words().template == Some(wanted)).expect("every template but the layout has a sample")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_tried() {
        for name in TemplateName::ALL {
            assert!(sample(name).link().is_some());
        }
    }
}
