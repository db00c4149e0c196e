//! Calls that are told of by themselves: one body each.

use std::time::Duration;

use http::Method;
use kernel::Actor;
use serde_json::{Value, json};
use testkit::tokens as token;

use super::{Walk, Who};

pub(super) async fn by_the_operator(walk: &mut Walk, who: &Who) {
    walk.told(who, "POST /admin/operator-key", &[], json!({}), "operator_key.replaced").await;
    let new = json!({ "name": "Shop", "domain": "shop.example" });
    let made = walk.told(who, "POST /admin/apps", &[], new, "app.created").await;
    let app = &made.text("/app/id");
    walk.told(who, "PUT /admin/apps/{app_id}", &[app], json!({ "apiUrl": "https://api.example" }), "app.changed").await;
    let key = walk.told(who, "POST /admin/apps/{app_id}/keys", &[app], json!({ "name": "k" }), "key.created").await;
    let key = key.text("/record/id");
    let route = "DELETE /admin/apps/{app_id}/keys/{key_id}";
    walk.told(who, route, &[app, &key], Value::Null, "key.revoked").await;
    let hook = json!({ "enabled": true, "url": "http://10.0.0.1/", "events": [] });
    walk.told(who, "PUT /admin/apps/{app_id}/webhook", &[app], hook, "app.webhook_changed").await;
    walk.told(who, "POST /admin/apps/{app_id}/import/tenants", &[app], json!([]), "import.finished").await;
    webhooks(walk, who, app).await;
    replay(walk, who, app, &made.text("/apiKey")).await;
    let (route, kept) = ("PUT /admin/apps/{app_id}/events/settings", json!({ "retentionDays": 30 }));
    walk.told(who, route, &[app], kept, "event_settings.changed").await;
    let (route, sink) = ("PUT /admin/apps/{app_id}/events/sink", json!({ "kind": "http", "url": "http://10.0.0.1/" }));
    walk.told(who, route, &[app], sink, "event_sink.set").await;
    let route = "DELETE /admin/apps/{app_id}/events/sink";
    walk.told(who, route, &[app], Value::Null, "event_sink.removed").await;
    let route = "DELETE /admin/apps/{app_id}/events/entities/{entity_type}/{entity_value}";
    walk.told(who, route, &[app, "userId", "u1"], Value::Null, "event_erasure.begun").await;
    let first = who.caller.get(&format!("/admin/apps/{app}/secrets")).await.expect(200).text("/0/id");
    walk.told(who, "POST /admin/apps/{app_id}/secrets/rotate", &[app], json!({}), "app_secret.rotated").await;
    let route = "DELETE /admin/apps/{app_id}/secrets/{secret_id}";
    walk.told(who, route, &[app, &first], Value::Null, "app_secret.retired").await;
    for (things, id, new, change, kind) in [
        ("flags", "flag_id", json!({ "key": "f" }), json!({ "description": "d" }), "flag.changed"),
        ("flag-groups", "group_id", json!({ "key": "g", "name": "G" }), json!({ "name": "H" }), "flag_group.changed"),
    ] {
        let base = format!("/admin/apps/{{app_id}}/{things}");
        let made = walk.told(who, &format!("POST {base}"), &[app], new, kind).await.text("/id");
        walk.told(who, &format!("PUT {base}/{{{id}}}"), &[app, &made], change, kind).await;
        let back = json!({ "version": 1 });
        walk.told(who, &format!("POST {base}/{{{id}}}/rollback"), &[app, &made], back, kind).await;
        walk.told(who, &format!("DELETE {base}/{{{id}}}"), &[app, &made], Value::Null, kind).await;
    }
    let file = json!({ "flags": [{ "key": "from-a-file" }] });
    walk.told(who, "POST /admin/apps/{app_id}/flags/apply", &[app], file, "flag.changed").await;
    let rotated = walk.told(who, "POST /admin/signing-keys/rotate", &[], json!({}), "signing_key.rotated").await;
    let route = "POST /admin/signing-keys/{kid}/revoke";
    walk.told(who, route, &[&rotated.text("/key/kid")], json!({}), "signing_key.revoked").await;
    walk.told(who, "POST /admin/saml-keys/rotate", &[], json!({}), "saml_key.rotated").await;
    let sealing = json!({ "passphrase": "correct horse" });
    let archive = walk.told(who, "POST /admin/apps/{app_id}/export", &[app], sealing, "app.exported").await;
    walk.check_trail().await;
    walk.told(who, "DELETE /admin/apps/{app_id}", &[app], Value::Null, "app.deleted").await;
    walk.app.advance(Duration::from_mins(2)).await;
    let opening = who.caller.header("x-archive-passphrase", "correct horse");
    let importing = opening.send(Method::POST, "/admin/apps/import", archive.bytes().to_vec());
    walk.told_by(&who.actor, "POST /admin/apps/import", "app.imported", importing).await.expect(200);
    walk.check_trail().await;
}

