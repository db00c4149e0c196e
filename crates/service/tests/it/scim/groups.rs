//! `/scim/v2/Groups` and `/account/scim/group/{group_id}`.

use serde_json::{Value, json};
use testkit::{DirectoryCaller, TestApp, Workspace, facts::told, on_both_engines};

on_both_engines!(
    a_group_is_a_team_of_its_members,
    members_come_and_go,
    a_name_is_unique_whatever_its_case,
    groups_are_found_and_paged,
    a_group_gives_its_role_and_takes_it_back,
    the_strongest_role_counts_and_owners_stay,
    a_role_set_by_hand_wins_until_the_groups_change,
    a_role_is_carried_only_with_authority,
    teams_written_by_hand_give_nothing,
    whoever_is_gone_is_in_no_group,
    wrong_groups_are_refused,
    a_large_group_changes_in_steps,
    requests_for_one_group_at_once_all_count,
);

fn group(id: &str) -> String {
    format!("/Groups/{id}")
}

/// A member as the workspace sees them.
async fn seen(acme: &Workspace, id: &str) -> Value {
    acme.key().get(&format!("/account/tenant/user/{id}")).await.expect(200).json()
}

async fn role(acme: &Workspace, id: &str) -> String {
    seen(acme, id).await["role"].as_str().expect("a role").to_owned()
}

async fn member(acme: &Workspace, email: &str, role: &str) -> String {
    acme.add(email, role).await["id"].as_str().expect("an id").to_owned()
}

async fn carry(acme: &Workspace, id: &str, role: Value) {
    acme.key().put(&format!("/account/scim/group/{id}"), json!({ "role": role })).await.expect(200);
}

/// The ids of a group's members.
async fn members(directory: &DirectoryCaller, id: &str) -> Vec<String> {
    let shown = directory.get(&group(id)).await.expect(200).at("/members");
    let members = shown.as_array().into_iter().flatten();
    members.map(|member| member["value"].as_str().expect("an id").to_owned()).collect()
}

async fn a_group_is_a_team_of_its_members(app: TestApp) {
    let acme = app.workspace("acme").await;
    let (directory, bob) = (acme.directory().await, member(&acme, "bob@example.com", "MEMBER").await);
    let invited = directory.provision("cy@example.com").await;
    acme.key().put(&format!("/account/tenant/user/{bob}"), json!({ "teams": ["Own"] })).await.expect(200);
    let body =
        json!({ "displayName": "Poets", "externalId": "g1", "members": [{ "value": bob }, { "value": invited }] });
    let made = directory.post("/Groups", body).await.expect(201);
    let id = made.text("/id");
    assert_eq!(made.header("location"), made.at("/meta/location").as_str());
    assert_eq!(made.at("/members/0/value"), json!(bob));
    assert_eq!(seen(&acme, &bob).await["teams"], json!(["Own", "Poets"]));
    assert_eq!(seen(&acme, &invited).await["teams"], json!(["Poets"]));
    let of_bob = directory.get(&format!("/Users/{bob}")).await.expect(200);
    assert_eq!((of_bob.text("/groups/0/value"), of_bob.text("/groups/0/display")), (id.clone(), "Poets".to_owned()));
    let renamed = directory.put(&group(&id), json!({ "displayName": "Bards" })).await.expect(200);
    assert_eq!((renamed.at("/externalId"), renamed.at("/members/1/value")), (json!(null), json!(invited)));
    assert_eq!(seen(&acme, &bob).await["teams"], json!(["Own", "Bards"]));
    assert_ne!(renamed.header("etag"), made.header("etag"));
    directory.delete(&group(&id)).await.expect(204);
    assert_eq!(seen(&acme, &bob).await["teams"], json!(["Own"]));
    directory.get(&group(&id)).await.scim_error(404, "");
    let changes: Vec<Value> =
        told(&app, "scim.group_changed").await.into_iter().map(|(_, fact)| fact["change"].clone()).collect();
    assert_eq!(changes, ["created", "updated", "deleted"]);
}

