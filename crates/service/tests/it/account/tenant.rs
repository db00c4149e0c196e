//! `/account/tenant`: making, seeing and changing workspaces.

use kernel::TenantId;
use serde_json::{Value, json};
use store::args;
use tenancy::federation::ConnectionId;
use testkit::{TestApp, assert_body, members::member, on_both_engines};

use super::federation::CERTIFICATE;

on_both_engines!(
    a_workspace_is_made_with_its_owner,
    the_owner_is_invited_by_mail,
    a_muted_owner_gets_no_mail,
    a_known_person_becomes_owner_of_a_second_workspace,
    a_workspace_is_named_after_its_owner_without_a_name,
    each_wrong_field_of_a_new_workspace_is_named,
    a_plan_must_exist,
    an_update_changes_what_it_names_and_null_clears,
    each_wrong_field_of_an_update_is_named,
    a_federation_connection_must_be_the_apps_own,
    a_list_shows_what_its_caller_may_see,
    a_list_is_newest_first_and_has_pages,
    a_trial_is_over_when_its_time_is,
    nobody_reaches_into_another_app,
    a_workspace_token_stays_in_its_workspace,
    what_reaches_beyond_a_workspace_is_set_by_the_app,
    a_user_reads_what_their_role_and_factors_allow,
    changes_are_told,
);

fn ada() -> Value {
    json!({ "email": "Ada@Example.com", "firstName": "Ada", "lastName": "Lovelace" })
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array().expect("a list").iter().map(|tenant| tenant["id"].as_str().expect("an id").to_owned()).collect()
}

async fn a_workspace_is_made_with_its_owner(app: TestApp) {
    let body = json!({
        "owner": ada(), "name": " Acme ", "locale": "de", "logo": "https://acme.example/logo.png", "onboarded": true,
        "metadata": { "tier": 3, "tags": ["a"] }, "id": "ignored", "unknown": 1,
    });
    let made = app.key().post("/account/tenant", body).await.expect(200);
    assert_body!(made, @r#"
    {
      "appMetadata": {},
      "createdAt": "[time]",
      "federationConnection": null,
      "id": "[tenant id]",
      "jitProvisioning": true,
      "locale": "de",
      "logo": "https://acme.example/logo.png",
      "metadata": {
        "tags": [
          "a"
        ],
        "tier": 3
      },
      "mfa": false,
      "name": "Acme",
      "onboarded": true,
      "paymentStatus": {
        "paymentsEnabled": false,
        "provider": null,
        "shouldSelectPlan": true,
        "shouldSetupPayments": false
      },
      "plan": null,
      "signupBy": {
        "email": "Ada@Example.com",
        "firstName": "Ada",
        "lastName": "Lovelace"
      },
      "ssoRequired": false,
      "trial": false
    }
    "#);
    let id: TenantId = made.id("/id");
    assert_eq!(app.key().get(&format!("/account/tenant/byId/{id}")).await.expect(200).json(), made.json());
    assert_eq!(app.key().get(&format!("/v1/account/tenant/byId/{id}")).await.expect(200).json(), made.json());
    let members = app.key().in_workspace(id).get("/account/tenant/user").await.expect(200);
    assert_eq!(members.json().as_array().map(Vec::len), Some(1));
    assert_eq!((members.at("/0/role"), members.at("/0/email")), (json!("OWNER"), json!("Ada@Example.com")));
}

async fn the_owner_is_invited_by_mail(app: TestApp) {
    app.key().post("/account/tenant", json!({ "owner": ada(), "name": "Acme" })).await.expect(200);
    app.drain().await;
    let mails = app.mails();
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, "Ada@Example.com"));
    assert!(mails[0].subject.contains("Acme"), "{:?}", mails[0]);
    let links = mails[0].links();
    assert!(
        links.iter().any(|link| link.starts_with("http://tenantry.test/auth/login/set-password?token=")),
        "{links:?}"
    );
}

async fn a_muted_owner_gets_no_mail(app: TestApp) {
    app.key().post("/account/tenant", json!({ "owner": ada(), "muteNotifications": true })).await.expect(200);
    app.drain().await;
    assert!(app.mails().is_empty());
}

