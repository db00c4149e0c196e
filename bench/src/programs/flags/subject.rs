//! The server that is measured: the real service's flags, and static JSON of the same sizes behind the same middleware.

use std::sync::Arc;

use axum::{body::Body, response::Response};
use bench::{
    Result,
    subject::{OPERATOR, access_token, listen, open, post},
};
use bytes::Bytes;
use kernel::{AppId, MemberId, TenantId, UserId};
use serde_json::json;
use service::{Core, Service};
use store::args;
use web::{Conventions, RateLimits, RawBody, Routes, State};

use super::sample;

/// Shared whole, so that the static routes pay for nothing but themselves.
struct Measured {
    core: Core,
    one: Bytes,
    all: Bytes,
}

fn answer(body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert("content-type", axum::http::HeaderValue::from_static("application/json"));
    response
}

async fn one(State(measured): State<Arc<Measured>>) -> web::Result<Response> {
    Ok(answer(measured.one.clone()))
}

/// Takes a body and looks at nothing in it.
async fn one_for_a_body(State(measured): State<Arc<Measured>>, _: RawBody) -> web::Result<Response> {
    Ok(answer(measured.one.clone()))
}

async fn all_for_a_body(State(measured): State<Arc<Measured>>, _: RawBody) -> web::Result<Response> {
    Ok(answer(measured.all.clone()))
}

async fn all(State(measured): State<Arc<Measured>>) -> web::Result<Response> {
    Ok(answer(measured.all.clone()))
}

pub async fn serve() -> Result<()> {
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let service = open(folder.path(), None, |_| ()).await?;
    let app = service.first_run().await?.ok_or("the store is not new")?.app.id;
    for number in 0..sample::FLAGS {
        ask(&service, &format!("/admin/apps/{app}/flags"), &sample::flag(number).to_string(), 201).await?;
    }
    let evaluate = format!("/cloud-views/flags/evaluate/{app}/flag-25");
    let one_body = ask(&service, &evaluate, &sample::context(), 200).await?;
    let all_body = ask(&service, &format!("/cloud-views/flags/bulkEvaluate/{app}"), &sample::context(), 200).await?;
    let token = token(&service, app).await?;

    let core = service.core().clone();
    let measured = Arc::new(Measured { core: core.clone(), one: one_body, all: all_body });
    let (one_size, all_size) = (measured.one.len(), measured.all.len());
    let router = Routes::new("Static")
        .get("/static/one", one, "JSON of the size of one evaluation")
        .any_origin()
        .get("/static/all", all, "JSON of the size of a bulk evaluation")
        .any_origin()
        .post("/static/one", one_for_a_body, "The same to a request with a body")
        .any_origin()
        .post("/static/all", all_for_a_body, "The same to a request with a body")
        .any_origin()
        .merge(flags::routes().within(|measured: &Arc<Measured>| measured.core.flags.clone()))
        .into_router(measured);
    let limits = Arc::new(RateLimits::new(core.db.clock().clone()));
    let conventions =
        Conventions::new(web::Settings::default(), core.db.ids().clone(), limits, Arc::new(core.tenancy.apps.clone()));
    service.start();
    let listener = listen().await?;
    let told =
        json!({ "address": listener.local_addr()?, "app": app, "token": token, "one": one_size, "all": all_size });
    println!("{told}");
    web::server::serve(listener, conventions.wrap(router), web::server::Limits::default(), std::future::pending())
        .await;
    Ok(())
}

/// As the operator.
async fn ask(service: &Service, path: &str, body: &str, expected: u16) -> Result<Bytes> {
    post(service, path, ("authorization", &format!("Bearer {OPERATOR}")), body, expected).await
}

/// Of a member with a workspace.
async fn token(service: &Service, app: AppId) -> Result<String> {
    let core = service.core();
    let made = core.db.write(move |tx| {
        let (user, tenant): (UserId, TenantId) = (tx.new_id(), tx.new_id());
        let (role, member): (MemberId, MemberId) = (tx.new_id(), tx.new_id());
        let now = tx.now();
        tx.exec(
            "INSERT INTO users (id, app_id, email, email_key, first_name, last_name, created_at) \
             VALUES ($1, $2, 'ada@example.com', 'ada@example.com', 'Ada', 'Lovelace', $3)",
            &args![user, app, now],
        )?;
        tx.exec(
            "INSERT INTO tenants (id, app_id, name, locale, mfa, onboarded, metadata, jit_provisioning, signup_email, \
             signup_first_name, signup_last_name, plan_key, should_select_plan, should_setup_payments, payments_enabled, \
             created_at) VALUES ($1, $2, 'Engines', 'en', FALSE, TRUE, '{}', FALSE, '', '', '', 'pro', FALSE, FALSE, \
             FALSE, $3)",
            &args![tenant, app, now],
        )?;
        tx.exec(
            "INSERT INTO roles (id, app_id, key, name, description, is_default, created_at) \
             VALUES ($1, $2, 'BENCH', 'Bench', '', FALSE, $3)",
            &args![role, app, now],
        )?;
        tx.exec(
            "INSERT INTO members (id, app_id, tenant_id, user_id, role_id, enabled, onboarded, consents_to_privacy_policy, \
             teams, created_at) VALUES ($1, $2, $3, $4, $5, TRUE, TRUE, TRUE, '[]', $6)",
            &args![member, app, tenant, user, role, now],
        )?;
        Ok((user, tenant))
    });
    let (user, tenant) = made.await?;
    access_token(core, app, user, tenant).await
}
