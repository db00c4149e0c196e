//! How far a directory reaches: its workspace, and nothing of a person beyond it.

use serde_json::{Value, json};
use testkit::{DirectoryCaller, IdentityProvider, TestApp, Workspace, on_both_engines};

on_both_engines!(
    only_a_scim_token_opens_scim,
    another_workspaces_resources_are_not_there,
    whether_an_address_is_known_elsewhere_cannot_be_told,
    a_domain_makes_members_and_tells_nothing_of_them,
    a_new_address_is_a_new_person_unless_the_domain_is_the_workspaces,
    nobody_becomes_owner_or_more_than_the_maker_could_give,
    somebody_who_belongs_elsewhere_is_not_renamed,
    a_password_cannot_be_set,
);

const DOMAIN: &str = "corp.example";

/// Makes the workspace sign in through a connection that has a domain.
async fn connect(app: &TestApp, acme: &Workspace) {
    let idp = IdentityProvider::new("https://idp.example/");
    let body = json!({
        "name": "Corp", "loginUrl": "https://idp.example/sso", "certificate": idp.certificate,
        "idpEntityId": idp.entity_id, "domains": [DOMAIN],
    });
    let id = app.key().post("/account/federation/connection", body).await.expect(201).text("/id");
    let changes = json!({ "federationConnection": id });
    app.key().put(&format!("/account/tenant/{}", acme.id), changes).await.expect(200);
}

async fn seen(acme: &Workspace, id: &str) -> Value {
    acme.key().get(&format!("/account/tenant/user/{id}")).await.expect(200).json()
}

async fn only_a_scim_token_opens_scim(app: TestApp) {
    let acme = app.workspace("acme").await;
    let token = acme.token(&["TENANT_WRITE", "USER_WRITE"]).await.header_sent("x-api-key");
    let key = app.key().header_sent("x-api-key");
    let user = acme.owner().header_sent("authorization");
    for bearer in [
        "x",
        &token,
        &key,
        testkit::OPERATOR_KEY,
        user.trim_start_matches("Bearer "),
        &format!("scim_{}", "x".repeat(43)),
    ] {
        let caller = app.anon().header("authorization", &format!("Bearer {bearer}"));
        caller.get("/scim/v2/Users").await.scim_error(401, "");
    }
    app.anon().get("/scim/v2/Users").await.scim_error(401, "");
    acme.key().get("/scim/v2/Users").await.scim_error(401, "");
}

async fn another_workspaces_resources_are_not_there(app: TestApp) {
    let (acme, bolt) = (app.workspace("acme").await, app.workspace("bolt").await);
    let (directory, theirs) = (acme.directory().await, bolt.directory().await);
    let (user, group) = (theirs.provision("bob@example.com").await, theirs.group("Poets", &[]).await);
    let owner = bolt.owner["id"].as_str().expect("an id");
    for path in [format!("/Users/{user}"), format!("/Users/{owner}"), format!("/Groups/{group}")] {
        directory.get(&path).await.scim_error(404, "");
        let body = json!({ "userName": "x@example.com", "displayName": "x" });
        directory.put(&path, body).await.scim_error(404, "");
        directory
            .patch(&path, json!([{ "op": "replace", "path": "externalId", "value": "x" }]))
            .await
            .scim_error(404, "");
        directory.delete(&path).await.scim_error(404, "");
        theirs.get(&path).await.expect(200);
    }
    acme.key().put(&format!("/account/scim/group/{group}"), json!({ "role": null })).await.error(404, "NOT_FOUND");
    assert_eq!(directory.find(&format!("id eq \"{user}\"")).await, Vec::<String>::new());
    assert_eq!(directory.find("userName eq \"bob@example.com\"").await, Vec::<String>::new());
}

