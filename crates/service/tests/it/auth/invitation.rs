//! `/auth/invitation/accept`, and what an invitation is until then: whatever a workspace wants of somebody, they have the
//! last word, and nothing is told of them before.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{Answer, Caller, TestApp, Workspace, facts, on_both_engines, tokens::claims};

on_both_engines!(
    known_and_unknown_addresses_are_invited_alike,
    an_invitation_is_seen_by_its_workspace_alone,
    an_invitation_asks_nobody_for_a_factor,
    somebody_known_accepts_with_their_account,
    somebody_new_accepts_by_setting_a_password,
    an_invitation_replaces_no_password,
    names_that_people_give_themselves_win,
    an_invitation_is_for_one_address,
    an_invitation_can_be_changed_and_taken_back,
    an_invitation_gives_no_role_beyond_its_maker,
    an_invitation_keeps_its_role,
    nothing_is_done_to_somebody_who_has_not_come,
    the_app_can_settle_an_invitation,
    the_mail_names_who_invites,
    an_invitation_cannot_be_silent,
    invitations_are_limited,
    one_address_gets_a_few_mails,
    a_deleted_workspace_takes_its_invitations_along,
    one_of_many_acceptances_counts,
    invitations_are_told,
);

const USERS: &str = "/account/tenant/user";
const ACCEPT: &str = "/auth/invitation/accept";

/// A workspace and its own token.
async fn inviting(app: &TestApp) -> (Workspace, Caller) {
    let acme = app.workspace("acme").await;
    let token = acme.token(&["USER_READ", "USER_WRITE"]).await;
    (acme, token)
}

async fn invite(token: &Caller, email: &str) -> Value {
    token.post(USERS, json!({ "username": email })).await.expect(201).json()
}

fn path(invited: &Value) -> String {
    format!("{USERS}/{}", invited["id"].as_str().expect("an id"))
}

async fn mailed(app: &TestApp, email: &str) -> Value {
    app.drain().await;
    json!({ "token": app.mailed_token(email) })
}

async fn known_and_unknown_addresses_are_invited_alike(app: TestApp) {
    let (_, token) = inviting(&app).await;
    let bob = app.owner("bob@corp.example").await;
    let path = format!("{USERS}/{}", bob.member);
    let key = app.key().in_workspace(bob.tenant);
    key.put(&path, json!({ "phoneNumber": "+4930123456", "firstName": "Robert" })).await.expect(200);
    let mut answers = Vec::new();
    for email in ["bob@corp.example", "new@corp.example"] {
        let body = json!({ "username": email, "lastName": "Corp" });
        let invited = token.post(USERS, body).await.expect(201).json();
        assert_eq!((&invited["status"], &invited["email"]), (&json!("invited"), &json!(email)));
        assert_eq!((&invited["firstName"], &invited["fullName"]), (&json!(""), &json!("Corp")));
        assert_eq!((&invited["phoneNumber"], invited.get("userId")), (&Value::Null, None));
        assert_eq!(token.get(&self::path(&invited)).await.expect(200).json(), invited);
        let mut alike = invited;
        for own in ["id", "email", "username", "createdAt"] {
            alike[own] = Value::Null;
        }
        answers.push(alike);
    }
    assert_eq!(answers[0], answers[1]);
    app.drain().await;
    let mails = app.mails();
    let [.., known, unknown] = mails.as_slice() else { panic!("two mails") };
    let without_link = |mail: &testkit::CaughtMail| mail.text.replace(&mail.links()[0], "");
    assert_eq!((&known.subject, without_link(known)), (&unknown.subject, without_link(unknown)));
}

