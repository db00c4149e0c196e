//! The mails that an app's people get.

use kernel::Result;
use spine::{NewMail, queue_mail};
use store::Tx;

use crate::{App, Tenancy};

pub enum AppMail {
    InviteNew { workspace: String, link: String },
    InviteExisting { workspace: String, link: String },
    ResetPassword { link: String },
}

pub fn queue(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, to: &str, mail: &AppMail) -> Result<()> {
    let name = &app.profile.name;
    let (subject, text) = match mail {
        AppMail::InviteNew { workspace, link } => {
            (format!("You are invited to {workspace}"), format!("Choose a password: {link}"))
        }
        AppMail::InviteExisting { workspace, link } => {
            (format!("You were added to {workspace}"), format!("Sign in: {link}"))
        }
        AppMail::ResetPassword { link } => (format!("Your password at {name}"), format!("Choose a password: {link}")),
    };
    let mail = NewMail {
        app: Some(app.id),
        to: to.into(),
        from_name: name.clone(),
        from_address: None,
        reply_to: None,
        subject,
        html: format!("<p>{text}</p>"),
        text,
    };
    queue_mail(tx, &tenancy.keyring, &mail).map(|_| ())
}
