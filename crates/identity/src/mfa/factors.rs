//! The stored half of a second factor: one per person.

use kernel::{AppId, Result, UserId};
use spine::emit;
use store::{FromRow, Row, Tx, args};
use vault::Place;

use crate::{
    facts::{FactorChange, FactorChanged},
    sessions::LoginClaims,
};

/// How the second factor is shown.
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

#[derive(Clone, Debug)]
pub struct Factor {
    pub proof: SecondFactor,
}

impl FromRow for Factor {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (phone, sealed): (Option<String>, Option<String>) = (row.get("phone")?, row.get("sealed_secret")?);
        let proof = match sealed {
            Some(sealed_secret) => SecondFactor::Totp { sealed_secret },
            None => SecondFactor::Sms { phone: phone.unwrap_or_default() },
        };
        Ok(Self { proof })
    }
}

pub(super) fn secret_place(user: &str, app: AppId) -> Place<'_> {
    Place { table: "mfa_factors", column: "sealed_secret", row: user, app: Some(app) }
}

pub fn find(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Option<Factor>> {
    tx.opt("SELECT phone, sealed_secret FROM mfa_factors WHERE app_id = $1 AND user_id = $2", &args![app, user])
}

/// Takes the place of an earlier factor if the login has shown two; false when there is one that it has not shown.
pub(super) fn put(
    tx: &mut Tx<'_>,
    session: &LoginClaims,
    proof: &SecondFactor,
    step: i64,
    backup_digest: &str,
) -> Result<bool> {
    let (phone, sealed) = match proof {
        SecondFactor::Sms { phone } => (Some(phone), None),
        SecondFactor::Totp { sealed_secret } => (None, Some(sealed_secret)),
    };
    if session.has_two_factors() {
        tx.exec("DELETE FROM mfa_factors WHERE app_id = $1 AND user_id = $2", &args![session.aid, session.sub])?;
    }
    let put = tx.exec(
        "INSERT INTO mfa_factors (user_id, app_id, method, phone, sealed_secret, last_step, backup_digest, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (user_id) DO NOTHING",
        &args![session.sub, session.aid, proof.method(), phone, sealed, step, backup_digest, tx.now()],
    )?;
    Ok(put == 1)
}

/// False when this step's code, or a later one's, was used before (RFC 6238 §5.2).
pub(super) fn use_step(tx: &mut Tx<'_>, session: &LoginClaims, step: i64) -> Result<bool> {
    let used = tx.exec(
        "UPDATE mfa_factors SET last_step = $3 WHERE app_id = $1 AND user_id = $2 AND last_step < $3",
        &args![session.aid, session.sub, step],
    )?;
    Ok(used == 1)
}

/// Deletes the factor if this is its backup code.
pub(super) fn use_backup_code(tx: &mut Tx<'_>, session: &LoginClaims, digest: &str) -> Result<bool> {
    let used = tx.exec(
        "DELETE FROM mfa_factors WHERE app_id = $1 AND user_id = $2 AND backup_digest = $3",
        &args![session.aid, session.sub, digest],
    )?;
    Ok(used == 1)
}

/// Takes a person's factors away on an administrator's word, passkeys too: each of those counts as two.
pub fn clear(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    let factors = tx.exec("DELETE FROM mfa_factors WHERE app_id = $1 AND user_id = $2", &args![app, user])?;
    let passkeys = tx.exec("DELETE FROM passkeys WHERE app_id = $1 AND user_id = $2", &args![app, user])?;
    if factors + passkeys > 0 {
        emit(tx, app, &FactorChanged { user_id: user, change: FactorChange::Cleared })?;
    }
    Ok(())
}
