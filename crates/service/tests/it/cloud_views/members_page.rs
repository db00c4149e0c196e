//! `GET /cloud-views/user-management-portal/users`, and the members' pages behind it.

use futures_util::future::join;
use kernel::Actor;
use serde_json::{Value, json};
use store::args;
use testkit::{
    Browser, Caller, TestApp, Tokens, Workspace,
    facts::{told, told_of_app},
    on_both_engines,
};

use super::settings_page::settings;

on_both_engines!(
    a_code_leads_to_the_members_once_and_again_in_the_same_browser,
    a_keys_code_does_not_open_the_members,
    people_see_what_their_token_may_see,
    somebody_is_invited_by_mail,
    an_invitation_is_sent_again_and_withdrawn,
    a_role_is_given_within_ones_own_privileges,
    the_last_owner_stays_and_nobody_disables_themselves,
    a_member_is_disabled_enabled_and_removed,
    a_visit_ends_where_the_identity_provider_is_the_way_in,
    members_of_other_workspaces_are_nobody_here,
    forms_of_others_change_nothing,
    a_double_click_is_one_act,
    a_form_of_a_page_that_was_shown_again_is_another_act,
    long_lists_have_pages,
    people_change_their_own_name,
    people_end_their_other_sessions,
);

const ENTRANCE: &str = "/cloud-views/user-management-portal/users";

async fn code(app: &TestApp, user: &Caller) -> String {
    let path = format!("/auth/handover/code/{}", app.app_id());
    let body = json!({ "accessToken": user.header_sent("authorization").replace("Bearer ", "") });
    app.anon().post(&path, body).await.expect(200).text("/code")
}

async fn entrance(app: &TestApp, user: &Caller) -> String {
    format!("{ENTRANCE}?code={}", code(app, user).await)
}

/// A browser in which this user is in the portal.
pub(super) async fn at_members(app: &TestApp, user: &Caller) -> Browser {
    let mut browser = app.browser();
    browser.open(&entrance(app, user).await).await;
    browser
}

fn members(app: &TestApp) -> String {
    format!("/cloud-views/portal/{}/members", app.app_id())
}

fn member(app: &TestApp, user: &Value) -> String {
    format!("{}/{}", members(app), user["id"].as_str().expect("a member has an id"))
}

fn profile(app: &TestApp) -> String {
    format!("/cloud-views/portal/{}/profile", app.app_id())
}

/// Presses a button of a member's page.
async fn press(browser: &mut Browser, app: &TestApp, user: &Value, fields: &[(&str, &str)]) {
    let page = member(app, user);
    browser.open(&page).await;
    browser.submit(&page, fields).await;
}

async fn invite(browser: &mut Browser, app: &TestApp, email: &str, role: &str) {
    browser.submit(&members(app), &[("email", email), ("role", role)]).await;
}

/// Whoever has this address in the workspace, as the app's key sees them.
async fn find(workspace: &Workspace, email: &str) -> Option<Value> {
    let users = workspace.key().get("/account/tenant/user").await.expect(200).json();
    users.as_array().into_iter().flatten().find(|user| user["email"] == email).cloned()
}

async fn found(workspace: &Workspace, email: &str) -> Value {
    find(workspace, email).await.expect("in the workspace")
}

/// Who made the last change of a kind.
pub(super) async fn author(app: &TestApp, kind: &'static str) -> String {
    let query = "SELECT actor FROM outbox WHERE kind = $1 ORDER BY id DESC LIMIT 1";
    let read = app.service().core().db.read(move |tx| tx.one::<(String,)>(query, &args![kind])).await;
    let (actor,) = read.expect("somebody was told");
    actor
}

#[track_caller]
pub(super) fn is_by(actor: &str, user: &Value) {
    let user = user["userId"].as_str().and_then(|id| id.parse().ok()).expect("a person's id");
    let actor: Actor = serde_json::from_str(actor).expect("an actor");
    assert_eq!(actor, Actor::user(user));
}

