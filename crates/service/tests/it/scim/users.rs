//! `/scim/v2/Users`.

use serde_json::{Value, json};
use testkit::{DirectoryCaller, TestApp, Workspace, facts::told, on_both_engines};

on_both_engines!(
    a_user_is_provisioned_without_a_mail,
    an_address_is_a_user_once,
    users_are_found_sorted_and_paged,
    attributes_are_chosen,
    a_replacement_keeps_what_it_does_not_name,
    a_patch_changes_what_it_names,
    versions_hold,
    whoever_is_deactivated_is_out_and_stays_out,
    an_invitation_that_is_deactivated_cannot_be_accepted,
    whoever_is_deleted_is_out,
    the_last_owner_stays,
    what_cannot_be_read_is_refused_in_scims_form,
    changes_are_told_in_the_tokens_name,
);

async fn listed(acme: &Workspace, email: &str) -> Value {
    let users = acme.key().get("/account/tenant/user").await.expect(200).json();
    let found = users.as_array().into_iter().flatten().find(|user| user["email"] == email);
    found.cloned().unwrap_or_default()
}

fn user(id: &str) -> String {
    format!("/Users/{id}")
}

async fn a_user_is_provisioned_without_a_mail(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let body = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "Bob@Example.com", "externalId": "00u1",
        "name": { "givenName": "Bob", "familyName": "Byron" }, "emails": [{ "value": "other@example.com" }],
        "password": "violet harbour lamp", "title": "Poet",
    });
    let made = directory.post("/Users", body).await.expect(201);
    let mut shown = made.json();
    assert_eq!(shown["meta"]["resourceType"], "User");
    shown["meta"] = Value::Null;
    assert_eq!(
        shown,
        json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "id": made.text("/id"), "externalId": "00u1",
            "userName": "Bob@Example.com", "active": true, "meta": null,
            "name": { "familyName": "Byron", "givenName": "Bob" },
            "roles": [{ "value": "MEMBER", "primary": true }],
            "emails": [{ "value": "Bob@Example.com", "type": "work", "primary": true }],
        })
    );
    assert_eq!(made.header("location"), made.at("/meta/location").as_str());
    assert_eq!(made.header("etag"), made.at("/meta/version").as_str());
    assert_eq!(directory.get(&user(&made.text("/id"))).await.expect(200).json(), made.json());
    let bob = listed(&acme, "Bob@Example.com").await;
    assert_eq!((bob["status"].as_str(), bob["id"].as_str()), (Some("invited"), Some(&*made.text("/id"))));
    app.drain().await;
    assert!(app.mails().is_empty());
}

async fn an_address_is_a_user_once(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let bob = directory.provision("bob@example.com").await;
    directory.post("/Users", json!({ "userName": "BOB@example.com" })).await.scim_error(409, "uniqueness");
    directory.post("/Users", json!({ "userName": "owner@acme.example" })).await.scim_error(409, "uniqueness");
    let taken = json!([{ "op": "replace", "path": "userName", "value": "owner@acme.example" }]);
    directory.patch(&user(&bob), taken).await.scim_error(409, "uniqueness");
}

