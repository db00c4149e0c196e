//! Codes by SMS or from an authenticator app: one such factor per person.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, UserId};

use crate::{mfa::SecondFactor, sessions::LoginClaims};

struct FactorRow {
    phone: Option<String>,
    sealed_secret: Option<String>,
}

row! { FactorRow = "mfa_factors" { phone, sealed_secret } }

pub(in crate::mfa) fn find(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Option<SecondFactor>> {
    let row: Option<FactorRow> = tx.opt(
        sql!("SELECT ", FactorRow::COLUMNS, " FROM mfa_factors WHERE app_id = $1 AND user_id = $2"),
        &args![app, user],
    )?;
    Ok(row.map(|FactorRow { phone, sealed_secret }| match sealed_secret {
        Some(sealed_secret) => SecondFactor::Totp { sealed_secret },
        None => SecondFactor::Sms { phone: phone.unwrap_or_default() },
    }))
}

/// False when the person has a factor.
pub(in crate::mfa) fn insert(
    tx: &mut Tx<'_>,
    session: &LoginClaims,
    factor: &SecondFactor,
    step: i64,
    backup_digest: &str,
) -> Result<bool> {
    let (phone, sealed) = match factor {
        SecondFactor::Sms { phone } => (Some(phone), None),
        SecondFactor::Totp { sealed_secret } => (None, Some(sealed_secret)),
    };
    tx.changes_one(
        "INSERT INTO mfa_factors (user_id, app_id, method, phone, sealed_secret, last_step, backup_digest, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (user_id) DO NOTHING",
        &args![session.sub, session.aid, factor.method(), phone, sealed, step, backup_digest, tx.now()],
    )
}

/// False when there was none.
pub(in crate::mfa) fn delete(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<bool> {
    tx.changes_one("DELETE FROM mfa_factors WHERE app_id = $1 AND user_id = $2", &args![app, user])
}

/// False when this step's code, or a later one's, was used before (RFC 6238 §5.2).
pub(in crate::mfa) fn use_step(tx: &mut Tx<'_>, session: &LoginClaims, step: i64) -> Result<bool> {
    tx.changes_one(
        "UPDATE mfa_factors SET last_step = $3 WHERE app_id = $1 AND user_id = $2 AND last_step < $3",
        &args![session.aid, session.sub, step],
    )
}

/// Deletes the factor if this is its backup code.
pub(in crate::mfa) fn use_backup_code(tx: &mut Tx<'_>, session: &LoginClaims, digest: &str) -> Result<bool> {
    tx.changes_one(
        "DELETE FROM mfa_factors WHERE app_id = $1 AND user_id = $2 AND backup_digest = $3",
        &args![session.aid, session.sub, digest],
    )
}
