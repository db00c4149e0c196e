//! What a login under way keeps about its second factor.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, Timestamp};

use crate::sessions::{LoginClaims, SessionId};

pub(in crate::mfa) struct UnderWay {
    pub(in crate::mfa) wrong_codes: i64,
    pub(in crate::mfa) setup_phone: Option<String>,
    pub(in crate::mfa) setup_sealed_secret: Option<String>,
    pub(in crate::mfa) code_digest: Option<String>,
    pub(in crate::mfa) code_expires_at: Option<Timestamp>,
}

row! {
    UnderWay = "login_sessions" { wrong_codes, setup_phone, setup_sealed_secret, code_digest, code_expires_at }
}

pub(in crate::mfa) fn find(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<Option<UnderWay>> {
    tx.opt(
        sql!("SELECT ", UnderWay::COLUMNS, " FROM login_sessions WHERE app_id = $1 AND id = $2"),
        &args![session.aid, session.jti],
    )
}

/// Counts one more code. Those of one session wait for each other here.
pub(in crate::mfa) fn count(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<Option<UnderWay>> {
    tx.opt(
        sql!(
            "UPDATE login_sessions SET wrong_codes = wrong_codes + 1 WHERE app_id = $1 AND id = $2 \
             AND ended_at IS NULL RETURNING ",
            UnderWay::COLUMNS
        ),
        &args![session.aid, session.jti],
    )
}

/// Takes the place of an earlier code.
pub(in crate::mfa) fn put_code(
    tx: &mut Tx<'_>,
    app: AppId,
    session: SessionId,
    digest: &str,
    expires_at: Timestamp,
) -> Result<()> {
    tx.run(
        "UPDATE login_sessions SET code_digest = $3, code_expires_at = $4 WHERE app_id = $1 AND id = $2",
        &args![app, session, digest, expires_at],
    )
}

pub(in crate::mfa) fn set_up_with(
    tx: &mut Tx<'_>,
    session: &LoginClaims,
    phone: Option<&str>,
    sealed: Option<&str>,
) -> Result<()> {
    tx.run(
        "UPDATE login_sessions SET setup_phone = $3, setup_sealed_secret = $4, code_digest = NULL \
         WHERE app_id = $1 AND id = $2",
        &args![session.aid, session.jti, phone, sealed],
    )
}
