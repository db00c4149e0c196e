//! A password that somebody sets with a mailed link: of an invitation, of a reset, or of a sign-up.

use kernel::{Actor, AppId, Code, Error, Problems, Result, Secret, UserId, text::MAX_NAME};
use serde::{Deserialize, Serialize};
use store::Tx;
use tenancy::{
    App, Tenancy, apps,
    links::{self, LinkPurpose, MailedLink},
    members::invitations,
    people,
};
use vault::passwords::check_quality;

use super::{credentials, ending, first_proof, flows::check_sign_up};
use crate::{Identity, authorize::SignUpPreferences, mfa};

/// The links that allow to set a password.
pub(crate) const PURPOSES: [LinkPurpose; 3] =
    [LinkPurpose::PasswordReset, LinkPurpose::Invitation, LinkPurpose::SignUp];

/// What a sign-up's link remembers until it is followed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignUpRequest {
    pub email: String,
    pub first_name: String,
    pub last_name: String,
    /// What to start with; links that are out may still call it by its former name.
    #[serde(default, alias = "wish")]
    pub preferences: SignUpPreferences,
    /// What the app had asked for, sealed; nothing after a sign-up on a page of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

impl SignUpRequest {
    /// What the workspace is called when nobody gives it a name.
    pub fn workspace_name(&self) -> String {
        let named = people::full_name(&self.first_name, &self.last_name);
        let name = if named.is_empty() { &self.email } else { &named };
        name.chars().take(MAX_NAME).collect()
    }
}

/// A chosen password that passed, digested, with the link that allows to set it.
#[derive(Clone)]
pub struct NewPassword {
    purpose: LinkPurpose,
    token: String,
    digest: String,
    tenancy: Tenancy,
    pub app: AppId,
}

/// What setting it led to.
#[derive(Clone, Debug)]
pub enum PasswordOutcome {
    /// The person's password is set, and their other sessions are ended.
    Set(UserId),
    /// A sign-up: the caller makes the workspace, then [`NewPassword::set_for`] the person.
    SignUp(SignUpRequest),
}

impl NewPassword {
    /// Looks at the link, checks the password and digests it. Uses nothing up.
    pub async fn prepare(identity: &Identity, token: &str, password: Secret<String>) -> Result<Self> {
        let shown = token.to_owned();
        let (purpose, link, email) = identity.tenancy.db.read(move |tx| peek(tx, &PURPOSES, &shown)).await?;
        let digest = identity.passwords.digest(judge(password, email).await?).await?;
        Ok(Self { purpose, token: token.to_owned(), digest, tenancy: identity.tenancy.clone(), app: link.app })
    }

    /// Uses the link up; of several callers at once exactly one succeeds.
    pub fn apply(&self, tx: &mut Tx<'_>, app: &App) -> Result<PasswordOutcome> {
        let link = links::consume(tx, self.purpose, &self.token)?;
        if self.purpose == LinkPurpose::SignUp {
            check_sign_up(app)?;
            // Before anything is looked at: of two links for one address the second sees what the first has done.
            apps::hold(tx, app.id)?;
            let request: SignUpRequest = serde_json::from_value(link.payload).map_err(Error::internal)?;
            // Two sign-ups of one address: the first that is followed counts, and the other must not change its password.
            if credentials::find(tx, app.id, &request.email)?.is_some_and(|account| account.has_password()) {
                return Err(Error::credential("This link is no longer valid: the account already exists."));
            }
            return Ok(PasswordOutcome::SignUp(request));
        }
        if self.purpose == LinkPurpose::Invitation && link.user.is_none() {
            return self.join(tx, &link);
        }

        let user = link.user.ok_or_else(|| Error::internal("a password link without a person"))?;
        // Invitations are kept for days and passed on: whoever has an account signs in with it.
        if self.purpose == LinkPurpose::Invitation && credentials::has_password(tx, app.id, user)? {
            return Err(Error::credential("This link is no longer valid: the account already has a password."));
        }
        tx.acting_as(Actor::user(user));
        self.set_for(tx, user)?;
        Ok(PasswordOutcome::Set(user))
    }

    /// Accepts an invitation for somebody who has no password yet. Whoever has one signs in to accept.
    fn join(&self, tx: &mut Tx<'_>, link: &MailedLink) -> Result<PasswordOutcome> {
        // Asked before the acceptance, which proves the address.
        let was_unproven = match invitations::offered(tx, link)? {
            Some(offer) => match people::find_by_email(tx, self.app, &offer.invited.email)? {
                Some(person) => first_proof::is_unproven(tx, self.app, person.id)?,
                None => false,
            },
            None => false,
        };
        let member = invitations::accept(tx, link, None)?;
        if was_unproven {
            mfa::forget_factor(tx, &self.tenancy, self.app, member.user_id)?;
        }
        // Asked while the person is held: of two invitations at once the second sees the first one's password.
        if credentials::find(tx, self.app, &member.email)?.is_some_and(|account| account.has_password()) {
            return Err(Error::credential("This account already has a password. Sign in to accept the invitation."));
        }
        self.set_for(tx, member.user_id)?;
        Ok(PasswordOutcome::Set(member.user_id))
    }

    /// Sets the password, ends the person's sessions, and voids the links that could begin one or set another password.
    pub fn set_for(&self, tx: &mut Tx<'_>, user: UserId) -> Result<()> {
        people::hold(tx, self.app, user)?;
        first_proof::forget_factor(tx, &self.tenancy, self.app, user)?;
        credentials::set(tx, &self.tenancy, self.app, user, &self.digest)?;
        people::verify_email(tx, self.app, user)?;
        ending::void_links(tx, self.app, user)?;
        ending::end_all(tx, self.app, user)?;
        people::end_sessions(tx, self.app, user)
    }
}

/// A new password, unless it is too weak: 400. Judging a long one takes milliseconds of CPU, which other requests shall not
/// wait for.
pub(super) async fn judge(password: Secret<String>, email: String) -> Result<Secret<String>> {
    let judged = tokio::task::spawn_blocking(move || {
        let mut problems = Problems::new();
        check_quality(&mut problems, "password", password.expose(), &[&email]);
        problems.finish().map(|()| password)
    });
    judged.await.map_err(Error::internal)?
}

/// The link, as one of these purposes, and the address that it was mailed to.
pub(crate) fn peek(
    tx: &mut Tx<'_>,
    purposes: &[LinkPurpose],
    token: &str,
) -> Result<(LinkPurpose, MailedLink, String)> {
    for purpose in purposes {
        match links::peek(tx, *purpose, token) {
            Ok(link) => {
                // One that was taken back is worth no more than one that has expired.
                if *purpose == LinkPurpose::Invitation {
                    invitations::offered(tx, &link)?;
                }
                let email = match link.user {
                    Some(user) => people::find(tx, link.app, user)?.map(|user| user.email),
                    None => link.payload["email"].as_str().map(str::to_owned),
                };
                return Ok((*purpose, link, email.unwrap_or_default()));
            }
            Err(error) if error.code() == Code::InvalidCredential => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::credential("This link is no longer valid: it has expired, has already been used, or has been replaced."))
}
