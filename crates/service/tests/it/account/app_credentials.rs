//! `/account/app/credentials` and its state.

use kernel::Secret;
use serde_json::{Value, json};
use tenancy::credentials::{self, Credential};
use testkit::{MASTER_KEY, TestApp, assert_body, on_both_engines};

on_both_engines!(
    the_state_tells_what_is_set_and_never_a_value,
    empty_and_null_clear_and_missing_keeps,
    values_are_sealed_and_open_for_the_service,
    wrong_members_are_named,
    values_survive_a_change_of_the_master_key,
);

const PATH: &str = "/account/app/credentials";

async fn state(app: &TestApp) -> Value {
    app.key().get("/account/app/credentialsState").await.expect(200).json()
}

async fn the_state_tells_what_is_set_and_never_a_value(app: TestApp) {
    assert_body!(app.key().get("/account/app/credentialsState").await, @r#"
    {
      "directoryAdSsoCredentialsAdded": false,
      "directoryMarketplaceCredentialsAdded": false,
      "payproviderCredentialsAdded": false,
      "socialFourSsoCredentialsAdded": false,
      "socialOneSsoCredentialsAdded": false,
      "socialThreeSsoCredentialsAdded": false,
      "socialTwoSsoCredentialsAdded": false
    }
    "#);
    for (set, member) in [
        (json!({ "payproviderSecretKey": "sk_test_1", "payproviderPublicKey": "pk_1" }), "payproviderCredentialsAdded"),
        (json!({ "socialOneClientId": "id", "socialOneClientSecret": "s3cret" }), "socialOneSsoCredentialsAdded"),
        (json!({ "socialTwoClientId": "id", "socialTwoClientSecret": "s3cret" }), "socialTwoSsoCredentialsAdded"),
        (json!({ "socialThreeClientId": "id", "socialThreeClientSecret": "s3cret" }), "socialThreeSsoCredentialsAdded"),
        (json!({ "socialFourClientId": "id", "socialFourClientSecret": "s3cret" }), "socialFourSsoCredentialsAdded"),
        (json!({ "directoryAdClientId": "id", "directoryAdClientSecret": "s3cret" }), "directoryAdSsoCredentialsAdded"),
        (
            json!({ "directoryMarketplaceClientId": "id", "directoryMarketplaceClientSecret": "s3cret", "directoryMarketplaceTenantId": "t" }),
            "directoryMarketplaceCredentialsAdded",
        ),
    ] {
        // The directory's own credentials say nothing of the marketplace.
        app.key()
            .put(PATH, json!({ "directoryAdTenantId": "t", "directoryMarketplaceClientId": "id" }))
            .await
            .expect(200);
        assert_eq!(state(&app).await[member], false);
        let answer = app.key().put(PATH, set).await.expect(200);
        assert_eq!((answer.at(&format!("/{member}")), answer.json()), (json!(true), state(&app).await));
        assert!(!answer.body().contains("s3cret") && !answer.body().contains("sk_test"));
    }
    let other = app.other_app().await;
    assert_eq!(other.get("/account/app/credentialsState").await.at("/payproviderCredentialsAdded"), false);
}

async fn empty_and_null_clear_and_missing_keeps(app: TestApp) {
    for clears in [json!(null), json!(""), json!(" \n")] {
        app.key().put(PATH, json!({ "payproviderSecretKey": "sk_1", "unknown": 1 })).await.expect(200);
        app.key().put(PATH, json!({})).await.expect(200);
        assert_eq!(state(&app).await["payproviderCredentialsAdded"], true);
        app.key().put(PATH, json!({ "payproviderSecretKey": clears })).await.expect(200);
        assert_eq!(state(&app).await["payproviderCredentialsAdded"], false, "{clears}");
    }
    app.key().put(PATH, json!({ "socialOneClientId": "half" })).await.expect(200);
    assert_eq!(state(&app).await["socialOneSsoCredentialsAdded"], false);
}

async fn value(app: &TestApp, name: Credential) -> Option<Secret<String>> {
    let (tenancy, id) = (app.service().core().tenancy.clone(), app.app_id());
    let db = tenancy.db.clone();
    db.read(move |tx| credentials::find(tx, &tenancy, id, name)).await.expect("opens")
}

async fn values_are_sealed_and_open_for_the_service(app: TestApp) {
    app.key()
        .put(PATH, json!({ "payproviderSecretKey": " sk_live_1\n", "payproviderWebhookSecret": "wh" }))
        .await
        .expect(200);
    let found = value(&app, Credential::PayproviderSecretKey).await;
    assert_eq!(found, Some(Secret::new("sk_live_1".to_owned())));
    assert_eq!(value(&app, Credential::DirectoryAdTenantId).await, None);
    let db = app.service().core().db.clone();
    let rows: Vec<(String, String)> =
        db.read(|tx| tx.all("SELECT name, sealed FROM app_credentials ORDER BY name", &[])).await.expect("read");
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|(_, sealed)| sealed.starts_with("s1.") && !sealed.contains("sk_live")));
}

async fn wrong_members_are_named(app: TestApp) {
    for (body, field) in [
        (json!({ "payproviderSecretKey": 7 }), "payproviderSecretKey"),
        (json!({ "directoryAdTenantId": "a\0" }), "directoryAdTenantId"),
        (json!({ "socialOneClientId": "x".repeat(65 * 1024) }), "socialOneClientId"),
        (json!([]), "body"),
    ] {
        app.key().put(PATH, body).await.refuses(&[field]);
    }
    app.key_with(&["APP_READ"]).await.put(PATH, json!({})).await.error(403, "MISSING_PRIVILEGE");
}

async fn values_survive_a_change_of_the_master_key(app: TestApp) {
    app.key().put(PATH, json!({ "payproviderSecretKey": "sk_1" })).await.expect(200);
    let new = "ff".repeat(32);
    app.restart_with(|options| {
        options.keys.master = Some(Secret::new(new.clone()));
        options.keys.master_previous = Some(Secret::new(MASTER_KEY.into()));
    })
    .await;
    app.drain().await;
    app.restart_with(|options| options.keys.master = Some(Secret::new(new))).await;
    assert_eq!(value(&app, Credential::PayproviderSecretKey).await, Some(Secret::new("sk_1".to_owned())));
}
