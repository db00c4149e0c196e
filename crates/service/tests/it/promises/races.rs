//! Sixteen callers at once for what may be used once. Meant for PostgreSQL, where they really meet.

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use testkit::{
    Answer, Caller, TestApp, Tokens, on_both_engines,
    tokens::{REDIRECT, claims, code, refresh},
};

on_both_engines!(
    one_of_sixteen_gets_the_code,
    one_of_sixteen_gets_the_magic_link,
    one_of_sixteen_sets_the_password,
    sixteen_tabs_refresh_and_stay_in_one_login,
    one_of_sixteen_uses_the_second_factor,
    sixteen_guesses_at_once_end_the_session,
    sixteen_wrong_passwords_at_once_are_all_counted,
    a_right_password_behind_wrong_ones_has_to_wait,
    two_workspaces_change_one_person,
    an_operator_workspace_is_never_a_deleted_one,
    what_is_deleted_is_not_changed_any_more,
);

const CALLERS: usize = 16;

async fn race(caller: &Caller, path: &'static str, body: &Value) -> Vec<Answer> {
    let asking: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (caller, body) = (caller.clone(), body.clone());
            tokio::spawn(async move { caller.post(path, body).await })
        })
        .collect();
    let mut answers = Vec::new();
    for asked in asking {
        answers.push(asked.await.expect("answered"));
    }
    answers
}

fn with_status(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status() == status).count()
}

async fn one_of_sixteen_gets_the_code(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let body = json!({
        "client_id": app.app_id(), "grant_type": "authorization_code", "code": code(&app, &ada, None).await,
        "redirect_uri": REDIRECT,
    });
    let answers = race(&app.anon(), "/auth/token", &body).await;
    assert_eq!((with_status(&answers, 200), with_status(&answers, 400)), (1, CALLERS - 1), "{answers:?}");
    // The others were replays, so that what the one got is revoked.
    let won = answers.iter().find(|answer| answer.status() == 200).expect("one");
    refresh(&app, &won.text("/refresh_token")).await.expect(400);
}

async fn one_of_sixteen_gets_the_magic_link(app: TestApp) {
    app.owner("ada@example.com").await;
    let body = json!({ "username": "ada@example.com", "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/magic-link", body).await.expect(200);
    app.drain().await;
    let body = json!({ "token": app.mailed_token("ada@example.com") });
    let answers = race(&app.anon(), "/auth/auth/magic-link/authenticate", &body).await;
    assert_eq!((with_status(&answers, 200), with_status(&answers, 401)), (1, CALLERS - 1), "{answers:?}");
}

async fn one_of_sixteen_sets_the_password(app: TestApp) {
    let body = json!({ "email": "new@example.com", "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/signup", body).await.expect(200);
    app.drain().await;
    let body = json!({ "token": app.mailed_token("new@example.com"), "password": "violet harbour lamp" });
    let asking: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (caller, body) = (app.anon(), body.clone());
            tokio::spawn(async move { caller.put("/auth/auth/password", body).await })
        })
        .collect();
    let mut won = 0;
    for asked in asking {
        won += usize::from(asked.await.expect("answered").status() == 200);
    }
    assert_eq!(won, 1);
    assert_eq!(app.key().get("/account/tenant").await.expect(200).json().as_array().map(Vec::len), Some(1));
}

async fn sixteen_tabs_refresh_and_stay_in_one_login(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let first = ada.sign_in().await;
    let body = json!({ "client_id": app.app_id(), "grant_type": "refresh_token", "refresh_token": first.refresh });
    let answers = race(&app.anon(), "/auth/token", &body).await;
    assert_eq!(with_status(&answers, 200), CALLERS, "{answers:?}");
    let successors: Vec<Tokens> = answers.iter().map(Tokens::of).collect();
    let mut ids: Vec<String> = successors.iter().map(|tokens| claims(&tokens.refresh)["jti"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), CALLERS, "each has a refresh token of its own");
    assert!(successors.iter().all(|tokens| claims(&tokens.access)["sid"] == claims(&first.access)["sid"]));
    let rotated: Option<(i64,)> = app
        .service()
        .core()
        .db
        .get_one("SELECT count(*) FROM refresh_tokens WHERE rotated_at IS NOT NULL", &[])
        .await
        .expect("reads");
    assert_eq!(rotated, Some((1,)), "it was rotated once");
}

