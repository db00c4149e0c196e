//! The requests of the two commonest directories, in the order and the form in which they send them.

use serde_json::{Value, json};
use testkit::{DirectoryCaller, TestApp, on_both_engines};

on_both_engines!(entra_id_provisions_a_workspace, okta_provisions_a_workspace);

fn query(text: &str) -> String {
    text.replace(' ', "%20").replace('"', "%22").replace('[', "%5B").replace(']', "%5D")
}

async fn total(directory: &DirectoryCaller, path: &str) -> Value {
    directory.get(&query(path)).await.expect(200).at("/totalResults")
}

/// Entra ID looks a user up before each change, patches with capital verbs and texts for booleans, knows attributes by URN,
/// and reads groups without their members.
async fn entra_id_provisions_a_workspace(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    // "Test connection": somebody who cannot exist.
    let nobody = r#"/Users?filter=userName eq "5b5e1a0e-3f83-4a21-a3f4-8a1a37d5fa45""#;
    assert_eq!(total(&directory, nobody).await, 0);
    assert_eq!(total(&directory, r#"/Users?filter=userName eq "ada@corp.example""#).await, 0);
    let ada = json!({
        "schemas": [
            "urn:ietf:params:scim:schemas:core:2.0:User",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User",
        ],
        "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef", "userName": "ada@corp.example", "active": true,
        "displayName": "Ada Lovelace", "preferredLanguage": "en",
        "emails": [{ "primary": true, "type": "work", "value": "ada.lovelace@corp.example" }],
        "meta": { "resourceType": "User" },
        "name": { "formatted": "Ada Lovelace", "familyName": "Lovelace", "givenName": "Ada" },
        "roles": [],
        "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": { "department": "Engines", "manager": "x" },
    });
    let made = directory.post("/Users", ada).await.expect(201);
    let id = made.text("/id");
    assert_eq!((made.text("/name/familyName"), made.text("/emails/0/value")), {
        ("Lovelace".to_owned(), "ada@corp.example".to_owned())
    });
    let changed = json!([
        { "op": "Replace", "path": "displayName", "value": "Ada King" },
        { "op": "Replace", "path": "name.familyName", "value": "King" },
        { "op": "Replace", "path": r#"emails[type eq "work"].value"#, "value": "ada.king@corp.example" },
        { "op": "Add", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department", "value": "Math" },
        { "op": "Add", "path": r#"roles[primary eq "True"].value"#, "value": "ADMIN" },
        { "op": "Add", "path": r#"phoneNumbers[type eq "mobile"].value"#, "value": "+4930123456" },
    ]);
    let patched = directory.patch(&format!("/Users/{id}"), changed).await.expect(200);
    assert_eq!((patched.text("/name/familyName"), patched.text("/roles/0/value")), ("King".into(), "ADMIN".into()));
    let without_paths = json!([{ "op": "Replace", "value": { "name.givenName": "Augusta", "active": "True" } }]);
    let patched = directory.patch(&format!("/Users/{id}"), without_paths).await.expect(200);
    assert_eq!(patched.text("/name/givenName"), "Augusta");

    assert_eq!(total(&directory, r#"/Groups?excludedAttributes=members&filter=displayName eq "Math""#).await, 0);
    let body = json!({
        "schemas": [
            "urn:ietf:params:scim:schemas:core:2.0:Group",
            "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group",
        ],
        "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159", "displayName": "Math", "meta": { "resourceType": "Group" },
    });
    let group = directory.post("/Groups", body).await.expect(201).text("/id");
    let path = format!("/Groups/{group}");
    let shown = directory.get(&format!("{path}?excludedAttributes=members")).await.expect(200);
    assert_eq!(shown.text("/displayName"), "Math");
    let add = json!([{ "op": "Add", "path": "members", "value": [{ "$ref": null, "value": id }] }]);
    directory.patch(&path, add).await.expect(204);
    let held = format!(r#"/Groups?excludedAttributes=members&filter=id eq "{group}" and members eq "{id}""#);
    assert_eq!(total(&directory, &held).await, 1);
    directory
        .patch(&path, json!([{ "op": "Replace", "path": "displayName", "value": "Mathematics" }]))
        .await
        .expect(204);
    let remove = json!([{ "op": "Remove", "path": "members", "value": [{ "$ref": null, "value": id }] }]);
    directory.patch(&path, remove).await.expect(204);
    assert_eq!(total(&directory, &held).await, 0);
    directory.delete(&path).await.expect(204);

    // Unassigned first, deleted later.
    let off = json!([{ "op": "Replace", "path": "active", "value": "False" }]);
    assert_eq!(directory.patch(&format!("/Users/{id}"), off).await.expect(200).at("/active"), false);
    directory.delete(&format!("/Users/{id}")).await.expect(204);
    assert_eq!(total(&directory, r#"/Users?filter=userName eq "ada@corp.example""#).await, 0);
}

/// Okta replaces users as a whole, deactivates by a patch without a path, and replaces the members of groups.
async fn okta_provisions_a_workspace(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    assert_eq!(total(&directory, "/Users?startIndex=1&count=2").await, 1);
    let search = r#"/Users?filter=userName eq "ada@corp.example"&startIndex=1&count=100"#;
    let none = directory.get(&query(search)).await.expect(200);
    assert_eq!((none.at("/totalResults"), none.at("/Resources")), (json!(0), json!([])));
    let mut ada = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "ada@corp.example",
        "name": { "givenName": "Ada", "familyName": "Lovelace" },
        "emails": [{ "primary": true, "value": "ada@corp.example", "type": "work" }],
        "displayName": "Ada Lovelace", "locale": "en-US", "externalId": "00ujl29u0le5T6Aj10h7", "groups": [],
        "password": "1mz050nq", "active": true,
    });
    let made = directory.post("/Users", ada.clone()).await.expect(201);
    let id = made.text("/id");
    let path = format!("/Users/{id}");
    assert_eq!(directory.get(&path).await.expect(200).json(), made.json());
    ada["id"] = json!(id);
    ada["meta"] = made.at("/meta");
    ada["name"]["familyName"] = json!("King");
    let replaced = directory.put(&path, ada.clone()).await.expect(200);
    assert_eq!((replaced.text("/name/familyName"), replaced.text("/externalId")), {
        ("King".to_owned(), "00ujl29u0le5T6Aj10h7".to_owned())
    });
    let off = json!([{ "op": "replace", "value": { "active": false } }]);
    assert_eq!(directory.patch(&path, off).await.expect(200).at("/active"), false);
    assert_eq!(directory.put(&path, ada).await.expect(200).at("/active"), true);

    let body = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"], "displayName": "Math",
        "members": [{ "value": id, "display": "ada@corp.example" }],
    });
    let group = directory.post("/Groups", body).await.expect(201).text("/id");
    let path = format!("/Groups/{group}");
    let renamed = json!([{ "op": "replace", "value": { "id": group, "displayName": "Mathematics" } }]);
    directory.patch(&path, renamed).await.expect(204);
    let moved = json!([
        { "op": "remove", "path": format!("members[value eq \"{id}\"]") },
        { "op": "add", "path": "members", "value": [{ "value": acme.owner["id"], "display": "owner@acme.example" }] },
    ]);
    directory.patch(&path, moved).await.expect(204);
    let shown = directory.get(&path).await.expect(200);
    assert_eq!(
        (shown.text("/displayName"), shown.at("/members/0/value")),
        ("Mathematics".into(), acme.owner["id"].clone())
    );
    let all = json!([{ "op": "replace", "path": "members", "value": [{ "value": id }] }]);
    directory.patch(&path, all).await.expect(204);
    let body = json!({ "displayName": "Mathematics", "members": [{ "value": id }, { "value": acme.owner["id"] }] });
    assert_eq!(directory.put(&path, body).await.expect(200).at("/members").as_array().map(Vec::len), Some(2));
    directory.delete(&path).await.expect(204);
}
