//! `/admin/apps/{app_id}/secrets`, and the master key that seals them.

use std::time::Duration;

use kernel::Secret;
use serde_json::{Value, json};
use store::args;
use testkit::{
    MASTER_KEY, TestApp,
    api_tokens::{app_token, bearer_of, introspect},
    assert_body, on_both_engines,
};
use vault::Place;

on_both_engines!(
    a_new_secret_signs_and_the_old_one_verifies_until_it_is_retired,
    the_secret_that_signs_is_not_retired,
    secrets_are_bounded,
    a_new_master_key_seals_every_column_again,
    a_large_purge_goes_in_steps,
    links_that_expired_are_swept,
);

fn secrets_of(app: &TestApp) -> String {
    format!("/admin/apps/{}/secrets", app.app_id())
}

async fn a_new_secret_signs_and_the_old_one_verifies_until_it_is_retired(app: TestApp) {
    let node = app.another_node().await;
    let old = app_token(&app, &["APP_READ"]).await;
    bearer_of(&node, &old).get("/account/app").await.expect(200);
    let made = app.operator().post(&format!("{}/rotate", secrets_of(&app)), json!({})).await.expect(201);
    let new = app_token(&app, &["APP_READ"]).await;
    let list = app.operator().get(&secrets_of(&app)).await.expect(200);
    assert_body!(list, @r#"
    [
      {
        "createdAt": "[time]",
        "id": "[secret id]",
        "retiredAt": null,
        "signs": true,
        "tokens": 1
      },
      {
        "createdAt": "[time]",
        "id": "[secret id]",
        "retiredAt": null,
        "signs": false,
        "tokens": 1
      }
    ]
    "#);
    assert_eq!(list.at("/0/id"), made.at("/id"));
    for token in [&old, &new] {
        bearer_of(&node, token).get("/account/app").await.expect(200);
    }
    app.operator().delete(&format!("{}/{}", secrets_of(&app), list.text("/1/id"))).await.expect(200);
    for node in [&node, &app] {
        bearer_of(node, &old).get("/account/app").await.error(401, "INVALID_CREDENTIAL");
        assert_eq!(introspect(node, &old.text("/token")).await, json!({ "active": false }));
        bearer_of(node, &new).get("/account/app").await.expect(200);
    }
    app.drain().await;
    node.drain().await;
    assert_eq!(app.key().get("/account/api-token/app").await.json().as_array().map(Vec::len), Some(1));
    let list = app.operator().get(&secrets_of(&app)).await;
    assert!(list.at("/1/retiredAt").is_string() && list.at("/1/tokens") == 0, "{list:?}");
}

async fn the_secret_that_signs_is_not_retired(app: TestApp) {
    let secrets = secrets_of(&app);
    let only = app.operator().get(&secrets).await.text("/0/id");
    app.operator().delete(&format!("{secrets}/{only}")).await.error(409, "SECRET_STILL_SIGNS");
    app.operator().post(&format!("{secrets}/rotate"), json!({})).await.expect(201);
    let elsewhere = format!("/admin/apps/{}/secrets/{only}", app.other_app().await.app_id());
    app.operator().delete(&elsewhere).await.error(404, "NOT_FOUND");
    app.operator().delete(&format!("{secrets}/{only}")).await.expect(200);
    app.operator().delete(&format!("{secrets}/{only}")).await.error(404, "NOT_FOUND");
}

async fn secrets_are_bounded(app: TestApp) {
    let rotate = format!("{}/rotate", secrets_of(&app));
    for _ in 1..20 {
        app.operator().post(&rotate, json!({})).await.expect(201);
    }
    app.operator().post(&rotate, json!({})).await.error(409, "TOO_MANY_SECRETS");
}

const CREDENTIAL: &str = "INSERT INTO app_credentials (app_id, name, sealed, updated_at) VALUES ($1, $2, $3, $4)";
const CONNECTION: &str = "INSERT INTO federation_connections (id, app_id, type, name, login_url, certificate, \
     request_method, signed_request, sealed_private_key, created_at) \
     VALUES ('connection_1', $1, 'saml', 'x', '', '', 'redirect', TRUE, $2, $3)";

async fn a_new_master_key_seals_every_column_again(app: TestApp) {
    const NEW_KEY: &str = "1f1e1d1c1b1a191817161514131211100f0e0d0c0b0a09080706050403020100";
    let token = app_token(&app, &["APP_READ"]).await;
    let (core, id) = (app.service().core().clone(), app.app_id());
    let keyring = core.keyring.clone();
    let stored = core.db.write(move |tx| {
        let place = |table, column, row| Place { table, column, row, app: Some(id) };
        let seal = |place: Place<'_>| keyring.seal(&place, b"hunter2");
        let credential = seal(place("app_credentials", "sealed", "payproviderSecretKey"));
        tx.exec(CREDENTIAL, &args![id, "payproviderSecretKey", credential, tx.now()])?;
        let connection = seal(place("federation_connections", "sealed_private_key", "connection_1"));
        tx.exec(CONNECTION, &args![id, connection, tx.now()])
    });
    stored.await.expect("secrets can be stored");
    app.restart_with(|options| {
        options.keys.master = Some(Secret::new(NEW_KEY.into()));
        options.keys.master_previous = Some(Secret::new(MASTER_KEY.into()));
    })
    .await;
    bearer_of(&app, &token).get("/account/app").await.expect(200);
    app.drain().await;
    app.restart_with(|options| options.keys.master = Some(Secret::new(NEW_KEY.into()))).await;
    bearer_of(&app, &token).get("/account/app").await.expect(200);
    app_token(&app, &["APP_READ"]).await;
    let core = app.service().core().clone();
    let prefix = core.keyring.current_prefix();
    let of = |sql| core.db.get_one::<(String,)>(sql, &[]);
    let credential = of("SELECT sealed FROM app_credentials").await.expect("read").expect("a row").0;
    let connection = of("SELECT sealed_private_key FROM federation_connections").await.expect("read").expect("a row").0;
    for (table, column, row, sealed) in [
        ("app_credentials", "sealed", "payproviderSecretKey", credential),
        ("federation_connections", "sealed_private_key", "connection_1", connection),
    ] {
        assert!(sealed.starts_with(&prefix));
        let place = Place { table, column, row, app: Some(id) };
        assert_eq!(core.keyring.open(&place, &sealed).expect("it opens").expose(), b"hunter2");
    }
}

async fn a_large_purge_goes_in_steps(app: TestApp) {
    let (db, id) = (app.service().core().db.clone(), app.app_id());
    let filled = db.write(move |tx| {
        for number in 0..1_200_u32 {
            tenancy::links::create(tx, id, tenancy::links::LinkPurpose::Invitation, None, &Value::from(number))?;
        }
        Ok(())
    });
    filled.await.expect("links can be made");
    app.operator().delete(&format!("/admin/apps/{id}")).await.expect(200);
    app.drain().await;
    let left: Option<(i64,)> = db.get_one("SELECT count(*) FROM one_time_links", &[]).await.expect("read");
    assert_eq!(left, Some((0,)));
}

async fn links_that_expired_are_swept(app: TestApp) {
    use tenancy::links::{LinkPurpose, create};
    let (db, id) = (app.service().core().db.clone(), app.app_id());
    let made = db.write(move |tx| {
        create(tx, id, LinkPurpose::MagicLink, None, &Value::Null)?;
        create(tx, id, LinkPurpose::Invitation, None, &Value::Null)
    });
    made.await.expect("links can be made");
    app.advance(Duration::from_secs(2 * 24 * 3600)).await;
    app.drain().await;
    let left: Option<(i64,)> = db.get_one("SELECT count(*) FROM one_time_links", &[]).await.expect("read");
    assert_eq!(left, Some((1,)));
}