async fn webhooks(walk: &mut Walk, who: &Who, app: &str) {
    let (base, kind) = ("/admin/apps/{app_id}/webhook", "webhook_secret.rotated");
    walk.told(who, &format!("POST {base}/secret/rotate"), &[app], json!({}), kind).await;
    let since = json!({ "since": "2020-01-01T00:00:00Z" });
    walk.told(who, &format!("POST {base}/recover"), &[app], since, "webhook_deliveries.recovered").await;
    let new = json!({ "url": "https://more.example" });
    let made = walk.told(who, &format!("POST {base}/endpoints"), &[app], new, "webhook_endpoint.changed").await;
    let (one, id) = (format!("{base}/endpoints/{{endpoint_id}}"), &made.text("/id"));
    let change = json!({ "enabled": false });
    walk.told(who, &format!("PUT {one}"), &[app, id], change, "webhook_endpoint.changed").await;
    walk.told(who, &format!("POST {one}/secret/rotate"), &[app, id], json!({}), kind).await;
    walk.told(who, &format!("DELETE {one}"), &[app, id], Value::Null, "webhook_endpoint.deleted").await;
}

/// Of a delivery that could not be made, to an address that nothing is sent to.
async fn replay(walk: &mut Walk, who: &Who, app: &str, key: &str) {
    let owner = json!({ "owner": { "email": "o@shop.example", "firstName": "O", "lastName": "P" } });
    walk.app.anon().header("x-api-key", key).post("/account/tenant", owner).await.expect(200);
    walk.app.drain().await;
    let made = who.caller.get(&format!("/admin/apps/{app}/webhook/deliveries")).await.expect(200).text("/0/id");
    let route = "POST /admin/apps/{app_id}/webhook/deliveries/{delivery_id}/replay";
    walk.told(who, route, &[app, &made], json!({}), "webhook_delivery.replayed").await;
}

pub(super) async fn of_the_app(walk: &mut Walk, who: &Who) {
    walk.told(who, "PUT /account/app", &[], json!({ "apiUrl": "https://api.example" }), "app.changed").await;
    let defined = json!([{ "key": "seats", "type": "number" }]);
    walk.told(who, "PUT /account/app/userParameters", &[], defined, "app.changed").await;
    let secret = json!({ "payproviderSecretKey": "sk_1" });
    walk.told(who, "PUT /account/app/credentials", &[], secret, "app.credentials_changed").await;
    let (route, kind) = ("/communication/email/template/{templateName}", "branding.template_changed");
    let template = json!({ "type": "SIGNUP", "content": "x" });
    walk.told(who, &format!("PUT {route}"), &["SIGNUP"], template, kind).await;
    walk.told(who, &format!("DELETE {route}"), &["SIGNUP"], Value::Null, kind).await;
    walk.told(who, "POST /admin/brand/css", &[], json!({ "content": "a{}" }), "branding.style_changed").await;
    walk.told(who, "DELETE /admin/brand/css", &[], Value::Null, "branding.style_changed").await;
    let words = json!({ "Sign in": "Anmelden" });
    walk.told(who, "POST /cloud-views/brand/translations", &[], words, "branding.translations_changed").await;
    let token = json!({ "name": "t", "privileges": ["APP_READ"] });
    let made = walk.told(who, "POST /account/api-token/app", &[], token, "api_token.created").await.text("/record/id");
    walk.told(who, "DELETE /account/api-token/app/{token_id}", &[&made], Value::Null, "api_token.revoked").await;
    let kind = "privilege.changed";
    let privilege = walk.told(who, "POST /account/role/privilege", &[], json!({ "key": "P" }), kind).await.text("/id");
    let route = "/account/role/privilege/{privilege_id}";
    walk.told(who, &format!("PUT {route}"), &[&privilege], json!({ "description": "d" }), kind).await;
    let role = json!({ "name": "r", "key": "R", "privileges": [privilege] });
    let role = walk.told(who, "POST /account/role", &[], role, "role.changed").await.text("/id");
    walk.told(who, "PUT /account/role/{role_id}", &[&role], json!({ "name": "s" }), "role.changed").await;
    walk.told(who, "DELETE /account/role/{role_id}", &[&role], Value::Null, "role.changed").await;
    walk.told(who, &format!("DELETE {route}"), &[&privilege], Value::Null, kind).await;
}

