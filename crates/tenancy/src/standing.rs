//! Who a member is at this moment, with the person, the role and the workspace: read in one statement by whoever wants to
//! know who is calling, what goes into tokens, or what a flag depends on.

use kernel::{AppId, MemberId, Result, TenantId, Timestamp, UserId};
use store::{Db, FromRow, Json, Row, Tx, args};

use crate::{
    apps::parameters::Parameters,
    logins::{ConnectionId, Login, LoginId, Reach, login_counts},
};

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
    pub onboarded: bool,
    /// What the app keeps about the member.
    pub parameters: Parameters,
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
    /// Whether payments have to be set up if the app has a provider.
    pub lacks_payment_method: bool,
    /// Whether members come in through the workspace's connection only.
    pub sso_required: bool,
    /// The connection that the workspace's members may come in through.
    pub connection: Option<ConnectionId>,
    /// Whether the person can choose between workspaces, as far as the login reaches.
    pub multi_tenant: bool,
    /// Whether it is only an identity provider's word that the person belongs to the workspace.
    pub vouched: bool,
    /// When the member last got tokens.
    pub last_seen_at: Option<Timestamp>,
}

/// What is asked about a member on every call: a fraction of the standing.
#[derive(Clone, Debug)]
pub struct Membership {
    pub member: MemberId,
    pub email: String,
    pub role: String,
    pub privileges: Vec<String>,
    /// Whether it is only an identity provider's word that the person belongs to the workspace.
    pub vouched: bool,
}

impl FromRow for Membership {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            member: row.get("member_id")?,
            email: row.get("email")?,
            role: row.get("role_key")?,
            privileges: privileges(row)?,
            vouched: row.get("vouched")?,
        })
    }
}

impl From<&Standing> for Membership {
    fn from(standing: &Standing) -> Self {
        Self {
            member: standing.member,
            email: standing.email.clone(),
            role: standing.role.clone(),
            privileges: standing.privileges.clone(),
            vouched: standing.vouched,
        }
    }
}

/// The list that the database keeps for each role (migration 49). It is sorted.
fn privileges(row: &Row<'_>) -> Result<Vec<String>> {
    let keys: String = row.get("privilege_keys")?;
    Ok(keys.split_whitespace().map(str::to_owned).collect())
}

impl FromRow for Standing {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            user: row.get("user_id")?,
            email: row.get("email")?,
            first_name: row.get("first_name")?,
            last_name: row.get("last_name")?,
            phone_number: row.get("phone_number")?,
            email_verified: row.get("email_verified")?,
            member: row.get("member_id")?,
            onboarded: row.get("onboarded")?,
            parameters: row.get::<Json<_>>("parameters")?.0,
            last_seen_at: row.get("last_seen_at")?,
            vouched: row.get("vouched")?,
            role: row.get("role_key")?,
            privileges: privileges(row)?,
            multi_tenant: row.get::<i64>("workspaces")? > 1,
            sso_required: row.get("sso_required")?,
            connection: row.get("federation_connection_id")?,
            tenant: row.get("tenant_id")?,
            tenant_name: row.get("tenant_name")?,
            tenant_locale: row.get("tenant_locale")?,
            tenant_logo: row.get("tenant_logo")?,
            tenant_onboarded: row.get("tenant_onboarded")?,
            tenant_mfa: row.get("tenant_mfa")?,
            plan: row.get("plan_key")?,
            trial: row.get("trial")?,
            should_select_plan: row.get("should_select_plan")?,
            lacks_payment_method: row.get("lacks_payment_method")?,
        })
    }
}

/// What only flags depend on, beside the standing.
#[derive(Clone, Debug)]
pub struct DetailedStanding {
    pub standing: Standing,
    /// JSON, as it is stored.
    pub teams: String,
    pub user_created_at: Timestamp,
    /// JSON, as it is stored.
    pub tenant_metadata: String,
    /// JSON, as it is stored.
    pub tenant_app_metadata: String,
    pub tenant_created_at: Timestamp,
}

