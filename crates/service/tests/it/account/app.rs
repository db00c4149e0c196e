//! `/account/app`.

use kernel::TenantId;
use serde_json::{Value, json};
use store::args;
use testkit::{TestApp, assert_body, on_both_engines};

on_both_engines!(
    each_key_sees_its_own_app,
    the_profile_changes_in_part_and_is_answered_whole,
    every_writable_member_can_be_set_and_cleared,
    read_only_and_unknown_members_are_ignored,
    each_wrong_field_is_named_and_nothing_changes,
    what_cannot_be_absent_cannot_be_cleared,
    only_a_workspace_of_the_app_becomes_its_operators,
    changes_at_once_are_all_kept,
    a_change_counts_on_every_node,
    deleting_the_app_needs_the_privilege_and_ends_everything,
);

async fn each_key_sees_its_own_app(app: TestApp) {
    let other = app.other_app().await;
    for key in [app.key(), other, app.key_with(&["APP_READ"]).await] {
        let own = key.get("/account/app").await.expect(200);
        assert_eq!(own.text("/id"), key.app_id().to_string());
        assert_eq!(own.json(), app.operator().get(&format!("/admin/apps/{}", key.app_id())).await.json());
    }
}

async fn the_profile_changes_in_part_and_is_answered_whole(app: TestApp) {
    let change = json!({ "name": "Shop", "uiUrl": "https://shop.example/start", "accessTokenTTL": 900.0 });
    let changed = app.key().put("/account/app", change).await.expect(200);
    assert_body!(changed, @r#"
    {
      "accessTokenTTL": 900,
      "allowedOrigins": [],
      "allowedTokenPrivileges": null,
      "apiUrl": null,
      "cloudViews": true,
      "createdAt": "[time]",
      "defaultCallbackUri": "http://localhost:3000/callback",
      "directoryAdSsoEnabled": false,
      "directoryMarketplaceEnabled": false,
      "domain": "localhost",
      "emailSenderEmail": null,
      "emailSenderName": null,
      "emailSenderVerified": false,
      "id": "[app id]",
      "logo": null,
      "magicLinkEnabled": true,
      "mfaEnabled": false,
      "name": "Shop",
      "onboardingFlow": "B2B",
      "operatorTenantId": null,
      "passkeysEnabled": true,
      "paymentsAutoRedirect": false,
      "payproviderEnabled": false,
      "privacyPolicyUrl": null,
      "redirectUris": [
        "http://localhost:3000/callback"
      ],
      "refreshTokenTTL": 604800,
      "requirePkce": false,
      "socialFourSsoEnabled": false,
      "socialOneSsoEnabled": false,
      "socialThreeSsoEnabled": false,
      "socialTwoSsoEnabled": false,
      "tenantSelfSignup": true,
      "termsOfServiceUrl": null,
      "uiUrl": "https://shop.example/start",
      "usageFromUsers": true,
      "webhookEnabled": true,
      "webhookEvents": [],
      "webhookUrl": null,
      "websiteUrl": null
    }
    "#);
    assert_eq!(app.key().get("/account/app").await.json(), changed.json());
}

/// A value for every member that may be written.
fn everything() -> Value {
    json!({
        "name": "Everything",
        "apiUrl": "https://api.shop.example",
        "uiUrl": "http://localhost:3000",
        "webhookUrl": "https://hooks.shop.example/in?x=1",
        "webhookEnabled": false,
        "webhookEvents": ["tenant.created", "payment.failed"],
        "logo": "https://cdn.shop.example/logo.svg",
        "websiteUrl": "https://shop.example",
        "privacyPolicyUrl": "https://shop.example/privacy",
        "termsOfServiceUrl": "https://shop.example/terms",
        "emailSenderName": "Shöp",
        "emailSenderEmail": "hello@shop.example",
        "payproviderEnabled": true,
        "paymentsAutoRedirect": true,
        "passkeysEnabled": false,
        "magicLinkEnabled": false,
        "mfaEnabled": true,
        "socialOneSsoEnabled": true,
        "directoryAdSsoEnabled": true,
        "socialTwoSsoEnabled": true,
        "socialThreeSsoEnabled": true,
        "socialFourSsoEnabled": true,
        "onboardingFlow": "B2C",
        "cloudViews": false,
        "tenantSelfSignup": false,
        "redirectUris": ["https://shop.example/cb", "com.shop.app:/cb"],
        "defaultCallbackUri": "https://shop.example/cb",
        "allowedOrigins": ["https://embed.example"],
        "accessTokenTTL": 60,
        "refreshTokenTTL": 31_536_000,
        "allowedTokenPrivileges": ["TENANT_READ"],
        "requirePkce": true,
        "usageFromUsers": false,
    })
}

async fn every_writable_member_can_be_set_and_cleared(app: TestApp) {
    let changed = app.key().put("/account/app", everything()).await.expect(200).json();
    for (member, value) in everything().as_object().expect("an object") {
        assert_eq!(&changed[member], value, "{member}");
    }
    let nullable = [
        "apiUrl",
        "uiUrl",
        "webhookUrl",
        "logo",
        "websiteUrl",
        "privacyPolicyUrl",
        "termsOfServiceUrl",
        "emailSenderName",
        "emailSenderEmail",
        "defaultCallbackUri",
        "allowedTokenPrivileges",
        "operatorTenantId",
    ];
    let lists = ["webhookEvents", "redirectUris", "allowedOrigins"];
    let nothing: Value = nullable.iter().chain(&lists).map(|member| ((*member).to_owned(), Value::Null)).collect();
    let cleared = app.key().put("/account/app", nothing).await.expect(200).json();
    for member in nullable {
        assert_eq!(cleared[member], Value::Null, "{member}");
    }
    for member in lists {
        assert_eq!(cleared[member], json!([]), "{member}");
    }
    assert_eq!(cleared["onboardingFlow"], "B2C");
}

async fn read_only_and_unknown_members_are_ignored(app: TestApp) {
    let before = app.key().get("/account/app").await.json();
    let ignored = json!({
        "id": "app_x", "domain": "stolen.example", "createdAt": 7, "directoryMarketplaceEnabled": true,
        "emailSenderVerified": true, "version": 99, "colour": "red",
    });
    assert_eq!(app.key().put("/account/app", ignored).await.expect(200).json(), before);
}

async fn each_wrong_field_is_named_and_nothing_changes(app: TestApp) {
    let before = app.key().get("/account/app").await.json();
    for (body, field) in [
        (json!({ "name": " " }), "name"),
        (json!({ "name": 3 }), "name"),
        (json!({ "apiUrl": "shop.example" }), "apiUrl"),
        (json!({ "uiUrl": "" }), "uiUrl"),
        (json!({ "webhookUrl": "ftp://shop.example" }), "webhookUrl"),
        (json!({ "logo": "javascript:alert(1)" }), "logo"),
        (json!({ "websiteUrl": "https://" }), "websiteUrl"),
        (json!({ "privacyPolicyUrl": "https://a b" }), "privacyPolicyUrl"),
        (json!({ "termsOfServiceUrl": "https://a.example/\n" }), "termsOfServiceUrl"),
        (json!({ "emailSenderName": "a\r\nBcc: x@example.com" }), "emailSenderName"),
        (json!({ "emailSenderEmail": "Shop <hello@shop.example>" }), "emailSenderEmail"),
        (json!({ "onboardingFlow": "B2G" }), "onboardingFlow"),
        (json!({ "mfaEnabled": "yes" }), "mfaEnabled"),
        (json!({ "redirectUris": ["https://a.example", "javascript:x"] }), "redirectUris[1]"),
        (json!({ "redirectUris": "https://a.example" }), "redirectUris"),
        (json!({ "defaultCallbackUri": "/cb" }), "defaultCallbackUri"),
        (json!({ "allowedOrigins": ["https://a.example/path"] }), "allowedOrigins[0]"),
        (json!({ "accessTokenTTL": 59 }), "accessTokenTTL"),
        (json!({ "accessTokenTTL": 2_592_001 }), "accessTokenTTL"),
        (json!({ "refreshTokenTTL": 299 }), "refreshTokenTTL"),
        (json!({ "refreshTokenTTL": 31_536_001 }), "refreshTokenTTL"),
        (json!({ "accessTokenTTL": 60.5 }), "accessTokenTTL"),
        (json!({ "webhookEvents": ["tenant.exploded"] }), "webhookEvents[0]"),
        (json!({ "allowedTokenPrivileges": [""] }), "allowedTokenPrivileges[0]"),
        (json!({ "operatorTenantId": "tenant_x" }), "operatorTenantId"),
        (json!([]), "body"),
    ] {
        app.key().put("/account/app", body).await.refuses(&[field]);
    }
    let several = json!({ "name": "", "uiUrl": "x", "accessTokenTTL": 1 });
    app.key().put("/account/app", several).await.refuses(&["name", "uiUrl", "accessTokenTTL"]);
    assert_eq!(app.key().get("/account/app").await.json(), before);
    app.key_with(&["APP_READ"]).await.put("/account/app", json!({})).await.error(403, "MISSING_PRIVILEGE");
}

async fn what_cannot_be_absent_cannot_be_cleared(app: TestApp) {
    for member in ["name", "webhookEnabled", "mfaEnabled", "onboardingFlow", "accessTokenTTL", "requirePkce"] {
        app.key().put("/account/app", json!({ member: null })).await.refuses(&[member]);
    }
}

async fn only_a_workspace_of_the_app_becomes_its_operators(app: TestApp) {
    let (own, foreign) = (TenantId::from_u128(1), TenantId::from_u128(2));
    let other = app.other_app().await;
    for (tenant, owner) in [(own, app.app_id()), (foreign, other.app_id())] {
        let insert = move |tx: &mut store::Tx<'_>| {
            tx.exec(
                "INSERT INTO tenants (id, app_id, name, locale, mfa, onboarded, metadata, jit_provisioning, signup_email, \
                 signup_first_name, signup_last_name, should_select_plan, should_setup_payments, payments_enabled, \
                 created_at) VALUES ($1, $2, 'W', 'en', FALSE, TRUE, '{}', TRUE, '', '', '', FALSE, FALSE, FALSE, $3)",
                &args![tenant, owner, tx.now()],
            )
        };
        app.service().core().db.write(insert).await.expect("inserted");
    }
    let set = json!({ "operatorTenantId": own });
    assert_eq!(app.key().put("/account/app", set).await.expect(200).text("/operatorTenantId"), own.to_string());
    for wrong in [foreign, TenantId::from_u128(3)] {
        app.key().put("/account/app", json!({ "operatorTenantId": wrong })).await.refuses(&["operatorTenantId"]);
    }
}

