//! The SQL of members.

use std::collections::HashSet;

use ::store::{Column, FromRow, Json, Row, Tx, args, row, sql};
use kernel::{AppId, MemberId, Page, Result, TenantId, Timestamp, UserId};

use super::{Association, Listed, Member, MemberRef, invitations};
use crate::{
    federation::ConnectionId,
    roles::{OWNER, RoleId},
};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT members.id AS id, members.user_id AS user_id, members.tenant_id AS tenant_id, ",
            "members.role_id AS role_id, roles.key AS role_key, users.email AS email, users.first_name AS first_name, ",
            "users.last_name AS last_name, users.phone_number AS phone_number, members.enabled AS enabled, ",
            "members.onboarded AS onboarded, members.consents_to_privacy_policy AS consents_to_privacy_policy, ",
            "members.teams AS teams, members.parameters AS parameters, members.last_seen_at AS last_seen_at, ",
            "members.created_at AS created_at FROM members JOIN users ON users.id = members.user_id ",
            "JOIN roles ON roles.id = members.role_id WHERE members.app_id = $1 AND members.tenant_id = $2 ",
            $rest
        )
    };
}

impl<U: Column> FromRow for Member<U> {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            user_id: row.get("user_id")?,
            tenant_id: row.get("tenant_id")?,
            role: row.get("role_key")?,
            role_id: row.get("role_id")?,
            email: row.get("email")?,
            first_name: row.get("first_name")?,
            last_name: row.get("last_name")?,
            phone_number: row.get("phone_number")?,
            onboarded: row.get("onboarded")?,
            consents_to_privacy_policy: row.get("consents_to_privacy_policy")?,
            enabled: row.get("enabled")?,
            teams: row.get::<Json<_>>("teams")?.0,
            parameters: row.get::<Json<_>>("parameters")?.0,
            last_seen: row.get("last_seen_at")?,
            created_at: row.get("created_at")?,
        })
    }
}

row! {
    Association = "tenants" { tenant_id = "tenants.id", tenant_name = "tenants.name", role = "roles.key" }
}

/// Stores newcomers; those who were not members already.
pub(super) fn insert_new(tx: &mut Tx<'_>, app: AppId, members: &[Member]) -> Result<HashSet<MemberId>> {
    let rows = members.iter().map(|member| {
        let Member { id, tenant_id, user_id, role_id, onboarded, created_at, .. } = *member;
        (id, app, tenant_id, user_id, role_id, onboarded, created_at, Json(&member.parameters))
    });
    let rows: Vec<_> = rows.collect();
    let stored: Vec<(MemberId,)> = tx.insert_all_returning(
        "INSERT INTO members (id, app_id, tenant_id, user_id, role_id, onboarded, created_at, parameters, enabled, \
         consents_to_privacy_policy, teams) SELECT id, app_id, tenant_id, user_id, role_id, onboarded, created_at, parameters, \
         TRUE, FALSE, '[]' FROM {rows} WHERE true ON CONFLICT (tenant_id, user_id) DO NOTHING RETURNING id",
        ["id", "app_id", "tenant_id", "user_id", "role_id", "onboarded", "created_at", "parameters"],
        &rows,
    )?;
    Ok(stored.into_iter().map(|(id,)| id).collect())
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, who: MemberRef) -> Result<Option<Member>> {
    match who {
        MemberRef::Member(id) => tx.opt(select!("AND members.id = $3"), &args![app, tenant, id]),
        MemberRef::User(id) => tx.opt(select!("AND members.user_id = $3"), &args![app, tenant, id]),
    }
}

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, page: Page) -> Result<Vec<Listed>> {
    tx.all(
        sql!(select!(""), "UNION ALL ", invitations::SELECT, " ORDER BY id DESC LIMIT $3 OFFSET $4"),
        &args![app, tenant, page.limit_or_all(), page.offset()],
    )
}

pub(super) fn find_by_address(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    email_key: &str,
) -> Result<Option<Member>> {
    tx.opt(select!("AND users.app_id = $1 AND users.email_key = $3"), &args![app, tenant, email_key])
}

pub(super) fn find_all(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, ids: &[MemberId]) -> Result<Vec<Listed>> {
    tx.all(
        sql!(
            select!("AND members.id = ANY($3) "),
            "UNION ALL ",
            invitations::SELECT,
            " AND invitations.id = ANY($3) ORDER BY id"
        ),
        &args![app, tenant, ids],
    )
}

pub(super) fn after(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    after: Option<MemberId>,
    limit: i64,
) -> Result<Vec<Listed>> {
    let after = after.map_or_else(String::new, |id| id.to_string());
    tx.all(
        sql!(
            select!("AND members.id > $3 "),
            "UNION ALL ",
            invitations::SELECT,
            " AND invitations.id > $3 ORDER BY id LIMIT $4"
        ),
        &args![app, tenant, after, limit],
    )
}

pub(super) fn from_place(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, place: i64, limit: i64) -> Result<Vec<Listed>> {
    tx.all(
        sql!(select!(""), "UNION ALL ", invitations::SELECT, " ORDER BY id LIMIT $3 OFFSET $4"),
        &args![app, tenant, limit, place],
    )
}