async fn users_are_found_sorted_and_paged(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    for (name, external) in [("cy", "3"), ("ada", "1"), ("bob", "2")] {
        let body = json!({
            "userName": format!("{name}@example.com"), "externalId": external, "active": name != "bob",
            "name": { "givenName": name },
        });
        directory.post("/Users", body).await.expect(201);
    }
    let example = |names: &[&str]| names.iter().map(|name| format!("{name}@example.com")).collect::<Vec<_>>();
    for (filter, found) in [
        (r#"userName eq "ADA@example.com""#, vec!["ada"]),
        (r#"userName eq "nobody@example.com""#, vec![]),
        (r#"externalId eq "2""#, vec!["bob"]),
        ("userName ew \"example.com\" and active eq true", vec!["cy", "ada"]),
        (r#"not (active eq true) or name.givenName sw "c""#, vec!["cy", "bob"]),
        (r#"emails[type eq "work" and value co "bob@"]"#, vec!["bob"]),
        (r#"emails.value co "ada@" and roles.value eq "MEMBER" and groups eq null"#, vec!["ada"]),
        (r#"id pr and meta.created gt "2020-01-01T00:00:00Z" and externalId pr"#, vec!["cy", "ada", "bob"]),
    ] {
        assert_eq!(directory.find(filter).await, example(&found), "{filter}");
    }
    let page =
        directory.get("/Users?sortBy=name.givenName&sortOrder=descending&startIndex=2&count=2").await.expect(200);
    assert_eq!(page.at("/totalResults"), 4);
    assert_eq!((page.at("/startIndex"), page.at("/itemsPerPage")), (json!(2), json!(2)));
    assert_eq!((page.text("/Resources/0/userName"), page.text("/Resources/1/userName")), {
        ("cy@example.com".to_owned(), "bob@example.com".to_owned())
    });
    let none = directory.get("/Users?count=0").await.expect(200);
    assert_eq!((none.at("/totalResults"), none.at("/Resources")), (json!(4), json!([])));
    let rest = directory.get("/Users?startIndex=4&count=-5").await.expect(200);
    assert_eq!(rest.at("/itemsPerPage"), 0);
    let rest = directory.get("/Users?startIndex=4").await.expect(200);
    assert_eq!((rest.at("/totalResults"), rest.at("/itemsPerPage")), (json!(4), json!(1)));
    let found = directory.get("/Users?filter=externalId%20pr&startIndex=1&count=2").await.expect(200);
    assert_eq!((found.at("/totalResults"), found.at("/itemsPerPage")), (json!(3), json!(2)));
    assert_eq!(found.at("/Resources").as_array().map(Vec::len), Some(2));
    let both = directory.post("/.search", json!({ "filter": "meta.resourceType eq \"User\"" })).await.expect(200);
    assert_eq!(both.at("/totalResults"), 4);
}

async fn attributes_are_chosen(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let bob = directory.provision("bob@example.com").await;
    let only = directory.get(&format!("/Users/{bob}?attributes=active,roles.value")).await.expect(200).json();
    let schemas = json!(["urn:ietf:params:scim:schemas:core:2.0:User"]);
    assert_eq!(
        only,
        json!({
            "schemas": schemas, "id": bob, "userName": "bob@example.com", "active": true, "roles": [{ "value": "MEMBER" }],
        })
    );
    let rest = directory.get(&format!("/Users/{bob}?excludedAttributes=emails,roles,meta")).await.expect(200).json();
    assert_eq!(rest, json!({ "schemas": schemas, "id": bob, "userName": "bob@example.com", "active": true }));
    let both = format!("/Users/{bob}?attributes=active&excludedAttributes=id");
    directory.get(&both).await.scim_error(400, "invalidValue");
}

async fn a_replacement_keeps_what_it_does_not_name(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let body = json!({ "userName": "bob@example.com", "externalId": "1", "roles": [{ "value": "ADMIN" }],
        "name": { "givenName": "Bob", "familyName": "Byron" }, "active": false });
    let bob = directory.post("/Users", body).await.expect(201).text("/id");
    let replaced = directory.put(&user(&bob), json!({ "USERNAME": "bob@example.com", "id": "x" })).await.expect(200);
    assert_eq!((replaced.text("/id"), replaced.at("/externalId")), (bob.clone(), json!(null)));
    assert_eq!((replaced.at("/active"), replaced.text("/roles/0/value")), (json!(false), "ADMIN".to_owned()));
    assert_eq!(replaced.text("/name/familyName"), "Byron");
    let body =
        json!({ "userName": "bob@example.com", "name": { "givenName": "Rob" }, "active": true, "roles": ["MEMBER"] });
    let replaced = directory.put(&user(&bob), body).await.expect(200);
    assert_eq!(replaced.at("/name"), json!({ "givenName": "Rob" }));
    assert_eq!((replaced.at("/active"), replaced.text("/roles/0/value")), (json!(true), "MEMBER".to_owned()));
    directory.put(&user(&bob), json!({})).await.scim_error(400, "invalidValue");
}

async fn a_patch_changes_what_it_names(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let bob = directory.provision("bob@example.com").await;
    let operations = json!([
        { "op": "Add", "path": "name.familyName", "value": "Byron" },
        { "op": "Replace", "path": "active", "value": "False" },
        { "op": "add", "path": "roles[primary eq \"True\"].value", "value": "ADMIN" },
        { "op": "replace", "value": { "externalId": "7", "displayName": "ignored" } },
        { "op": "replace", "path": "urn:ietf:params:scim:schemas:core:2.0:User:userName", "value": "rob@example.com" },
    ]);
    let patched = directory.patch(&user(&bob), operations).await.expect(200);
    assert_eq!((patched.text("/userName"), patched.text("/externalId")), ("rob@example.com".into(), "7".into()));
    assert_eq!((patched.text("/name/familyName"), patched.at("/active")), ("Byron".into(), json!(false)));
    assert_eq!(patched.at("/roles"), json!([{ "value": "ADMIN", "primary": true }]));
    let operations =
        json!([{ "op": "remove", "path": "name" }, { "op": "remove", "path": "roles[value eq \"ADMIN\"]" }]);
    let patched = directory.patch(&user(&bob), operations).await.expect(200);
    assert_eq!((patched.at("/name"), patched.text("/roles/0/value")), (json!(null), "MEMBER".into()));
    // One wrong operation undoes them all.
    let operations =
        json!([{ "op": "add", "path": "active", "value": true }, { "op": "add", "path": "id", "value": "x" }]);
    directory.patch(&user(&bob), operations).await.scim_error(400, "mutability");
    assert_eq!(directory.get(&user(&bob)).await.expect(200).at("/active"), false);
}

async fn versions_hold(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let bob = user(&directory.provision("bob@example.com").await);
    let version = directory.get(&bob).await.expect(200).header("etag").expect("a version").to_owned();
    let with = |name: &str| DirectoryCaller { caller: directory.caller.header(name, &version), ..directory.clone() };
    with("if-none-match").get(&bob).await.expect(304);
    let changed = with("if-match").patch(&bob, json!([{ "op": "add", "path": "externalId", "value": "1" }])).await;
    assert_ne!(changed.expect(200).header("etag"), Some(version.as_str()));
    with("if-none-match").get(&bob).await.expect(200);
    with("if-match").put(&bob, json!({ "userName": "bob@example.com" })).await.scim_error(412, "");
    with("if-match").delete(&bob).await.scim_error(412, "");
    let any = DirectoryCaller { caller: directory.caller.header("if-match", "*"), ..directory.clone() };
    any.delete(&bob).await.expect(204);
}

async fn whoever_is_deactivated_is_out_and_stays_out(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = app.member("bob@example.com", acme.id, "ADMIN").await;
    let elsewhere = app.member("cy@example.com", acme.id, "ADMIN").await;
    app.workspace("bolt").await.add("cy@example.com", "MEMBER").await;
    let directory = acme.directory().await;
    for person in [&bob, &elsewhere] {
        let (tokens, signed_in) = (person.sign_in().await, person.signed_in().await);
        let body = json!({ "name": "t", "privileges": ["TENANT_READ"] });
        let made = signed_in.post("/account/api-token/me/app", body).await.expect(201).text("/token");
        let api_token = app.anon().with_api_key(app.app_id(), &made);
        let of_workspace = "/account/scim/token";
        api_token.get(of_workspace).await.expect(200);
        let path = user(&person.member.to_string());
        let off = json!([{ "op": "replace", "path": "active", "value": false }]);
        assert_eq!(directory.patch(&path, off).await.expect(200).at("/active"), false);
        let refused = || signed_in.get("/account/me/identities");
        refused().await.error(401, "INVALID_CREDENTIAL");
        api_token.get(of_workspace).await.error(401, "INVALID_CREDENTIAL");
        // Nothing of it counts again when the membership does.
        let on = json!([{ "op": "replace", "path": "active", "value": true }]);
        directory.patch(&path, on).await.expect(200);
        refused().await.error(401, "INVALID_CREDENTIAL");
        let refreshed = json!({
            "client_id": app.app_id(), "grant_type": "refresh_token", "refresh_token": tokens.refresh,
        });
        let answer = app.anon().post("/auth/token", refreshed).await;
        assert!(matches!(answer.status(), 400 | 401), "{answer:?}");
        api_token.get(of_workspace).await.error(401, "INVALID_CREDENTIAL");
        person.sign_in().await;
    }
}

async fn an_invitation_that_is_deactivated_cannot_be_accepted(app: TestApp) {
    let acme = app.workspace("acme").await;
    let inviter = acme.token(&["USER_WRITE", "USER_READ"]).await;
    let invited = inviter.post("/account/tenant/user", json!({ "username": "bob@example.com" })).await.expect(201);
    app.drain().await;
    let link = json!({ "token": app.mailed_token("bob@example.com"), "password": "violet harbour lamp" });
    let directory = acme.directory().await;
    let path = user(&invited.text("/id"));
    directory.patch(&path, json!([{ "op": "replace", "path": "active", "value": false }])).await.expect(200);
    app.anon().put("/auth/auth/password", link.clone()).await.expect(401);
    directory.patch(&path, json!([{ "op": "replace", "path": "active", "value": true }])).await.expect(200);
    directory
        .patch(&path, json!([{ "op": "replace", "path": "userName", "value": "rob@example.com" }]))
        .await
        .expect(200);
    app.anon().put("/auth/auth/password", link).await.expect(401);
}

async fn whoever_is_deleted_is_out(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = app.member("bob@example.com", acme.id, "MEMBER").await;
    let signed_in = bob.signed_in().await;
    let directory = acme.directory().await;
    let path = user(&bob.member.to_string());
    directory.delete(&path).await.expect(204);
    signed_in.get("/account/me/identities").await.error(401, "INVALID_CREDENTIAL");
    directory.get(&path).await.scim_error(404, "");
    directory.delete(&path).await.scim_error(404, "");
    assert_eq!(listed(&acme, "bob@example.com").await, Value::Null);
    let invited = user(&directory.provision("cy@example.com").await);
    directory.delete(&invited).await.expect(204);
    directory.get(&invited).await.scim_error(404, "");
}

async fn the_last_owner_stays(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let owner = user(acme.owner["id"].as_str().expect("an id"));
    directory.delete(&owner).await.scim_error(409, "");
    let off = json!([{ "op": "replace", "path": "active", "value": false }]);
    directory.patch(&owner, off.clone()).await.scim_error(409, "");
    let demoted = json!([{ "op": "replace", "path": "roles", "value": [{ "value": "MEMBER" }] }]);
    directory.patch(&owner, demoted).await.scim_error(409, "");
    acme.owner().get("/account/api-token/me/app").await.expect(200);
    acme.add("second@acme.example", "OWNER").await;
    directory.patch(&owner, off).await.expect(200);
}

async fn what_cannot_be_read_is_refused_in_scims_form(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    for (body, keyword) in [
        (json!({}), "invalidValue"),
        (json!({ "userName": "bob" }), "invalidValue"),
        (json!({ "userName": 7 }), "invalidValue"),
        (json!({ "userName": "bob@example.com", "roles": ["NOBODY"] }), "invalidValue"),
        (json!({ "userName": "bob@example.com", "roles": ["MEMBER", "ADMIN"] }), "invalidValue"),
        (json!({ "userName": "bob@example.com", "externalId": "a\u{0}" }), "invalidValue"),
        (json!({ "userName": "bob@example.com", "username": "rob@example.com" }), "invalidSyntax"),
    ] {
        directory.post("/Users", body).await.scim_error(400, keyword);
    }
    let as_kind = |kind: &str| directory.caller.header("content-type", kind);
    let (scim, text) = (as_kind("application/scim+json"), as_kind("text/plain"));
    let post = http::Method::POST;
    for (caller, body, status, keyword) in [
        (&scim, "{".to_owned(), 400, "invalidSyntax"),
        (&scim, "[]".to_owned(), 400, "invalidSyntax"),
        (&text, "{}".to_owned(), 415, ""),
        (&scim, " ".repeat(1024 * 1024 + 1), 413, ""),
    ] {
        caller.send(post.clone(), "/scim/v2/Users", body).await.scim_error(status, keyword);
    }
    for filter in ["userName", "shoeSize%20eq%20%2244%22", "active%20gt%20true", "userName%20eq%20%22%5Cu0000%22"] {
        directory.get(&format!("/Users?filter={filter}")).await.scim_error(400, "invalidFilter");
    }
    directory.get("/Users?sortBy=shoeSize").await.scim_error(400, "invalidValue");
    directory.get("/Users?count=many").await.scim_error(400, "invalidValue");
    directory.get(&user("x")).await.scim_error(404, "");
    directory.get("/Nothing").await.scim_error(404, "");
    directory.delete("/Users").await.scim_error(405, "");
    assert_eq!(directory.get("/Users").await.expect(200).at("/totalResults"), 1);
}

async fn changes_are_told_in_the_tokens_name(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let bob = user(&directory.provision("bob@example.com").await);
    directory.put(&bob, json!({ "userName": "bob@example.com", "active": false })).await.expect(200);
    directory.put(&bob, json!({ "userName": "bob@example.com", "active": false })).await.expect(200);
    directory.delete(&bob).await.expect(204);
    let facts = told(&app, "scim.user_changed").await;
    let changes: Vec<&Value> = facts.iter().map(|(_, fact)| &fact["change"]).collect();
    assert_eq!(changes, ["created", "updated", "deleted"], "nothing is told of what did not change");
    assert_eq!((&facts[1].1["userName"], &facts[1].1["active"]), (&json!("bob@example.com"), &json!(false)));
    app.drain().await;
    let query = format!("/event-log/audit?appId={}&action=tenantry.scim.user_changed", app.app_id());
    let trail = app.key().get(&query).await.expect(200);
    let entry = trail.body();
    assert!(entry.contains("\"scim\"") && entry.contains(&directory.token_id), "{entry}");
}
