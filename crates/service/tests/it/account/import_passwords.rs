//! The passwords of imported people: digests that other libraries made count once, and are ours from then on.

use serde_json::{Value, json};
use testkit::{Answer, TestApp, counterparts::python, hosted::at_password, on_both_engines};

on_both_engines!(
    digests_of_other_libraries_log_in_once_as_imported_and_once_as_renewed,
    a_wrong_password_leaves_the_digest_as_it_is,
    whoever_comes_without_a_password_has_none,
    whoever_was_here_before_keeps_their_password_or_has_none,
    the_first_password_of_a_person_counts,
    who_has_no_password_is_mailed_a_link_and_everybody_sees_the_same_page,
);

fn address(number: usize) -> String {
    format!("person{number}@example.com")
}

async fn import(app: &TestApp, batch: Value) -> Answer {
    let answer = app.key().post("/account/import/tenants", batch).await.expect(200);
    assert_eq!(answer.at("/import/errors"), json!([]));
    app.drain().await;
    answer
}

async fn log_in(app: &TestApp, email: &str, password: &str) -> Answer {
    let body = json!({ "username": email, "password": password, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/authenticate", body).await
}

/// Who has a digest of another system, and who one of ours.
async fn digests(app: &TestApp) -> (i64, i64) {
    let query = "SELECT count(sealed_import), count(digest) FROM user_credentials";
    app.service().core().db.read(move |tx| tx.one(query, &[])).await.expect("counts")
}

async fn digests_of_other_libraries_log_in_once_as_imported_and_once_as_renewed(app: TestApp) {
    let made = python("digests.py").await;
    let made = made.as_array().expect("a list");
    let user = |(number, one): (usize, &Value)| json!({ "username": address(number), "password": one["digest"] });
    let users: Vec<Value> = made.iter().enumerate().map(user).collect();
    import(&app, json!([{ "tenant": { "owner": { "username": "owner@example.com" } }, "users": users }])).await;
    let count = i64::try_from(made.len()).expect("few");
    assert_eq!(digests(&app).await, (count, 0));
    for (number, one) in made.iter().enumerate() {
        let password = one["password"].as_str().expect("a password");
        let first = log_in(&app, &address(number), password).await;
        assert_eq!(first.status(), 200, "{one} {first:?}");
        log_in(&app, &address(number), password).await.expect(200);
    }
    assert_eq!(digests(&app).await, (0, count));
}

const MD5_OF_PASSWORD: &str = "5f4dcc3b5aa765d61d8327deb882cf99";
const MD5_OF_HELLO: &str = "5d41402abc4b2a76b9719d911017c592";

fn md5(value: &str) -> Value {
    json!({ "value": value, "algorithm": "MD5" })
}

async fn a_wrong_password_leaves_the_digest_as_it_is(app: TestApp) {
    let owner = json!({ "username": "ada@example.com", "password": md5(MD5_OF_PASSWORD) });
    import(&app, json!([{ "tenant": { "owner": owner }, "users": [] }])).await;
    log_in(&app, "ada@example.com", "Password").await.expect(401);
    assert_eq!(digests(&app).await, (1, 0));
    log_in(&app, "ADA@example.com", "password").await.expect(200);
    log_in(&app, "ada@example.com", "Password").await.expect(401);
    log_in(&app, "ada@example.com", "password").await.expect(200);
}

async fn whoever_comes_without_a_password_has_none(app: TestApp) {
    import(&app, json!([{ "tenant": { "owner": { "username": "ada@example.com" } }, "users": [] }])).await;
    let body = json!({ "username": "ada@example.com", "appId": app.app_id(), "mode": "sdk" });
    let config = app.page().post("/auth/auth/credentialsConfig", body).await.expect(200);
    assert_eq!(config.at("/hasPassword"), false);
    log_in(&app, "ada@example.com", "password").await.expect(401);
    assert!(app.mails().is_empty(), "an import sends no mail");
}

async fn whoever_was_here_before_keeps_their_password_or_has_none(app: TestApp) {
    let known = app.owner("ada@example.com").await;
    let caller = app.key().in_workspace(known.tenant);
    let silent = json!({ "username": "silent@example.com", "muteNotifications": true });
    caller.post("/account/tenant/user", silent).await.expect(201);
    let user = |name: &str| json!({ "username": name, "password": md5(MD5_OF_PASSWORD), "emailVerified": true });
    let batch = json!([{ "tenant": { "owner": user("Ada@example.com") }, "users": [user("silent@example.com")] }]);
    let answer = import(&app, batch).await;
    let warnings = answer.at("/import/warnings");
    assert!(warnings[0].as_str().is_some_and(|text| text.starts_with("[0].tenant.owner.username: ")), "{warnings}");
    assert!(warnings[1].as_str().is_some_and(|text| text.starts_with("[0].users[0].username: ")), "{warnings}");
    log_in(&app, "ada@example.com", "password").await.expect(401);
    log_in(&app, "silent@example.com", "password").await.expect(401);
    const PROVEN: &str =
        "SELECT count(*) FROM users WHERE email = 'silent@example.com' AND email_verified_at IS NOT NULL";
    let (proven,): (i64,) = app.service().core().db.read(|tx| tx.one(PROVEN, &[])).await.expect("a count");
    assert_eq!(proven, 0, "an import does not prove anybody's address");
    known.log_in().await.expect(200);
}

async fn the_first_password_of_a_person_counts(app: TestApp) {
    let user = |digest: &str| json!({ "username": "ada@example.com", "password": md5(digest) });
    let batch = json!([
        { "tenant": { "owner": { "username": "one@example.com" } }, "users": [{ "username": "ada@example.com" }] },
        { "tenant": { "owner": user(MD5_OF_PASSWORD) }, "users": [] },
        { "tenant": { "owner": user(MD5_OF_PASSWORD) }, "users": [] },
        { "tenant": { "owner": { "username": "two@example.com" } }, "users": [user(MD5_OF_HELLO)] },
    ]);
    let answer = import(&app, batch).await;
    let warnings = answer.at("/import/warnings");
    assert_eq!(warnings.as_array().map(Vec::len), Some(1), "{warnings}");
    assert!(warnings[0].as_str().is_some_and(|text| text.starts_with("[3].users[0].password: ")), "{warnings}");
    log_in(&app, "ada@example.com", "hello").await.expect(401);
    log_in(&app, "ada@example.com", "password").await.expect(200);
}

async fn who_has_no_password_is_mailed_a_link_and_everybody_sees_the_same_page(app: TestApp) {
    app.owner("known@example.com").await;
    import(&app, json!([{ "tenant": { "owner": { "username": "ada@example.com" } }, "users": [] }])).await;
    let before = app.mails().len();
    for email in ["known@example.com", "nobody@example.com", "ada@example.com"] {
        let mut browser = at_password(&app, email, &[]).await;
        browser.submit("/auth/login/password", &[("password", "wrong")]).await;
        browser
            .sees(401, "Incorrect email address or password. If you have not set a password yet, we have emailed you");
    }
    app.drain().await;
    let mails = app.mails();
    assert_eq!(mails.len(), before + 1, "only who has none gets a link");
    let chosen = json!({ "token": app.mailed_token("ada@example.com"), "password": "violet harbour lamp" });
    app.anon().put("/auth/auth/password", chosen).await.expect(200);
    log_in(&app, "ada@example.com", "violet harbour lamp").await.expect(200);
}
