//! Another address for one's account. It counts once a link that was mailed to it has been followed.

use kernel::{Actor, Code, Email, Error, Result, email_key};
use serde_json::json;
use spine::emit;
use store::Tx;
use tenancy::{
    App, Tenancy,
    callers::SignedIn,
    federation::ConnectionId,
    links::{self, LinkPurpose, MailedLink},
    mails::{self, AppMail},
    members, paths, people,
};

use super::{ending, first_proof, own};
use crate::{abuse, facts::AddressChanged};

/// Mails the link, and tells the former address. Whether somebody else has the new one shows only to those who read its mails.
pub(crate) fn ask_to_confirm(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    user: &SignedIn,
    email: &Email,
) -> Result<()> {
    let login = own::fresh_homely_login(tx, user)?;
    let person = people::find(tx, app.id, user.user())?.ok_or_else(|| Error::not_found("user"))?;
    if email_key(&person.email) == email_key(email) {
        return Err(Error::invalid("email", "is your address already"));
    }
    abuse::count_message(tx, app.id, email)?;
    links::revoke(tx, app.id, LinkPurpose::AddressChange, person.id)?;
    let payload = json!({ "email": &**email, "connection": login.reach.connection });
    let token = links::create(tx, app.id, LinkPurpose::AddressChange, Some(person.id), &payload)?;
    let link = format!("{}{}?token={token}", tenancy.base_url, paths::NEW_ADDRESS);
    mails::queue(tx, tenancy, app, email, &AppMail::ConfirmAddress { link })?;
    mails::queue(tx, tenancy, app, &person.email, &AppMail::AddressChanging)
}

/// The address that a link confirms.
pub(crate) fn of_link(link: &MailedLink) -> &str {
    link.payload["email"].as_str().unwrap_or_default()
}

/// The connection of the login that asked for the link.
fn connection_of(link: &MailedLink) -> Option<ConnectionId> {
    link.payload["connection"].as_str().and_then(|id| id.parse().ok())
}

/// Uses the link up: the person has the address from now on. Links that were mailed to the former one are void.
pub(crate) fn confirm(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, token: &str) -> Result<()> {
    let link = links::consume(tx, LinkPurpose::AddressChange, token)?;
    let user = link.user.ok_or_else(|| Error::internal("a link for an address without a person"))?;
    tx.acting_as(Actor::user(user));
    people::hold(tx, app.id, user)?;
    let before = people::find(tx, app.id, user)?.ok_or_else(|| Error::not_found("user"))?;
    // Asked for through a connection, while the person belonged to nothing else: whoever runs it must not wait until they do.
    if let Some(connection) = connection_of(&link)
        && members::belongs_outside(tx, app.id, user, connection)?
    {
        let message = "You belong to other workspaces by now. Sign in another way than through your workspace’s identity provider \
                       to change your email address.";
        return Err(Error::new(Code::Forbidden, message));
    }
    first_proof::forget_factor(tx, tenancy, app.id, user)?;
    members::change_address(tx, app.id, user, of_link(&link))?;
    people::verify_email(tx, app.id, user)?;
    ending::void_links(tx, app.id, user)?;
    emit(tx, app.id, &AddressChanged { user_id: user })?;
    mails::queue(tx, tenancy, app, &before.email, &AppMail::AddressChanged)
}