/// What a directory is answered when it provisions, renames to and looks for an address, without ids and versions.
async fn answers(directory: &DirectoryCaller, acme: &Workspace, name: &str, address: &str) -> Vec<String> {
    let made = directory.post("/Users", json!({ "userName": address, "name": { "givenName": "X" } })).await;
    let id = made.text("/id");
    let found = directory.get(&format!("/Users/{id}")).await;
    let of_workspace = seen(acme, &id).await;
    directory.delete(&format!("/Users/{id}")).await.expect(204);
    // A member of the workspace's own gets the address instead.
    let own = acme.add(&format!("{name}@own.example"), "MEMBER").await["id"].as_str().expect("an id").to_owned();
    let rename = json!([{ "op": "replace", "path": "userName", "value": address }]);
    let renamed = directory.patch(&format!("/Users/{own}"), rename).await;
    let after = seen(acme, &own).await;
    let plain = |text: String| text.replace(address, "ADDRESS").replace(&id, "ID").replace(&own, "ID");
    let body = |mut value: Value| {
        value["meta"] = Value::Null;
        for name in ["createdAt", "tenant"] {
            value[name] = Value::Null;
        }
        plain(value.to_string())
    };
    vec![
        made.status().to_string(),
        body(made.json()),
        body(found.json()),
        body(of_workspace),
        renamed.status().to_string(),
        body(renamed.json()),
        body(after),
    ]
}

async fn whether_an_address_is_known_elsewhere_cannot_be_told(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    app.owner("known@example.com").await;
    let known = answers(&directory, &acme, "one", "known@example.com").await;
    let unknown = answers(&directory, &acme, "two", "nobody@example.com").await;
    assert_eq!(known, unknown);
}

async fn a_domain_makes_members_and_tells_nothing_of_them(app: TestApp) {
    let acme = app.workspace("acme").await;
    connect(&app, &acme).await;
    let ada = app.owner(&format!("ada@{DOMAIN}")).await;
    let directory = acme.directory().await;
    let body = json!({ "userName": format!("ada@{DOMAIN}"), "name": { "givenName": "Mallory" } });
    let known = directory.post("/Users", body.clone()).await.expect(201);
    assert_eq!(seen(&acme, &known.text("/id")).await["status"], "active");
    assert_eq!(known.at("/name"), Value::Null, "their names are not this workspace's business");
    let path = format!("/Users/{}", known.text("/id"));
    assert_eq!(directory.put(&path, body).await.expect(200).at("/name"), Value::Null);
    let own = app.key().in_workspace(ada.tenant).get("/account/tenant/user").await.expect(200);
    assert_eq!((own.text("/0/firstName"), own.at("/0/email")), ("Ada".to_owned(), json!(ada.email)));
    // Their own login is as it was: it ends neither now nor with the membership.
    let signed_in = ada.signed_in().await;
    directory.patch(&path, json!([{ "op": "replace", "path": "active", "value": false }])).await.expect(200);
    directory.delete(&path).await.expect(204);
    signed_in.get("/account/me/identities").await.expect(200);
    let new =
        directory.post("/Users", json!({ "userName": format!("bob@{DOMAIN}"), "name": { "givenName": "Bob" } })).await;
    assert_eq!(new.text("/name/givenName"), "Bob");
    assert_eq!(seen(&acme, &new.text("/id")).await["status"], "active");
    app.drain().await;
    assert!(app.mails().iter().all(|mail| !mail.to.contains("bob@")), "nobody is mailed");
}

async fn a_new_address_is_a_new_person_unless_the_domain_is_the_workspaces(app: TestApp) {
    let acme = app.workspace("acme").await;
    connect(&app, &acme).await;
    let directory = acme.directory().await;
    let bob = app.member(&format!("bob@{DOMAIN}"), acme.id, "MEMBER").await;
    let (signed_in, path) = (bob.signed_in().await, format!("/Users/{}", bob.member));
    let to = |address: &str| json!([{ "op": "replace", "path": "userName", "value": address }]);
    directory.patch(&path, to(&format!("rob@{DOMAIN}"))).await.expect(200);
    let renamed = seen(&acme, &bob.member.to_string()).await;
    assert_eq!(
        (renamed["status"].as_str(), renamed["userId"].as_str()),
        (Some("active"), Some(&*bob.user.to_string()))
    );
    signed_in.get("/account/me/identities").await.error(401, "INVALID_CREDENTIAL");
    let mut credentials = bob.credentials();
    credentials["username"] = json!(format!("rob@{DOMAIN}"));
    app.page().post("/auth/auth/authenticate", credentials).await.expect(401);
    // Outside of the domain somebody else may have the address.
    directory.patch(&path, to("rob@elsewhere.example")).await.expect(200);
    let invited = seen(&acme, &bob.member.to_string()).await;
    assert_eq!((invited["status"].as_str(), &invited["userId"]), (Some("invited"), &Value::Null));
    app.drain().await;
    assert_eq!(directory.get(&path).await.expect(200).text("/userName"), "rob@elsewhere.example");
    let ada = app.owner(&format!("ada@{DOMAIN}")).await;
    let cy = directory.provision(&format!("cy@{DOMAIN}")).await;
    directory.patch(&format!("/Users/{cy}"), to(&ada.email)).await.scim_error(409, "uniqueness");
}