async fn a_code_leads_to_the_members_once_and_again_in_the_same_browser(app: TestApp) {
    let acme = app.workspace("acme").await;
    let address = entrance(&app, &acme.owner()).await;
    let answer = app.anon().get(&address).await.expect(303);
    assert_eq!(answer.header("location"), Some(members(&app).as_str()));
    let cookie = answer.header("set-cookie").expect("a cookie").to_owned();
    assert!(cookie.contains(&format!("tenantry-portal-{}=", app.app_id())), "{cookie}");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    app.browser().open(&address).await.sees(401, "already been used");

    let address = entrance(&app, &acme.owner()).await;
    let mut browser = app.browser();
    browser.open(&address).await.sees(200, "owner@acme.example").sees(200, "Olive Owner");
    browser.open(&address).await.sees(200, "owner@acme.example");
    let way = browser.link("Plan");
    browser.open(&way).await.sees(200, "Choose a plan");
    let back = browser.link("Members");
    assert_eq!(back, members(&app));
    // Whatever else the browser is in.
    browser.open(&format!("{ENTRANCE}?code=nonesuch")).await.sees(401, "not valid");
    let page = app.anon().get(&format!("{ENTRANCE}?code=nonesuch")).await.expect(401);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    app.anon().get(ENTRANCE).await.expect(400);
    for page in [members(&app), profile(&app), settings(&app), member(&app, &acme.owner)] {
        app.browser().open(&page).await.sees(401, "not valid");
    }
    // The same code opens either portal.
    let code = code(&app, &acme.owner()).await;
    let plan = format!("/cloud-views/subscription-portal/selectPlan?code={code}");
    browser.open(&plan).await.sees(200, "Choose a plan");
    browser.open(&format!("{ENTRANCE}?code={code}")).await.sees(200, "owner@acme.example");
}

async fn a_keys_code_does_not_open_the_members(app: TestApp) {
    let acme = app.workspace("acme").await;
    let path = format!("/account/tenant/{}/customerPortal", acme.id);
    let plan = app.key().get(&path).await.expect(200).text("/url");
    let code = plan.rsplit('=').next().expect("a code").to_owned();
    let mut browser = app.browser();
    browser.open(&format!("{ENTRANCE}?code={code}")).await.sees(401, "not valid");
    // It is as good as before for what it is good for, and no more.
    browser.open(&plan).await.sees(200, "Choose a plan");
    assert!(!browser.html().contains("<nav>"));
    browser.open(&format!("{ENTRANCE}?code={code}")).await.sees(401, "not valid");
    for page in [members(&app), profile(&app), settings(&app), member(&app, &acme.owner)] {
        browser.open(&page).await.sees(401, "not valid");
    }
}

/// The owner's page as a token shows it that has only these privileges.
pub(super) async fn with_scope(app: &TestApp, owner: &testkit::Person, scope: &str) -> Browser {
    let session = owner.log_in().await.expect(200).text("/session");
    let body = json!({ "session": session, "appId": app.app_id(), "mode": "sdk", "scope": scope });
    let tokens = Tokens::of(&app.page().post("/auth/token/direct", body).await.expect(200));
    at_members(app, &app.anon().with_access_token(app.app_id(), &tokens.access)).await
}

async fn people_see_what_their_token_may_see(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let own = json!({ "id": ada.member });
    let mut browser = with_scope(&app, &ada, "openid TENANT_READ").await;
    browser.sees(200, "Your profile").sees(200, "ada@example.com");
    assert_eq!(browser.location, profile(&app));
    for page in [members(&app), member(&app, &own)] {
        browser.open(&page).await.sees(403, "does not allow you to see the members");
    }
    let mut browser = with_scope(&app, &ada, "openid USER_READ").await;
    browser.sees(200, "ada@example.com").sees(200, "Active");
    assert!(!browser.html().contains("<form") && !browser.html().contains(">Plan</a>"));
    browser.open(&member(&app, &own)).await.sees(200, "Status: Active");
    assert!(!browser.html().contains("<form"));
    let form = [("action".to_owned(), "role".to_owned()), ("role".to_owned(), "MEMBER".to_owned())];
    browser.post(&member(&app, &own), &form).await.sees(403, "");
    let mut browser = with_scope(&app, &ada, "openid USER_READ USER_WRITE").await;
    browser.sees(200, "Send invitation");
    // Not within the token, although the role has more; the default role can be given by everybody.
    invite(&mut browser, &app, "eve@example.com", "ADMIN").await;
    browser.sees(400, "which you do not have yourself");
    invite(&mut browser, &app, "eve@example.com", "MEMBER").await;
    browser.sees(200, "The invitation has been sent.").sees(200, "eve@example.com").sees(200, "Invited");
}

