//! Every route that changes something tells of it, in the name of whoever called, and is found in the audit trail. Walks the route table, so that a new
//! route that writes fails the run until it has a row here.

use std::collections::BTreeSet;

use http::Method;
use kernel::Actor;
use serde_json::{Value, json};
use store::{Tx, args};
use testkit::{Answer, Caller, TestApp, on_both_engines, tokens as token};

on_both_engines!(every_change_is_told_in_the_callers_name);

/// Routes that look like writes and change nothing that anybody is told of, with the reason.
const UNTOLD: &[(&str, &str)] = &[
    ("POST /flags/eval-events", "telemetry"),
    ("POST /flags/discover", "telemetry"),
    ("POST /flags/call-sites", "telemetry"),
    ("POST /cloud-views/flags/evaluate/{app_id}/{flag_key}", "reads"),
    ("POST /cloud-views/flags/bulkEvaluate/{app_id}", "reads"),
    ("POST /ofrep/v1/evaluate/flags", "reads"),
    ("POST /ofrep/v1/evaluate/flags/{key}", "reads"),
    ("POST /cloud-views/ofrep/{app_id}/ofrep/v1/evaluate/flags", "reads"),
    ("POST /cloud-views/ofrep/{app_id}/ofrep/v1/evaluate/flags/{key}", "reads"),
    ("POST /admin/apps/{app_id}/flags/{flag_id}/explain", "reads"),
    ("POST /account/api-token/introspect", "reads"),
    ("POST /account/federation/metadata", "reads"),
    ("POST /realtime/authorize", "a token that opens streams in a login that was told of"),
    ("POST /admin/apps/{app_id}/webhook/test", "sends a sample, which is kept nowhere"),
    ("POST /auth/introspect", "reads"),
    ("POST /scim/v2/.search", "reads"),
    ("POST /scim/v2/Users/.search", "reads"),
    ("POST /scim/v2/Groups/.search", "reads"),
    ("POST /scim/v2/Bulk", "not offered"),
    ("POST /auth/userinfo", "reads"),
    ("POST /auth/token/workspace-list", "reads"),
    ("POST /auth/auth/credentialsConfig", "reads"),
    ("POST /admin/backup", "reads"),
    ("POST /account/tenant/translate/text", "reads"),
    ("POST /account/tenant/file/signedUrl", "an address of a file that was told of"),
    ("POST /cloud-views/files", "a step of an upload, which is told at its beginning and its end"),
    ("POST /account/import/validateTenants", "reads"),
    ("POST /account/import/validateTenantsFromFile", "reads"),
    ("POST /account/import/tenantsFromFile", "the same import as POST /account/import/tenants"),
    ("POST /admin/test-clock", "moves the clock of a test"),
    ("POST /account/payprovider/confirm-checkout", "reads"),
    ("POST /admin/apps/{app_id}/explain", "reads"),
    ("POST /account/payments/plan/{plan_id}/dry-run", "reads"),
    ("POST /account/tenant/{tenant_id}/planDetails/dry-run", "reads"),
    ("POST /account/payprovider/webhook/{app_id}", "taken in; what follows from it is told"),
    ("POST /event-log", "kept as it is"),
    ("POST /event-log/batch", "kept as they are"),
    ("POST /event-log/query", "reads"),
    ("POST /usage/ingest", "counted, and told where a quota is used up"),
    ("POST /usage/ingest/batch", "counted, and told where a quota is used up"),
    ("POST /usage/sync/{workspace_id}", "changes nothing here"),
    ("POST /auth/refresh-token", "more tokens of a login that was told of"),
    ("POST /auth/token/workspace-switch", "more tokens of a login that was told of"),
    ("POST /auth/handover/code/{app_id}", "a code of one minute in a login that was told of"),
    ("POST /auth/auth/signup", "sends a mail; the sign-up is told once its link is followed"),
    ("POST /auth/auth/magic-link", "sends a mail; the login is told once its link is followed"),
    ("POST /auth/auth/magic-link/authenticate", "a step of a login, which is told at its end"),
    ("POST /auth/auth/password", "sends a mail; known and unknown accounts cost the same"),
    ("POST /auth/auth/authenticate", "a step of a login, which is told at its end; failures are told"),
    ("POST /auth/auth/startMfaUserSetup", "a step of a login"),
    ("POST /auth/auth/challengeMfa", "a step of a login"),
    ("POST /auth/auth/commitMfaCode", "a step of a login"),
    ("POST /auth/auth/passkeys/request-setup-link", "sends a mail"),
    ("POST /auth/auth/passkeys/verify-authentication", "a step of a login"),
    (
        "POST /auth/federation/saml/{connection_id}/acs",
        "a step of a login, which is told at its end; failures are told",
    ),
    (
        "POST /auth/federation/oidc/{connection_id}/callback",
        "a step of a login, which is told at its end; failures are told",
    ),
    ("POST /auth/federation/{provider}/callback", "a step of a login, which is told at its end; failures are told"),
    ("POST /auth/token", "the same exchange as POST /auth/token/{grant_type}/{app_id}"),
    ("POST /auth/demo", "the same exchange as POST /auth/token/{grant_type}/{app_id}"),
];

