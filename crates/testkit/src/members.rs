//! Workspaces and their members for tests of what members may do, written straight into the store.

use std::time::Duration;

use kernel::{AppId, Code, Error, MemberId, TenantId, UserId};
use serde_json::{Value, json};
use store::{Tx, args};

use crate::{Caller, TestApp};

/// A member of a workspace.
pub struct Member {
    pub app: AppId,
    pub tenant: TenantId,
    pub user: UserId,
    pub member: MemberId,
}

const WORKSPACE: &str = "INSERT INTO tenants (id, app_id, name, locale, mfa, onboarded, metadata, jit_provisioning, \
     signup_email, signup_first_name, signup_last_name, should_select_plan, should_setup_payments, payments_enabled, \
     created_at) VALUES ($1, $2, 'Acme', 'en', FALSE, TRUE, '{}', TRUE, '', '', '', FALSE, FALSE, FALSE, $3)";
const USER: &str = "INSERT INTO users (id, app_id, email, email_key, first_name, last_name, created_at) \
                    VALUES ($1, $2, $3, $3, 'Ada', 'L', $4)";
const MEMBER: &str = "INSERT INTO members (id, app_id, tenant_id, user_id, role_id, enabled, onboarded, \
     consents_to_privacy_policy, teams, created_at) \
     SELECT $1, $2, $3, $4, id, $6, TRUE, TRUE, '[]', $7 FROM roles WHERE app_id = $2 AND key = $5";

pub async fn workspace_of(app: &TestApp, id: AppId) -> TenantId {
    let db = app.service().core().db.clone();
    let made = db.write(move |tx| {
        let tenant: TenantId = tx.new_id();
        tx.exec(WORKSPACE, &args![tenant, id, tx.now()])?;
        Ok(tenant)
    });
    made.await.expect("a workspace can be made")
}

pub async fn workspace(app: &TestApp) -> TenantId {
    workspace_of(app, app.app_id()).await
}

/// A member of the first app with a role.
pub async fn member(app: &TestApp, tenant: TenantId, role: &'static str) -> Member {
    let (db, id) = (app.service().core().db.clone(), app.app_id());
    db.write(move |tx| insert(tx, id, tenant, role, true)).await.expect("a member can be made")
}

pub async fn disabled_member(app: &TestApp, tenant: TenantId, role: &'static str) -> Member {
    let (db, id) = (app.service().core().db.clone(), app.app_id());
    db.write(move |tx| insert(tx, id, tenant, role, false)).await.expect("a member can be made")
}

fn insert(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, role: &str, enabled: bool) -> kernel::Result<Member> {
    let (user, member): (UserId, MemberId) = (tx.new_id(), tx.new_id());
    tx.exec(USER, &args![user, app, format!("{user}@example.com"), tx.now()])?;
    let rows = tx.exec(MEMBER, &args![member, app, tenant, user, role, enabled, tx.now()])?;
    if rows != 1 {
        return Err(Error::new(Code::Internal, format!("no role {role}")));
    }
    Ok(Member { app, tenant, user, member })
}

impl Member {
    /// The person, signed in with these privileges in the access token's scope.
    pub fn signed_in_with(&self, app: &TestApp, scope: &str) -> Caller {
        app.anon().with_operator_key(&self.access_token(app, scope))
    }

    /// The person, signed in with whatever the role gives.
    pub fn signed_in(&self, app: &TestApp) -> Caller {
        let all: Vec<&str> = tenancy::callers::privileges::BUILT_IN.iter().map(|one| one.key).collect();
        self.signed_in_with(app, &all.join(" "))
    }

    pub fn access_token(&self, app: &TestApp, scope: &str) -> String {
        let service = app.service();
        let core = service.core();
        let now = core.db.clock().now();
        let claims = json!({
            "iss": format!("{}/auth", core.base_url), "sub": self.user, "aid": self.app, "tid": self.tenant,
            "scope": scope, "sid": app.begin_login(self.user), "iat": now.as_seconds(), "exp": now.plus(Duration::from_secs(3600)).as_seconds(),
        });
        core.signing_keys.sign("at+jwt", &claims).expect("a token can be signed")
    }
}

/// Changes members of the first app's profile.
pub async fn set_profile(app: &TestApp, changes: Value) {
    let (db, id) = (app.service().core().db.clone(), app.app_id());
    let changed = db.write(move |tx| {
        let app = tenancy::apps::get(tx, id)?;
        let mut profile = serde_json::to_value(&app.profile).map_err(Error::internal)?;
        for (name, value) in changes.as_object().into_iter().flatten() {
            profile[name] = value.clone();
        }
        tx.exec("UPDATE apps SET profile = $2 WHERE id = $1", &args![id, profile.to_string()])
    });
    changed.await.expect("the profile can be changed");
}