async fn an_invitation_is_seen_by_its_workspace_alone(app: TestApp) {
    let (acme, token) = inviting(&app).await;
    let bob = app.owner("bob@corp.example").await;
    let invited = invite(&token, "Bob@corp.example").await;
    for caller in [&token, &acme.key()] {
        let list = caller.get(USERS).await.expect(200).json();
        assert_eq!((list.as_array().map(Vec::len), &list[0]), (Some(2), &invited));
    }
    assert_eq!(token.get(&format!("{USERS}?limit=1&offset=1")).await.expect(200).at("/0/status"), "active");
    token.post(USERS, json!({ "username": "BOB@corp.example" })).await.error(409, "MEMBER_EXISTS");
    let login = bob.log_in().await.expect(200);
    assert_eq!(login.at("/tenantUsers").as_array().map(Vec::len), Some(1));
    let tokens = bob.sign_in().await;
    assert_eq!(claims(&tokens.id)["multi_tenant"], false);
    let listed = app.anon().post("/auth/token/workspace-list", json!({ "accessToken": tokens.access })).await;
    assert_eq!(listed.expect(200).json().as_array().map(Vec::len), Some(1));
    assert_eq!(bob.signed_in().await.get("/account/tenant").await.expect(200).json().as_array().map(Vec::len), Some(1));
    let associations = format!("{USERS}/{}/associations", bob.member);
    let key = app.key().in_workspace(bob.tenant);
    assert_eq!(key.get(&associations).await.expect(200).json().as_array().map(Vec::len), Some(1));
    assert_eq!(token.get(&format!("{}/associations", path(&invited))).await.expect(200).json(), json!([]));
}

async fn an_invitation_asks_nobody_for_a_factor(app: TestApp) {
    let (acme, token) = inviting(&app).await;
    let bob = app.owner("bob@corp.example").await;
    invite(&token, &bob.email).await;
    app.key().put(&format!("/account/tenant/{}", acme.id), json!({ "mfa": true })).await.expect(200);
    assert_eq!(bob.log_in().await.expect(200).at("/mfaState"), "DISABLED");
    bob.sign_in().await;
}

async fn somebody_known_accepts_with_their_account(app: TestApp) {
    let (_, token) = inviting(&app).await;
    let bob = app.owner("bob@corp.example").await;
    let invited = invite(&token, &bob.email).await;
    let body = mailed(&app, &bob.email).await;
    let caller = bob.signed_in().await;
    let joined = caller.post(ACCEPT, body.clone()).await.expect(200);
    assert_eq!(joined.json(), json!({ "tenantUserId": invited["id"] }));
    let now = token.get(&path(&invited)).await.expect(200);
    assert_eq!((now.at("/status"), now.at("/userId")), (json!("active"), json!(bob.user)));
    assert_eq!((now.at("/firstName"), now.at("/role")), (json!("Ada"), json!("MEMBER")));
    assert_eq!(bob.log_in().await.expect(200).at("/tenantUsers").as_array().map(Vec::len), Some(2));
    caller.post(ACCEPT, body).await.error(401, "INVALID_CREDENTIAL");
    caller.post(ACCEPT, json!({ "token": "x" })).await.error(401, "INVALID_CREDENTIAL");
}

async fn somebody_new_accepts_by_setting_a_password(app: TestApp) {
    let (acme, token) = inviting(&app).await;
    let body = json!({ "username": "new@corp.example", "firstName": "Nora" });
    let invited = token.post(USERS, body).await.expect(201).json();
    token.put(&path(&invited), json!({ "phoneNumber": "+4930123456", "teams": ["red"] })).await.expect(200);
    let mut chosen = mailed(&app, "new@corp.example").await;
    chosen["password"] = "violet harbour lamp".into();
    app.anon().put("/auth/auth/password", chosen.clone()).await.expect(200);
    let now = acme.key().get(&path(&invited)).await.expect(200);
    assert_eq!((now.at("/status"), now.at("/firstName")), (json!("active"), json!("Nora")));
    // A number that a workspace wrote down is not the person's.
    assert_eq!((now.at("/phoneNumber"), now.at("/teams")), (Value::Null, json!(["red"])));
    let login = json!({ "username": "new@corp.example", "password": "violet harbour lamp", "appId": app.app_id(),
                        "mode": "sdk" });
    let login = app.page().post("/auth/auth/authenticate", login).await.expect(200);
    assert_eq!(login.at("/tenantUsers/0/id"), invited["id"]);
    app.anon().put("/auth/auth/password", chosen).await.error(401, "INVALID_CREDENTIAL");
}

async fn an_invitation_replaces_no_password(app: TestApp) {
    let (_, token) = inviting(&app).await;
    let bob = app.owner("bob@corp.example").await;
    let invited = invite(&token, &bob.email).await;
    let mut body = mailed(&app, &bob.email).await;
    body["password"] = "amber lantern quay".into();
    app.anon().put("/auth/auth/password", body).await.error(401, "INVALID_CREDENTIAL");
    bob.log_in().await.expect(200);
    assert_eq!(token.get(&path(&invited)).await.expect(200).at("/status"), "invited");
}