/// Routes whose facts are found in tests of their own flows.
const ELSEWHERE: &[&str] = &[
    "POST /account/app/checkoutId",
    "POST /account/tenant/upload/finish",
    "POST /account/tenant/file/delete",
    "POST /account/subscription/checkout",
    "POST /account/tenant/{tenant_id}/checkoutId",
    "POST /cloud-views/sandbox/checkout/{session_id}",
    "POST /cloud-views/sandbox/portal/{portal_id}",
    "POST /cloud-views/portal/{app_id}/plan",
    "POST /admin/apps/{app_id}/simulate",
    "POST /auth/auth/finishMfaUserSetup",
    "POST /auth/auth/resetUserMfaSetup",
    "POST /auth/auth/passkeys/verify-registration",
    "POST /cloud-views/verify-sender",
    "POST /webhooks/deliveries/{delivery_id}/replay",
    "POST /admin/apps/{app_id}/webhook/deliveries/{delivery_id}/replay",
    "POST /auth/invitation/accept",
    "DELETE /account/me/identities/{identity_id}",
    "DELETE /account/tenant/user/{user_id}/mfa",
    "POST /account/federation/connection",
    "PUT /account/federation/connection/{connection_id}",
    "DELETE /account/federation/connection/{connection_id}",
];

/// The hosted pages lead through the same flows as the JSON routes.
const PAGES: [&str; 2] = ["/auth/login", "/auth/authorize"];

/// Somebody who calls, and how facts name them.
struct Who {
    caller: Caller,
    actor: Actor,
}

/// Calls, each of which has to be told in its caller's name.
struct Walk {
    app: TestApp,
    seen: BTreeSet<String>,
    /// What has to be found in the audit trail: route, kind, actor and request.
    untraced: Vec<(String, &'static str, Actor, String)>,
}

/// Actor, address, request and app.
type Told = (String, Option<String>, Option<String>, Option<String>);

impl Walk {
    /// `route` as the table has it, with what its parameters stand for in their order.
    async fn told(&mut self, who: &Who, route: &str, ids: &[&str], body: Value, kind: &'static str) -> Answer {
        let (method, pattern) = route.split_once(' ').expect("a method and a path");
        let method: Method = method.parse().expect("a method");
        let path = ids.iter().fold(pattern.to_owned(), |path, id| {
            let (start, end) = (path.find('{').expect("a parameter"), path.find('}').expect("a parameter"));
            format!("{}{id}{}", &path[..start], &path[end + 1..])
        });
        let before = self.facts(kind).await.len();
        let answer = who.caller.call(method, &path, Some(body).filter(|body| !body.is_null())).await;
        assert!(answer.status() < 400, "{route}: {} {}", answer.status(), answer.body());
        let facts = self.facts(kind).await;
        assert!(facts.len() > before, "{route} does not tell {kind}");
        for (actor, address, request, of_app) in &facts[before..] {
            assert_eq!(serde_json::from_str::<Actor>(actor).expect("an actor"), who.actor, "{route}: {kind}");
            assert!(address.is_some() && request.is_some(), "{route}: {kind} says nothing of the request");
            // What concerns no app is in no app's trail, and that of a deleted one is gone.
            if let Some(request) = request.as_ref().filter(|_| of_app.is_some() && kind != "app.deleted") {
                self.untraced.push((route.to_owned(), kind, who.actor.clone(), request.clone()));
            }
        }
        self.seen.insert(route.to_owned());
        answer
    }

