//! What the service itself knows about an access token's user and workspace, read anew for every evaluation, so that
//! a change of plan or role counts at once.

use kernel::{Result, Timestamp};
use serde_json::Value;
use store::{Db, FromRow, Row, args};
use tenancy::callers::AccessClaims;

use crate::rules::{Json, Live};

const MEMBERSHIP: &str = "SELECT users.email, users.first_name, users.last_name, users.sessions_ended_at, \
     users.created_at AS user_created_at, members.enabled, members.onboarded AS user_onboarded, members.teams, \
     roles.key AS role_key, tenants.name, tenants.locale, tenants.plan_key, tenants.trial_ends_at, \
     tenants.onboarded AS tenant_onboarded, tenants.metadata, tenants.created_at AS tenant_created_at \
     FROM members JOIN users ON users.id = members.user_id JOIN roles ON roles.id = members.role_id \
     JOIN tenants ON tenants.id = members.tenant_id \
     WHERE members.app_id = $1 AND members.tenant_id = $2 AND members.user_id = $3";

struct Membership {
    email: String,
    first_name: String,
    last_name: String,
    sessions_ended_at: Option<Timestamp>,
    user_created_at: Timestamp,
    enabled: bool,
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
            sessions_ended_at: row.get("sessions_ended_at")?,
            user_created_at: row.get("user_created_at")?,
            enabled: row.get("enabled")?,
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

/// `None` when the membership is gone, disabled, or the session has ended.
pub(super) async fn read(db: &Db, claims: &AccessClaims, now: Timestamp) -> Result<Option<Live>> {
    let found: Option<Membership> = db.get_one(MEMBERSHIP, &args![claims.aid, claims.tid, claims.sub]).await?;
    let Some(member) = found else { return Ok(None) };
    let ended = member.sessions_ended_at.is_some_and(|ended| claims.iat < ended.as_seconds());
    if !member.enabled || ended {
        return Ok(None);
    }
    Ok(Some(member.attributes(claims, now)))
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
