//! Who comes in through a provider of the app. A subject that is known is the person it was linked to, whatever address it has now; a new
//! one is whoever has its address, as far as the provider calls that verified.

use ::store::Tx;
use kernel::{AppId, Result, UserId};
use serde::{Deserialize, Serialize};
use spine::emit;
use tenancy::{App, federation::Provider, logins::Reach, people};

use super::{Asserted, denied, done::Admitted, identities, oidc::subject_digest};
use crate::{
    Identity,
    facts::IdentityLinked,
    login::{self, FirstFactor, first_proof},
    proof::Method,
    sessions::BegunSession,
};

/// Somebody with a proven address whom nobody knows yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newcomer {
    provider: Provider,
    subject: String,
    pub email: String,
    pub first_name: String,
    pub last_name: String,
    strong: bool,
}

pub(super) fn admit(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    provider: Provider,
    said: &Asserted,
) -> Result<Admitted> {
    let subject = subject_digest(app.id, &said.issuer, &said.subject);
    if let Some(user) = identities::person_of(tx, app.id, provider, &subject)? {
        // Whoever takes the provider's word away from them holds them too.
        people::hold(tx, app.id, user)?;
    }
    let known = match identities::person_of(tx, app.id, provider, &subject)? {
        Some(user) => people::find(tx, app.id, user)?,
        None => None,
    };
    if let Some(person) = known {
        return begin(tx, identity, app, person.id, provider, said.two_factors).map(Admitted::In);
    }
    let Some(email) = said.email.clone() else {
        return Err(denied("The provider did not tell your email address. Allow it to, or sign in another way."));
    };
    if !said.email_verified {
        return Err(denied("The provider has not verified your email address. Verify it there, then sign in again."));
    }
    let newcomer = Newcomer {
        provider,
        subject,
        email,
        first_name: said.first_name.clone().unwrap_or_default(),
        last_name: said.last_name.clone().unwrap_or_default(),
        strong: said.two_factors,
    };
    match people::find_by_email(tx, app.id, &newcomer.email)? {
        Some(person) => newcomer.enter(tx, identity, app, person.id).map(Admitted::In),
        None if app.profile.tenant_self_signup => Ok(Admitted::Newcomer(newcomer)),
        None => Err(denied("There is no account with your email address. Ask for an invitation.")),
    }
}

impl Newcomer {
    /// Links the provider's word to the person with its address, and begins their login.
    pub fn enter(&self, tx: &mut Tx<'_>, identity: &Identity, app: &App, user: UserId) -> Result<BegunSession> {
        self.link(tx, identity, app.id, user)?;
        begin(tx, identity, app, user, self.provider, self.strong)
    }

    fn link(&self, tx: &mut Tx<'_>, identity: &Identity, app: AppId, user: UserId) -> Result<()> {
        people::hold(tx, app, user)?;
        first_proof::forget_factor(tx, &identity.tenancy, app, user)?;
        people::verify_email(tx, app, user)?;
        identities::link(tx, app, user, self.provider, &self.subject, &self.email)?;
        emit(tx, app, &IdentityLinked { user_id: user, connection_id: None, provider: Some(self.provider) })
    }
}

fn begin(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    user: UserId,
    provider: Provider,
    strong: bool,
) -> Result<BegunSession> {
    let first_factor = FirstFactor {
        user,
        method: Method::of_provider(provider),
        strong,
        authenticated_at: tx.now(),
        reach: Reach::EVERYTHING,
    };
    login::try_begin(tx, identity, app, first_factor)?
        .ok_or_else(|| denied("Your account is disabled. Ask an administrator of your workspace for access."))
}