async fn somebody_is_invited_by_mail(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut browser = at_members(&app, &acme.owner()).await;
    invite(&mut browser, &app, "bob@example.com", "ADMIN").await;
    browser.sees(200, "The invitation has been sent.");
    let bob = found(&acme, "bob@example.com").await;
    assert_eq!((&bob["status"], &bob["role"]), (&json!("invited"), &json!("ADMIN")));
    is_by(&author(&app, "invitation.created").await, &acme.owner);
    app.drain().await;
    let mails = app.mails();
    let mail = mails.iter().find(|mail| mail.to.contains("bob@example.com")).expect("a mail");
    assert!(mail.text.contains("Olive Owner"), "{}", mail.text);
    // Shown once.
    browser.open(&members(&app)).await;
    assert!(!browser.html().contains("has been sent"));
    invite(&mut browser, &app, "bob@example.com", "MEMBER").await;
    browser.sees(400, "already a member of this workspace, or invited to it");
    assert_eq!(browser.location, members(&app));
    assert!(browser.form(&members(&app)).contains(&("email".to_owned(), "bob@example.com".to_owned())));
    invite(&mut browser, &app, "no address", "MEMBER").await;
    browser.sees(400, "Enter a valid email address");
    invite(&mut browser, &app, "eve@example.com", "NONESUCH").await;
    browser.sees(400, "is not the key of a role");
    assert_eq!(told(&app, "invitation.created").await.len(), 1);
}

async fn an_invitation_is_sent_again_and_withdrawn(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut browser = at_members(&app, &acme.owner()).await;
    invite(&mut browser, &app, "bob@example.com", "MEMBER").await;
    let bob = found(&acme, "bob@example.com").await;
    press(&mut browser, &app, &bob, &[("action", "resend")]).await;
    browser.sees(200, "The invitation has been sent.");
    app.drain().await;
    assert_eq!(app.mails().iter().filter(|mail| mail.to.contains("bob@example.com")).count(), 2);
    press(&mut browser, &app, &bob, &[("action", "role"), ("role", "ADMIN")]).await;
    browser.sees(200, "Role: Admin");
    press(&mut browser, &app, &bob, &[("action", "withdraw")]).await;
    browser.sees(200, "The invitation has been withdrawn.");
    assert_eq!(browser.location, members(&app));
    assert_eq!(find(&acme, "bob@example.com").await, None);
    is_by(&author(&app, "invitation.deleted").await, &acme.owner);
    browser.open(&member(&app, &bob)).await.sees(404, "");
    // Of a member there is nothing to send.
    press(&mut browser, &app, &acme.owner, &[("action", "resend")]).await;
    browser.sees(400, "invitation");
}

async fn a_role_is_given_within_ones_own_privileges(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let eve = acme.add("eve@example.com", "ADMIN").await;
    let mut browser = at_members(&app, &app.user(&eve)).await;
    press(&mut browser, &app, &bob, &[("action", "role"), ("role", "OWNER")]).await;
    browser.sees(400, "includes TENANT_DELETE, which you do not have yourself");
    assert!(!browser.html().contains("<option value=\"OWNER\""));
    assert_eq!(found(&acme, "bob@example.com").await["role"], "MEMBER");
    press(&mut browser, &app, &bob, &[("action", "role"), ("role", "ADMIN")]).await;
    browser.sees(200, "The role has been changed.").sees(200, "Role: Admin");
    assert_eq!(found(&acme, "bob@example.com").await["role"], "ADMIN");
    is_by(&author(&app, "tenant_user.updated").await, &eve);
    // Counts at once for whoever is in the portal.
    acme.key().put(&acme.path_of(&eve), json!({ "role": "MEMBER" })).await.expect(200);
    browser.open(&members(&app)).await.sees(200, "bob@example.com");
    assert!(!browser.html().contains("<form"));
}

