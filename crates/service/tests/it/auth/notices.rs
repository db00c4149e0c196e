//! Mails to a person about a change of how they sign in: it may not have been them.

use serde_json::json;
use testkit::{
    Person, TestApp,
    factors::{post, require, shown, with_authenticator},
    on_both_engines,
    passkeys::with_passkey,
};

on_both_engines!(
    a_changed_password_is_told_and_the_first_is_not,
    factors_that_come_and_go_are_told,
    whoever_has_an_account_is_invited_without_a_token,
);

/// The subjects of all mails to somebody, except those with a link.
async fn told(app: &TestApp, person: &Person) -> Vec<String> {
    app.drain().await;
    let mails = app.mails().into_iter().filter(|mail| mail.to.contains(&person.email) && !mail.text.contains("token="));
    mails.map(|mail| mail.subject).collect()
}

async fn a_changed_password_is_told_and_the_first_is_not(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    assert_eq!(told(&app, &ada).await, Vec::<String>::new());
    let forgotten = json!({ "username": ada.email, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/password", forgotten).await.expect(200);
    app.drain().await;
    let body = json!({ "token": app.mailed_token(&ada.email), "password": "copper window seventeen" });
    app.anon().put("/auth/auth/password", body).await.expect(200);
    assert_eq!(told(&app, &ada).await, ["Your My app password was changed"]);
}

async fn factors_that_come_and_go_are_told(app: TestApp) {
    require(&app).await;
    let (ada, secret) = with_authenticator(&app, "ada@example.com").await;
    let mut expected = vec!["Two-step sign-in was set up for your My app account"];
    assert_eq!(told(&app, &ada).await, expected);
    with_passkey(&app, &ada).await;
    expected.push("A passkey was added to your My app account");
    assert_eq!(told(&app, &ada).await, expected);

    let clear = format!("/account/tenant/user/{}/mfa", ada.member);
    let key = app.key().header("x-tenant-id", &ada.tenant.to_string());
    key.delete(&clear).await.expect(200);
    // Where nothing is taken away, there is nothing to tell.
    key.delete(&clear).await.expect(200);
    expected.push("Two-step sign-in was turned off for your My app account");
    assert_eq!(told(&app, &ada).await, expected);

    let session = ada.log_in().await.expect(200).text("/session");
    let started = post(&app, "startMfaUserSetup", json!({ "session": session, "method": "totp" })).await.expect(200);
    let code = shown(&app, &started.text("/secret"), 0);
    let done = post(&app, "finishMfaUserSetup", json!({ "session": session, "mfaCode": code })).await.expect(200);
    assert_ne!(started.text("/secret"), secret);
    let session = ada.log_in().await.expect(200).text("/session");
    let reset = json!({ "session": session, "backupCode": done.text("/backupCode") });
    post(&app, "resetUserMfaSetup", reset).await.expect(200);
    expected.extend([expected[0], expected[2]]);
    assert_eq!(told(&app, &ada).await, expected);
}

async fn whoever_has_an_account_is_invited_without_a_token(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let acme = app.workspace("acme").await;
    acme.key().post("/account/tenant/user", json!({ "username": ada.email })).await.expect(201);
    assert_eq!(told(&app, &ada).await, ["You have been added to “acme”"]);
    // Somebody who never followed a link still needs one.
    for workspace in ["one", "two"] {
        let workspace = app.workspace(workspace).await;
        workspace.key().post("/account/tenant/user", json!({ "username": "bob@example.com" })).await.expect(201);
    }
    app.drain().await;
    let mails = app.mails();
    let to_bob: Vec<_> = mails.iter().filter(|mail| mail.to.contains("bob@example.com")).collect();
    assert!(to_bob.len() == 2 && to_bob.iter().all(|mail| mail.text.contains("token=")), "{to_bob:?}");
}