impl FromRow for DetailedStanding {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            standing: Standing::from_row(row)?,
            teams: row.get("teams")?,
            user_created_at: row.get("user_created_at")?,
            tenant_metadata: row.get("tenant_metadata")?,
            tenant_app_metadata: row.get("tenant_app_metadata")?,
            tenant_created_at: row.get("tenant_created_at")?,
        })
    }
}

/// What `BillingView::lacks_payment_method` says, of a row.
macro_rules! lacks_payment_method {
    () => {
        "(COALESCE(tenants.paid_plan_key = tenants.plan_key, FALSE) AND tenants.trial_ends_at IS NULL \
         AND NOT tenants.payments_enabled)"
    };
}
pub(crate) use lacks_payment_method;

/// The enabled members of an app, where the connection that bounds what is found is theirs, or there is none.
macro_rules! enabled_members {
    ($app:literal, $reach:literal, $joins:literal) => {
        concat!(
            " FROM members JOIN users ON users.id = members.user_id ",
            "JOIN roles ON roles.id = members.role_id JOIN tenants ON tenants.id = members.tenant_id ",
            $joins,
            "WHERE members.app_id = ",
            $app,
            " AND members.enabled AND (",
            $reach,
            " IS NULL OR tenants.federation_connection_id = ",
            $reach,
            ") AND "
        )
    };
}

/// `$1` is the present time, which decides whether a trial is running; `$2` the app. `$reach` is the connection that bounds what is
/// found, or null.
macro_rules! select {
    ($reach:literal, $condition:expr) => {
        select!($reach, "", "", $condition)
    };
    ($reach:literal, $columns:literal, $joins:literal, $condition:expr) => {
        concat!(
            "SELECT users.id AS user_id, users.email, users.first_name, users.last_name, users.phone_number, ",
            "(users.email_verified_at IS NOT NULL) AS email_verified, ",
            "members.id AS member_id, members.onboarded, members.parameters, members.last_seen_at, ",
            "(members.vouched_by IS NOT NULL) AS vouched, roles.key AS role_key, roles.privilege_keys, ",
            "(SELECT count(*) FROM members AS others WHERE others.user_id = members.user_id AND others.enabled AND (",
            $reach,
            " IS NULL OR EXISTS (SELECT 1 FROM tenants AS reached WHERE reached.id = others.tenant_id ",
            "AND reached.federation_connection_id = ",
            $reach,
            "))) AS workspaces, tenants.sso_required, tenants.federation_connection_id, tenants.id AS tenant_id, tenants.name AS tenant_name, tenants.locale AS tenant_locale, ",
            "tenants.logo AS tenant_logo, tenants.onboarded AS tenant_onboarded, tenants.mfa AS tenant_mfa, ",
            "tenants.plan_key, COALESCE(tenants.trial_ends_at > $1, FALSE) AS trial, tenants.should_select_plan, ",
            lacks_payment_method!(),
            " AS lacks_payment_method",
            $columns,
            enabled_members!("$2", $reach, $joins),
            $condition
        )
    };
}

/// An enabled member by its id, if the login reaches the workspace.
pub fn find(tx: &mut Tx<'_>, app: AppId, member: MemberId, reach: Reach) -> Result<Option<Standing>> {
    tx.opt(select!("CAST($4 AS TEXT)", "members.id = $3"), &args![tx.now(), app, member, reach.connection])
}

/// Every workspace that the person may sign in to as far as the login reaches, newest first.
pub fn of_user(tx: &mut Tx<'_>, app: AppId, user: UserId, reach: Reach) -> Result<Vec<Standing>> {
    tx.all(
        select!("CAST($4 AS TEXT)", "members.user_id = $3 ORDER BY members.id DESC LIMIT 1000"),
        &args![tx.now(), app, user, reach.connection],
    )
}

/// A login that counts and the member of its person, in one statement.
struct LiveMember {
    login: Login,
    standing: Standing,
}