async fn the_last_owner_stays_and_nobody_disables_themselves(app: TestApp) {
    let acme = app.workspace("acme").await;
    let eve = acme.add("eve@example.com", "ADMIN").await;
    let mut of_owner = at_members(&app, &acme.owner()).await;
    press(&mut of_owner, &app, &acme.owner, &[("action", "role"), ("role", "MEMBER")]).await;
    of_owner.sees(400, "last enabled OWNER");
    assert!(!of_owner.html().contains("value=\"disable\"") && !of_owner.html().contains("value=\"remove\""));
    for action in ["disable", "remove", "withdraw"] {
        press(&mut of_owner, &app, &acme.owner, &[("action", action)]).await;
        of_owner.sees(400, "You cannot disable or remove yourself.");
    }
    let mut of_eve = at_members(&app, &app.user(&eve)).await;
    for action in ["disable", "remove", "withdraw"] {
        press(&mut of_eve, &app, &acme.owner, &[("action", action)]).await;
        of_eve.sees(400, "last enabled OWNER");
    }
    let owner = found(&acme, "owner@acme.example").await;
    assert_eq!((&owner["enabled"], &owner["role"]), (&json!(true), &json!("OWNER")));
}

async fn a_member_is_disabled_enabled_and_removed(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let mut of_bob = at_members(&app, &app.user(&bob)).await;
    let mut browser = at_members(&app, &acme.owner()).await;
    press(&mut browser, &app, &bob, &[("action", "disable")]).await;
    browser.sees(200, "Status: Disabled");
    of_bob.open(&members(&app)).await.sees(401, "");
    press(&mut browser, &app, &bob, &[("action", "enable")]).await;
    browser.sees(200, "Status: Active");
    assert_eq!(found(&acme, "bob@example.com").await["enabled"], true);
    press(&mut browser, &app, &bob, &[("action", "remove")]).await;
    browser.sees(200, "The member has been removed.");
    assert_eq!(find(&acme, "bob@example.com").await, None);
    is_by(&author(&app, "tenant_user.deleted").await, &acme.owner);
}

async fn a_visit_ends_where_the_identity_provider_is_the_way_in(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "ADMIN").await;
    let mut browser = at_members(&app, &app.user(&bob)).await;
    browser.sees(200, "bob@example.com");
    let connection = json!({ "name": "Acme", "type": "oidc", "issuer": "https://idp.example", "clientId": "c",
                             "clientSecret": "s" });
    let connection = app.key().post("/account/federation/connection", connection).await.expect(201).text("/id");
    let closed = json!({ "federationConnection": connection, "ssoRequired": true });
    app.key().put(&format!("/account/tenant/{}", acme.id), closed).await.expect(200);
    browser.open(&members(&app)).await.sees(401, "");
}

async fn members_of_other_workspaces_are_nobody_here(app: TestApp) {
    let acme = app.workspace("acme").await;
    let other = app.workspace("other").await;
    let bob = other.add("bob@example.com", "MEMBER").await;
    let mut browser = at_members(&app, &acme.owner()).await;
    assert!(!browser.html().contains("bob@example.com"));
    browser.open(&member(&app, &bob)).await.sees(404, "");
    for action in ["role", "disable", "remove", "resend"] {
        browser.open(&member(&app, &acme.owner)).await;
        let form = browser.filled(&member(&app, &acme.owner), &[("action", action), ("role", "ADMIN")]);
        browser.post(&member(&app, &bob), &form).await.sees(400, "");
        assert_eq!(browser.location, members(&app));
    }
    let bob = found(&other, "bob@example.com").await;
    assert_eq!((&bob["role"], &bob["enabled"]), (&json!("MEMBER"), &json!(true)));
    // The pages of another app know nothing of this browser.
    let elsewhere = format!("/cloud-views/portal/{}/members", app.other_app().await.app_id());
    browser.open(&elsewhere).await.sees(401, "");
}

async fn forms_of_others_change_nothing(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut browser = at_members(&app, &acme.owner()).await;
    let other = at_members(&app, &app.workspace("other").await.owner()).await;
    let fields = [("email", "eve@example.com"), ("role", "MEMBER")];
    let form = other.filled(&members(&app), &fields);
    browser.post(&members(&app), &form).await.sees(403, "expired");
    browser.open(&members(&app)).await;
    let mut without: Vec<(String, String)> = browser.filled(&members(&app), &fields);
    without.retain(|(name, _)| name != "csrf");
    browser.post(&members(&app), &without).await.sees(403, "expired");
    let mut foreign = browser.header("sec-fetch-site", "cross-site");
    foreign.open(&members(&app)).await;
    invite(&mut foreign, &app, "eve@example.com", "MEMBER").await;
    foreign.sees(403, "expired");
    foreign.open(&profile(&app)).await;
    foreign.submit(&profile(&app), &[("action", "rename"), ("first_name", "Eve")]).await.sees(403, "expired");
    assert_eq!(told(&app, "invitation.created").await.len(), 0);
    assert_eq!(found(&acme, "owner@acme.example").await["firstName"], "Olive");
}