async fn changes_at_once_are_all_kept(app: TestApp) {
    let members = ["mfaEnabled", "socialOneSsoEnabled", "socialTwoSsoEnabled", "socialThreeSsoEnabled", "requirePkce"];
    let key = app.key();
    let changes = members.map(|member| key.put("/account/app", json!({ member: true })));
    for answer in futures_util::future::join_all(changes).await {
        answer.expect(200);
    }
    let profile = app.key().get("/account/app").await.json();
    assert!(members.iter().all(|member| profile[member] == true), "{profile}");
}

async fn a_change_counts_on_every_node(app: TestApp) {
    let other = app.another_node().await;
    let allows = async |node: &TestApp| {
        let page = node.key().header("origin", "https://new.example").get("/account/app").await;
        page.header("access-control-allow-origin") == Some("https://new.example")
    };
    assert!(!allows(&app).await && !allows(&other).await);
    app.key().put("/account/app", json!({ "allowedOrigins": ["https://new.example"] })).await.expect(200);
    assert!(allows(&app).await);
    app.drain().await;
    other.drain().await;
    assert!(allows(&other).await);
}

async fn deleting_the_app_needs_the_privilege_and_ends_everything(app: TestApp) {
    app.key().delete("/account/app").await.error(403, "MISSING_PRIVILEGE");
    app.key().put("/account/app/credentials", json!({ "payproviderSecretKey": "sk_1" })).await.expect(200);
    app.key().post("/admin/brand/css", json!({ "content": "a{}" })).await.expect(200);
    let key = app.key_with(&["APP_DELETE"]).await;
    assert_eq!(key.delete("/account/app").await.expect(200).json(), json!({ "success": true }));
    key.delete("/account/app").await.error(401, "INVALID_CREDENTIAL");
    app.operator().get(&format!("/admin/apps/{}", app.app_id())).await.error(404, "NOT_FOUND");
    app.drain().await;
    for left in ["SELECT COUNT(*) FROM app_credentials", "SELECT COUNT(*) FROM brand_styles"] {
        let count: Option<(i64,)> = app.service().core().db.get_one(left, &[]).await.expect("counted");
        assert_eq!(count, Some((0,)), "{left}");
    }
}