async fn members_come_and_go(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let (bob, cy) = (directory.provision("bob@example.com").await, directory.provision("cy@example.com").await);
    let id = directory.group("Poets", &[]).await;
    let add =
        json!([{ "op": "Add", "path": "members", "value": [{ "value": bob }, { "value": cy }, { "value": bob }] }]);
    let added = directory.patch(&group(&id), add.clone()).await.expect(204);
    assert_eq!(members(&directory, &id).await, [bob.clone(), cy.clone()]);
    let again = directory.patch(&group(&id), add).await.expect(204);
    assert_eq!(again.header("etag"), added.header("etag"), "nothing changed");
    let remove = json!([{ "op": "remove", "path": format!("members[value eq \"{bob}\"]") }]);
    directory.patch(&group(&id), remove).await.expect(204);
    assert_eq!(members(&directory, &id).await, std::slice::from_ref(&cy));
    assert_eq!(seen(&acme, &bob).await["teams"], json!([]));
    let all = json!([{ "op": "replace", "path": "members", "value": [{ "value": bob }] }]);
    directory.patch(&group(&id), all).await.expect(204);
    assert_eq!(members(&directory, &id).await, [bob]);
    directory.patch(&group(&id), json!([{ "op": "remove", "path": "members" }])).await.expect(204);
    assert!(members(&directory, &id).await.is_empty());
    directory.put(&group(&id), json!({ "displayName": "Poets", "members": [{ "value": cy }] })).await.expect(200);
    assert_eq!(members(&directory, &id).await, [cy]);
}

async fn a_name_is_unique_whatever_its_case(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let poets = directory.group("Poets", &[]).await;
    directory.post("/Groups", json!({ "displayName": "POETS" })).await.scim_error(409, "uniqueness");
    directory.group("Bards", &[]).await;
    let taken = json!([{ "op": "replace", "path": "displayName", "value": "bards" }]);
    directory.patch(&group(&poets), taken).await.scim_error(409, "uniqueness");
    directory.put(&group(&poets), json!({ "displayName": "poets" })).await.expect(200);
    app.workspace("bolt").await.directory().await.group("Poets", &[]).await;
}