async fn sessions_code(app: &TestApp) -> (String, String) {
    let ada = app.owner("ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let body = json!({ "session": session, "phoneNumber": "+491701234567", "mode": "sdk" });
    app.page().post("/auth/auth/startMfaUserSetup", body).await.expect(200);
    app.drain().await;
    let code = |app: &TestApp| app.sms().last().expect("an SMS").text.split(' ').next().expect("a code").to_owned();
    let body = json!({ "session": session, "mfaCode": code(app), "mode": "sdk" });
    app.page().post("/auth/auth/finishMfaUserSetup", body).await.expect(200);
    let session = ada.log_in().await.expect(200).text("/session");
    app.drain().await;
    (session, code(app))
}

async fn one_of_sixteen_uses_the_second_factor(app: TestApp) {
    let (session, code) = sessions_code(&app).await;
    let body = json!({ "session": session, "mfaCode": code, "mode": "sdk" });
    let answers = race(&app.page(), "/auth/auth/commitMfaCode", &body).await;
    assert_eq!((with_status(&answers, 200), with_status(&answers, 401)), (1, CALLERS - 1), "{answers:?}");
    let won = answers.iter().find(|answer| answer.status() == 200).expect("one").text("/session");
    let body = json!({ "session": won, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/token/direct", body).await.expect(200);
}

async fn sixteen_guesses_at_once_end_the_session(app: TestApp) {
    let (session, code) = sessions_code(&app).await;
    let wrong = format!("{:06}", (code.parse::<u32>().expect("digits") + 1) % 1_000_000);
    let body = json!({ "session": session, "mfaCode": wrong, "mode": "sdk" });
    let answers = race(&app.page(), "/auth/auth/commitMfaCode", &body).await;
    let wrong = answers.iter().filter(|answer| answer.at("/error") == "WRONG_CODE").count();
    assert_eq!((wrong, with_status(&answers, 401)), (5, CALLERS), "{answers:?}");
    let body = json!({ "session": session, "mfaCode": code, "mode": "sdk" });
    app.page().post("/auth/auth/commitMfaCode", body).await.error(401, "INVALID_CREDENTIAL");
}

async fn sixteen_wrong_passwords_at_once_are_all_counted(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut wrong = ada.credentials();
    wrong["password"] = "wrong".into();
    race(&app.page(), "/auth/auth/authenticate", &wrong).await;
    ada.log_in().await.error(429, "RATE_LIMITED");
    let counted: Option<(i64,)> =
        app.service().core().db.get_one("SELECT max(attempts) FROM attempt_counters", &[]).await.expect("reads");
    let (counted,) = counted.expect("a counter");
    assert!((10..=16).contains(&counted), "{counted}");
}

/// All are asked before the first is answered, so that none of them is blocked when it comes.
async fn a_right_password_behind_wrong_ones_has_to_wait(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut wrong = ada.credentials();
    wrong["password"] = "wrong".into();
    let page = app.page();
    let guesses = (0..24).map(|_| page.post("/auth/auth/authenticate", wrong.clone()));
    let (guesses, right) = join(join_all(guesses), ada.log_in()).await;
    assert!(with_status(&guesses, 401) >= 10, "{guesses:?}");
    right.error(429, "RATE_LIMITED");
}

/// Each workspace changes its own part of one person; nothing that either said is lost.
async fn two_workspaces_change_one_person(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let (here, there) = (acme.add("bob@example.com", "MEMBER").await, other.add("bob@example.com", "MEMBER").await);
    let (a, b) = (acme.key(), other.key());
    let (in_acme, in_other) = (acme.path_of(&here), other.path_of(&there));
    for round in 0..8 {
        let (first, last, phone) = (format!("F{round}"), format!("L{round}"), format!("+49301234{round:02}"));
        let changes = join_all([
            a.put(&in_acme, json!({ "firstName": first })),
            b.put(&in_other, json!({ "lastName": last, "teams": [first] })),
            a.put(&in_acme, json!({ "phoneNumber": phone })),
            b.put(&in_other, json!({ "teams": [last] })),
        ]);
        changes.await.into_iter().for_each(|changed| drop(changed.expect(200)));
        let now = a.get(&in_acme).await.expect(200);
        assert_eq!((now.at("/firstName"), now.at("/lastName")), (first.into(), last.into()), "round {round}");
        assert_eq!(now.at("/phoneNumber"), phone, "round {round}");
    }
}

async fn an_operator_workspace_is_never_a_deleted_one(app: TestApp) {
    let deleting = app.key_with(&["TENANT_DELETE"]).await;
    for round in 0..6 {
        let one = app.workspace(&format!("w{round}")).await;
        let path = format!("/account/tenant/{}", one.id);
        let key = app.key();
        let naming = key.put("/account/app", json!({ "operatorTenantId": one.id }));
        let (named, deleted) = join(naming, deleting.delete(&path)).await;
        match (named.status(), deleted.status()) {
            (200, 409) => drop(key.put("/account/app", json!({ "operatorTenantId": null })).await.expect(200)),
            (400, 200) => {}
            both => panic!("{both:?}"),
        }
        assert_eq!(key.get("/account/app").await.expect(200).at("/operatorTenantId"), Value::Null);
    }
}

/// Of a change and a deletion at once, whichever comes second knows of the first.
async fn what_is_deleted_is_not_changed_any_more(app: TestApp) {
    let deleting = app.key_with(&["APP_DELETE"]).await;
    let tax = json!({ "countryCode": "DE", "name": "VAT", "percentage": 19 });
    let connection = json!({ "name": "Corp", "loginUrl": "https://idp.example/sso", "certificate": crate::account::federation::CERTIFICATE });
    for (path, new) in [("/account/payments/tax", tax), ("/account/federation/connection", connection)] {
        for round in 0..6 {
            let made = deleting.post(path, new.clone()).await;
            assert!(made.status() < 300, "{made:?}");
            let one = format!("{path}/{}", made.text("/id"));
            let key = app.key();
            let changes = join_all((0..3).map(|n| key.put(&one, json!({ "name": format!("N{round}{n}") }))));
            let (_, deleted) = join(changes, deleting.delete(&one)).await;
            deleted.expect(200);
            let query = "SELECT payload FROM outbox WHERE kind IN ('tax.changed', 'federation_connection.changed') \
                         ORDER BY id DESC";
            let facts = app.service().core().db.read(move |tx| tx.all::<(String,)>(query, &[])).await.expect("reads");
            let newest = facts.iter().find(|(payload,)| payload.contains(&made.text("/id"))).expect("was told");
            assert!(newest.0.contains("deleted"), "{}", newest.0);
        }
    }
}
