//! The SQL of handover codes.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, Timestamp};
use tenancy::callers::SignedIn;

use super::{Granted, Handover};

row! {
    Handover = "handover_codes" { user: "user_id", member: "member_id", family: "family_id", granted of Granted }
}

pub(super) fn insert(tx: &mut Tx<'_>, user: &SignedIn, digest: &str, expires_at: Timestamp) -> Result<()> {
    let granted = Granted::of(&user.claims);
    tx.run(
        "INSERT INTO handover_codes (digest, app_id, user_id, member_id, family_id, oidc_scope, privileges, \
         expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &args![
            digest,
            user.app(),
            user.user(),
            user.member(),
            user.claims.sid,
            granted.oidc,
            granted.privileges,
            expires_at,
            tx.now()
        ],
    )
}

/// By the code alone, which its app is read from.
pub(super) fn app_of(tx: &mut Tx<'_>, digest: &str) -> Result<Option<AppId>> {
    let found: Option<(AppId,)> =
        tx.opt("SELECT app_id FROM handover_codes WHERE digest = $1 AND expires_at > $2", &args![digest, tx.now()])?;
    Ok(found.map(|(app,)| app))
}

/// Of several callers at once exactly one gets it.
pub(super) fn redeem(tx: &mut Tx<'_>, app: AppId, digest: &str) -> Result<Option<Handover>> {
    tx.opt(
        sql!(
            "UPDATE handover_codes SET used_at = $3 WHERE app_id = $1 AND digest = $2 AND used_at IS NULL \
             AND expires_at > $3 RETURNING ",
            Handover::COLUMNS
        ),
        &args![app, digest, tx.now()],
    )
}