async fn names_that_people_give_themselves_win(app: TestApp) {
    let (_, token) = inviting(&app).await;
    let body = json!({ "username": "new@corp.example", "firstName": "Mallory's", "lastName": "Puppet" });
    let invited = token.post(USERS, body).await.expect(201).json();
    let own = json!({ "email": "new@corp.example", "firstName": "Nora", "lastName": "New", "appId": app.app_id(),
                      "mode": "sdk" });
    let invitation = mailed(&app, "new@corp.example").await;
    app.page().post("/auth/auth/signup", own).await.expect(200);
    let mut chosen = mailed(&app, "new@corp.example").await;
    chosen["password"] = "violet harbour lamp".into();
    app.anon().put("/auth/auth/password", chosen).await.expect(200);
    assert_eq!(token.get(&path(&invited)).await.expect(200).at("/firstName"), "Mallory's");
    let login = json!({ "username": "new@corp.example", "password": "violet harbour lamp", "appId": app.app_id(),
                        "mode": "sdk" });
    let session = app.page().post("/auth/auth/authenticate", login).await.expect(200).text("/session");
    let body = json!({ "session": session, "appId": app.app_id(), "mode": "sdk" });
    let tokens = app.page().post("/auth/token/direct", body).await.expect(200);
    let caller = app.anon().with_access_token(app.app_id(), &tokens.text("/access_token"));
    caller.post(ACCEPT, invitation).await.expect(200);
    assert_eq!(token.get(&path(&invited)).await.expect(200).at("/fullName"), "Nora New");
}

async fn an_invitation_is_for_one_address(app: TestApp) {
    let (_, token) = inviting(&app).await;
    let eve = app.owner("eve@evil.example").await;
    invite(&token, "bob@corp.example").await;
    let body = mailed(&app, "bob@corp.example").await;
    eve.signed_in().await.post(ACCEPT, body.clone()).await.error(403, "FORBIDDEN");
    app.anon().post(ACCEPT, body.clone()).await.error(401, "UNAUTHENTICATED");
    // Nobody came of it, and the link still works for whom it was meant.
    let bob = app.owner("bob@corp.example").await;
    bob.signed_in().await.post(ACCEPT, body).await.expect(200);
}

async fn an_invitation_can_be_changed_and_taken_back(app: TestApp) {
    let (_, token) = inviting(&app).await;
    let bob = app.owner("bob@corp.example").await;
    let invited = invite(&token, &bob.email).await;
    let changes = json!({ "firstName": "Bobby", "teams": ["red"], "onboarded": true, "enabled": true });
    let changed = token.put(&path(&invited), changes.clone()).await.expect(200);
    assert_eq!((changed.at("/status"), changed.at("/fullName")), (json!("invited"), json!("Bobby")));
    assert_eq!(token.put(&path(&invited), changes).await.expect(200).json(), changed.json());
    token.delete(&path(&invited)).await.expect(200);
    token.get(&path(&invited)).await.error(404, "NOT_FOUND");
    let body = mailed(&app, &bob.email).await;
    bob.signed_in().await.post(ACCEPT, body).await.error(401, "INVALID_CREDENTIAL");
    let again = invite(&token, &bob.email).await;
    assert_ne!(again["id"], invited["id"]);
}

async fn an_invitation_gives_no_role_beyond_its_maker(app: TestApp) {
    let (acme, token) = inviting(&app).await;
    for role in ["OWNER", "ADMIN"] {
        token.post(USERS, json!({ "username": "bob@corp.example", "role": role })).await.error(403, "FORBIDDEN");
    }
    let invited = invite(&token, "bob@corp.example").await;
    token.put(&path(&invited), json!({ "role": "ADMIN" })).await.error(403, "FORBIDDEN");
    acme.key().put(&path(&invited), json!({ "role": "ADMIN" })).await.expect(200);
}