impl FromRow for LiveMember {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let standing = Standing::from_row(row)?;
        let login = Login {
            id: row.get("login_id")?,
            user: standing.user,
            mfa: row.get("login_mfa")?,
            authenticated_at: row.get("authenticated_at")?,
            reach: Reach { connection: row.get("login_connection_id")?, ends_at: row.get("login_ends_at")? },
        };
        Ok(Self { login, standing })
    }
}

/// The login and the member as they are now; `None` when the login no longer counts, or its person is no longer this
/// enabled member.
pub fn of_login(tx: &mut Tx<'_>, app: AppId, login: LoginId, member: MemberId) -> Result<Option<(Login, Standing)>> {
    const LIVE: &str = select!(
        "refresh_families.connection_id",
        ", refresh_families.id AS login_id, refresh_families.mfa AS login_mfa, refresh_families.authenticated_at, \
         refresh_families.connection_id AS login_connection_id, refresh_families.ends_at AS login_ends_at",
        "JOIN refresh_families ON refresh_families.app_id = members.app_id \
         AND refresh_families.user_id = members.user_id ",
        concat!("members.id = $3 AND refresh_families.id = $4 AND ", login_counts!(with users))
    );
    let found: Option<LiveMember> = tx.opt(LIVE, &args![tx.now(), app, member, login])?;
    let found = found.filter(|live| live.login.reach.lasts(tx.now()));
    Ok(found.map(|LiveMember { login, standing }| (login, standing)))
}

/// `$3` is the workspace, `$4` the person, `$5` the login.
macro_rules! select_signed_in {
    ($columns:literal) => {
        select!(
            "refresh_families.connection_id",
            $columns,
            "JOIN refresh_families ON refresh_families.app_id = members.app_id \
             AND refresh_families.user_id = members.user_id ",
            concat!(
                "members.tenant_id = $3 AND members.user_id = $4 AND refresh_families.id = $5 AND ",
                login_counts!(with users)
            )
        )
    };
}

/// Whom an access token speaks of. `login` is its `sid`.
#[derive(Clone, Copy, Debug)]
pub struct SignedInAs<'a> {
    pub app: AppId,
    pub tenant: TenantId,
    pub user: UserId,
    pub login: &'a str,
}

/// What the member may do; `None` when it is gone or disabled, or the login no longer counts.
pub async fn membership(db: &Db, who: SignedInAs<'_>) -> Result<Option<Membership>> {
    const MEMBERSHIP: &str = concat!(
        "SELECT members.id AS member_id, users.email, roles.key AS role_key, roles.privilege_keys, \
         (members.vouched_by IS NOT NULL) AS vouched",
        enabled_members!(
            "$1",
            "refresh_families.connection_id",
            "JOIN refresh_families ON refresh_families.app_id = members.app_id \
             AND refresh_families.user_id = members.user_id "
        ),
        "members.tenant_id = $2 AND members.user_id = $3 AND refresh_families.id = $4 AND ",
        login_counts!(with users)
    );
    db.get_one(MEMBERSHIP, &args![who.app, who.tenant, who.user, who.login]).await
}

/// The member's standing; `None` when it is gone or disabled, or the login no longer counts.
pub async fn signed_in(db: &Db, who: SignedInAs<'_>) -> Result<Option<Standing>> {
    const STANDING: &str = select_signed_in!("");
    db.get_one(STANDING, &args![db.clock().now(), who.app, who.tenant, who.user, who.login]).await
}

/// The same with what flags depend on.
pub async fn signed_in_detailed(db: &Db, who: SignedInAs<'_>) -> Result<Option<DetailedStanding>> {
    const DETAILED: &str = select_signed_in!(
        ", members.teams, users.created_at AS user_created_at, tenants.metadata AS tenant_metadata, \
         tenants.app_metadata AS tenant_app_metadata, tenants.created_at AS tenant_created_at"
    );
    db.get_one(DETAILED, &args![db.clock().now(), who.app, who.tenant, who.user, who.login]).await
}
