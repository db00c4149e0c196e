//! The second factor that a person has set up.

use ::store::Tx;
use kernel::{AppId, Result, UserId};
use tenancy::{App, Tenancy};
use vault::Place;

use super::store::{factors as store, passkeys};
use crate::{announcements, facts::FactorChange, proof::MfaMethod, sessions::LoginClaims};

/// How the second factor is proven.
#[derive(Clone, Debug)]
pub enum SecondFactor {
    Sms { phone: String },
    Totp { sealed_secret: String },
}

impl SecondFactor {
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Sms { .. } => "sms",
            Self::Totp { .. } => "totp",
        }
    }
}

/// What a person can prove a second factor with.
#[derive(Clone, Debug)]
pub struct Enrolled {
    pub factor: Option<SecondFactor>,
    /// Whether there are passkeys, each of which counts as two factors.
    pub passkeys: bool,
}

impl Enrolled {
    pub fn is_any(&self) -> bool {
        self.factor.is_some() || self.passkeys
    }

    pub fn methods(&self) -> Vec<MfaMethod> {
        let factor = self.factor.as_ref().map(|factor| match factor {
            SecondFactor::Sms { .. } => MfaMethod::Sms,
            SecondFactor::Totp { .. } => MfaMethod::Totp,
        });
        factor.into_iter().chain(self.passkeys.then_some(MfaMethod::Passkey)).collect()
    }
}

/// Passkeys count while the app lets people use them.
pub fn enrolled(tx: &mut Tx<'_>, app: &App, user: UserId) -> Result<Enrolled> {
    let factor = find(tx, app.id, user)?;
    Ok(Enrolled { factor, passkeys: app.profile.passkeys_enabled && passkeys::has_proven(tx, app.id, user)? })
}

pub(super) fn secret_place(user: &str, app: AppId) -> Place<'_> {
    Place { table: "mfa_factors", column: "sealed_secret", row: user, app: Some(app) }
}

pub fn find(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Option<SecondFactor>> {
    store::find(tx, app, user)
}

/// Takes the place of an earlier factor if the login has proven two; false when there is one that it has not proven.
pub(super) fn put(
    tx: &mut Tx<'_>,
    session: &LoginClaims,
    factor: &SecondFactor,
    step: i64,
    backup_digest: &str,
) -> Result<bool> {
    if session.has_two_factors() {
        store::delete(tx, session.aid, session.sub)?;
    }
    store::insert(tx, session, factor, step, backup_digest)
}

pub(super) use store::{use_backup_code, use_step};

/// Takes a person's factors away without a word to anybody: the mail would go to another person.
pub(crate) fn forget(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    store::delete(tx, app, user)?;
    passkeys::delete_all(tx, app, user).map(drop)
}

/// Takes a person's factor away, and leaves their passkeys.
pub(crate) fn forget_alone(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, user: UserId) -> Result<()> {
    match store::delete(tx, app, user)? {
        true => announcements::factor_changed(tx, tenancy, app, user, FactorChange::Cleared),
        false => Ok(()),
    }
}

/// Takes a person's factor away on their own word. Passkeys stay.
pub(crate) fn turn_off(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, user: UserId) -> Result<()> {
    match store::delete(tx, app, user)? {
        true => announcements::factor_changed(tx, tenancy, app, user, FactorChange::TurnedOff),
        false => Ok(()),
    }
}

/// Takes a person's factors away on an administrator's word, passkeys too: each of those counts as two.
pub fn clear(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, user: UserId) -> Result<()> {
    let had_factor = store::delete(tx, app, user)?;
    let passkeys = passkeys::delete_all(tx, app, user)?;
    if had_factor || passkeys > 0 {
        announcements::factor_changed(tx, tenancy, app, user, FactorChange::Cleared)?;
    }
    Ok(())
}