async fn groups_are_found_and_paged(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let bob = directory.provision("bob@example.com").await;
    let poets = directory.group("Poets", &[&bob]).await;
    directory.group("Bards", &[]).await;
    let found = |query: &'static str| {
        let directory = directory.clone();
        async move {
            let page = directory.get(&format!("/Groups?{query}")).await.expect(200).at("/Resources");
            let names = page.as_array().into_iter().flatten();
            names.map(|group| group["displayName"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
        }
    };
    assert_eq!(found("filter=displayName%20eq%20%22poets%22").await, ["Poets"]);
    assert_eq!(found("sortBy=displayName").await, ["Bards", "Poets"]);
    assert_eq!(found("sortBy=displayName&startIndex=2&excludedAttributes=members").await, ["Poets"]);
    assert_eq!(found("filter=not%20(members%20pr)").await, ["Bards"]);
    let filter = format!("members[value eq \"{bob}\"]");
    let page = directory.post("/Groups/.search", json!({ "filter": filter })).await.expect(200);
    assert_eq!((page.at("/totalResults"), page.at("/Resources/0/members/0/value")), (json!(1), json!(bob)));
    let bare = directory.get(&format!("/Groups/{poets}?excludedAttributes=members")).await.expect(200);
    assert_eq!(bare.at("/members"), Value::Null);
    let both = directory.post("/.search", json!({ "filter": "displayName pr", "count": 1, "startIndex": 2 })).await;
    assert_eq!((both.at("/totalResults"), both.at("/itemsPerPage")), (json!(2), json!(1)));
}

async fn a_group_gives_its_role_and_takes_it_back(app: TestApp) {
    let acme = app.workspace("acme").await;
    let (directory, bob) = (acme.directory().await, member(&acme, "bob@example.com", "MEMBER").await);
    let id = directory.group("Admins", &[&bob]).await;
    let set = acme.key().put(&format!("/account/scim/group/{id}"), json!({ "role": "ADMIN" })).await.expect(200);
    assert_eq!(set.json(), json!({ "id": id, "displayName": "Admins", "role": "ADMIN" }));
    assert_eq!(role(&acme, &bob).await, "ADMIN");
    assert_eq!(directory.get(&format!("/Users/{bob}")).await.expect(200).text("/roles/0/value"), "ADMIN");
    let invited = directory.provision("cy@example.com").await;
    directory
        .patch(&group(&id), json!([{ "op": "add", "path": "members", "value": [{ "value": invited }] }]))
        .await
        .expect(204);
    assert_eq!(role(&acme, &invited).await, "ADMIN");
    directory.patch(&group(&id), json!([{ "op": "remove", "path": "members" }])).await.expect(204);
    assert_eq!((role(&acme, &bob).await, role(&acme, &invited).await), ("MEMBER".to_owned(), "MEMBER".to_owned()));
    directory
        .patch(&group(&id), json!([{ "op": "add", "path": "members", "value": [{ "value": bob }] }]))
        .await
        .expect(204);
    carry(&acme, &id, Value::Null).await;
    assert_eq!(role(&acme, &bob).await, "MEMBER");
    carry(&acme, &id, json!("ADMIN")).await;
    directory.delete(&group(&id)).await.expect(204);
    assert_eq!(role(&acme, &bob).await, "MEMBER");
}

async fn the_strongest_role_counts_and_owners_stay(app: TestApp) {
    let acme = app.workspace("acme").await;
    let (directory, bob) = (acme.directory().await, member(&acme, "bob@example.com", "MEMBER").await);
    let owner = acme.owner["id"].as_str().expect("an id").to_owned();
    let (weak, strong) = (directory.group("All", &[&bob, &owner]).await, directory.group("Admins", &[&bob]).await);
    carry(&acme, &strong, json!("ADMIN")).await;
    carry(&acme, &weak, json!("MEMBER")).await;
    assert_eq!((role(&acme, &bob).await, role(&acme, &owner).await), ("ADMIN".to_owned(), "OWNER".to_owned()));
    // What the directory says of the role itself counts once the groups say nothing.
    let own = json!([{ "op": "replace", "path": "roles", "value": [{ "value": "MEMBER" }] }]);
    directory.patch(&format!("/Users/{bob}"), own).await.expect(200);
    assert_eq!(role(&acme, &bob).await, "ADMIN");
    directory.delete(&group(&strong)).await.expect(204);
    assert_eq!(role(&acme, &bob).await, "MEMBER");
    acme.key().put(&format!("/account/scim/group/{weak}"), json!({ "role": "OWNER" })).await.refuses(&["role"]);
}

async fn a_role_set_by_hand_wins_until_the_groups_change(app: TestApp) {
    let acme = app.workspace("acme").await;
    let (directory, bob) = (acme.directory().await, member(&acme, "bob@example.com", "ADMIN").await);
    let id = directory.group("All", &[&bob]).await;
    carry(&acme, &id, json!("MEMBER")).await;
    assert_eq!(role(&acme, &bob).await, "MEMBER");
    acme.key().put(&format!("/account/tenant/user/{bob}"), json!({ "role": "OWNER" })).await.expect(200);
    directory.delete(&group(&id)).await.expect(204);
    assert_eq!(role(&acme, &bob).await, "OWNER", "it is not taken back");
}

async fn a_role_is_carried_only_with_authority(app: TestApp) {
    let acme = app.workspace("acme").await;
    let weak = acme.token(&["TENANT_READ", "TENANT_WRITE"]).await;
    let directory = DirectoryCaller::made_by(&weak).await;
    let bob = directory.provision("bob@example.com").await;
    let id = directory.group("Admins", &[]).await;
    let path = format!("/account/scim/group/{id}");
    weak.put(&path, json!({ "role": "ADMIN" })).await.error(403, "FORBIDDEN");
    acme.key().put(&path, json!({ "role": "NOBODY" })).await.refuses(&["role"]);
    carry(&acme, &id, json!("ADMIN")).await;
    // The token's maker could not have given the role, so its directory cannot by a group either.
    let add = json!([{ "op": "add", "path": "members", "value": [{ "value": bob }] }]);
    directory.patch(&group(&id), add.clone()).await.scim_error(403, "");
    assert_eq!((role(&acme, &bob).await, members(&directory, &id).await), ("MEMBER".to_owned(), vec![]));
    acme.directory().await.patch(&group(&id), add).await.expect(204);
    assert_eq!(role(&acme, &bob).await, "ADMIN");
    // Leaving is no gift.
    directory.patch(&group(&id), json!([{ "op": "remove", "path": "members" }])).await.expect(204);
    assert_eq!(role(&acme, &bob).await, "MEMBER");
}

async fn teams_written_by_hand_give_nothing(app: TestApp) {
    let acme = app.workspace("acme").await;
    let (directory, bob) = (acme.directory().await, member(&acme, "bob@example.com", "MEMBER").await);
    let id = directory.group("Admins", &[]).await;
    carry(&acme, &id, json!("ADMIN")).await;
    acme.key().put(&format!("/account/tenant/user/{bob}"), json!({ "teams": ["Admins"] })).await.expect(200);
    assert_eq!((role(&acme, &bob).await, members(&directory, &id).await), ("MEMBER".to_owned(), vec![]));
}

async fn whoever_is_gone_is_in_no_group(app: TestApp) {
    let acme = app.workspace("acme").await;
    let (directory, bob) = (acme.directory().await, member(&acme, "bob@example.com", "MEMBER").await);
    let invited = directory.provision("cy@example.com").await;
    let id = directory.group("Poets", &[&bob, &invited]).await;
    for gone in [&bob, &invited] {
        acme.key().delete(&format!("/account/tenant/user/{gone}")).await.expect(200);
    }
    assert!(members(&directory, &id).await.is_empty());
    app.drain().await;
    let rows = "SELECT (SELECT count(*) FROM scim_group_members) + (SELECT count(*) FROM scim_users)";
    let left = app.service().core().db.read(move |tx| tx.one::<(i64,)>(rows, &store::args![])).await;
    assert_eq!(left.expect("they can be counted"), (0,));
}

async fn wrong_groups_are_refused(app: TestApp) {
    let (acme, bolt) = (app.workspace("acme").await, app.workspace("bolt").await);
    let directory = acme.directory().await;
    let theirs = bolt.directory().await.provision("bob@example.com").await;
    let id = directory.group("Poets", &[]).await;
    for value in [theirs.as_str(), id.as_str(), "x", ""] {
        let body = json!({ "displayName": "Bards", "members": [{ "value": value }] });
        directory.post("/Groups", body).await.scim_error(400, "invalidValue");
        let add = json!([{ "op": "add", "path": "members", "value": [{ "value": value }] }]);
        directory.patch(&group(&id), add).await.scim_error(400, "invalidValue");
    }
    for body in
        [json!({}), json!({ "displayName": " " }), json!({ "displayName": "a\nb" }), json!({ "displayName": null })]
    {
        directory.post("/Groups", body).await.scim_error(400, "invalidValue");
    }
    assert_eq!(directory.get("/Groups").await.expect(200).at("/totalResults"), 1);
}

/// Users of the workspace, more than one transaction moves.
async fn many(directory: &DirectoryCaller) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..120 {
        ids.push(directory.provision(&format!("user{n}@example.com")).await);
    }
    ids.sort_unstable();
    ids
}

