//! `DELETE /account/tenant/{tenant_id}` and its preview.

use std::sync::Arc;

use billing::providers::Settled;
use futures_util::future::BoxFuture;
use http::Method;
use kernel::{AppId, Code, Error, Result, TenantId};
use serde_json::{Value, json};
use service::workflows::{Blocker, Departure, Farewell, delete_workspace, preview_deletion};
use store::{Tx, args};
use testkit::{Caller, TestApp, Workspace, assert_body, on_both_engines};

on_both_engines!(
    a_preview_counts_and_deletes_nothing,
    a_deletion_ends_all_access_at_once,
    people_of_other_workspaces_stay,
    only_who_may_delete_may,
    an_owner_deletes_only_their_own_workspace,
    another_apps_workspace_is_unknown,
    billing_can_hold_a_workspace_back,
    the_workspace_that_runs_the_app_is_kept,
    a_deleted_app_leaves_no_people_behind,
);

fn path(workspace: &Workspace) -> String {
    format!("/account/tenant/{}", workspace.id)
}

async fn both(caller: &Caller, workspace: &Workspace, status: u16, code: &str) {
    caller.get(&format!("{}/deletion-preview", path(workspace))).await.error(status, code);
    caller.delete(&path(workspace)).await.error(status, code);
}

async fn deleter(app: &TestApp) -> Caller {
    app.key_with(&["TENANT_DELETE"]).await
}

async fn count(app: &TestApp, query: &'static str) -> i64 {
    let (count,): (i64,) = app.service().core().db.read(move |tx| tx.one(query, &[])).await.expect("a count");
    count
}

