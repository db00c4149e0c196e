//! `/account/tenant/user`: the members of a workspace.

use std::time::Duration;

use http::Method;
use kernel::UserId;
use serde_json::{Value, json};
use testkit::{TestApp, assert_body, on_both_engines};

on_both_engines!(
    a_member_is_added_with_the_default_role,
    a_new_person_is_invited_with_a_link_that_works,
    a_known_person_is_told_differently,
    a_muted_member_gets_no_mail,
    one_address_is_one_person_whatever_its_case,
    a_second_membership_is_a_conflict,
    each_wrong_field_of_a_new_member_is_named,
    either_id_finds_a_member_within_the_workspace_only,
    associations_are_the_persons_workspaces,
    an_update_changes_what_it_names,
    names_belong_to_the_person,
    each_wrong_field_of_an_update_is_named,
    the_last_enabled_owner_stays,
    a_password_reset_is_mailed,
    a_reset_link_can_be_had_without_a_mail,
    a_removed_member_is_out_at_once,
    people_who_belong_nowhere_else_are_gone,
    sessions_end_everywhere,
    a_list_is_newest_first_and_has_pages,
    privileges_are_asked_for,
    changes_are_told,
);

const USERS: &str = "/account/tenant/user";

async fn a_member_is_added_with_the_default_role(app: TestApp) {
    let acme = app.workspace("acme").await;
    let body = json!({ "username": "Bob@Example.com", "firstName": "Bob", "lastName": "Builder", "id": 1 });
    let made = acme.key().post(USERS, body).await.expect(201);
    assert_body!(made, @r#"
    {
      "consentsToPrivacyPolicy": false,
      "createdAt": "[time]",
      "email": "Bob@Example.com",
      "enabled": true,
      "firstName": "Bob",
      "fullName": "Bob Builder",
      "id": "[member id]",
      "lastName": "Builder",
      "lastSeen": null,
      "onboarded": false,
      "parameters": {},
      "phoneNumber": null,
      "role": "MEMBER",
      "status": "active",
      "teams": [],
      "tenant": {
        "appMetadata": {},
        "createdAt": "[time]",
        "federationConnection": null,
        "id": "[tenant id]",
        "jitProvisioning": true,
        "locale": "en",
        "logo": null,
        "metadata": {},
        "mfa": false,
        "name": "acme",
        "onboarded": false,
        "paymentStatus": {
          "paymentsEnabled": false,
          "provider": null,
          "shouldSelectPlan": true,
          "shouldSetupPayments": false
        },
        "plan": null,
        "signupBy": {
          "email": "owner@acme.example",
          "firstName": "Olive",
          "lastName": "Owner"
        },
        "ssoRequired": false,
        "trial": false
      },
      "userId": "[user id]",
      "username": "Bob@Example.com"
    }
    "#);
    let path = acme.path_of(&made.json());
    assert_eq!(acme.key().get(&path).await.expect(200).json(), made.json());
    assert_eq!(acme.key().get(&format!("/v1{path}")).await.expect(200).json(), made.json());
    assert_eq!(made.at("/tenant"), app.key().get(&format!("/account/tenant/byId/{}", acme.id)).await.json());
}

fn token_of(link: &str) -> String {
    link.strip_prefix("http://tenantry.test/auth/login/set-password?token=").expect("a set-password link").to_owned()
}

/// Whom a link is for, or the refusal's code.
async fn used(
    app: &TestApp,
    purpose: tenancy::links::LinkPurpose,
    token: String,
) -> Result<Option<UserId>, kernel::Code> {
    let used = app.service().core().db.write(move |tx| tenancy::links::consume(tx, purpose, &token)).await;
    used.map(|link| link.user).map_err(|error| error.code())
}

async fn a_new_person_is_invited_with_a_link_that_works(app: TestApp) {
    let acme = app.workspace("acme").await;
    let made = acme.key().post(USERS, json!({ "username": "bob@example.com" })).await.expect(201);
    app.drain().await;
    let mails = app.mails();
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, "bob@example.com"));
    let token = token_of(&mails[0].links()[0]);
    let purpose = tenancy::links::LinkPurpose::Invitation;
    assert_eq!(used(&app, purpose, token.clone()).await, Ok(Some(made.id("/userId"))));
    assert_eq!(used(&app, purpose, token).await, Err(kernel::Code::InvalidCredential));
}

async fn a_known_person_is_told_differently(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    acme.key().post(USERS, json!({ "username": "bob@example.com" })).await.expect(201);
    other.key().post(USERS, json!({ "username": "bob@example.com" })).await.expect(201);
    app.drain().await;
    let mails = app.mails();
    assert_eq!(mails.len(), 2);
    assert!(mails[0].subject.contains("acme") && mails[1].subject.contains("other"));
    assert_ne!(mails[0].subject.replace("acme", ""), mails[1].subject.replace("other", ""));
}

