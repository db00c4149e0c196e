//! Signed-in users: an access token, whose membership is read on every call, so that a disabled or removed member is
//! refused at once here, whatever the token says.

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{AppId, Code, Error, MemberId, Result, TenantId, Timestamp, UserId};
use serde::Deserialize;
use store::{FromRow, Row, args};
use web::{Access, Describe, Failure, Operation, Scope, required_header};

use super::operator::bearer;
use crate::Tenancy;

/// The `typ` of access tokens (RFC 9068).
pub const ACCESS_TOKEN: &str = "at+jwt";

/// The claims of an access token that this service itself relies on.
#[derive(Clone, Debug, Deserialize)]
pub struct AccessClaims {
    pub iss: String,
    pub sub: UserId,
    pub aid: AppId,
    pub tid: TenantId,
    /// Privileges, separated by spaces.
    #[serde(default)]
    pub scope: String,
    pub iat: i64,
    pub exp: i64,
    /// The login session that the token belongs to.
    #[serde(default)]
    pub sid: Option<String>,
}

/// A signed-in user as of now.
#[derive(Clone, Debug)]
pub struct SignedIn {
    pub claims: AccessClaims,
    pub member: MemberId,
    pub role: String,
    /// The token's privileges, cut by what the role grants now.
    pub privileges: Vec<String>,
}

impl SignedIn {
    pub fn app(&self) -> AppId {
        self.claims.aid
    }

    pub fn tenant(&self) -> TenantId {
        self.claims.tid
    }

    pub fn user(&self) -> UserId {
        self.claims.sub
    }

    pub fn holds(&self, privilege: &str) -> bool {
        self.privileges.iter().any(|held| held == privilege)
    }

    /// 403 without the privilege.
    pub fn require(&self, privilege: &str) -> Result<()> {
        if self.holds(privilege) {
            return Ok(());
        }
        Err(Error::new(Code::MissingPrivilege, format!("This needs the privilege {privilege}.")))
    }

    /// 403 unless the member is OWNER or ADMIN.
    pub fn require_owner_or_admin(&self) -> Result<()> {
        match self.role.as_str() {
            "OWNER" | "ADMIN" => Ok(()),
            _ => Err(Error::new(Code::Forbidden, "Only an OWNER or ADMIN of the workspace may do this.")),
        }
    }
}

struct Membership {
    member: MemberId,
    enabled: bool,
    role: String,
    privileges: Option<String>,
    sessions_ended_at: Option<Timestamp>,
}

impl FromRow for Membership {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            member: row.get("id")?,
            enabled: row.get("enabled")?,
            role: row.get("role_key")?,
            privileges: row.get("privileges")?,
            sessions_ended_at: row.get("sessions_ended_at")?,
        })
    }
}

const MEMBERSHIP: &str = "SELECT members.id, members.enabled, roles.key AS role_key, users.sessions_ended_at, \
                          (SELECT string_agg(privileges.key, ' ') FROM role_privileges \
                          JOIN privileges ON privileges.id = role_privileges.privilege_id \
                          WHERE role_privileges.role_id = members.role_id) AS privileges \
                          FROM members JOIN users ON users.id = members.user_id JOIN roles ON roles.id = members.role_id \
                          WHERE members.app_id = $1 AND members.tenant_id = $2 AND members.user_id = $3";

/// Checks an access token: signature, issuer, expiry, and the membership as it is now.
pub(super) async fn authenticate(parts: &Parts, tenancy: &Tenancy) -> Result<SignedIn> {
    let Some(token) = bearer(parts) else {
        return Err(Error::new(Code::Unauthenticated, "Send an access token as Authorization: Bearer <token>."));
    };
    let scope = Scope::of(&parts.extensions);
    let claims: AccessClaims = match tenancy.signing_keys.verify(token, ACCESS_TOKEN) {
        Ok(claims) => claims,
        Err(_) => {
            scope.credential_failed()?;
            return Err(refused("The access token is not valid."));
        }
    };
    if claims.iss != *tenancy.issuer {
        return Err(refused("The access token was issued by another service."));
    }
    if claims.exp <= tenancy.db.clock().now().as_seconds() {
        return Err(refused("The access token has expired."));
    }
    let known: Option<Membership> = tenancy.db.get_one(MEMBERSHIP, &args![claims.aid, claims.tid, claims.sub]).await?;
    let member = known.filter(|member| {
        member.enabled && member.sessions_ended_at.is_none_or(|ended| claims.iat >= ended.as_seconds())
    });
    let Some(member) = member else { return Err(refused("This session has ended. Sign in again.")) };
    if tenancy.apps.find(claims.aid).await?.is_none() {
        return Err(refused("The access token's app no longer exists."));
    }
    scope.set_app(claims.aid);
    let granted = member.privileges.unwrap_or_default();
    let privileges = claims.scope.split(' ').filter(|key| granted.split(' ').any(|held| held == *key));
    let privileges = privileges.map(str::to_owned).collect();
    Ok(SignedIn { claims, member: member.member, role: member.role, privileges })
}

fn refused(message: &'static str) -> Error {
    Error::new(Code::InvalidCredential, message)
}

/// A signed-in user by access token alone; the app is the token's.
pub struct BearerCaller(pub SignedIn);

impl<S: AsRef<Tenancy> + Send + Sync> FromRequestParts<S> for BearerCaller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        Ok(Self(authenticate(parts, state.as_ref()).await?))
    }
}

impl Describe for BearerCaller {
    fn describe(operation: &mut Operation) {
        operation.access(Access::Bearer);
    }
}

/// A signed-in user whose request also names the app in `x-app-id`.
pub struct UserCaller(pub SignedIn);

impl<S: AsRef<Tenancy> + Send + Sync> FromRequestParts<S> for UserCaller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let user = authenticate(parts, state.as_ref()).await?;
        let named = required_header(&parts.headers, "x-app-id")?;
        if named.parse() != Ok(user.app()) {
            return Err(Error::new(Code::Forbidden, "x-app-id names another app than the access token.").into());
        }
        Ok(Self(user))
    }
}

impl Describe for UserCaller {
    fn describe(operation: &mut Operation) {
        operation.access(Access::User);
    }
}