async fn a_large_group_changes_in_steps(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let users = many(&directory).await;
    let ids: Vec<&str> = users.iter().map(String::as_str).collect();
    let id = directory.group("All", &ids).await;
    assert_eq!(members(&directory, &id).await, users);
    carry(&acme, &id, json!("ADMIN")).await;
    for user in [&users[0], &users[49], &users[50], &users[119]] {
        assert_eq!(role(&acme, user).await, "ADMIN");
    }
    let listed = json!(users.iter().map(|id| json!({ "value": id })).collect::<Vec<_>>());
    directory.put(&group(&id), json!({ "displayName": "Staff", "members": listed })).await.expect(200);
    for user in [&users[0], &users[60], &users[119]] {
        let seen = seen(&acme, user).await;
        assert_eq!((&seen["teams"], &seen["role"]), (&json!(["Staff"]), &json!("ADMIN")));
    }
    let known = directory.get(&group(&id)).await.expect(200).header("etag").expect("a version").to_owned();
    let removal = json!([{ "op": "remove", "path": "members" }]);
    let with = |version: &str| {
        let caller = directory.caller.header("if-match", version);
        DirectoryCaller { caller, ..directory.clone() }
    };
    with("W/\"1\"").patch(&group(&id), removal.clone()).await.scim_error(412, "");
    with(&known).patch(&group(&id), removal).await.expect(204);
    assert_eq!(members(&directory, &id).await, Vec::<String>::new());
    assert_eq!(role(&acme, &users[119]).await, "MEMBER");
    directory.put(&group(&id), json!({ "displayName": "Staff", "members": listed })).await.expect(200);
    directory.delete(&group(&id)).await.expect(204);
    assert_eq!(seen(&acme, &users[119]).await["teams"], json!([]));
}

async fn requests_for_one_group_at_once_all_count(app: TestApp) {
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    let id = directory.group("All", &[]).await;
    let mut users = Vec::new();
    for n in 0..8 {
        users.push(directory.provision(&format!("user{n}@example.com")).await);
    }
    users.sort_unstable();
    let path = group(&id);
    let adding = users
        .iter()
        .map(|user| directory.patch(&path, json!([{ "op": "add", "path": "members", "value": [{ "value": user }] }])));
    for added in futures_util::future::join_all(adding).await {
        added.expect(204);
    }
    assert_eq!(members(&directory, &id).await, users);
}