async fn a_muted_member_gets_no_mail(app: TestApp) {
    let acme = app.workspace("acme").await;
    let body = json!({ "username": "bob@example.com", "muteNotifications": true });
    acme.key().post(USERS, body).await.expect(201);
    app.drain().await;
    assert!(app.mails().is_empty());
}

async fn one_address_is_one_person_whatever_its_case(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let first = acme.add("Bob@Example.com", "MEMBER").await;
    let second = other.add("bob@example.COM", "ADMIN").await;
    assert_eq!((&first["userId"], &first["email"]), (&second["userId"], &second["email"]));
    assert_ne!(first["id"], second["id"]);
    // The same address in another app is somebody else.
    let foreign = app.other_app().await;
    let owner = json!({ "email": "bob@example.com", "firstName": "B", "lastName": "B" });
    let made = foreign.post("/account/tenant", json!({ "owner": owner, "muteNotifications": true })).await.expect(200);
    let members = foreign.in_workspace(made.id("/id")).get(USERS).await.expect(200);
    assert_ne!(members.at("/0/userId"), first["userId"]);
}

async fn a_second_membership_is_a_conflict(app: TestApp) {
    let acme = app.workspace("acme").await;
    acme.add("bob@example.com", "MEMBER").await;
    let again = json!({ "username": "BOB@example.com", "role": "ADMIN" });
    acme.key().post(USERS, again).await.error(409, "MEMBER_EXISTS");
    assert_eq!(acme.key().get(USERS).await.json().as_array().map(Vec::len), Some(2));
    app.drain().await;
    assert!(app.mails().is_empty());
}

async fn each_wrong_field_of_a_new_member_is_named(app: TestApp) {
    let acme = app.workspace("acme").await;
    let post = async |body: Value| acme.key().post(USERS, body).await;
    post(json!({})).await.refuses(&["username"]);
    post(json!({ "username": "bob", "role": " " })).await.refuses(&["username", "role"]);
    post(json!({ "username": "bob@example.com", "role": "NONESUCH" })).await.refuses(&["role"]);
    post(json!({ "username": "bob@example.com", "firstName": 1 })).await.refuses(&["firstName"]);
    assert_eq!(acme.key().get(USERS).await.json().as_array().map(Vec::len), Some(1));
}

async fn either_id_finds_a_member_within_the_workspace_only(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let by = |id: &Value| format!("{USERS}/{}", id.as_str().expect("an id"));
    assert_eq!(acme.key().get(&by(&bob["userId"])).await.expect(200).json(), bob);
    for id in [&bob["id"], &bob["userId"]] {
        other.key().get(&by(id)).await.error(404, "NOT_FOUND");
        other.key().put(&by(id), json!({ "enabled": false })).await.error(404, "NOT_FOUND");
        other.key().delete(&by(id)).await.error(404, "NOT_FOUND");
        for (method, action) in [
            (Method::POST, "password"),
            (Method::GET, "passwordLink"),
            (Method::GET, "associations"),
            (Method::DELETE, "sessions"),
        ] {
            let path = format!("{}/{action}", by(id));
            other.key().call(method, &path, None).await.error(404, "NOT_FOUND");
        }
    }
    acme.key().get(&format!("{USERS}/nonesuch")).await.error(404, "NOT_FOUND");
    app.key().get(USERS).await.error(400, "MISSING_HEADER");
}

async fn associations_are_the_persons_workspaces(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let bob = acme.add("bob@example.com", "ADMIN").await;
    other.add("bob@example.com", "MEMBER").await;
    let path = format!("{}/associations", acme.path_of(&bob));
    let in_acme = json!({ "tenantId": acme.id, "tenantName": "acme", "role": "ADMIN" });
    let in_other = json!({ "tenantId": other.id, "tenantName": "other", "role": "MEMBER" });
    assert_eq!(acme.key().get(&path).await.expect(200).json(), json!([in_other, in_acme]));
    // A token of one workspace learns nothing of another.
    let token = acme.token(&["USER_READ"]).await;
    assert_eq!(token.get(&path).await.expect(200).json(), json!([in_acme]));
}

