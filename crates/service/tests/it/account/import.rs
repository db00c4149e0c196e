//! `/account/import`.

use std::{convert::Infallible, time::Duration};

use axum::body::Body;
use futures_util::{StreamExt as _, stream};
use http::Method;
use kernel::TenantId;
use serde_json::{Value, json};
use testkit::{
    Answer, Caller, Receiver, TestApp,
    api_tokens::{app_token, bearer_of, workspace_token},
    assert_body, assert_text, on_both_engines, webhooks,
};

on_both_engines!(
    workspaces_and_their_people_are_imported,
    a_batch_is_only_judged_by_validation,
    everything_that_is_wrong_is_said_at_once_and_nothing_is_stored,
    a_check_tells_the_same_in_the_same_order,
    a_member_that_is_given_twice_is_named,
    a_batch_that_is_wrong_at_its_end_leaves_nothing,
    what_is_no_list_or_too_long_is_refused,
    the_order_of_members_makes_no_difference,
    an_empty_list_completes_at_once,
    a_repetition_answers_with_the_first_reference,
    webhooks_can_be_left_out,
    what_is_gone_when_its_turn_comes_is_left_out,
    who_comes_after_their_workspace_was_deleted_is_left_out,
    who_came_before_their_turn_stays_as_they_are,
    an_import_of_which_nothing_could_be_stored_is_an_error,
    nobody_gives_a_role_beyond_their_own_privileges,
    a_reference_is_known_to_its_app_for_thirty_days,
    the_last_hundred_are_listed_newest_first,
    an_import_that_is_cut_off_goes_on_and_doubles_nothing,
    two_nodes_share_imports,
    an_import_that_another_node_has_is_left_to_it,
    a_deleted_app_ends_its_imports,
    a_batch_that_was_cut_off_is_swept,
    a_caller_who_goes_away_leaves_nothing,
    findings_are_limited,
    its_beginning_and_end_are_in_the_audit_trail,
);

pub(super) const IMPORT: &str = "/account/import/tenants";
const VALIDATE: &str = "/account/import/validateTenants";

/// A workspace with so many members beside its owner.
pub(super) fn item(name: &str, members: usize) -> Value {
    let user = |number: usize| json!({ "username": format!("user{number}@{name}.example"), "role": "ADMIN" });
    let owner = json!({ "username": format!("owner@{name}.example"), "firstName": "Ada", "lastName": "Lovelace" });
    let users: Vec<Value> = (0..members).map(user).collect();
    json!({ "tenant": { "owner": owner, "name": name }, "users": users })
}

async fn status(caller: &Caller, reference: &str) -> Answer {
    caller.get(&format!("/account/import/status/{reference}")).await
}

async fn count(app: &TestApp, query: &'static str) -> i64 {
    let (count,): (i64,) = app.service().core().db.read(move |tx| tx.one(query, &[])).await.expect("a count");
    count
}

async fn staged(app: &TestApp) -> i64 {
    count(app, "SELECT (SELECT count(*) FROM import_rows) + (SELECT count(*) FROM imports)").await
}

async fn tenants(app: &TestApp) -> Vec<Value> {
    let listed = app.key().get("/account/tenant").await.expect(200).json();
    listed.as_array().expect("a list").clone()
}

async fn users(app: &TestApp, tenant: &Value) -> Vec<Value> {
    let caller = app.key().header("x-tenant-id", tenant["id"].as_str().expect("an id"));
    let mut listed = caller.get("/account/tenant/user").await.expect(200).json();
    let users = listed.as_array_mut().expect("a list");
    users.sort_by_key(|user| user["email"].to_string());
    users.clone()
}