pub(super) async fn of_the_catalog(walk: &mut Walk, who: &Who) {
    let plan = json!({ "name": "Gold", "key": "gold", "prices": [] });
    let made = walk.told(who, "POST /account/payments/plan", &[], plan, "plan.changed").await.text("/id");
    let route = "/account/payments/plan/{plan_id}";
    walk.told(who, &format!("PUT {route}"), &[&made], json!({ "name": "Golden" }), "plan.changed").await;
    walk.told(who, &format!("DELETE {route}"), &[&made], Value::Null, "plan.changed").await;
    let tax = json!({ "countryCode": "DE", "name": "VAT", "percentage": 19 });
    let made = walk.told(who, "POST /account/payments/tax", &[], tax, "tax.changed").await.text("/id");
    let route = "/account/payments/tax/{tax_id}";
    walk.told(who, &format!("PUT {route}"), &[&made], json!({ "name": "MwSt" }), "tax.changed").await;
    walk.told(who, &format!("DELETE {route}"), &[&made], Value::Null, "tax.changed").await;
}

pub(super) async fn of_workspaces(walk: &mut Walk, who: &Who) {
    walk.told(who, "POST /account/import/tenants", &[], json!([]), "import.finished").await;
    let owner = json!({ "owner": { "email": "a@b.example", "firstName": "A", "lastName": "B" } });
    let made = walk.told(who, "POST /account/tenant", &[], owner, "tenant.created").await;
    let tenant = &made.text("/id");
    let there = Who { caller: who.caller.header("x-tenant-id", tenant), actor: who.actor.clone() };
    walk.told(who, "PUT /account/tenant/{tenant_id}", &[tenant], json!({ "name": "N" }), "tenant.updated").await;
    for (route, plan, kind) in
        [("paymentDetails", "one", "subscription.created"), ("planDetails", "two", "subscription.plan_changed")]
    {
        let plan_of = json!({ "key": plan, "name": plan, "prices": [] });
        who.caller.post("/account/payments/plan", plan_of).await.expect(200);
        let route = format!("POST /account/tenant/{{tenant_id}}/{route}");
        walk.told(who, &route, &[tenant], json!({ "planKey": plan }), kind).await;
    }
    let route = "/account/tenant/{tenant_id}/overrides";
    walk.told(who, &format!("PUT {route}"), &[tenant], json!({}), "overrides.changed").await;
    walk.told(who, &format!("DELETE {route}"), &[tenant], Value::Null, "overrides.changed").await;
    walk.told(&there, "PUT /usage/gauge/{metric}", &["m"], json!({ "value": 1 }), "usage.gauge_set").await;
    let event = there.caller.post("/usage/ingest", json!({ "metric": "m" })).await.expect(201).text("/eventId");
    walk.told(&there, "DELETE /usage/events/{event_id}", &[&event], Value::Null, "usage.voided").await;
    let upload = json!({ "fileName": "a.txt", "contentType": "text/plain" });
    walk.told(&there, "POST /account/tenant/upload/prepare", &[], upload, "file.prepared").await;
    let new = json!({ "username": "c@d.example" });
    let made = walk.told(&there, "POST /account/tenant/user", &[], new, "tenant_user.created").await;
    let member = &made.text("/id");
    let route = "/account/tenant/user/{user_id}";
    walk.told(&there, &format!("PUT {route}"), &[member], json!({ "firstName": "C" }), "tenant_user.updated").await;
    walk.told(&there, &format!("POST {route}/password"), &[member], Value::Null, "password_link.created").await;
    walk.told(&there, &format!("GET {route}/passwordLink"), &[member], Value::Null, "password_link.created").await;
    walk.told(&there, &format!("DELETE {route}/sessions"), &[member], Value::Null, "user.sessions_ended").await;
    walk.told(&there, &format!("DELETE {route}"), &[member], Value::Null, "person.removed").await;
    let owner = there.caller.get("/account/tenant/user").await.expect(200).text("/0/id");
    let token = json!({ "name": "t", "privileges": ["TENANT_READ"], "tenantUserId": owner });
    let made = walk.told(&there, "POST /account/api-token/workspace", &[], token, "api_token.created").await;
    let route = "DELETE /account/api-token/workspace/{token_id}";
    walk.told(&there, route, &[&made.text("/record/id")], Value::Null, "api_token.revoked").await;
    by_a_directory(walk, &there).await;
    walk.told(who, "DELETE /account/tenant/{tenant_id}", &[tenant], Value::Null, "tenant.deleted").await;
}