async fn an_invitation_keeps_its_role(app: TestApp) {
    let (acme, token) = inviting(&app).await;
    let read = app.key().get("/account/role/privilege").await.expect(200).json();
    let read =
        read.as_array().into_iter().flatten().find(|one| one["key"] == "USER_READ").expect("is there")["id"].clone();
    let new = json!({ "name": "Guest", "key": "GUEST", "privileges": [read] });
    let guest = format!("/account/role/{}", app.key().post("/account/role", new).await.expect(200).text("/id"));
    let body = json!({ "username": "bob@corp.example", "role": "GUEST" });
    let invited = token.post(USERS, body).await.expect(201).json();
    app.key().delete(&guest).await.error(409, "ROLE_IN_USE");
    acme.key().delete(&path(&invited)).await.expect(200);
    app.key().delete(&guest).await.expect(200);
}

async fn nothing_is_done_to_somebody_who_has_not_come(app: TestApp) {
    let (acme, token) = inviting(&app).await;
    app.owner("bob@corp.example").await;
    for email in ["bob@corp.example", "new@corp.example"] {
        let path = path(&invite(&token, email).await);
        for caller in [&token, &acme.key()] {
            caller.delete(&format!("{path}/sessions")).await.error(409, "INVITATION_PENDING");
            caller.delete(&format!("{path}/mfa")).await.error(409, "INVITATION_PENDING");
        }
        acme.key().get(&format!("{path}/passwordLink")).await.error(409, "INVITATION_PENDING");
        token.get(&format!("{path}/passwordLink")).await.error(403, "FORBIDDEN");
        app.drain().await;
        let before = app.mails().len();
        token.post(&format!("{path}/password"), json!({})).await.expect(200);
        app.drain().await;
        let mails = app.mails();
        assert_eq!((mails.len(), &mails[before].subject), (before + 1, &mails[before - 1].subject));
    }
}

async fn the_app_can_settle_an_invitation(app: TestApp) {
    let (acme, token) = inviting(&app).await;
    let invited = invite(&token, "bob@corp.example").await;
    let body = mailed(&app, "bob@corp.example").await;
    let added = acme.add("Bob@corp.example", "ADMIN").await;
    assert_eq!((&added["id"], &added["status"], &added["role"]), (&invited["id"], &json!("active"), &json!("ADMIN")));
    let mut chosen = body;
    chosen["password"] = "violet harbour lamp".into();
    app.anon().put("/auth/auth/password", chosen).await.error(401, "INVALID_CREDENTIAL");
}

async fn the_mail_names_who_invites(app: TestApp) {
    let (acme, token) = inviting(&app).await;
    invite(&token, "bob@corp.example").await;
    app.drain().await;
    let mails = app.mails();
    assert!(mails[0].text.contains("Olive Owner has invited you to join acme on My app."), "{}", mails[0].text);
    let nameless = json!({ "firstName": null, "lastName": null });
    acme.key().put(&acme.path_of(&acme.owner), nameless).await.expect(200);
    invite(&token, "eve@corp.example").await;
    app.drain().await;
    let mails = app.mails();
    assert!(mails[1].text.contains("My app has invited you to join acme on My app."), "{}", mails[1].text);
}

async fn an_invitation_cannot_be_silent(app: TestApp) {
    let (_, token) = inviting(&app).await;
    let body = |mute: Value| json!({ "username": "bob@corp.example", "muteNotifications": mute });
    token.post(USERS, body(true.into())).await.error(403, "FORBIDDEN");
    token.post(USERS, body(false.into())).await.expect(201);
}

async fn invitations_are_limited(app: TestApp) {
    let (_, token) = inviting(&app).await;
    let mut last = Value::Null;
    for number in 0..100 {
        last = invite(&token, &format!("{number}@corp.example")).await;
    }
    let more = json!({ "username": "more@corp.example" });
    let limited = token.post(USERS, more.clone()).await.error(429, "RATE_LIMITED");
    let wait: u64 = limited.header("retry-after").and_then(|after| after.parse().ok()).expect("a number");
    assert!((3000..=3600).contains(&wait), "{wait}");
    token.post(&format!("{}/password", path(&last)), json!({})).await.error(429, "RATE_LIMITED");
    // Taking one back buys no other.
    token.delete(&path(&last)).await.expect(200);
    token.post(USERS, more.clone()).await.error(429, "RATE_LIMITED");
    let other = app.workspace("other").await.token(&["USER_WRITE"]).await;
    other.post(USERS, more.clone()).await.expect(201);
    app.advance(Duration::from_secs(3601)).await;
    token.post(USERS, more).await.expect(201);
}