async fn an_update_changes_what_it_names(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let path = acme.path_of(&bob);
    assert_eq!(acme.key().put(&path, json!({})).await.expect(200).json(), bob);
    let body = json!({
        "role": "ADMIN", "enabled": false, "teams": ["a", "b"], "firstName": "Bob", "lastName": "Builder",
        "onboarded": true, "consentsToPrivacyPolicy": true, "phoneNumber": "+4930123456", "email": "x", "lastSeen": 1,
    });
    let changed = acme.key().put(&path, body).await.expect(200);
    let mut expected = bob.clone();
    for (member, value) in [
        ("role", json!("ADMIN")),
        ("enabled", json!(false)),
        ("teams", json!(["a", "b"])),
        ("firstName", json!("Bob")),
        ("lastName", json!("Builder")),
        ("fullName", json!("Bob Builder")),
        ("onboarded", json!(true)),
        ("consentsToPrivacyPolicy", json!(true)),
        ("phoneNumber", json!("+4930123456")),
    ] {
        expected[member] = value;
    }
    assert_eq!(changed.json(), expected);
    let cleared = json!({ "teams": null, "firstName": null, "lastName": null, "phoneNumber": null });
    let cleared = acme.key().put(&path, cleared).await.expect(200);
    assert_eq!((cleared.at("/teams"), cleared.at("/fullName")), (json!([]), json!("")));
    assert_eq!((cleared.at("/phoneNumber"), cleared.at("/role")), (json!(null), json!("ADMIN")));
    assert_eq!(acme.key().get(&path).await.expect(200).json(), cleared.json());
}

async fn names_belong_to_the_person(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let elsewhere = other.add("bob@example.com", "MEMBER").await;
    let body = json!({ "firstName": "Bob", "enabled": false });
    acme.key().put(&acme.path_of(&bob), body).await.expect(200);
    let seen = other.key().get(&other.path_of(&elsewhere)).await.expect(200);
    assert_eq!((seen.at("/firstName"), seen.at("/enabled")), (json!("Bob"), json!(true)));
}

async fn each_wrong_field_of_an_update_is_named(app: TestApp) {
    let acme = app.workspace("acme").await;
    let path = acme.path_of(&acme.add("bob@example.com", "MEMBER").await);
    let put = async |body: Value| acme.key().put(&path, body).await;
    put(json!({ "role": "", "teams": ["a", " "], "phoneNumber": "12" })).await.refuses(&[
        "role",
        "teams[1]",
        "phoneNumber",
    ]);
    put(json!({ "teams": vec!["a"; 1_001] })).await.refuses(&["teams"]);
    put(json!({ "role": "NONESUCH" })).await.refuses(&["role"]);
    put(json!({ "enabled": null })).await.refuses(&["enabled"]);
}

async fn the_last_enabled_owner_stays(app: TestApp) {
    let acme = app.workspace("acme").await;
    let owner = acme.path_of(&acme.owner);
    let second = acme.add("bob@example.com", "OWNER").await;
    let second = acme.path_of(&second);
    acme.key().put(&second, json!({ "enabled": false })).await.expect(200);
    for change in [json!({ "enabled": false }), json!({ "role": "ADMIN" })] {
        acme.key().put(&owner, change).await.error(409, "LAST_OWNER");
    }
    acme.key().delete(&owner).await.error(409, "LAST_OWNER");
    // Everything else about them may change, and once there is another one, so may this.
    acme.key().put(&owner, json!({ "teams": ["board"], "role": "OWNER" })).await.expect(200);
    acme.key().put(&second, json!({ "enabled": true })).await.expect(200);
    acme.key().delete(&owner).await.expect(200);
    acme.key().delete(&second).await.error(409, "LAST_OWNER");
}

async fn a_password_reset_is_mailed(app: TestApp) {
    let acme = app.workspace("acme").await;
    let path = format!("{}/password", acme.path_of(&acme.owner));
    for _ in 0..4 {
        let answer = acme.key().call(Method::POST, &path, None).await.expect(200);
        assert!(answer.bytes().is_empty());
    }
    app.drain().await;
    let mails = app.mails();
    assert_eq!((mails.len(), mails[3].to.as_str()), (4, "owner@acme.example"));
    let purpose = tenancy::links::LinkPurpose::PasswordReset;
    let person = acme.owner["userId"].as_str().and_then(|id| id.parse().ok());
    // The last three work.
    assert!(used(&app, purpose, token_of(&mails[0].links()[0])).await.is_err());
    assert_eq!(used(&app, purpose, token_of(&mails[1].links()[0])).await, Ok(person));
}

async fn a_reset_link_can_be_had_without_a_mail(app: TestApp) {
    let acme = app.workspace("acme").await;
    let path = format!("{}/passwordLink", acme.path_of(&acme.owner));
    let link = acme.key().get(&path).await.expect(200).json();
    let token = token_of(link.as_str().expect("a JSON string"));
    assert!(used(&app, tenancy::links::LinkPurpose::PasswordReset, token).await.is_ok());
    acme.token(&["USER_READ"]).await.get(&path).await.error(403, "MISSING_PRIVILEGE");
    app.drain().await;
    assert!(app.mails().is_empty());
}