async fn a_preview_counts_and_deletes_nothing(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    acme.add("bob@example.com", "MEMBER").await;
    other.add("bob@example.com", "MEMBER").await;
    acme.token(&["USER_READ"]).await;
    let preview = format!("{}/deletion-preview", path(&acme));
    assert_body!(deleter(&app).await.get(&preview).await.expect(200), @r#"
    {
      "blockers": [],
      "canDelete": true,
      "counts": {
        "apiTokens": 1,
        "usageEvents": 0,
        "users": 2,
        "usersOnlyHere": 1
      },
      "providerSubscription": null,
      "subscription": null,
      "tenant": {
        "id": "[tenant id]",
        "name": "acme"
      }
    }
    "#);
    acme.key().get("/account/tenant/user").await.expect(200);
    let subscription = acme.owner().post("/billing/subscriptions", json!({})).await.expect(201);
    acme.key().post("/usage/ingest", json!({ "metric": "calls" })).await.expect(201);
    let shown = deleter(&app).await.get(&preview).await.expect(200);
    assert_eq!((shown.at("/subscription"), shown.at("/counts/usageEvents")), (subscription.json(), json!(1)));
}

async fn a_deletion_ends_all_access_at_once(app: TestApp) {
    let acme = app.workspace("acme").await;
    acme.key().post("/account/tenant/user", json!({ "username": "bob@example.com" })).await.expect(201);
    let (owner, token) = (acme.owner(), acme.token(&["USER_READ"]).await);
    token.get("/account/tenant/user").await.expect(200);
    let answer = deleter(&app).await.delete(&path(&acme)).await.expect(200);
    assert_eq!(answer.json(), json!({ "success": true }));
    owner.get("/account/tenant").await.error(401, "INVALID_CREDENTIAL");
    token.get("/account/tenant/user").await.error(401, "INVALID_CREDENTIAL");
    acme.key().get("/account/tenant/user").await.error(404, "NOT_FOUND");
    app.key().get(&format!("/account/tenant/byId/{}", acme.id)).await.error(404, "NOT_FOUND");
    both(&deleter(&app).await, &acme, 404, "NOT_FOUND").await;
    assert_eq!(app.key().get("/account/tenant").await.json(), json!([]));
    assert_eq!(count(&app, "SELECT count(*) FROM users").await, 0);
    assert_eq!(count(&app, "SELECT count(*) FROM one_time_links").await, 0);
    let told = testkit::facts::told(&app, "tenant.deleted").await;
    assert_eq!(told[0].1, json!({ "id": acme.id, "name": "acme", "plan": null }));
}

async fn people_of_other_workspaces_stay(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let elsewhere = other.add("bob@example.com", "MEMBER").await;
    acme.key().post("/account/tenant/user", json!({ "username": "bob@example.com" })).await.expect(201);
    deleter(&app).await.delete(&path(&acme)).await.expect(200);
    assert_eq!(other.key().get(&other.path_of(&elsewhere)).await.expect(200).json(), elsewhere);
    app.user(&elsewhere).get("/account/tenant").await.expect(200);
    // The invitation to what is gone no longer works.
    app.drain().await;
    let link = app.mails()[0].links()[0].clone();
    let token = link.split_once("token=").expect("a token").1.to_owned();
    let purpose = tenancy::links::LinkPurpose::Invitation;
    let used = app.service().core().db.write(move |tx| tenancy::links::consume(tx, purpose, &token)).await;
    assert_eq!(used.expect_err("revoked").code(), Code::InvalidCredential);
}

async fn only_who_may_delete_may(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    both(&app.key(), &acme, 403, "MISSING_PRIVILEGE").await;
    both(&acme.token(&["TENANT_WRITE"]).await, &acme, 403, "MISSING_PRIVILEGE").await;
    let token = acme.token(&["TENANT_DELETE"]).await;
    both(&token, &other, 403, "FORBIDDEN").await;
    both(&app.anon(), &acme, 401, "UNAUTHENTICATED").await;
    token.get(&format!("{}/deletion-preview", path(&acme))).await.expect(200);
    token.delete(&path(&acme)).await.expect(200);
    other.key().get("/account/tenant/user").await.expect(200);
}

async fn an_owner_deletes_only_their_own_workspace(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let admin = acme.add("bob@example.com", "ADMIN").await;
    let also_owner_here = other.add("owner@acme.example", "OWNER").await;
    both(&app.user(&admin), &acme, 403, "FORBIDDEN").await;
    // Signed in to one workspace, a person acts in that one only, even where they own both.
    both(&acme.owner(), &other, 403, "FORBIDDEN").await;
    both(&app.user(&also_owner_here), &acme, 403, "FORBIDDEN").await;
    acme.owner().get(&format!("{}/deletion-preview", path(&acme))).await.expect(200);
    acme.owner().delete(&path(&acme)).await.expect(200);
    app.user(&also_owner_here).get("/account/tenant").await.expect(200);
}

async fn another_apps_workspace_is_unknown(app: TestApp) {
    let acme = app.workspace("acme").await;
    let other = app.other_app().await;
    let body = json!({ "name": "k", "privileges": ["TENANT_DELETE"] });
    let made = app.operator().post(&format!("/admin/apps/{}/keys", other.app_id()), body).await.expect(201);
    let key = app.anon().with_api_key(other.app_id(), &made.text("/key"));
    both(&key, &acme, 404, "NOT_FOUND").await;
    acme.key().get("/account/tenant/user").await.expect(200);
}

/// A provider that will not let go.
struct Unsettled;

impl Departure for Unsettled {
    fn look(&self, _: AppId, _: TenantId) -> BoxFuture<'_, Result<Farewell>> {
        let subscription = json!({ "status": "active" }).as_object().cloned();
        Box::pin(std::future::ready(Ok(Farewell { usage_events: 7, subscription, ..Farewell::default() })))
    }

    fn settle(&self, _: AppId, _: TenantId) -> BoxFuture<'_, Result<Settled>> {
        Box::pin(std::future::ready(Err(Error::new(Code::ProviderFailed, "The provider did not answer."))))
    }

    fn is_settled(&self, _: &mut Tx<'_>, _: AppId, _: TenantId, _: &Settled) -> Result<bool> {
        panic!("nothing is deleted")
    }
}

/// A state of affairs in which a deletion is refused before anything is tried.
struct Blocked;

