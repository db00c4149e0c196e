//! The sender's address of an app's mails: used once somebody who reads its mail has agreed.

use ::store::Tx;
use kernel::{Code, Error, Result};
use serde_json::json;

use crate::{
    Tenancy,
    apps::{self, App, Profile, ProfileChange},
    links::{self, LinkPurpose},
    mails::{self, AppMail},
};

/// The address that has to be asked: a new one, or one that was given again because it is not verified yet.
pub(super) fn asked_for(profile: &Profile, change: &ProfileChange) -> Option<String> {
    let address = change.email_sender_email.value()?;
    let known = profile.verified_sender().is_some_and(|known| known.eq_ignore_ascii_case(address));
    (!known).then(|| address.to_string())
}

/// Mails the link that verifies the address.
pub(super) fn ask(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, address: &str) -> Result<()> {
    let token = links::create(tx, app.id, LinkPurpose::SenderVerification, None, &json!({ "address": address }))?;
    let link = format!("{}/cloud-views/verify-sender?token={token}", tenancy.base_url);
    mails::budget::count(tx, app.id, address)?;
    mails::queue(tx, tenancy, app, address, &AppMail::VerifySender { link })
}

/// A sender's address that somebody was asked about.
pub(super) struct SenderRequest {
    pub(super) app: App,
    pub(super) address: String,
}

/// What the link asks, without using it up.
pub(super) fn peek(tx: &mut Tx<'_>, token: &str) -> Result<SenderRequest> {
    let link = links::peek(tx, LinkPurpose::SenderVerification, token)?;
    let app = apps::get(tx, link.app)?;
    asked(app, &link.payload["address"])
}

/// Uses the link up: from now on mail leaves from the address.
pub(super) fn verify(tx: &mut Tx<'_>, tenancy: &Tenancy, token: &str) -> Result<SenderRequest> {
    let link = links::consume(tx, LinkPurpose::SenderVerification, token)?;
    let app = apps::locked(tx, link.app)?;
    let SenderRequest { mut app, address } = asked(app, &link.payload["address"])?;
    let before = app.profile.clone();
    app.profile.email_sender_verified = true;
    apps::save(tx, &tenancy.apps, &before, &mut app)?;
    Ok(SenderRequest { app, address })
}

/// What a link has confirmed that is used up: for whoever presses its button twice.
pub(super) fn confirmed(tx: &mut Tx<'_>, token: &str) -> Result<SenderRequest> {
    let link = links::trace(tx, LinkPurpose::SenderVerification, token)?.ok_or_else(links::invalid)?;
    let request = asked(apps::get(tx, link.app)?, &link.payload["address"])?;
    if request.app.profile.email_sender_verified { Ok(request) } else { Err(links::invalid()) }
}

/// A link is void once the app has another address.
fn asked(app: App, address: &serde_json::Value) -> Result<SenderRequest> {
    match &app.profile.email_sender_email {
        Some(current) if address == current.as_str() => {
            let address = current.clone();
            Ok(SenderRequest { app, address })
        }
        _ => Err(Error::new(Code::NotFound, "The app has since changed its sender address.")),
    }
}
