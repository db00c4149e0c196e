//! Who comes in through a connection, and how far: the person behind the address, the workspaces they join, and the reach.

use ::store::Tx;
use kernel::{
    AppId, Result, UserId, email_key,
    text::{MAX_NAME, one_line},
};
use spine::emit;
use tenancy::{
    App,
    apps::parameters::Parameters,
    federation::{self, Connection, Protocol},
    logins::Reach,
    members::{self, Joining, MemberRef, invitations},
    people::{self, User},
    roles, workspaces,
};
use vault::sha256_hex;

use super::{Asserted, denied, oidc::subject_digest, refused, store};
use crate::{
    Identity,
    facts::IdentityLinked,
    login::{self, FirstFactor},
    proof::Method,
    sessions::BegunSession,
};

const UNKNOWN: &str =
    "You are not a member of a workspace that is opened by this identity provider. Ask its administrator for access.";

const UNSETTLED: &str = "This identity provider is not set up yet: an owner of the workspace has to sign in first.";

/// Begins the login of whom the identity provider named; 403 for somebody who may not come in.
pub(super) fn admit(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    connection: &Connection,
    said: &Asserted,
) -> Result<BegunSession> {
    let Some(email) = said.email.as_deref() else {
        return Err(denied("Your identity provider did not send an email address. Tell your administrator."));
    };
    let using = federation::workspaces_of(tx, app.id, connection.id)?;
    if using.is_empty() {
        return Err(denied(UNKNOWN));
    }
    // All locks first, in one order, so that two people who join at once do not wait for each other.
    for (tenant, _) in &using {
        workspaces::lock(tx, *tenant)?;
    }
    let is_settled = settle_issuer(tx, app.id, connection, email, said)?;
    let subject = match connection.protocol {
        Protocol::Saml => sha256_hex(said.subject.as_bytes()),
        Protocol::Oidc => subject_digest(app.id, &said.issuer, &said.subject),
    };
    let known = match is_settled {
        true => person(tx, app.id, connection, &subject, email)?,
        // Nobody is made, renamed or linked on the word of somebody who may turn out to be another provider.
        false => people::find_by_email(tx, app.id, email)?,
    };
    let (first, last) = (&name(said.first_name.as_deref()), &name(said.last_name.as_deref()));
    let user = join(tx, identity, app, connection, known, &Joins { email, first, last, using: &using, is_settled })?;
    if is_settled {
        if !members::belongs_outside(tx, app.id, user, connection.id)? {
            people::name_themselves(tx, app.id, user, first, last)?;
        }
        link(tx, app.id, connection, &subject, user)?;
    }
    federation::note_success(tx, app.id, connection.id)?;
    let first_factor = FirstFactor {
        user,
        method: Method::Federation,
        strong: said.two_factors && connection.trust_mfa,
        // Not the provider's instant: whatever ended the person's sessions until now must not end this one.
        authenticated_at: tx.now(),
        reach: Reach { connection: Some(connection.id), ends_at: said.session_ends_at },
    };
    login::try_begin(tx, identity, app, first_factor)?
        .ok_or_else(|| denied("Your account in this workspace is disabled. Ask its administrator for access."))
}

/// A provider's word for a name, as short as everybody's: it goes into tokens and mails.
fn name(said: Option<&str>) -> String {
    one_line(said.unwrap_or_default()).chars().take(MAX_NAME).collect()
}

/// Which provider answers is learnt from the first accepted answer about an OWNER; until then members come in, and nobody joins.
/// Whether it is known.
fn settle_issuer(tx: &mut Tx<'_>, app: AppId, connection: &Connection, email: &str, said: &Asserted) -> Result<bool> {
    if connection.protocol == Protocol::Oidc {
        // It may have been changed while the person was there.
        return if connection.issuer.as_ref() == Some(&said.issuer) { Ok(true) } else { Err(refused()) };
    }
    if connection.is_settled() {
        return Ok(true);
    }
    if !members::owns_through(tx, app, connection.id, &email_key(email))? {
        return Ok(false);
    }
    federation::learn_issuer(tx, app, connection.id, &said.issuer)?;
    Ok(true)
}

/// The address decides who somebody is. A known subject under an address that nobody has is a person who was renamed, as far as they
/// belong to this provider alone.
fn person(tx: &mut Tx<'_>, app: AppId, connection: &Connection, subject: &str, email: &str) -> Result<Option<User>> {
    if let Some(named) = people::find_by_email(tx, app, email)? {
        return Ok(Some(named));
    }
    let Some(id) = store::person_of_subject(tx, app, connection.id, subject)? else { return Ok(None) };
    let Some(known) = people::find(tx, app, id)? else { return Ok(None) };
    if members::belongs_outside(tx, app, id, connection.id)? {
        return Err(denied("Your email address has changed. Ask your administrator for access with the new one."));
    }
    members::change_address(tx, app, id, email)?;
    super::forget_former_address(tx, app, id)?;
    Ok(Some(known))
}

struct Joins<'a> {
    email: &'a str,
    first: &'a str,
    last: &'a str,
    using: &'a [(kernel::TenantId, bool)],
    /// Whether it is known which provider answers: nobody joins before.
    is_settled: bool,
}

/// Makes the person a member of the workspaces that take newcomers; who it is.
fn join(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    connection: &Connection,
    known: Option<User>,
    joins: &Joins<'_>,
) -> Result<UserId> {
    let mut user = known.map(|known| known.id);
    let is_known_elsewhere = match user {
        Some(user) => members::belongs_outside(tx, app.id, user, connection.id)?,
        None => false,
    };
    let mut missing = Vec::new();
    let mut belongs = false;
    for (tenant, takes_newcomers) in joins.using {
        let member = match user {
            Some(user) => members::find(tx, app.id, *tenant, MemberRef::User(user))?,
            None => None,
        };
        match member {
            Some(_) => belongs = true,
            // Whom the workspace has invited comes in as what it said.
            None if joins.is_settled => {
                match invitations::accept_through_connection(tx, app.id, *tenant, joins.email)? {
                    Some(member) => (user, belongs) = (Some(member.user_id), true),
                    None if *takes_newcomers => missing.push(*tenant),
                    None => {}
                }
            }
            None => {}
        }
    }
    if !missing.is_empty() {
        let role = roles::assign(tx, app.id, None)?;
        for tenant in missing {
            let tenant = workspaces::get(tx, app.id, tenant)?;
            // Whoever belongs elsewhere is not named by this provider, not even when they have no name yet.
            let (first_name, last_name) = if is_known_elsewhere { ("", "") } else { (joins.first, joins.last) };
            let joining = Joining {
                email: joins.email,
                first_name,
                last_name,
                role: &role,
                onboarded: false,
                parameters: &Parameters::default(),
                email_verified: false,
                invite: false,
            };
            let member = members::add(tx, &identity.tenancy, app, &tenant, &joining)?.member;
            if is_known_elsewhere {
                members::vouch(tx, app.id, member.id, connection.id)?;
            }
            (user, belongs) = (Some(member.user_id), true);
        }
    }
    user.filter(|_| belongs).ok_or_else(|| denied(if joins.is_settled { UNKNOWN } else { UNSETTLED }))
}

fn link(tx: &mut Tx<'_>, app: AppId, connection: &Connection, subject: &str, user: UserId) -> Result<()> {
    if store::person_of_subject(tx, app, connection.id, subject)? == Some(user) {
        return Ok(());
    }
    store::link(tx, app, connection.id, subject, user)?;
    emit(tx, app, &IdentityLinked { user_id: user, connection_id: Some(connection.id), provider: None })
}