pub(super) fn count(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<i64> {
    let (count,): (i64,) = tx.one(
        "SELECT (SELECT count(*) FROM members WHERE app_id = $1 AND tenant_id = $2)          + (SELECT count(*) FROM invitations WHERE app_id = $1 AND tenant_id = $2)",
        &args![app, tenant],
    )?;
    Ok(count)
}

pub(super) fn associations(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<Association>> {
    tx.all(
        sql!(
            "SELECT ",
            Association::COLUMNS,
            " FROM members JOIN tenants ON tenants.id = members.tenant_id JOIN roles ON roles.id = members.role_id \
         WHERE members.app_id = $1 AND members.user_id = $2 ORDER BY members.id DESC"
        ),
        &args![app, user],
    )
}

pub(super) fn roles_of(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<RoleId>> {
    let roles: Vec<(RoleId,)> =
        tx.all("SELECT DISTINCT role_id FROM members WHERE app_id = $1 AND user_id = $2", &args![app, user])?;
    Ok(roles.into_iter().map(|(role,)| role).collect())
}

pub(super) fn belongs_to_several(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<bool> {
    tx.exists("SELECT id FROM members WHERE app_id = $1 AND user_id = $2 LIMIT 1 OFFSET 1", &args![app, user])
}

pub(super) fn belongs_outside(tx: &mut Tx<'_>, app: AppId, user: UserId, connection: ConnectionId) -> Result<bool> {
    tx.exists(
        "SELECT members.id FROM members JOIN tenants ON tenants.id = members.tenant_id WHERE members.app_id = $1 \
         AND members.user_id = $2 AND (tenants.federation_connection_id IS NULL \
         OR tenants.federation_connection_id <> $3) LIMIT 1",
        &args![app, user, connection],
    )
}

/// Who belongs to the workspace on an identity provider's word alone.
pub(super) fn vouched(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Vec<MemberId>> {
    let members: Vec<(MemberId,)> = tx.all(
        "SELECT id FROM members WHERE app_id = $1 AND tenant_id = $2 AND vouched_by IS NOT NULL",
        &args![app, tenant],
    )?;
    Ok(members.into_iter().map(|(member,)| member).collect())
}

pub(super) fn set_vouched(
    tx: &mut Tx<'_>,
    app: AppId,
    member: MemberId,
    connection: Option<ConnectionId>,
) -> Result<()> {
    tx.run("UPDATE members SET vouched_by = $3 WHERE app_id = $1 AND id = $2", &args![app, member, connection])
}

pub(super) fn owns_through(tx: &mut Tx<'_>, app: AppId, connection: ConnectionId, email_key: &str) -> Result<bool> {
    tx.exists(
        "SELECT members.id FROM members JOIN users ON users.id = members.user_id \
         JOIN tenants ON tenants.id = members.tenant_id JOIN roles ON roles.id = members.role_id \
         WHERE members.app_id = $1 AND tenants.federation_connection_id = $2 AND users.app_id = $1 AND users.email_key = $3 \
         AND members.enabled AND roles.key = $4 LIMIT 1",
        &args![app, connection, email_key, OWNER],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, member: &Member) -> Result<()> {
    tx.run(
        "UPDATE members SET role_id = $3, enabled = $4, teams = $5, onboarded = $6, consents_to_privacy_policy = $7, \
         parameters = $8 WHERE app_id = $1 AND id = $2",
        &args![
            app,
            member.id,
            member.role_id,
            member.enabled,
            Json(&member.teams),
            member.onboarded,
            member.consents_to_privacy_policy,
            Json(&member.parameters)
        ],
    )
}

/// Noted again only when the last time lies before `not_since`.
pub(super) fn seen(tx: &mut Tx<'_>, app: AppId, id: MemberId, not_since: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE members SET last_seen_at = $3 WHERE app_id = $1 AND id = $2 \
         AND (last_seen_at IS NULL OR last_seen_at <= $4)",
        &args![app, id, tx.now(), not_since],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, member: &Member) -> Result<()> {
    tx.run("DELETE FROM members WHERE app_id = $1 AND id = $2", &args![app, member.id])
}

pub(super) fn other_active_owners(tx: &mut Tx<'_>, app: AppId, member: &Member) -> Result<i64> {
    let (count,): (i64,) = tx.one(
        "SELECT count(*) FROM members JOIN roles ON roles.id = members.role_id WHERE members.app_id = $1 \
         AND members.tenant_id = $2 AND members.id <> $3 AND members.enabled AND roles.key = $4",
        &args![app, member.tenant_id, member.id, OWNER],
    )?;
    Ok(count)
}

pub(super) fn owner_addresses(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = tx.all(
        "SELECT users.email FROM members JOIN users ON users.id = members.user_id \
         JOIN roles ON roles.id = members.role_id WHERE members.app_id = $1 AND members.tenant_id = $2 \
         AND members.enabled AND roles.key = $3 ORDER BY members.id LIMIT 100",
        &args![app, tenant, OWNER],
    )?;
    Ok(rows.into_iter().map(|(email,)| email).collect())
}
