//! Changes that take more than one call: uploads, factors, invitations, links.

use http::Method;
use kernel::Actor;
use serde_json::{Value, json};
use testkit::{billing::enable_provider, factors, files, passkeys, webhooks::path};

use super::{Walk, Who};

pub(super) async fn of_connections(walk: &mut Walk, who: &Who) {
    let (route, kind) = ("/account/federation/connection", "federation_connection.changed");
    let new = json!({
        "type": "oidc", "name": "Directory", "issuer": "https://idp.example", "clientId": "c", "clientSecret": "s",
    });
    let made = walk.told(who, &format!("POST {route}"), &[], new, kind).await.text("/id");
    let (one, change) = (format!("{route}/{{connection_id}}"), json!({ "name": "Staff" }));
    walk.told(who, &format!("PUT {one}"), &[&made], change, kind).await;
    walk.told(who, &format!("DELETE {one}"), &[&made], Value::Null, kind).await;
}

pub(super) async fn of_files(walk: &mut Walk, who: &Who) {
    let tenant = walk.app.workspace("files").await.id;
    let there = Who { caller: who.caller.header("x-tenant-id", &tenant.to_string()), actor: who.actor.clone() };
    let form = files::prepare(&there.caller, "a.txt", "text/plain").await;
    files::post(&walk.app, &form, b"hello").await.expect(204);
    let key = json!({ "key": form["key"] });
    walk.told(&there, "POST /account/tenant/upload/finish", &[], key.clone(), "file.stored").await;
    walk.told(&there, "POST /account/tenant/file/delete", &[], key, "file.deleted").await;
}

/// By an owner, of a delivery that could not be made.
pub(super) async fn of_replays(walk: &mut Walk) {
    let app = walk.app.clone();
    let hook = json!({ "enabled": true, "url": "http://10.0.0.1/", "events": ["tenant.updated"] });
    app.operator().put(&path(&app, ""), hook).await.expect(200);
    let ada = app.owner("ada@replays.example").await;
    app.key().put(&format!("/account/tenant/{}", ada.tenant), json!({ "name": "Changed" })).await.expect(200);
    app.drain().await;
    let user = Who { caller: ada.signed_in().await, actor: Actor::user(ada.user) };
    let made = user.caller.get(&format!("/webhooks/deliveries/{}", app.app_id())).await.expect(200).text("/0/id");
    let route = "POST /webhooks/deliveries/{delivery_id}/replay";
    walk.told(&user, route, &[&made], json!({}), "webhook_delivery.replayed").await;
}

pub(super) async fn of_factors(walk: &mut Walk, who: &Who) {
    let (app, kind) = (walk.app.clone(), "factor.changed");
    let ada = app.owner("ada@factors.example").await;
    let own = Actor::user(ada.user);
    let session = ada.log_in().await.expect(200).text("/session");
    let setting_up = factors::set_up_sms(&app, &session, factors::PHONE);
    let backup = walk.told_by(&own, "POST /auth/auth/finishMfaUserSetup", kind, setting_up).await;
    let session = ada.log_in().await.expect(200).text("/session");
    let reset = json!({ "session": session, "backupCode": backup, "mode": "sdk" });
    let page = Who { caller: app.page(), actor: own.clone() };
    let reset = walk.told(&page, "POST /auth/auth/resetUserMfaSetup", &[], reset, kind).await;
    factors::set_up_sms(&app, &reset.text("/session"), factors::PHONE).await;
    let there = Who { caller: who.caller.header("x-tenant-id", &ada.tenant.to_string()), actor: who.actor.clone() };
    let route = "DELETE /account/tenant/user/{user_id}/mfa";
    walk.told(&there, route, &[&ada.member.to_string()], Value::Null, kind).await;
    let with_passkey = passkeys::with_passkey(&app, &ada);
    walk.told_by(&own, "POST /auth/auth/passkeys/verify-registration", kind, with_passkey).await;
}

pub(super) async fn of_invitations(walk: &mut Walk) {
    let app = walk.app.clone();
    let bob = app.owner("bob@invited.example").await;
    let inviting = app.workspace("inviting").await.token(&["USER_READ", "USER_WRITE"]).await;
    inviting.post("/account/tenant/user", json!({ "username": bob.email })).await.expect(201);
    app.drain().await;
    let accepted = json!({ "token": app.mailed_token(&bob.email) });
    let user = Who { caller: bob.signed_in().await, actor: Actor::user(bob.user) };
    walk.told(&user, "POST /auth/invitation/accept", &[], accepted, "tenant_user.created").await;
}

pub(super) async fn of_the_sandbox(walk: &mut Walk, who: &Who) {
    let app = walk.app.clone();
    enable_provider(&app, "sandbox_test").await;
    app.key().put("/account/app", json!({ "uiUrl": "https://shop.example" })).await.expect(200);
    let acme = app.workspace("paying").await;
    let begun = acme.owner().post("/account/subscription/checkout", json!({ "planKey": "pro" })).await.expect(201);
    let page = begun.text("/checkoutUrl").replace("http://tenantry.test", "");
    let paying = app.anon().header("content-type", "application/x-www-form-urlencoded");
    paying.send(Method::POST, &page, "cardNumber=4242424242424242&expiry=12/40&cvc=123").await.expect(303);
    let renewal = json!({ "workspaceId": acme.id, "event": "renewal_paid" });
    let route = "POST /admin/apps/{app_id}/simulate";
    walk.told(who, route, &[&app.app_id().to_string()], renewal, "payment.succeeded").await;
}

/// Whoever has the link speaks for the address.
pub(super) async fn of_a_sender(walk: &mut Walk) {
    let app = walk.app.clone();
    app.key().put("/account/app", json!({ "emailSenderEmail": "hello@shop.example" })).await.expect(200);
    app.drain().await;
    let link = app.mails().pop().expect("a mail").links()[0].clone();
    let token = link.split_once('?').expect("a token").1.to_owned();
    let form = app.anon().header("content-type", "application/x-www-form-urlencoded");
    let pressing = form.send(Method::POST, "/cloud-views/verify-sender", token);
    walk.told_by(&Actor::system(), "POST /cloud-views/verify-sender", "app.changed", pressing).await.expect(200);
}