async fn a_known_person_becomes_owner_of_a_second_workspace(app: TestApp) {
    let first = app.key().post("/account/tenant", json!({ "owner": ada() })).await.expect(200);
    let same = json!({ "email": "ADA@example.COM", "firstName": "Augusta", "lastName": "King" });
    let second = app.key().post("/account/tenant", json!({ "owner": same })).await.expect(200);
    let mut people = Vec::new();
    for tenant in [&first, &second] {
        let members = app.key().in_workspace(tenant.id("/id")).get("/account/tenant/user").await.expect(200);
        people.push((members.at("/0/userId"), members.at("/0/fullName")));
    }
    // One person, whom nobody renames by inviting them; what was said at sign-up stays with the workspace.
    assert_eq!(people[0], people[1]);
    assert_eq!(people[0].1, "Ada Lovelace");
    assert_eq!(second.at("/signupBy"), same);
    app.drain().await;
    let subjects: Vec<_> = app.mails().into_iter().map(|mail| mail.subject).collect();
    assert_eq!(subjects.len(), 2);
    assert_ne!(subjects[0], subjects[1], "a known person is not told to choose a first password");
}

async fn a_workspace_is_named_after_its_owner_without_a_name(app: TestApp) {
    let made = app.key().post("/account/tenant", json!({ "owner": ada(), "name": null })).await.expect(200);
    assert_eq!(made.at("/name"), "Ada Lovelace");
    assert_eq!((made.at("/locale"), made.at("/metadata")), (json!("en"), json!({})));
}

async fn each_wrong_field_of_a_new_workspace_is_named(app: TestApp) {
    let post = async |body: Value| app.key().post("/account/tenant", body).await;
    post(json!({})).await.refuses(&["owner"]);
    post(json!({ "owner": { "email": "a@b.example", "firstName": "A" } })).await.refuses(&["owner.lastName"]);
    let wrong = json!({ "email": "ada", "firstName": " ", "lastName": "" });
    let body = json!({ "owner": wrong, "name": "", "plan": "", "logo": "x", "metadata": { "a": "x".repeat(70_000) } });
    post(body).await.refuses(&["owner.email", "owner.firstName", "owner.lastName", "name", "plan", "logo", "metadata"]);
    post(json!({ "owner": ada(), "locale": "en-US" })).await.refuses(&["locale"]);
    post(json!({ "owner": ada(), "onboarded": "yes" })).await.refuses(&["onboarded"]);
    assert_eq!(app.key().get("/account/tenant").await.expect(200).json(), json!([]));
}

async fn a_plan_must_exist(app: TestApp) {
    let body = json!({ "owner": ada(), "plan": "nonesuch" });
    app.key().post("/account/tenant", body).await.refuses(&["plan"]);
    assert_eq!(app.key().get("/account/tenant").await.expect(200).json(), json!([]));
    let none = app.key().post("/account/tenant", json!({ "owner": ada() })).await.expect(200);
    assert_eq!((none.at("/plan"), none.at("/paymentStatus/shouldSelectPlan")), (json!(null), json!(true)));
    let pro = app.key().post("/account/tenant", json!({ "owner": ada(), "plan": "pro" })).await.expect(200);
    assert_eq!((pro.at("/plan"), pro.at("/paymentStatus/shouldSelectPlan")), (json!("pro"), json!(false)));
}

async fn an_update_changes_what_it_names_and_null_clears(app: TestApp) {
    let id = app.workspace("acme").await.id;
    let path = format!("/account/tenant/{id}");
    let before = app.key().get(&format!("/account/tenant/byId/{id}")).await.expect(200).json();
    assert_eq!(app.key().put(&path, json!({})).await.expect(200).json(), before);
    let body = json!({
        "name": "Acme 2", "locale": "fr", "logo": "https://x.example/l", "mfa": true, "onboarded": true,
        "jitProvisioning": false, "metadata": { "a": 1 }, "createdAt": "never", "plan": "pro", "id": 3,
    });
    let changed = app.key().put(&path, body).await.expect(200);
    let mut expected = before.clone();
    for (member, value) in [
        ("name", json!("Acme 2")),
        ("locale", json!("fr")),
        ("logo", json!("https://x.example/l")),
        ("mfa", json!(true)),
        ("onboarded", json!(true)),
        ("jitProvisioning", json!(false)),
        ("metadata", json!({ "a": 1 })),
    ] {
        expected[member] = value;
    }
    assert_eq!(changed.json(), expected);
    // Metadata is replaced whole.
    let replaced = app.key().put(&path, json!({ "metadata": { "b": 2 } })).await.expect(200);
    assert_eq!((replaced.at("/metadata"), replaced.at("/name")), (json!({ "b": 2 }), json!("Acme 2")));
    let cleared = app.key().put(&path, json!({ "logo": null, "metadata": null })).await.expect(200);
    assert_eq!((cleared.at("/metadata"), cleared.at("/logo")), (json!({}), json!(null)));
    assert_eq!(app.key().get(&format!("/account/tenant/byId/{id}")).await.expect(200).json(), cleared.json());
}