async fn a_removed_member_is_out_at_once(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "ADMIN").await;
    let caller = app.user(&bob);
    caller.get("/account/tenant").await.expect(200);
    let answer = acme.key().delete(&acme.path_of(&bob)).await.expect(200);
    assert!(answer.bytes().is_empty());
    caller.get("/account/tenant").await.error(401, "INVALID_CREDENTIAL");
    acme.key().get(&acme.path_of(&bob)).await.error(404, "NOT_FOUND");
    acme.key().delete(&acme.path_of(&bob)).await.error(404, "NOT_FOUND");
}

async fn people_who_belong_nowhere_else_are_gone(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let elsewhere = other.add("bob@example.com", "MEMBER").await;
    acme.key().delete(&acme.path_of(&bob)).await.expect(200);
    let back = acme.add("bob@example.com", "MEMBER").await;
    assert_eq!(back["userId"], bob["userId"], "still a person of the other workspace");
    acme.key().delete(&acme.path_of(&back)).await.expect(200);
    other.key().delete(&other.path_of(&elsewhere)).await.expect(200);
    let anew = acme.add("bob@example.com", "MEMBER").await;
    assert_ne!(anew["userId"], bob["userId"], "forgotten, and made anew");
}

async fn sessions_end_everywhere(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let elsewhere = other.add("bob@example.com", "MEMBER").await;
    let (here, there) = (app.user(&bob), app.user(&elsewhere));
    app.advance(Duration::from_secs(5)).await;
    let path = format!("{}/sessions", acme.path_of(&bob));
    let answer = acme.key().delete(&path).await.expect(200);
    assert_eq!(answer.json(), json!({ "success": true }));
    for caller in [here, there] {
        caller.get("/account/tenant").await.error(401, "INVALID_CREDENTIAL");
    }
    app.user(&bob).get("/account/tenant").await.expect(200);
}

async fn a_list_is_newest_first_and_has_pages(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut newest_first = vec![acme.owner.clone()];
    for name in ["a", "b"] {
        newest_first.insert(0, acme.add(&format!("{name}@example.com"), "MEMBER").await);
    }
    for (query, expected) in [("", 0..3), ("?limit=2", 0..2), ("?limit=2&offset=1", 1..3)] {
        let listed = acme.key().get(&format!("{USERS}{query}")).await.expect(200);
        assert_eq!(listed.json(), json!(newest_first[expected]), "{query}");
    }
}

async fn privileges_are_asked_for(app: TestApp) {
    let acme = app.workspace("acme").await;
    let path = acme.path_of(&acme.owner);
    let (reader, writer) = (acme.token(&["USER_READ"]).await, acme.token(&["USER_WRITE"]).await);
    for read in [USERS.to_owned(), path.clone(), format!("{path}/associations")] {
        reader.get(&read).await.expect(200);
        writer.get(&read).await.error(403, "MISSING_PRIVILEGE");
    }
    let body = json!({ "username": "eve@example.com" });
    reader.post(USERS, body.clone()).await.error(403, "MISSING_PRIVILEGE");
    writer.post(USERS, body).await.expect(201);
    let bob = acme.path_of(&acme.add("bob@example.com", "MEMBER").await);
    for (method, path) in [
        (Method::PUT, bob.clone()),
        (Method::POST, format!("{bob}/password")),
        (Method::DELETE, format!("{bob}/sessions")),
        (Method::DELETE, bob),
    ] {
        let body = (method == Method::PUT).then(|| json!({ "onboarded": true }));
        reader.call(method.clone(), &path, body.clone()).await.error(403, "MISSING_PRIVILEGE");
        writer.call(method, &path, body).await.expect(200);
    }
}

async fn changes_are_told(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let path = acme.path_of(&bob);
    acme.key().put(&path, json!({ "role": "ADMIN" })).await.expect(200);
    acme.key().put(&path, json!({ "role": "ADMIN" })).await.expect(200);
    acme.key().delete(&path).await.expect(200);
    let data = |role: &str| {
        json!({
            "workspaceId": acme.id, "tenantUserId": bob["id"], "userId": bob["userId"], "email": "bob@example.com",
            "role": role, "enabled": true,
        })
    };
    let told = testkit::facts::told(&app, "tenant_user.").await;
    assert_eq!(told[0].1["role"], "OWNER", "the owner joined with the workspace");
    assert_eq!(
        told[1..],
        [
            ("tenant_user.created".to_owned(), data("MEMBER")),
            ("tenant_user.updated".to_owned(), data("ADMIN")),
            ("tenant_user.deleted".to_owned(), data("ADMIN")),
        ]
    );
}
