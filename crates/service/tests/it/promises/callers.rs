//! The caller of operations that members and backends share, which no route asks for by itself.

use axum::extract::FromRequestParts as _;
use http::Request;
use kernel::{AppId, TenantId};
use tenancy::callers::{TenantRead, TenantWrite, UserOrKey};
use testkit::{Caller, TestApp, on_both_engines};

on_both_engines!(a_member_or_a_key_acts_in_one_workspace);

/// The app and the workspace that somebody gets to, or the status of the refusal.
async fn reached(app: &TestApp, caller: &Caller, headers: &[&str]) -> Result<(AppId, TenantId), u16> {
    let mut request = Request::new(());
    for name in headers {
        let value = caller.header_sent(name).parse().expect("a header's value");
        request.headers_mut().append(http::HeaderName::from_bytes(name.as_bytes()).expect("a name"), value);
    }
    let mut parts = request.into_parts().0;
    let service = app.service();
    let tenancy = &service.core().tenancy;
    let reached = UserOrKey::<TenantWrite, TenantRead>::from_request_parts(&mut parts, tenancy).await;
    reached.map(|caller| (caller.app_id(), caller.tenant())).map_err(|refusal| {
        use axum::response::IntoResponse as _;
        refusal.into_response().status().as_u16()
    })
}

async fn a_member_or_a_key_acts_in_one_workspace(app: TestApp) {
    let workspace = app.workspace("acme").await;
    let here = Ok((app.app_id(), workspace.id));
    let owner = workspace.owner();
    assert_eq!(reached(&app, &owner, &["authorization", "x-app-id"]).await, here);
    assert_eq!(reached(&app, &owner, &["authorization"]).await, Err(400), "the app is named");
    let member = app.member("bob@acme.example", workspace.id, "MEMBER").await.signed_in().await;
    assert_eq!(reached(&app, &member, &["authorization", "x-app-id"]).await, Err(403), "MEMBER lacks TENANT_WRITE");
    let key = app.key_with(&["TENANT_READ"]).await.header("x-tenant-id", &workspace.id.to_string());
    assert_eq!(reached(&app, &key, &["x-api-key", "x-tenant-id"]).await, here);
    assert_eq!(reached(&app, &key, &["x-api-key"]).await, Err(400), "the workspace is named");
    let weak = app.key_with(&["USER_READ"]).await.header("x-tenant-id", &workspace.id.to_string());
    assert_eq!(reached(&app, &weak, &["x-api-key", "x-tenant-id"]).await, Err(403));
    assert_eq!(reached(&app, &app.anon(), &[]).await, Err(401));
    assert_eq!(reached(&app, &key, &["x-api-key", "x-api-key", "x-tenant-id"]).await, Err(400), "one of two keys");
}