async fn a_double_click_is_one_act(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut first = at_members(&app, &acme.owner()).await;
    let mut second = first.clone();
    let (page, fields) = (members(&app), [("email", "bob@example.com"), ("role", "MEMBER")]);
    join(first.submit(&page, &fields), second.submit(&page, &fields)).await;
    for browser in [&mut first, &mut second] {
        browser.sees(200, "The invitation has been sent.");
    }
    app.drain().await;
    assert_eq!(app.mails().iter().filter(|mail| mail.to.contains("bob@example.com")).count(), 1);
    assert_eq!(told(&app, "invitation.created").await.len(), 1);
}

async fn a_form_of_a_page_that_was_shown_again_is_another_act(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let mut browser = at_members(&app, &acme.owner()).await;
    for (action, enabled) in [("disable", false), ("enable", true), ("disable", false), ("enable", true)] {
        press(&mut browser, &app, &bob, &[("action", action)]).await;
        assert_eq!(found(&acme, "bob@example.com").await["enabled"], enabled, "{action}");
    }
}

async fn long_lists_have_pages(app: TestApp) {
    let acme = app.workspace("acme").await;
    for number in 0..100 {
        acme.add(&format!("member{number}@example.com"), "MEMBER").await;
    }
    let rows = |browser: &Browser| browser.html().matches("<th scope=\"row\">").count();
    let mut browser = at_members(&app, &acme.owner()).await;
    assert_eq!(rows(&browser), 100);
    let next = browser.link("Next page");
    browser.open(&next).await.sees(200, "Previous page");
    assert_eq!(rows(&browser), 1);
    assert!(!browser.html().contains("Next page"));
    let previous = browser.link("Previous page");
    browser.open(&previous).await;
    assert_eq!(rows(&browser), 100);
}

async fn people_change_their_own_name(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let mut browser = at_members(&app, &app.user(&bob)).await;
    browser.open(&profile(&app)).await.sees(200, "bob@example.com");
    let names = [("action", "rename"), ("first_name", "Bob"), ("last_name", "Byron")];
    browser.submit(&profile(&app), &names).await.sees(200, "Your name has been saved.").sees(200, "value=\"Byron\"");
    assert_eq!(found(&acme, "bob@example.com").await["fullName"], "Bob Byron");
    is_by(&author(&app, "tenant_user.updated").await, &bob);
    let long = "x".repeat(201);
    browser.submit(&profile(&app), &[("action", "rename"), ("last_name", &long)]).await.sees(400, "Last name must");
    assert_eq!(found(&acme, "bob@example.com").await["lastName"], "Byron");
}

async fn people_end_their_other_sessions(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let here = ada.signed_in().await;
    let elsewhere = ada.signed_in().await;
    let mut browser = at_members(&app, &here).await;
    browser.open(&profile(&app)).await.sees(200, "Where you are signed in").sees(200, "Sign out there");
    let sessions = here.get("/account/me/sessions").await.expect(200).json();
    let other = sessions.as_array().into_iter().flatten().find(|session| session["current"] == false);
    let other = other.and_then(|session| session["id"].as_str()).expect("another session").to_owned();
    let end = |id: &str| [("action".to_owned(), "end".to_owned()), ("session".to_owned(), id.to_owned())];
    let form = |browser: &Browser, id: &str| {
        let mut form = browser.filled(&profile(&app), &[]);
        form.retain(|(name, _)| name == "csrf" || name == "nonce");
        form.extend(end(id));
        form
    };
    let filled = form(&browser, &other);
    browser.post(&profile(&app), &filled).await.sees(200, "The session has been ended.");
    assert!(!browser.html().contains("Sign out there"));
    elsewhere.get("/account/me").await.expect(401);
    here.get("/account/me").await.expect(200);
    assert_eq!(told_of_app(&app, "login.ended").await.len(), 1);
    // Somebody else's is nobody's business.
    let bob = app.member("bob@example.com", ada.tenant, "MEMBER").await.signed_in().await;
    let of_bob = bob.get("/account/me/sessions").await.expect(200).text("/0/id");
    let filled = form(&browser, &of_bob);
    browser.post(&profile(&app), &filled).await.sees(400, "session");
    bob.get("/account/me").await.expect(200);
}
