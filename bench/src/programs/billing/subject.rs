//! The server that is measured: the real service with workspaces on a plan with a quota, and beside it a port that tells how
//! many commits there were.

use bench::{
    Result,
    subject::{access_token, listen, make_workspaces, open, post},
};
use kernel::{AppId, TenantId, UserId};
use serde_json::{Value, json};
use service::Service;
use store::{Db, args};
use web::{Conventions, Json, RateLimits, Routes, State, logging::Logging};

/// One of them is hot, and twenty are cold.
const WORKSPACES: usize = 21;

async fn commits(State(db): State<Db>) -> web::Result<Json<Value>> {
    Ok(Json(json!({ "commits": db.counters().commits })))
}

/// Whoever owns a workspace, with it.
pub async fn owners(service: &Service, app: AppId) -> Result<Vec<(UserId, TenantId)>> {
    let query = "SELECT user_id, tenant_id FROM members WHERE app_id = $1 ORDER BY id";
    Ok(service.core().db.read(move |tx| tx.all(query, &args![app])).await?)
}

/// A plan with an entitlement and a quota that nobody uses up.
pub async fn make_plan(service: &Service, key: &str) -> Result<Value> {
    let quota = json!({ "metric": "calls", "limit": 1i64 << 50, "policy": "hard", "entitlement": "api" });
    let plan = json!({ "key": "bench", "name": "Bench", "prices": [], "entitlements": { "api": true, "sso": false },
                       "quotas": [quota] });
    let made = post(service, "/account/payments/plan", ("x-api-key", key), &plan.to_string(), 200).await?;
    Ok(serde_json::from_slice(&made)?)
}

/// Puts a workspace on that plan.
pub async fn put_on_plan(service: &Service, key: &str, tenant: TenantId) -> Result<()> {
    let path = format!("/account/tenant/{tenant}/planDetails");
    post(service, &path, ("x-api-key", key), r#"{"planKey":"bench"}"#, 200).await.map(|_| ())
}

pub async fn serve(database: Option<&str>) -> Result<()> {
    let _log = web::logging::init(&Logging::default())?;
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let service = open(folder.path(), database, |_| ()).await?;
    let first = service.first_run().await?.ok_or("the store is not new")?;
    let app = first.app.id;
    make_plan(&service, &first.api_key).await?;
    make_workspaces(&service, &first.api_key, WORKSPACES).await?;
    let mut tokens = Vec::new();
    for (user, tenant) in owners(&service, app).await? {
        put_on_plan(&service, &first.api_key, tenant).await?;
        tokens.push(access_token(service.core(), app, user, tenant).await?);
    }
    service.drain().await?;
    service.start();

    let core = service.core();
    let router = Routes::new("Commits").get("/", commits, "How many commits there were").into_router(core.db.clone());
    let limits = RateLimits::new(core.db.clock().clone()).into();
    let apps = std::sync::Arc::new(core.tenancy.apps.clone());
    let counting = Conventions::new(web::Settings::default(), core.db.ids().clone(), limits, apps).wrap(router);
    let (listener, counters) = (listen().await?, listen().await?);
    println!(
        "{}",
        json!({ "address": listener.local_addr()?, "app": app, "commits": counters.local_addr()?, "tokens": tokens })
    );
    let (forever, limits) = (std::future::pending::<()>, web::server::Limits::default());
    tokio::join!(
        web::server::serve(listener, service.app(), limits, forever()),
        web::server::serve(counters, counting, limits, forever())
    );
    Ok(())
}
