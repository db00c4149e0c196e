//! What the service itself knows about an access token's user and workspace, read anew for every evaluation, so that
//! a change of plan or role counts at once.

use kernel::{Result, Timestamp};
use serde_json::Value;
use store::{Db, FromRow, Row, args};
use tenancy::callers::AccessClaims;

use crate::rules::{Json, Live};

/// No row when the member is disabled, or the token's login was revoked or began before the person's sessions were ended.
const MEMBERSHIP: &str = "SELECT users.email, users.first_name, users.last_name, users.created_at AS user_created_at, \
     members.onboarded AS user_onboarded, members.teams, roles.key AS role_key, tenants.name, tenants.locale, \
     tenants.plan_key, tenants.trial_ends_at, tenants.onboarded AS tenant_onboarded, tenants.metadata, \
     tenants.created_at AS tenant_created_at \
     FROM members JOIN users ON users.id = members.user_id JOIN roles ON roles.id = members.role_id \
     JOIN tenants ON tenants.id = members.tenant_id \
     JOIN refresh_families ON refresh_families.id = $4 AND refresh_families.app_id = members.app_id \
     AND refresh_families.user_id = members.user_id AND refresh_families.revoked_at IS NULL \
     AND (users.sessions_ended_at IS NULL OR refresh_families.created_at > users.sessions_ended_at) \
     WHERE members.app_id = $1 AND members.tenant_id = $2 AND members.user_id = $3 AND members.enabled";

struct Membership {
    email: String,
    first_name: String,
    last_name: String,
    user_created_at: Timestamp,
    user_onboarded: bool,
    teams: String,
    role: String,
    name: String,
    locale: String,
    plan: Option<String>,
    trial_ends_at: Option<Timestamp>,
    tenant_onboarded: bool,
    metadata: String,
    tenant_created_at: Timestamp,
}

impl FromRow for Membership {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            email: row.get("email")?,
            first_name: row.get("first_name")?,
            last_name: row.get("last_name")?,
            user_created_at: row.get("user_created_at")?,
            user_onboarded: row.get("user_onboarded")?,
            teams: row.get("teams")?,
            role: row.get("role_key")?,
            name: row.get("name")?,
            locale: row.get("locale")?,
            plan: row.get("plan_key")?,
            trial_ends_at: row.get("trial_ends_at")?,
            tenant_onboarded: row.get("tenant_onboarded")?,
            metadata: row.get("metadata")?,
            tenant_created_at: row.get("tenant_created_at")?,
        })
    }
}

/// `None` when the membership is gone or disabled, or the login is over.
pub(super) async fn read(db: &Db, claims: &AccessClaims, now: Timestamp) -> Result<Option<Live>> {
    let args = args![claims.aid, claims.tid, claims.sub, claims.sid];
    let found: Option<Membership> = db.get_one(MEMBERSHIP, &args).await?;
    Ok(found.map(|member| member.attributes(claims, now)))
}

impl Membership {
    fn attributes(self, claims: &AccessClaims, now: Timestamp) -> Live {
        let text = |text: String| Some(Json::text(text));
        let flag = |value: bool| Some(Json::Bool(value));
        let full_name = format!("{} {}", self.first_name, self.last_name).trim().to_owned();
        Live {
            user: vec![
                ("id", text(claims.sub.to_string())),
                ("email", text(self.email)),
                ("name", text(full_name)),
                ("firstName", text(self.first_name)),
                ("lastName", text(self.last_name)),
                ("role", text(self.role)),
                ("teams", Some(stored(&self.teams))),
                ("onboarded", flag(self.user_onboarded)),
                ("createdAt", text(self.user_created_at.to_string())),
            ],
            tenant: vec![
                ("id", text(claims.tid.to_string())),
                ("name", text(self.name)),
                ("plan", self.plan.and_then(text)),
                ("locale", text(self.locale)),
                ("trial", flag(self.trial_ends_at.is_some_and(|ends| ends > now))),
                ("onboarded", flag(self.tenant_onboarded)),
                ("metadata", Some(stored(&self.metadata))),
                ("createdAt", text(self.tenant_created_at.to_string())),
            ],
        }
    }
}

/// JSON that this service wrote.
fn stored(text: &str) -> Json<'static> {
    Json::owned(&serde_json::from_str::<Value>(text).unwrap_or_default())
}