async fn each_wrong_field_of_an_update_is_named(app: TestApp) {
    let path = format!("/account/tenant/{}", app.workspace("acme").await.id);
    let put = async |body: Value| app.key().put(&path, body).await;
    put(json!({ "name": " ", "logo": "ftp://x.example" })).await.refuses(&["name", "logo"]);
    put(json!({ "metadata": { "a": "x".repeat(70_000) } })).await.refuses(&["metadata"]);
    put(json!({ "locale": "xx" })).await.refuses(&["locale"]);
    put(json!({ "mfa": null })).await.refuses(&["mfa"]);
    put(json!({ "metadata": { "a": "\u{0}" } })).await.refuses(&["metadata.a"]);
}

async fn a_federation_connection_must_be_the_apps_own(app: TestApp) {
    let path = format!("/account/tenant/{}", app.workspace("acme").await.id);
    let (own, foreign) = (ConnectionId::from_u128(1), ConnectionId::from_u128(2));
    for (id, owner) in [(own, app.app_id()), (foreign, app.other_app().await.app_id())] {
        let insert = "INSERT INTO federation_connections (id, app_id, type, name, login_url, certificate, \
                      request_method, signed_request, created_at) VALUES ($1, $2, 'saml', 'x', 'x', 'x', 'GET', FALSE, 0)";
        app.service().core().db.exec_one(insert, &args![id, owner]).await.expect("a row");
    }
    for unknown in [foreign.to_string(), "nonesuch".into()] {
        app.key().put(&path, json!({ "federationConnection": unknown })).await.refuses(&["federationConnection"]);
    }
    let set = app.key().put(&path, json!({ "federationConnection": own })).await.expect(200);
    assert_eq!(set.at("/federationConnection"), json!(own));
    let cleared = app.key().put(&path, json!({ "federationConnection": null })).await.expect(200);
    assert_eq!(cleared.at("/federationConnection"), Value::Null);
}

async fn a_list_shows_what_its_caller_may_see(app: TestApp) {
    let (first, second, third) = (app.workspace("one").await, app.workspace("two").await, app.workspace("three").await);
    let shared = second.add("owner@one.example", "MEMBER").await;
    let seen = async |caller: testkit::Caller| ids(&caller.get("/account/tenant").await.expect(200).json());
    let names = |list: &[&testkit::Workspace]| list.iter().map(|one| one.id.to_string()).collect::<Vec<_>>();
    assert_eq!(seen(app.key()).await, names(&[&third, &second, &first]));
    assert_eq!(seen(second.token(&["TENANT_READ"]).await).await, names(&[&second]));
    // A person sees the workspaces they belong to, whichever they are signed in to, and none they were shut out of.
    assert_eq!(seen(first.owner()).await, names(&[&second, &first]));
    assert_eq!(seen(app.user(&shared)).await, names(&[&second, &first]));
    second.key().put(&second.path_of(&shared), json!({ "enabled": false })).await.expect(200);
    assert_eq!(seen(first.owner()).await, names(&[&first]));
    app.user(&shared).get("/account/tenant").await.error(401, "INVALID_CREDENTIAL");
    app.key_with(&["USER_READ"]).await.get("/account/tenant").await.error(403, "MISSING_PRIVILEGE");
}

async fn a_list_is_newest_first_and_has_pages(app: TestApp) {
    let mut newest_first = Vec::new();
    for name in ["one", "two", "three"] {
        newest_first.insert(0, app.workspace(name).await.id.to_string());
    }
    for (query, expected) in [("", 0..3), ("?limit=2", 0..2), ("?limit=2&offset=1", 1..3), ("?offset=3", 3..3)] {
        let listed = app.key().get(&format!("/account/tenant{query}")).await.expect(200);
        assert_eq!(ids(&listed.json()), newest_first[expected], "{query}");
    }
    app.key().get("/account/tenant?limit=1001").await.refuses(&["limit"]);
}

