//! Who a member is at this moment: everything that goes into tokens, read in one statement.

use kernel::{AppId, MemberId, Result, TenantId, Timestamp, UserId};
use store::{FromRow, Row, Tx, args};

/// A member with the person, the role and the workspace.
#[derive(Clone, Debug)]
pub struct Standing {
    pub user: UserId,
    pub email: String,
    pub email_verified: bool,
    pub first_name: String,
    pub last_name: String,
    pub phone_number: Option<String>,
    pub member: MemberId,
    pub enabled: bool,
    pub onboarded: bool,
    pub role: String,
    pub privileges: Vec<String>,
    pub tenant: TenantId,
    pub tenant_name: String,
    pub tenant_locale: String,
    pub tenant_logo: Option<String>,
    pub tenant_onboarded: bool,
    pub tenant_mfa: bool,
    pub plan: Option<String>,
    pub trial: bool,
    pub should_select_plan: bool,
    pub should_setup_payments: bool,
    /// Whether the person can choose between workspaces.
    pub multi_tenant: bool,
    pub sessions_ended_at: Option<Timestamp>,
}

impl FromRow for Standing {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (privileges, workspaces): (Option<String>, i64) = (row.get("privileges")?, row.get("workspaces")?);
        let mut privileges: Vec<String> =
            privileges.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        privileges.sort_unstable();
        Ok(Self {
            user: row.get("user_id")?,
            email: row.get("email")?,
            email_verified: row.get("email_verified")?,
            first_name: row.get("first_name")?,
            last_name: row.get("last_name")?,
            phone_number: row.get("phone_number")?,
            member: row.get("member_id")?,
            enabled: row.get("enabled")?,
            onboarded: row.get("onboarded")?,
            role: row.get("role_key")?,
            privileges,
            tenant: row.get("tenant_id")?,
            tenant_name: row.get("tenant_name")?,
            tenant_locale: row.get("tenant_locale")?,
            tenant_logo: row.get("tenant_logo")?,
            tenant_onboarded: row.get("tenant_onboarded")?,
            tenant_mfa: row.get("tenant_mfa")?,
            plan: row.get("plan_key")?,
            trial: row.get("trial")?,
            should_select_plan: row.get("should_select_plan")?,
            should_setup_payments: row.get("should_setup_payments")?,
            multi_tenant: workspaces > 1,
            sessions_ended_at: row.get("sessions_ended_at")?,
        })
    }
}

/// `$1` is the present time, which decides whether a trial is running; `$2` the app.
macro_rules! select {
    ($condition:literal) => {
        concat!(
            "SELECT users.id AS user_id, users.email, users.first_name, users.last_name, users.phone_number, ",
            "(users.email_verified_at IS NOT NULL) AS email_verified, users.sessions_ended_at, ",
            "members.id AS member_id, members.enabled, members.onboarded, roles.key AS role_key, ",
            "(SELECT string_agg(privileges.key, ' ') FROM role_privileges ",
            "JOIN privileges ON privileges.id = role_privileges.privilege_id ",
            "WHERE role_privileges.role_id = members.role_id) AS privileges, ",
            "(SELECT count(*) FROM members AS others WHERE others.user_id = members.user_id AND others.enabled) ",
            "AS workspaces, tenants.id AS tenant_id, tenants.name AS tenant_name, tenants.locale AS tenant_locale, ",
            "tenants.logo AS tenant_logo, tenants.onboarded AS tenant_onboarded, tenants.mfa AS tenant_mfa, ",
            "tenants.plan_key, COALESCE(tenants.trial_ends_at > $1, FALSE) AS trial, tenants.should_select_plan, ",
            "tenants.should_setup_payments FROM members JOIN users ON users.id = members.user_id ",
            "JOIN roles ON roles.id = members.role_id JOIN tenants ON tenants.id = members.tenant_id ",
            "WHERE members.app_id = $2 AND members.enabled AND ",
            $condition
        )
    };
}

/// An enabled member by its id.
pub fn find(tx: &mut Tx<'_>, app: AppId, member: MemberId) -> Result<Option<Standing>> {
    tx.opt(select!("members.id = $3"), &args![tx.now(), app, member])
}

/// Every workspace that the person may sign in to, newest first.
pub fn of_user(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<Standing>> {
    tx.all(select!("members.user_id = $3 ORDER BY members.id DESC LIMIT 1000"), &args![tx.now(), app, user])
}