impl Departure for Blocked {
    fn look(&self, _: AppId, _: TenantId) -> BoxFuture<'_, Result<Farewell>> {
        let blockers = vec![Blocker::new("UNPAID", "An invoice is open.")];
        Box::pin(std::future::ready(Ok(Farewell { blockers, ..Farewell::default() })))
    }

    fn settle(&self, _: AppId, _: TenantId) -> BoxFuture<'_, Result<Settled>> {
        panic!("nothing is settled for a workspace that stays")
    }

    fn is_settled(&self, _: &mut Tx<'_>, _: AppId, _: TenantId, _: &Settled) -> Result<bool> {
        panic!("nothing is deleted")
    }
}

async fn billing_can_hold_a_workspace_back(app: TestApp) {
    let acme = app.workspace("acme").await;
    let (service, id) = (app.service(), acme.id);
    let mut core = service.core().clone();
    core.departure = Arc::new(Unsettled);
    let preview = preview_deletion(&core, app.app_id(), id).await.expect("a preview");
    assert_eq!((preview.counts.usage_events, preview.can_delete), (7, true));
    assert_eq!(Value::from(preview.subscription.expect("one")), json!({ "status": "active" }));
    let refused = delete_workspace(&core, kernel::Author::system(), app.app_id(), id).await.expect_err("refused");
    assert_eq!(refused.code(), Code::ProviderFailed);
    core.departure = Arc::new(Blocked);
    let preview = preview_deletion(&core, app.app_id(), id).await.expect("a preview");
    assert_eq!((preview.blockers.len(), preview.can_delete), (1, false));
    let refused = delete_workspace(&core, kernel::Author::system(), app.app_id(), id).await.expect_err("refused");
    assert_eq!((refused.code(), refused.public()), (Code::WorkspaceInUse, "An invoice is open."));
    acme.owner().get("/account/tenant").await.expect(200);
}

/// Written past the service, which reads it when it starts.
async fn set_operator_workspace(app: &TestApp, tenant: Option<TenantId>) {
    let id = app.app_id();
    let set = app.service().core().db.write(move |tx| {
        let (profile,): (String,) = tx.one("SELECT profile FROM apps WHERE id = $1", &args![id])?;
        let mut profile: Value = serde_json::from_str(&profile).map_err(Error::internal)?;
        profile["operatorTenantId"] = json!(tenant);
        tx.exec("UPDATE apps SET profile = $2 WHERE id = $1", &args![id, profile.to_string()])
    });
    set.await.expect("the profile can be written");
    app.restart().await;
}

async fn the_workspace_that_runs_the_app_is_kept(app: TestApp) {
    let acme = app.workspace("acme").await;
    set_operator_workspace(&app, Some(acme.id)).await;
    let preview = deleter(&app).await.get(&format!("{}/deletion-preview", path(&acme))).await.expect(200);
    assert_eq!((preview.at("/canDelete"), preview.at("/blockers/0/code")), (json!(false), json!("OPERATOR_WORKSPACE")));
    deleter(&app).await.delete(&path(&acme)).await.error(409, "WORKSPACE_IN_USE");
    set_operator_workspace(&app, None).await;
    deleter(&app).await.delete(&path(&acme)).await.expect(200);
}

async fn a_deleted_app_leaves_no_people_behind(app: TestApp) {
    let acme = app.workspace("acme").await;
    acme.key().post("/account/tenant/user", json!({ "username": "bob@example.com" })).await.expect(201);
    let other = app.other_app().await;
    let owner = json!({ "email": "bob@example.com", "firstName": "B", "lastName": "B" });
    other.post("/account/tenant", json!({ "owner": owner })).await.expect(200);
    app.operator().call(Method::DELETE, &format!("/admin/apps/{}", app.app_id()), None).await.expect(200);
    app.drain().await;
    for left in ["SELECT count(*) FROM tenants", "SELECT count(*) FROM members", "SELECT count(*) FROM users"] {
        assert_eq!(count(&app, left).await, 1, "{left}: only the other app's");
    }
}