async fn workspaces_and_their_people_are_imported(app: TestApp) {
    let owner = json!({ "username": "Ada@example.com", "firstName": "Ada", "lastName": "Lovelace", "onboarded": true });
    let bob = json!({ "username": "bob@example.com", "firstName": "Bob", "emailVerified": true });
    let eve = json!({ "username": "eve@example.com", "role": "ADMIN", "lastName": "Eve" });
    let tenant = json!({ "owner": owner, "name": "Acme", "plan": "pro", "logo": "https://acme.example/logo.png",
        "metadata": { "old": { "id": 7 } }, "locale": "de", "onboarded": true });
    let batch = json!([{ "tenant": tenant, "users": [bob, eve] }, { "tenant": { "owner": { "username": "ada@EXAMPLE.com" } }, "users": [] }]);
    let answer = app.key().post(IMPORT, batch).await.expect(200);
    assert_body!(answer, @r#"
    {
      "import": {
        "approved": true,
        "errors": [],
        "passwords": false,
        "tenants": 2,
        "users": 4,
        "warnings": []
      },
      "reference": "[import id]",
      "status": "SCHEDULED"
    }
    "#);
    let reference = answer.text("/reference");
    assert_eq!(status(&app.key(), &reference).await.expect(200).at("/progress"), json!({ "tenants": 0, "users": 0 }));
    app.drain().await;
    let done = status(&app.key(), &reference).await.expect(200);
    assert_eq!((done.at("/status"), done.at("/progress")), (json!("COMPLETED"), json!({ "tenants": 2, "users": 4 })));
    let made = tenants(&app).await;
    assert_eq!(made.len(), 2);
    assert_eq!(made[0]["name"], "ada@EXAMPLE.com", "without any name");
    let acme = &made[1];
    assert_eq!((&acme["name"], &acme["plan"], &acme["locale"]), (&json!("Acme"), &json!("pro"), &json!("de")));
    assert_eq!(
        (&acme["logo"], &acme["metadata"]),
        (&json!("https://acme.example/logo.png"), &json!({ "old": { "id": 7 } }))
    );
    assert_eq!((&acme["onboarded"], &acme["signupBy"]["email"]), (&json!(true), &json!("Ada@example.com")));
    let people = users(&app, acme).await;
    let of = |user: &Value| {
        (user["email"].clone(), user["role"].clone(), user["fullName"].clone(), user["onboarded"].clone())
    };
    let expected = [
        (json!("Ada@example.com"), json!("OWNER"), json!("Ada Lovelace"), json!(true)),
        (json!("bob@example.com"), json!("MEMBER"), json!("Bob"), json!(false)),
        (json!("eve@example.com"), json!("ADMIN"), json!("Eve"), json!(false)),
    ];
    assert_eq!(people.iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!(users(&app, &made[0]).await[0]["userId"], people[0]["userId"], "one person in both workspaces");
    assert_eq!(count(&app, "SELECT count(*) FROM users WHERE email_verified_at IS NOT NULL").await, 1);
    assert_eq!(count(&app, "SELECT count(*) FROM import_rows").await, 0);
    assert!(app.mails().is_empty(), "no mail is sent");
}

async fn a_batch_is_only_judged_by_validation(app: TestApp) {
    let mut batch = json!([item("acme", 2)]);
    batch[0]["users"][1]["password"] = json!({ "value": "5f4dcc3b5aa765d61d8327deb882cf99", "algorithm": "MD5" });
    let answer = app.key().post(VALIDATE, batch).await.expect(200);
    assert_body!(answer, @r#"
    {
      "approved": true,
      "errors": [],
      "passwords": true,
      "tenants": 1,
      "users": 3,
      "warnings": []
    }
    "#);
    app.drain().await;
    assert_eq!((staged(&app).await, tenants(&app).await.len()), (0, 0));
}

fn wrong_batch() -> Value {
    let password = |value: &str, algorithm: &str| json!({ "value": value, "algorithm": algorithm });
    let user = |name: &str| format!("{name}@example.com");
    let owner = json!({ "username": user("owner") });
    json!([
        { "tenant": { "owner": owner, "plan": "gold", "logo": "logo.png", "metadata": [], "locale": "xx" }, "users": [
            { "username": user("a"), "role": "WIZARD" },
            { "username": "nobody", "role": "WITCH" },
            { "role": "ADMIN" },
            { "username": user("b"), "password": password("x", "MD5") },
            { "username": user("c"), "password": password("$2b$31$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm", "BCRYPT") },
            { "username": user("d"), "password": password("x", "ROT13") },
            { "username": user("e"), "password": { "value": "5f4dcc3b5aa765d61d8327deb882cf99", "algorithm": "MD5", "pepper": { "position": "END" } } },
            { "username": user("A") },
            7,
        ] },
        { "tenant": { "name": "Nobody's" }, "users": {} },
        { "users": [] },
        "acme",
        { "tenant": { "owner": { "username": user("fine"), "role": "ADMIN" } } },
    ])
}

async fn everything_that_is_wrong_is_said_at_once_and_nothing_is_stored(app: TestApp) {
    let answer = app.key().post(IMPORT, wrong_batch()).await.expect(200);
    let body = answer.json();
    assert_eq!((&body["status"], body.get("reference")), (&json!("ERROR"), None));
    assert_eq!((&body["import"]["approved"], &body["import"]["tenants"]), (&json!(false), &json!(5)));
    let texts = |of: &str| {
        let mut texts: Vec<String> = serde_json::from_value(body["import"][of].clone()).expect("texts");
        texts.sort();
        texts.join("\n")
    };
    assert_text!(texts("errors"), @r#"
    [0].tenant.locale: must be an ISO 639-1 language code such as en (it is "xx")
    [0].tenant.logo: must be an absolute http or https URL (it is "logo.png")
    [0].tenant.metadata: must be an object
    [0].tenant.plan: there is no plan gold
    [0].users[0].role: there is no role WIZARD
    [0].users[1].role: there is no role WITCH
    [0].users[1].username: must be an email address (it is "nobody")
    [0].users[2].username: is required
    [0].users[3].password.value: must be the digest in hex or base64
    [0].users[4].password.value: must have a bcrypt cost of 4 to 14
    [0].users[5].password.algorithm: must be one of BCRYPT, ARGON2I, MD5, SHA1, SHA256, SHA512, ARGON2ID, PBKDF2, SCRYPT
    [0].users[6].password.pepper.value: is required
    [0].users[7].username: A@example.com is in this workspace twice
    [0].users[8]: must be an object
    [1].tenant.owner: is required
    [1].users: must be a list
    [2].tenant: is required
    [3]: must be an object
    "#);
    assert_text!(texts("warnings"), @"[4].tenant.owner.role: is not used: an owner's role is OWNER");
    assert_eq!(app.key().post(VALIDATE, wrong_batch()).await.expect(200).json(), body["import"]);
    app.drain().await;
    assert_eq!((staged(&app).await, tenants(&app).await.len()), (0, 0));
    assert_eq!(app.key().get("/account/import").await.expect(200).json(), json!([]));
}

/// However much is put aside on the way, which a check does not.
async fn a_check_tells_the_same_in_the_same_order(app: TestApp) {
    let owner = json!({ "username": "ada@example.com" });
    let mut batch: Vec<Value> = (0..600).map(|_| json!({ "tenant": { "owner": owner, "plan": "gold" } })).collect();
    batch[550]["tenant"]["locale"] = json!("xx");
    let imported = app.key().post(IMPORT, batch.clone()).await.expect(200);
    let errors = imported.at("/import/errors");
    assert_eq!(errors.as_array().map(Vec::len), Some(601));
    assert!(errors[500].as_str().is_some_and(|error| error.starts_with("[550].tenant.locale:")), "{}", errors[500]);
    assert_eq!(app.key().post(VALIDATE, batch).await.expect(200).json(), imported.at("/import"));
}

/// Which of the two counts would depend on who reads it.
async fn a_member_that_is_given_twice_is_named(app: TestApp) {
    let body = r#"[
        { "tenant": { "owner": { "username": "a@acme.example" } }, "users": [], "tenant": { "name": "Other" } },
        { "tenant": { "owner": { "username": "a@b.example", "username": "c@d.example" } } },
        { "tenant": { "owner": { "username": "b@acme.example" } }, "users": [{ "role": "MEMBER", "role": "OWNER" }] }
    ]"#;
    let key = app.key().header("content-type", "application/json");
    let answer = key.send(Method::POST, IMPORT, body.to_owned()).await.expect(200);
    assert_eq!((answer.at("/status"), answer.at("/import/approved")), (json!("ERROR"), json!(false)));
    let errors = json!([
        "[0].tenant: is given twice",
        r#"[1].tenant: cannot be read: the member "username" is given twice"#,
        r#"[2].users[0]: cannot be read: the member "role" is given twice"#,
    ]);
    assert_eq!(answer.at("/import/errors"), errors);
    assert_eq!(staged(&app).await, 0);
}

/// By then the first of it has been put aside.
async fn a_batch_that_is_wrong_at_its_end_leaves_nothing(app: TestApp) {
    let mut batch: Vec<Value> = (0..600).map(|number| item(&format!("w{number}"), 0)).collect();
    batch.push(json!({ "users": [] }));
    let answer = app.key().post(IMPORT, batch).await.expect(200);
    assert_eq!((answer.at("/status"), answer.at("/import/users")), (json!("ERROR"), json!(600)));
    assert_eq!(staged(&app).await, 0);
}

async fn what_is_no_list_or_too_long_is_refused(app: TestApp) {
    let key = app.key().header("content-type", "application/json");
    for route in [IMPORT, VALIDATE] {
        for (body, code) in [
            ("{}", "VALIDATION_FAILED"),
            ("null", "VALIDATION_FAILED"),
            ("", "MALFORMED_JSON"),
            ("[", "MALFORMED_JSON"),
            ("[{]", "MALFORMED_JSON"),
            (&"[".repeat(1_000_000), "MALFORMED_JSON"),
            (&format!("[{}{{}}]", "{},".repeat(10_000)), "VALIDATION_FAILED"),
        ] {
            key.send(Method::POST, route, body.to_owned()).await.error(400, code);
        }
        let large = format!("[{}]", " ".repeat(64 * 1024 * 1024));
        key.send(Method::POST, route, large).await.error(413, "BODY_TOO_LARGE");
        app.key().send(Method::POST, route, "[]").await.error(415, "UNSUPPORTED_MEDIA_TYPE");
    }
    // Far into the body, after something was staged.
    let mut items: Vec<String> = (0..600).map(|number| item(&format!("w{number}"), 1).to_string()).collect();
    items.push("oops".to_owned());
    key.send(Method::POST, IMPORT, format!("[{}]", items.join(","))).await.error(400, "MALFORMED_JSON");
    assert_eq!(staged(&app).await, 0);
}

async fn the_order_of_members_makes_no_difference(app: TestApp) {
    let Value::Object(mut members) = item("acme", 100) else { panic!("an object") };
    members.shift_remove("tenant").and_then(|tenant| members.insert("tenant".to_owned(), tenant));
    let answer = app.key().post(IMPORT, json!([members, item("next", 70)])).await.expect(200);
    assert_eq!(answer.at("/status"), "SCHEDULED");
    app.drain().await;
    let made = tenants(&app).await;
    assert_eq!((users(&app, &made[1]).await.len(), users(&app, &made[0]).await.len()), (101, 71));
}

async fn an_empty_list_completes_at_once(app: TestApp) {
    let answer = app.key().post(IMPORT, json!([])).await.expect(200);
    assert_eq!((answer.at("/status"), answer.at("/import/approved")), (json!("COMPLETED"), json!(true)));
    let done = status(&app.key(), &answer.text("/reference")).await.expect(200);
    assert_eq!(done.at("/status"), "COMPLETED");
}

async fn a_repetition_answers_with_the_first_reference(app: TestApp) {
    let caller = app.key().header("idempotency-key", "monday");
    caller.post(IMPORT, json!([{}])).await.expect(200);
    let first = caller.post(IMPORT, json!([item("acme", 1)])).await.expect(200).text("/reference");
    assert_eq!(caller.post(IMPORT, json!([item("acme", 1)])).await.expect(200).text("/reference"), first);
    let other = app.key().header("idempotency-key", "tuesday").post(IMPORT, json!([item("b", 1)])).await.expect(200);
    assert_ne!(other.text("/reference"), first);
    // The same word in another app is another import.
    let elsewhere = app.other_app().await.header("idempotency-key", "monday").post(IMPORT, json!([item("e", 1)])).await;
    assert_ne!(elsewhere.expect(200).text("/reference"), first);
    app.drain().await;
    assert_eq!(tenants(&app).await.len(), 2);
    // Both at once.
    let caller = app.key().header("idempotency-key", "wednesday");
    let both = tokio::join!(caller.post(IMPORT, json!([item("c", 1)])), caller.post(IMPORT, json!([item("c", 1)])));
    assert_eq!(both.0.expect(200).text("/reference"), both.1.expect(200).text("/reference"));
    app.drain().await;
    assert_eq!(tenants(&app).await.len(), 3);
    app.advance(Duration::from_secs(25 * 3600)).await;
    let caller = app.key().header("idempotency-key", "monday");
    assert_ne!(caller.post(IMPORT, json!([item("d", 1)])).await.expect(200).text("/reference"), first);
    app.key().header("idempotency-key", &"x".repeat(257)).post(IMPORT, json!([])).await.refuses(&["Idempotency-Key"]);
}

async fn webhooks_can_be_left_out(app: TestApp) {
    let receiver = Receiver::start().await;
    webhooks::hook(&app, &receiver, &[]).await;
    let batch = json!([{ "tenant": { "owner": { "username": "a@b.example" }, "plan": "free" }, "users": [] }]);
    app.key().post(&format!("{IMPORT}?webhooks=false"), batch.clone()).await.expect(200);
    app.drain().await;
    assert_eq!(webhooks::deliveries(&app).await.len(), 0);
    assert_eq!(tenants(&app).await.len(), 1);
    app.key().post(IMPORT, batch).await.expect(200);
    app.drain().await;
    let mut sent: Vec<String> =
        webhooks::deliveries(&app).await.iter().map(|one| one["eventType"].to_string()).collect();
    sent.sort();
    assert!(
        sent.contains(&"\"tenant.created\"".to_owned()) && sent.contains(&"\"tenant_user.created\"".to_owned()),
        "{sent:?}"
    );
}

async fn what_is_gone_when_its_turn_comes_is_left_out(app: TestApp) {
    let privilege = app.key().get("/account/role/privilege").await.expect(200).text("/0/id");
    let role = json!({ "name": "Guest", "key": "GUEST", "privileges": [privilege] });
    let role = app.key().post("/account/role", role).await.expect(200).text("/id");
    let plan = json!({ "name": "Gold", "key": "gold", "prices": [] });
    let plan = app.key().post("/account/payments/plan", plan).await.expect(200).text("/id");
    let mut batch = json!([item("acme", 2), item("golden", 1)]);
    batch[0]["users"][1]["role"] = json!("GUEST");
    batch[1]["tenant"]["plan"] = json!("gold");
    let reference = app.key().post(IMPORT, batch).await.expect(200).text("/reference");
    app.key().delete(&format!("/account/role/{role}")).await.expect(200);
    app.key().delete(&format!("/account/payments/plan/{plan}")).await.expect(200);
    app.drain().await;
    let done = status(&app.key(), &reference).await.expect(200);
    assert_eq!((done.at("/status"), done.at("/progress")), (json!("COMPLETED"), json!({ "tenants": 1, "users": 2 })));
    let errors = json!([
        "[0].users[1]: there is no role GUEST any more",
        "[1].tenant.plan: there is no plan gold any more",
        "[1].tenant.owner: the workspace could not be made, or is gone",
        "[1].users[0]: the workspace could not be made, or is gone",
    ]);
    assert_eq!(done.at("/import/errors"), errors);
}

async fn change(app: &TestApp, sql: &'static str) {
    app.service().core().db.write(move |tx| tx.run(sql, &[])).await.expect("changed");
}

/// Imports a workspace of which only the first people come before [`go_on`].
async fn half_imported(app: &TestApp) -> (String, TenantId) {
    let reference = app.key().post(IMPORT, json!([item("acme", 120)])).await.expect(200).text("/reference");
    change(app, "UPDATE import_rows SET import_id = 'later' WHERE id NOT LIKE '%/00000/00000'").await;
    app.drain().await;
    let made = tenants(app).await[0]["id"].as_str().expect("an id").to_owned();
    (reference, made.parse().expect("a workspace's id"))
}

async fn go_on(app: &TestApp) {
    change(app, "UPDATE imports SET state = 'RUNNING'").await;
    change(app, "UPDATE import_rows SET import_id = (SELECT id FROM imports)").await;
    app.drain().await;
}

async fn who_comes_after_their_workspace_was_deleted_is_left_out(app: TestApp) {
    let (reference, made) = half_imported(&app).await;
    app.key_with(&["TENANT_DELETE"]).await.delete(&format!("/account/tenant/{made}")).await.expect(200);
    go_on(&app).await;
    let done = status(&app.key(), &reference).await.expect(200);
    let errors = done.at("/import/errors");
    assert_eq!(done.at("/status"), "COMPLETED");
    assert!(errors[0].as_str().is_some_and(|text| text.ends_with("or is gone")), "{errors}");
    assert_eq!((staged(&app).await, everybody(&app).await), (1, Vec::new()));
}

async fn who_came_before_their_turn_stays_as_they_are(app: TestApp) {
    let (reference, made) = half_imported(&app).await;
    let member = json!({ "username": "USER118@acme.example", "role": "OWNER", "muteNotifications": true });
    let member = app.key().in_workspace(made).post("/account/tenant/user", member).await.expect(201);
    let inviter = bearer_of(&app, &workspace_token(&app, made, &["USER_WRITE"]).await);
    let invited = json!({ "username": "user117@acme.example", "role": "MEMBER" });
    let invited = inviter.post("/account/tenant/user", invited).await.expect(201);
    assert_eq!(invited.at("/userId"), Value::Null);
    go_on(&app).await;
    let done = status(&app.key(), &reference).await.expect(200);
    let errors = json!(["[0].users[118]: user118@acme.example is already a member of this workspace."]);
    assert_eq!((done.at("/import/errors"), done.at("/progress/users")), (errors, json!(120)));
    let people = users(&app, &json!({ "id": made })).await;
    let find = |id: &str| people.iter().find(|user| user["id"] == id).map(|user| user["role"].clone());
    assert_eq!(people.iter().filter(|user| user["email"].to_string().contains("@acme")).count(), 121);
    assert_eq!(find(&member.text("/id")), Some(json!("OWNER")));
    assert_eq!(find(&invited.text("/id")), Some(json!("ADMIN")), "what they were invited to became the membership");
    assert_eq!(count(&app, "SELECT count(*) FROM invitations").await, 0);
    let told = "SELECT count(*) FROM outbox WHERE kind = 'tenant_user.created' AND payload LIKE '%118@acme.example%'";
    assert_eq!(count(&app, told).await, 1);
}

async fn an_import_of_which_nothing_could_be_stored_is_an_error(app: TestApp) {
    let plan = json!({ "name": "Gold", "key": "gold", "prices": [] });
    let plan = app.key().post("/account/payments/plan", plan).await.expect(200).text("/id");
    let mut batch = json!([item("golden", 0)]);
    batch[0]["tenant"]["plan"] = json!("gold");
    let reference = app.key().post(IMPORT, batch).await.expect(200).text("/reference");
    app.key().delete(&format!("/account/payments/plan/{plan}")).await.expect(200);
    app.drain().await;
    let done = status(&app.key(), &reference).await.expect(200);
    assert_eq!((done.at("/status"), done.at("/progress")), (json!("ERROR"), json!({ "tenants": 0, "users": 0 })));
}

async fn nobody_gives_a_role_beyond_their_own_privileges(app: TestApp) {
    let weak = bearer_of(&app, &app_token(&app, &["TENANT_WRITE"]).await);
    let mut batch = json!([item("acme", 1)]);
    let refused = weak.post(IMPORT, batch.clone()).await.expect(200);
    let error = refused.text("/import/errors/0");
    assert!(error.starts_with("[0].users[0].role: The role ADMIN includes"), "{error}");
    batch[0]["users"][0]["role"] = Value::Null;
    assert_eq!(weak.post(IMPORT, batch).await.expect(200).at("/status"), "SCHEDULED");
}

async fn a_reference_is_known_to_its_app_for_thirty_days(app: TestApp) {
    let reference = app.key().post(IMPORT, json!([item("acme", 1)])).await.expect(200).text("/reference");
    status(&app.other_app().await, &reference).await.error(404, "NOT_FOUND");
    status(&app.key(), "import_00000000000000000000000007").await.error(404, "NOT_FOUND");
    status(&app.key(), "nothing").await.error(404, "NOT_FOUND");
    app.advance(Duration::from_secs(29 * 24 * 3600)).await;
    status(&app.key(), &reference).await.expect(200);
    app.advance(Duration::from_secs(2 * 24 * 3600)).await;
    status(&app.key(), &reference).await.error(404, "NOT_FOUND");
    assert_eq!(count(&app, "SELECT count(*) FROM imports").await, 0);
}

async fn the_last_hundred_are_listed_newest_first(app: TestApp) {
    let mut references = Vec::new();
    for _ in 0..102 {
        references.push(app.key().post(IMPORT, json!([])).await.expect(200).at("/reference"));
    }
    references.reverse();
    let listed = app.key().get("/account/import").await.expect(200).json();
    let listed: Vec<Value> = listed.as_array().expect("a list").iter().map(|one| one["reference"].clone()).collect();
    assert_eq!(listed, references[..100]);
    let page = app.key().get("/account/import?limit=1&offset=1").await.expect(200);
    assert_eq!((page.at("/0/reference"), page.at("/1")), (references[1].clone(), Value::Null));
    assert_eq!(app.other_app().await.get("/account/import").await.expect(200).json(), json!([]));
}

/// Everybody of every workspace, as the batch has them.
pub(super) async fn everybody(app: &TestApp) -> Vec<(String, String)> {
    let query = "SELECT tenants.name, users.email FROM members JOIN tenants ON tenants.id = members.tenant_id \
                 JOIN users ON users.id = members.user_id ORDER BY 1, 2";
    let mut all: Vec<(String, String)> =
        app.service().core().db.scan(move |tx| tx.all(query, &[])).await.expect("everybody");
    all.sort();
    all
}

pub(super) fn expected(batch: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut all: Vec<(String, String)> = Vec::new();
    for item in batch {
        let name = text(&item["tenant"]["name"]);
        all.push((name.clone(), text(&item["tenant"]["owner"]["username"])));
        all.extend(
            item["users"].as_array().expect("a list").iter().map(|user| (name.clone(), text(&user["username"]))),
        );
    }
    all.sort();
    all
}

/// Ends what a node held that was cut off. A start on SQLite does so by itself; on PostgreSQL its claims lapse in real time.
pub(super) async fn free_claims(app: &TestApp) {
    let freed = app.service().core().db.write(|tx| {
        for claims in [spine::lease::CLAIMS, signals::CLAIMS, import::CLAIMS] {
            spine::lease::free(tx, claims)?;
        }
        Ok(())
    });
    freed.await.expect("the claims can be freed");
}

async fn an_import_that_is_cut_off_goes_on_and_doubles_nothing(app: TestApp) {
    let batch: Vec<Value> = (0..16).map(|number| item(&format!("w{number:02}"), number * 7 % 40)).collect();
    let reference = app.key().post(IMPORT, batch.clone()).await.expect(200).text("/reference");
    for step in 0..8_u64 {
        let service = app.service();
        let _ = tokio::time::timeout(Duration::from_millis(step * 7 % 31), service.drain()).await;
        app.restart().await;
        free_claims(&app).await;
        let seen = status(&app.key(), &reference).await.expect(200);
        let members = i64::try_from(everybody(&app).await.len()).expect("few");
        assert_eq!(seen.at("/progress/users"), members, "progress is what has committed");
    }
    free_claims(&app).await;
    app.drain().await;
    assert_eq!(status(&app.key(), &reference).await.expect(200).at("/status"), "COMPLETED");
    assert_eq!(everybody(&app).await, expected(&batch));
}

async fn two_nodes_share_imports(app: TestApp) {
    let other = app.another_node().await;
    let mut batches: Vec<Vec<Value>> = Vec::new();
    for number in 0..4 {
        let batch: Vec<Value> = (0..4).map(|place| item(&format!("b{number}w{place}"), place * 9)).collect();
        app.key().post(IMPORT, batch.clone()).await.expect(200);
        batches.push(batch);
    }
    TestApp::drain_all(&[app.clone(), other.clone()]).await;
    assert_eq!(everybody(&app).await, expected(&batches.concat()));
    if app.site().engine() == testkit::EngineName::Postgres {
        other.service().close().await;
    }
}

async fn an_import_that_another_node_has_is_left_to_it(app: TestApp) {
    let reference = app.key().post(IMPORT, json!([item("acme", 1)])).await.expect(200).text("/reference");
    let claimed = "UPDATE imports SET lease_owner = 'another', lease_until = 4000000000000000";
    app.service().core().db.write(move |tx| tx.run(claimed, &[])).await.expect("claimed");
    app.drain().await;
    assert_eq!(status(&app.key(), &reference).await.expect(200).at("/status"), "SCHEDULED");
    free_claims(&app).await;
    app.drain().await;
    assert_eq!(status(&app.key(), &reference).await.expect(200).at("/status"), "COMPLETED");
}

async fn a_deleted_app_ends_its_imports(app: TestApp) {
    let other = app.other_app().await;
    other.post(IMPORT, json!([item("acme", 40)])).await.expect(200);
    app.operator().delete(&format!("/admin/apps/{}", other.app_id())).await.expect(200);
    app.advance(Duration::from_secs(120)).await;
    assert_eq!(staged(&app).await, 0);
    assert_eq!(everybody(&app).await, []);
}

async fn a_batch_that_was_cut_off_is_swept(app: TestApp) {
    let id = app.app_id();
    let left = app.service().core().db.write(move |tx| {
        let now = tx.now();
        tx.run(
            "INSERT INTO import_rows (id, app_id, import_id, people, sealed, created_at) VALUES ('x', $1, 'y', 1, '', $2)",
            &store::args![id, now],
        )?;
        tx.run(
            "INSERT INTO imports (id, app_id, state, tenants, users, passwords, errors, warnings, done_tenants, done_users, \
             left_out, quiet, actor, turn_at, created_at, expires_at) VALUES ('y', $1, 'READING', 0, 0, FALSE, '', '', 0, 0, 0, \
             FALSE, '', $2, $2, $2)",
            &store::args![id, now],
        )
    });
    left.await.expect("stored");
    assert_eq!(app.key().get("/account/import").await.expect(200).json(), json!([]), "nobody sees it");
    app.advance(Duration::from_secs(2 * 3600)).await;
    app.advance(Duration::from_secs(2 * 3600)).await;
    assert_eq!(staged(&app).await, 0);
}

/// What has come of a batch holds digests, which should not wait for the sweep.
async fn a_caller_who_goes_away_leaves_nothing(app: TestApp) {
    let batch = serde_json::to_string(&[item("acme", 600)]).expect("JSON");
    let beginning = stream::iter([Ok::<_, Infallible>(batch[..batch.len() - 2].to_owned())]);
    let caller = app.key().header("content-type", "application/json");
    let sent = caller.send(Method::POST, IMPORT, Body::from_stream(beginning.chain(stream::pending())));
    let staged_some = async {
        while staged(&app).await < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = sent => panic!("the batch has no end, and was answered with {answer:?}"),
        () = staged_some => {}
    }
    let cleared = async {
        while staged(&app).await > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), cleared).await.expect("nothing is left");
}

async fn findings_are_limited(app: TestApp) {
    let users: Vec<Value> = (0..1_500).map(|_| json!({})).collect();
    let batch = json!([{ "tenant": { "owner": { "username": "a@b.example" } }, "users": users }]);
    let answer = app.key().post(VALIDATE, batch).await.expect(200);
    let errors = answer.at("/errors");
    assert_eq!(errors.as_array().map(Vec::len), Some(1_000));
    assert_eq!(errors[999], "and 501 more, which are not listed");
}

async fn its_beginning_and_end_are_in_the_audit_trail(app: TestApp) {
    let reference = app.key().post(IMPORT, json!([item("acme", 2)])).await.expect(200).text("/reference");
    app.drain().await;
    let trail = app.key().get(&format!("/event-log/audit?appId={}", app.app_id())).await.expect(200).json();
    let trail = trail.to_string();
    assert!(trail.contains("tenantry.import.started") && trail.contains("tenantry.import.finished"), "{trail}");
    assert!(trail.contains(&reference) && trail.contains("\"users\":3"), "{trail}");
}