async fn a_trial_is_over_when_its_time_is(app: TestApp) {
    let id = app.workspace("acme").await.id;
    let (db, owner) = (app.service().core().db.clone(), app.app_id());
    let ends = db.clock().now().plus(std::time::Duration::from_secs(60));
    let view = tenancy::workspaces::BillingView {
        plan_key: Some("pro".into()),
        is_paid: true,
        price: Some(("EUR".parse().expect("a currency"), "month".into())),
        trial_ends_at: Some(ends),
        should_select_plan: false,
        payments_enabled: true,
    };
    db.write(move |tx| tenancy::workspaces::set_billing_view(tx, owner, id, &view)).await.expect("the view is set");
    let shown = async || app.key().get(&format!("/account/tenant/byId/{id}")).await.expect(200);
    let during = shown().await;
    assert_eq!((during.at("/plan"), during.at("/trial")), (json!("pro"), json!(true)));
    let status = json!({
        "shouldSelectPlan": false, "shouldSetupPayments": false, "paymentsEnabled": true, "provider": null,
    });
    assert_eq!(during.at("/paymentStatus"), status);
    app.advance(std::time::Duration::from_secs(61)).await;
    assert_eq!(shown().await.at("/trial"), json!(false));
}

async fn nobody_reaches_into_another_app(app: TestApp) {
    let id = app.workspace("acme").await.id;
    let other = app.other_app().await;
    other.get(&format!("/account/tenant/byId/{id}")).await.error(404, "NOT_FOUND");
    other.put(&format!("/account/tenant/{id}"), json!({ "name": "Mine" })).await.error(404, "NOT_FOUND");
    other.in_workspace(id).get("/account/tenant/user").await.error(404, "NOT_FOUND");
    assert_eq!(other.get("/account/tenant").await.expect(200).json(), json!([]));
    for unknown in ["tenant_00000000000000000000000001", "nonesuch", "app_1"] {
        app.key().get(&format!("/account/tenant/byId/{unknown}")).await.error(404, "NOT_FOUND");
    }
}

async fn a_workspace_token_stays_in_its_workspace(app: TestApp) {
    let (own, other) = (app.workspace("own").await, app.workspace("other").await);
    let token = own.token(&["TENANT_READ", "TENANT_WRITE", "USER_READ"]).await;
    token.get(&format!("/account/tenant/byId/{}", own.id)).await.expect(200);
    token.put(&format!("/account/tenant/{}", own.id), json!({ "name": "Own" })).await.expect(200);
    token.get(&format!("/account/tenant/byId/{}", other.id)).await.error(403, "FORBIDDEN");
    token.put(&format!("/account/tenant/{}", other.id), json!({})).await.error(403, "FORBIDDEN");
    token.post("/account/tenant", json!({ "owner": ada() })).await.error(403, "FORBIDDEN");
    // It need not name its workspace and cannot name another.
    token.get("/account/tenant/user").await.expect(200);
    token.in_workspace(own.id).get("/account/tenant/user").await.expect(200);
    let path = format!("/account/tenant/byId/{}", own.id);
    for path in ["/account/tenant/user", "/account/tenant", path.as_str()] {
        token.in_workspace(other.id).get(path).await.error(403, "FORBIDDEN");
        token.header("x-tenant-id", "nonesuch").get(path).await.error(403, "FORBIDDEN");
    }
}

async fn changes_are_told(app: TestApp) {
    let made = app.key().post("/account/tenant", json!({ "owner": ada(), "name": "Acme" })).await.expect(200);
    let id: TenantId = made.id("/id");
    app.key().put(&format!("/account/tenant/{id}"), json!({ "name": "Acme 2" })).await.expect(200);
    app.key().put(&format!("/account/tenant/{id}"), json!({ "name": "Acme 2" })).await.expect(200);
    let told = testkit::facts::told(&app, "tenant.").await;
    assert_eq!(
        told,
        [
            ("tenant.created".to_owned(), json!({ "id": id, "name": "Acme", "plan": null })),
            ("tenant.updated".to_owned(), json!({ "id": id, "name": "Acme 2", "plan": null })),
        ]
    );
}