async fn nobody_becomes_owner_or_more_than_the_maker_could_give(app: TestApp) {
    let acme = app.workspace("acme").await;
    let weak = DirectoryCaller::made_by(&acme.token(&["TENANT_WRITE"]).await).await;
    for (directory, role) in [(&acme.directory().await, "OWNER"), (&weak, "ADMIN"), (&weak, "OWNER")] {
        let body = json!({ "userName": "bob@example.com", "roles": [{ "value": role }] });
        directory.post("/Users", body).await.scim_error(403, "");
        let id = directory.provision("bob@example.com").await;
        let path = format!("/Users/{id}");
        directory.patch(&path, json!([{ "op": "add", "path": "roles", "value": role }])).await.scim_error(403, "");
        directory.put(&path, json!({ "userName": "bob@example.com", "roles": [role] })).await.scim_error(403, "");
        assert_eq!(directory.get(&path).await.expect(200).text("/roles/0/value"), "MEMBER");
        directory.delete(&path).await.expect(204);
    }
    // Another address would hand the role to somebody else.
    acme.add("second@acme.example", "OWNER").await;
    let to = json!([{ "op": "replace", "path": "userName", "value": "mallory@example.com" }]);
    let owner = format!("/Users/{}", acme.owner["id"].as_str().expect("an id"));
    acme.directory().await.patch(&owner, to.clone()).await.scim_error(403, "");
    let admin = acme.add("admin@acme.example", "ADMIN").await["id"].as_str().expect("an id").to_owned();
    weak.patch(&format!("/Users/{admin}"), to.clone()).await.scim_error(403, "");
    acme.directory().await.patch(&format!("/Users/{admin}"), to).await.expect(200);
}

async fn somebody_who_belongs_elsewhere_is_not_renamed(app: TestApp) {
    let acme = app.workspace("acme").await;
    let ada = app.owner("ada@example.com").await;
    acme.add("ada@example.com", "MEMBER").await;
    let directory = acme.directory().await;
    let id =
        directory.get("/Users?filter=userName%20eq%20%22ada@example.com%22").await.expect(200).text("/Resources/0/id");
    let path = format!("/Users/{id}");
    let to = json!([{ "op": "replace", "path": "userName", "value": "mallory@example.com" }]);
    directory.patch(&path, to).await.scim_error(400, "mutability");
    let body = json!({ "userName": "ada@example.com", "name": { "givenName": "Mallory", "familyName": "M" } });
    let kept = directory.put(&path, body).await.expect(200);
    assert_eq!(kept.text("/name/givenName"), "Ada", "their names are answered as they are");
    ada.sign_in().await;
}

async fn a_password_cannot_be_set(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = app.member("bob@example.com", acme.id, "MEMBER").await;
    let (directory, path) = (acme.directory().await, format!("/Users/{}", bob.member));
    let body = json!({ "userName": "bob@example.com", "password": "another harbour lamp" });
    assert!(!directory.put(&path, body).await.expect(200).body().contains("password"));
    directory
        .patch(&path, json!([{ "op": "replace", "path": "password", "value": "another harbour lamp" }]))
        .await
        .expect(200);
    bob.sign_in().await;
    directory.get("/Users?filter=password%20pr").await.scim_error(400, "invalidFilter");
}