async fn one_address_gets_a_few_mails(app: TestApp) {
    let (acme, token) = inviting(&app).await;
    let bob = acme.add("bob@corp.example", "MEMBER").await;
    let other = app.workspace("other").await.token(&["USER_WRITE"]).await;
    for _ in 0..5 {
        token.post(&format!("{}/password", path(&bob)), json!({})).await.expect(200);
        let invited = invite(&other, "Bob@corp.example").await;
        other.delete(&path(&invited)).await.expect(200);
    }
    let again = json!({ "username": "bob@corp.example" });
    other.post(USERS, again.clone()).await.error(429, "RATE_LIMITED");
    token.post(&format!("{}/password", path(&bob)), json!({})).await.error(429, "RATE_LIMITED");
    invite(&token, "eve@corp.example").await;
    app.advance(Duration::from_secs(15 * 60 + 1)).await;
    other.post(USERS, again).await.expect(201);
}

async fn a_deleted_workspace_takes_its_invitations_along(app: TestApp) {
    let (acme, token) = inviting(&app).await;
    let bob = app.owner("bob@corp.example").await;
    invite(&token, &bob.email).await;
    let body = mailed(&app, &bob.email).await;
    let deleting = app.key_with(&["TENANT_DELETE"]).await;
    deleting.delete(&format!("/account/tenant/{}", acme.id)).await.expect(200);
    bob.signed_in().await.post(ACCEPT, body.clone()).await.error(401, "INVALID_CREDENTIAL");
    app.drain().await;
    let left = app.service().core().db.read(|tx| tx.one::<(i64,)>("SELECT count(*) FROM invitations", &[])).await;
    assert_eq!(left.expect("reads"), (0,));
    bob.signed_in().await.post(ACCEPT, body).await.error(401, "INVALID_CREDENTIAL");
}

async fn one_of_many_acceptances_counts(app: TestApp) {
    let (_, token) = inviting(&app).await;
    let bob = app.owner("bob@corp.example").await;
    let invited = invite(&token, &bob.email).await;
    let first = mailed(&app, &bob.email).await;
    token.post(&format!("{}/password", path(&invited)), json!({})).await.expect(200);
    let second = mailed(&app, &bob.email).await;
    let caller = bob.signed_in().await;
    let asking = [&first, &second, &first, &second].map(|body| caller.post(ACCEPT, body.clone()));
    let answers: Vec<Answer> = join_all(asking).await;
    let won = answers.iter().filter(|answer| answer.status() == 200).count();
    let lost = answers.iter().filter(|answer| answer.status() == 401).count();
    assert_eq!((won, lost), (1, 3), "{answers:?}");
}

async fn invitations_are_told(app: TestApp) {
    let (_, token) = inviting(&app).await;
    let bob = app.owner("bob@corp.example").await;
    let invited = invite(&token, &bob.email).await;
    token.put(&path(&invited), json!({ "teams": ["red"] })).await.expect(200);
    token.delete(&path(&invited)).await.expect(200);
    let invited = invite(&token, &bob.email).await;
    let told = facts::told(&app, "invitation.").await;
    let kinds: Vec<&str> = told.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["invitation.created", "invitation.updated", "invitation.deleted", "invitation.created"]);
    assert_eq!(told[2].1["declined"], false);
    let before = facts::told(&app, "tenant_user.created").await.len();
    let body = mailed(&app, &bob.email).await;
    bob.signed_in().await.post(ACCEPT, body).await.expect(200);
    let joined = facts::told(&app, "tenant_user.created").await;
    assert_eq!((joined.len(), &joined[before].1["tenantUserId"]), (before + 1, &invited["id"]));
    let query = "SELECT actor FROM outbox WHERE kind = 'tenant_user.created' ORDER BY id DESC LIMIT 1";
    let (actor,) = app.service().core().db.read(move |tx| tx.one::<(String,)>(query, &[])).await.expect("reads");
    assert!(actor.contains(&bob.user.to_string()), "{actor}");
}