async fn what_reaches_beyond_a_workspace_is_set_by_the_app(app: TestApp) {
    let acme = app.workspace("acme").await;
    let connection = json!({ "name": "Corp", "loginUrl": "https://idp.example/sso", "certificate": CERTIFICATE });
    let id = app.key().post("/account/federation/connection", connection).await.expect(201).at("/id");
    let own = format!("/account/tenant/{}", acme.id);
    let token = acme.token(&["TENANT_READ", "TENANT_WRITE"]).await;
    token.put(&own, json!({ "appMetadata": { "tier": 9 } })).await.error(403, "FORBIDDEN");
    app.key().put(&own, json!({ "appMetadata": { "tier": 3 } })).await.expect(200);
    // What stays as it is, is not set.
    let same = token.put(&own, json!({ "appMetadata": { "tier": 3 }, "metadata": { "a": 1 } })).await.expect(200);
    assert_eq!((same.at("/appMetadata"), same.at("/metadata")), (json!({ "tier": 3 }), json!({ "a": 1 })));
    token.put(&own, json!({ "federationConnection": id })).await.error(403, "FORBIDDEN");
    app.key().put(&own, json!({ "federationConnection": id })).await.expect(200);
    token.put(&own, json!({ "federationConnection": id, "name": "Acme" })).await.expect(200);
    token.put(&own, json!({ "federationConnection": null })).await.error(403, "FORBIDDEN");
}

async fn a_user_reads_what_their_role_and_factors_allow(app: TestApp) {
    let (acme, other, strict) =
        (app.workspace("acme").await, app.workspace("other").await, app.workspace("strict").await);
    let read = app.key().get("/account/role/privilege").await.expect(200).json();
    let read =
        read.as_array().into_iter().flatten().find(|one| one["key"] == "USER_READ").expect("there")["id"].clone();
    app.key().post("/account/role", json!({ "name": "Guest", "key": "GUEST", "privileges": [read] })).await.expect(200);
    let email = "bob@example.com";
    let bob = acme.add(email, "MEMBER").await;
    other.add(email, "GUEST").await;
    strict.add(email, "MEMBER").await;
    let change = |mfa: bool| json!({ "metadata": { "secret": 1 }, "appMetadata": { "tier": 1 }, "mfa": mfa });
    for (workspace, mfa) in [(&acme, false), (&other, false), (&strict, true)] {
        app.key().put(&format!("/account/tenant/{}", workspace.id), change(mfa)).await.expect(200);
    }
    let list = app.user(&bob).get("/account/tenant").await.expect(200).json();
    let seen = |id: TenantId| list.as_array().into_iter().flatten().find(|one| one["id"] == json!(id)).expect("listed");
    assert_eq!(seen(acme.id)["metadata"], json!({ "secret": 1 }));
    assert_eq!(seen(acme.id)["signupBy"]["email"], "owner@acme.example");
    for hidden in [seen(other.id), seen(strict.id)] {
        let nobody = json!({ "email": "", "firstName": "", "lastName": "" });
        assert_eq!((&hidden["metadata"], &hidden["signupBy"]), (&json!({}), &nobody));
        assert_eq!(hidden["appMetadata"], json!({ "tier": 1 }));
    }
    // Whoever may not read even their own workspace sees which there are.
    let eve = other.add("eve@example.com", "GUEST").await;
    let list = app.user(&eve).get("/account/tenant").await.expect(200).json();
    assert_eq!((&list[0]["id"], &list[0]["metadata"]), (&json!(other.id), &json!({})));
    // So does whoever has a token for less.
    let owner = member(&app, acme.id, "OWNER").await;
    for (scope, metadata) in [("AUTHENTICATED", json!({})), ("AUTHENTICATED TENANT_READ", json!({ "secret": 1 }))] {
        let list = owner.signed_in_with(&app, scope).get("/account/tenant").await.expect(200).json();
        assert_eq!((&list[0]["id"], &list[0]["metadata"]), (&json!(acme.id), &metadata));
    }
    let caller = app.user(&bob);
    let shown = "UPDATE refresh_families SET mfa = TRUE";
    app.service().core().db.write(move |tx| tx.exec(shown, &[])).await.expect("two factors");
    let list = caller.get("/account/tenant").await.expect(200).json();
    let strict = list.as_array().into_iter().flatten().find(|one| one["id"] == json!(strict.id)).expect("listed");
    assert_eq!(strict["metadata"], json!({ "secret": 1 }));
}
