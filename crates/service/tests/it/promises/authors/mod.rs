//! Every route that changes something tells of it, in the name of whoever called, and is found in the audit trail. Walks the route table, so that a new
//! route that writes fails the run until it has a row here.

mod flows;
mod rows;

use std::collections::BTreeSet;

use http::Method;
use kernel::Actor;
use serde_json::Value;
use store::{Tx, args};
use testkit::{Answer, Caller, TestApp, on_both_engines};

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
    ("POST /account/federation/connection/{connection_id}/test", "an address that changes nothing"),
    ("POST /realtime/authorize", "a token that opens streams in a login that was told of"),
    ("POST /admin/apps/{app_id}/webhook/test", "sends a sample, which is kept nowhere"),
    ("POST /auth/introspect", "reads"),
    ("POST /scim/v2/.search", "reads"),
    ("POST /scim/v2/Users/.search", "reads"),
    ("POST /scim/v2/Groups/.search", "reads"),
    ("POST /scim/v2/Bulk", "not offered"),
    ("POST /scim/v2/Me", "not offered"),
    ("PUT /scim/v2/Me", "not offered"),
    ("PATCH /scim/v2/Me", "not offered"),
    ("DELETE /scim/v2/Me", "not offered"),
    ("POST /auth/userinfo", "reads"),
    ("POST /auth/token/workspace-list", "reads"),
    ("POST /auth/auth/credentialsConfig", "reads"),
    ("POST /admin/backup", "reads"),
    ("POST /account/tenant/translate/text", "reads"),
    ("POST /account/tenant/file/signedUrl", "an address of a file that was told of"),
    ("POST /cloud-views/files", "a step of an upload, which is told at its beginning and its end"),
    ("POST /account/import/validateTenants", "reads"),
    ("POST /account/import/validateTenantsFromFile", "reads"),
    ("POST /admin/apps/{app_id}/import/validateTenants", "reads"),
    ("POST /account/import/tenantsFromFile", "the same import as POST /account/import/tenants"),
    ("POST /admin/test-clock", "moves the clock of a test"),
    ("POST /account/payprovider/confirm-checkout", "reads"),
    ("POST /admin/apps/{app_id}/explain", "reads"),
    ("POST /account/payments/plan/{plan_id}/dry-run", "reads"),
    ("POST /account/tenant/{tenant_id}/planDetails/dry-run", "reads"),
    ("POST /account/payprovider/webhook/{app_id}", "taken in; what follows from it is told"),
    ("POST /account/app/checkoutId", "a page to pay at; what is bought there is told"),
    ("POST /account/tenant/{tenant_id}/checkoutId", "a page to pay at; what is bought there is told"),
    ("POST /account/subscription/checkout", "a page to pay at; what is bought there is told"),
    ("POST /event-log", "kept as it is"),
    ("POST /event-log/batch", "kept as they are"),
    ("POST /event-log/query", "reads"),
    ("POST /event-log/funnel", "reads"),
    ("POST /usage/ingest", "counted, and told where a quota is used up"),
    ("POST /usage/ingest/batch", "counted, and told where a quota is used up"),
    ("POST /usage/sync/{workspace_id}", "changes nothing here"),
    ("POST /auth/refresh-token", "more tokens of a login that was told of"),
    ("POST /auth/token/workspace-switch", "more tokens of a login that was told of"),
    ("POST /auth/handover/code/{app_id}", "a code of one minute in a login that was told of"),
    ("POST /account/me/email", "sends mails; the new address is told once its link is followed"),
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
    ("POST /auth/logout", "leads to the same with GET"),
    ("POST /auth/token", "the same exchange as POST /auth/token/{grant_type}/{app_id}"),
    ("POST /auth/demo", "the same exchange as POST /auth/token/{grant_type}/{app_id}"),
];

/// Routes whose facts are found where their flows are tested.
const ELSEWHERE: &[(&str, &str)] = &[
    ("POST /cloud-views/sandbox/checkout/{session_id}", "account/subscription_checkout.rs"),
    ("POST /cloud-views/sandbox/portal/{portal_id}", "account/subscription_portal.rs"),
    ("POST /cloud-views/portal/{app_id}/members", "cloud_views/members_page.rs"),
    ("POST /cloud-views/portal/{app_id}/members/{user_id}", "cloud_views/members_page.rs"),
    ("POST /cloud-views/portal/{app_id}/plan", "cloud_views/plan_page.rs"),
    ("POST /cloud-views/portal/{app_id}/profile", "cloud_views/members_page.rs"),
    ("POST /cloud-views/portal/{app_id}/settings", "cloud_views/settings_page.rs"),
    ("DELETE /account/me/identities/{identity_id}", "auth/federation_oidc.rs"),
    ("PUT /account/me", "account/me.rs"),
    ("DELETE /account/me/sessions/{session_id}", "account/me.rs"),
    ("DELETE /account/me/passkeys/{passkey_id}", "account/me.rs"),
    ("DELETE /account/me/mfa", "account/me.rs"),
    ("POST /account/me/password", "account/me.rs"),
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
        self.find(&who.actor, route, kind, before).await;
        answer
    }

    /// The same where a call takes more than a body of JSON, or only works as a part of something.
    async fn told_by<T>(&mut self, by: &Actor, route: &str, kind: &'static str, doing: impl Future<Output = T>) -> T {
        let before = self.facts(kind).await.len();
        let done = doing.await;
        self.find(by, route, kind, before).await;
        done
    }

    /// Finds what was told since there were so many facts of the kind.
    async fn find(&mut self, by: &Actor, route: &str, kind: &'static str, before: usize) {
        let facts = self.facts(kind).await;
        assert!(facts.len() > before, "{route} does not tell {kind}");
        for (actor, address, request, of_app) in &facts[before..] {
            assert_eq!(serde_json::from_str::<Actor>(actor).expect("an actor"), *by, "{route}: {kind}");
            assert!(address.is_some() && request.is_some(), "{route}: {kind} says nothing of the request");
            // What concerns no app is in no app's trail, and that of a deleted one is gone.
            if let Some(request) = request.as_ref().filter(|_| of_app.is_some() && kind != "app.deleted") {
                self.untraced.push((route.to_owned(), kind, by.clone(), request.clone()));
            }
        }
        self.seen.insert(route.to_owned());
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
                || ELSEWHERE.iter().any(|(elsewhere, _)| *elsewhere == route)
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
    rows::by_the_operator(&mut walk, &operator).await;
    rows::of_the_app(&mut walk, &key).await;
    rows::of_the_catalog(&mut walk, &key).await;
    rows::of_workspaces(&mut walk, &key).await;
    rows::by_people(&mut walk).await;
    flows::of_connections(&mut walk, &key).await;
    flows::of_files(&mut walk, &key).await;
    flows::of_replays(&mut walk).await;
    flows::of_factors(&mut walk, &key).await;
    flows::of_invitations(&mut walk).await;
    flows::of_the_sandbox(&mut walk, &operator).await;
    flows::of_a_sender(&mut walk).await;
    walk.check_trail().await;
    walk.told(&key, "DELETE /account/app", &[], Value::Null, "app.deleted").await;
    app.drain().await;
    walk.check_complete();
}
