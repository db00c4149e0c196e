//! The SQL of invitations.

use ::store::{Json, Tx, args, sql};
use kernel::{AppId, MemberId, Result, TenantId, Timestamp, UserId};

use crate::members::Listed;

/// `$1` is the app, `$2` the workspace; the columns are those of members, in their order.
pub(in crate::members) const SELECT: &str = "SELECT invitations.id, CAST(NULL AS TEXT) AS user_id, \
     invitations.tenant_id, invitations.role_id, roles.key AS role_key, invitations.email, invitations.first_name, \
     invitations.last_name, invitations.phone_number, invitations.enabled, invitations.onboarded, \
     invitations.consents_to_privacy_policy, invitations.teams, invitations.parameters, CAST(NULL AS BIGINT) AS last_seen_at, \
     invitations.created_at FROM invitations JOIN roles ON roles.id = invitations.role_id \
     WHERE invitations.app_id = $1 AND invitations.tenant_id = $2";

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: MemberId) -> Result<Option<Listed>> {
    tx.opt(sql!(SELECT, " AND invitations.id = $3"), &args![app, tenant, id])
}

pub(super) fn find_by_address(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    email_key: &str,
) -> Result<Option<Listed>> {
    tx.opt(sql!(SELECT, " AND invitations.email_key = $3"), &args![app, tenant, email_key])
}

/// Whether somebody with this address is a member.
pub(super) fn is_member(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, email_key: &str) -> Result<bool> {
    tx.exists(
        "SELECT members.id FROM members JOIN users ON users.id = members.user_id \
         WHERE members.app_id = $1 AND members.tenant_id = $2 AND users.app_id = $1 AND users.email_key = $3",
        &args![app, tenant, email_key],
    )
}

/// False when the address is invited already.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    app: AppId,
    invited: &Listed,
    email_key: &str,
    by: Option<MemberId>,
) -> Result<bool> {
    tx.changes_one(
        "INSERT INTO invitations (id, app_id, tenant_id, email, email_key, first_name, last_name, role_id, enabled, \
         onboarded, consents_to_privacy_policy, teams, invited_by, created_at, parameters) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, TRUE, FALSE, FALSE, '[]', $9, $10, $11) \
         ON CONFLICT (tenant_id, email_key) DO NOTHING",
        &args![
            invited.id,
            app,
            invited.tenant_id,
            invited.email,
            email_key,
            invited.first_name,
            invited.last_name,
            invited.role_id,
            by,
            invited.created_at,
            Json(&invited.parameters)
        ],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, invited: &Listed) -> Result<()> {
    tx.run(
        "UPDATE invitations SET first_name = $3, last_name = $4, phone_number = $5, role_id = $6, enabled = $7, \
         teams = $8, onboarded = $9, consents_to_privacy_policy = $10, parameters = $11 WHERE app_id = $1 AND id = $2",
        &args![
            app,
            invited.id,
            invited.first_name,
            invited.last_name,
            invited.phone_number,
            invited.role_id,
            invited.enabled,
            Json(&invited.teams),
            invited.onboarded,
            invited.consents_to_privacy_policy,
            Json(&invited.parameters)
        ],
    )
}

pub(super) fn readdress(tx: &mut Tx<'_>, app: AppId, id: MemberId, email: &str, key: &str) -> Result<()> {
    tx.run(
        "UPDATE invitations SET email = $3, email_key = $4 WHERE app_id = $1 AND id = $2",
        &args![app, id, email, key],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, id: MemberId) -> Result<()> {
    tx.run("DELETE FROM invitations WHERE app_id = $1 AND id = $2", &args![app, id])
}

/// Ends the invitations of some addresses; each with the id that it had.
pub(super) fn take_all(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    email_keys: &[String],
) -> Result<Vec<(String, MemberId)>> {
    tx.all(
        "DELETE FROM invitations WHERE app_id = $1 AND tenant_id = $2 AND email_key = ANY($3) RETURNING email_key, id",
        &args![app, tenant, email_keys],
    )
}

/// The membership that an invitation becomes.
pub(super) fn join(tx: &mut Tx<'_>, app: AppId, invited: &Listed, user: UserId) -> Result<()> {
    tx.run(
        "INSERT INTO members (id, app_id, tenant_id, user_id, role_id, enabled, onboarded, \
         consents_to_privacy_policy, teams, created_at, parameters) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        &args![
            invited.id,
            app,
            invited.tenant_id,
            user,
            invited.role_id,
            invited.enabled,
            invited.onboarded,
            invited.consents_to_privacy_policy,
            Json(&invited.teams),
            tx.now(),
            Json(&invited.parameters)
        ],
    )
}

/// Counts a mail of the workspace; how many there were since when. What was counted before `since` is forgotten.
pub(super) fn count_mail(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, since: Timestamp) -> Result<(i64, Timestamp)> {
    tx.one(
        "UPDATE tenants SET \
         invitations_sent = CASE WHEN invitations_since > $4 THEN invitations_sent + 1 ELSE 1 END, \
         invitations_since = CASE WHEN invitations_since > $4 THEN invitations_since ELSE $3 END \
         WHERE app_id = $1 AND id = $2 RETURNING invitations_sent, invitations_since",
        &args![app, tenant, tx.now(), since],
    )
}

/// The name of the member in whose name somebody was invited.
pub(super) fn inviter(tx: &mut Tx<'_>, app: AppId, id: MemberId) -> Result<Option<(String, String)>> {
    tx.opt(
        "SELECT users.first_name, users.last_name FROM invitations JOIN members ON members.id = invitations.invited_by \
         JOIN users ON users.id = members.user_id WHERE invitations.app_id = $1 AND invitations.id = $2",
        &args![app, id],
    )
}