async fn by_a_directory(walk: &mut Walk, there: &Who) {
    let (kind, token) = ("scim_token.created", json!({ "name": "t" }));
    let made = walk.told(there, "POST /account/scim/token", &[], token, kind).await;
    let id = made.text("/record/id");
    let caller = walk.app.anon().header("authorization", &format!("Bearer {}", made.text("/token")));
    let directory = Who { caller, actor: Actor::scim(&id) };
    for (things, parameter, new, kind) in [
        ("Users", "user_id", json!({ "userName": "e@f.example" }), "scim.user_changed"),
        ("Groups", "group_id", json!({ "displayName": "G" }), "scim.group_changed"),
    ] {
        let base = format!("/scim/v2/{things}");
        let made = walk.told(&directory, &format!("POST {base}"), &[], new.clone(), kind).await.text("/id");
        let (one, mut changed) = (format!("{base}/{{{parameter}}}"), new);
        changed["externalId"] = json!("1");
        walk.told(&directory, &format!("PUT {one}"), &[&made], changed, kind).await;
        let patch = json!({ "Operations": [{ "op": "remove", "path": "externalId" }] });
        walk.told(&directory, &format!("PATCH {one}"), &[&made], patch, kind).await;
        if things == "Groups" {
            let role = json!({ "role": "MEMBER" });
            walk.told(there, "PUT /account/scim/group/{group_id}", &[&made], role, kind).await;
        }
        walk.told(&directory, &format!("DELETE {one}"), &[&made], Value::Null, kind).await;
    }
    walk.told(there, "DELETE /account/scim/token/{token_id}", &[&id], Value::Null, "scim_token.revoked").await;
}

/// What people do in their own name, once they have proven who they are.
pub(super) async fn by_people(walk: &mut Walk) {
    let app = walk.app.clone();
    let person = app.owner("eve@example.com").await;
    let actor = Actor::user(person.user);
    let page = Who { caller: app.page(), actor: actor.clone() };
    let session = person.log_in().await.text("/session");
    let exchange = json!({ "session": session, "tenantUserId": person.member, "appId": app.app_id(), "mode": "sdk" });
    walk.told(&page, "POST /auth/token/direct", &[], exchange, "login.succeeded").await;
    let code = token::code(&app, &person, None).await;
    let redirect = json!({ "code": code, "redirectUri": token::REDIRECT });
    let route = "POST /auth/token/{grant_type}/{app_id}";
    walk.told(&page, route, &["code", &app.app_id().to_string()], redirect, "login.succeeded").await;
    let anon = Who { caller: app.anon(), actor: actor.clone() };
    let tokens = person.sign_in().await;
    let own = json!({ "name": "t", "privileges": ["APP_READ"] });
    let user = Who { caller: person.signed_in().await, actor };
    let made = walk.told(&user, "POST /account/api-token/me/app", &[], own, "api_token.created").await;
    let route = "DELETE /account/api-token/me/app/{token_id}";
    walk.told(&user, route, &[&made.text("/record/id")], Value::Null, "api_token.revoked").await;
    of_a_subscription(walk, &user).await;
    let route = "POST /webhooks/secrets/rotate/{app_id}";
    walk.told(&user, route, &[&app.app_id().to_string()], json!({}), "webhook_secret.rotated").await;
    let ended = json!({ "client_id": app.app_id(), "token": tokens.refresh });
    walk.told(&anon, "POST /auth/revoke", &[], ended, "login.ended").await;
    let ended = json!({ "refreshToken": person.sign_in().await.refresh });
    walk.told(&anon, "POST /auth/auth/revoke", &[], ended, "login.ended").await;
    let forgotten = json!({ "appId": app.app_id(), "username": "eve@example.com", "mode": "sdk" });
    page.caller.post("/auth/auth/password", forgotten).await.expect(200);
    app.drain().await;
    let chosen = json!({ "token": app.mailed_token("eve@example.com"), "password": "violet harbour lamp" });
    walk.told(&anon, "PUT /auth/auth/password", &[], chosen, "password.changed").await;
}

async fn of_a_subscription(walk: &mut Walk, who: &Who) {
    let none = || json!({});
    walk.told(who, "POST /billing/subscriptions", &[], none(), "subscription.created").await;
    let other = json!({ "planKey": "one" });
    walk.told(who, "POST /account/subscription/select", &[], other, "subscription.plan_changed").await;
    walk.told(who, "POST /billing/trial/start", &[], none(), "subscription.trial_started").await;
    walk.told(who, "POST /billing/cancel", &[], none(), "subscription.canceled").await;
    walk.told(who, "POST /billing/reactivate", &[], none(), "subscription.reactivated").await;
    let other = json!({ "planKey": "two" });
    walk.told(who, "POST /account/subscription/change", &[], other, "subscription.plan_changed").await;
}