    /// Finds everything told so far in the audit trail, with its author. Call it while its app exists.
    async fn check_trail(&mut self) {
        self.app.drain().await;
        let query = "SELECT event_names.name, event_rows.parameters FROM event_rows JOIN event_names \
                     ON event_names.app_id = event_rows.app_id AND event_names.id = event_rows.name_id \
                     WHERE event_rows.audited AND event_rows.ingest_source = 'tenantry'";
        let read = move |tx: &mut Tx<'_>| tx.all::<(String, String)>(query, &[]);
        let entries = self.app.service().core().db.read(read).await.expect("the trail can be read");
        let entries: BTreeSet<(String, String, String, String)> = entries
            .into_iter()
            .map(|(name, parameters)| {
                let members: Value = parameters.parse().expect("an entry is JSON");
                let text = |member: &str| members[member].as_str().unwrap_or_default().to_owned();
                (name, text("actorType"), text("actorId"), text("requestId"))
            })
            .collect();
        for (route, kind, actor, request) in self.untraced.drain(..) {
            let actor_type = serde_json::to_value(actor.kind).expect("a kind");
            let actor_type = actor_type.as_str().expect("a text").to_owned();
            let wanted = (format!("tenantry.{kind}"), actor_type, actor.id, request);
            assert!(entries.contains(&wanted), "{route}: {wanted:?} is not in the trail");
        }
    }

    async fn facts(&self, kind: &'static str) -> Vec<Told> {
        let query = "SELECT actor, address, request_id, app_id FROM outbox WHERE kind = $1 ORDER BY id";
        let read = move |tx: &mut Tx<'_>| tx.all(query, &args![kind]);
        self.app.service().core().db.read(read).await.expect("the outbox can be read")
    }

    fn check_complete(&self) {
        let excused = |route: &str| {
            UNTOLD.iter().any(|(untold, _)| *untold == route)
                || ELSEWHERE.contains(&route)
                || PAGES.iter().any(|page| route.split(' ').nth(1).is_some_and(|path| path.starts_with(page)))
        };
        let writing = service::route_table().into_iter().filter(|route| route.method != Method::GET);
        let missing: Vec<String> = writing
            .map(|route| format!("{} {}", route.method, route.path))
            .filter(|route| !self.seen.contains(route) && !excused(route))
            .collect();
        assert!(missing.is_empty(), "routes that write and have no row here: {missing:#?}");
    }
}

async fn every_change_is_told_in_the_callers_name(app: TestApp) {
    let mut walk = Walk { app: app.clone(), seen: BTreeSet::new(), untraced: Vec::new() };
    let named = app.operator().header("x-actor", "Ada Lovelace");
    let operator = Who { caller: named, actor: Actor::operator_key(Some("Ada Lovelace".to_owned())) };
    let mighty = app.key_with(&["APP_DELETE", "TENANT_DELETE"]).await;
    let key = Who { actor: Actor::app_key(mighty.key_id().parse().expect("a key's id")), caller: mighty };
    by_the_operator(&mut walk, &operator).await;
    of_the_app(&mut walk, &key).await;
    of_the_catalog(&mut walk, &key).await;
    of_workspaces(&mut walk, &key).await;
    by_people(&mut walk).await;
    walk.check_trail().await;
    walk.told(&key, "DELETE /account/app", &[], Value::Null, "app.deleted").await;
    app.drain().await;
    walk.check_complete();
}

async fn by_the_operator(walk: &mut Walk, who: &Who) {
    walk.told(who, "POST /admin/operator-key", &[], json!({}), "operator_key.replaced").await;
    let new = json!({ "name": "Shop", "domain": "shop.example" });
    let made = walk.told(who, "POST /admin/apps", &[], new, "app.created").await;
    let app = &made.text("/app/id");
    walk.told(who, "PUT /admin/apps/{app_id}", &[app], json!({ "apiUrl": "https://api.example" }), "app.changed").await;
    let key = walk.told(who, "POST /admin/apps/{app_id}/keys", &[app], json!({ "name": "k" }), "key.created").await;
    let key = key.text("/record/id");
    let route = "DELETE /admin/apps/{app_id}/keys/{key_id}";
    walk.told(who, route, &[app, &key], Value::Null, "key.revoked").await;
    let hook = json!({ "enabled": true, "url": "https://hook.example", "events": [] });
    walk.told(who, "PUT /admin/apps/{app_id}/webhook", &[app], hook, "app.webhook_changed").await;
    webhooks(walk, who, app).await;
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
    walk.check_trail().await;
    walk.told(who, "DELETE /admin/apps/{app_id}", &[app], Value::Null, "app.deleted").await;
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

async fn of_the_app(walk: &mut Walk, who: &Who) {
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

async fn of_the_catalog(walk: &mut Walk, who: &Who) {
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

async fn of_workspaces(walk: &mut Walk, who: &Who) {
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
async fn by_people(walk: &mut Walk) {
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
