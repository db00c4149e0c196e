//! `/admin/apps`.

use std::collections::HashSet;

use futures_util::future::join_all;
use kernel::AppId;
use serde_json::{Value, json};
use testkit::{TestApp, assert_body, on_both_engines};

on_both_engines!(
    a_new_app_is_answered_whole_with_its_key,
    what_was_made_is_listed_newest_first_and_found_by_its_id,
    everything_that_may_be_given_is_kept,
    each_wrong_field_is_named_and_nothing_is_made,
    a_domain_belongs_to_one_app_whatever_its_case,
    of_sixteen_at_once_one_gets_the_domain,
    a_list_can_be_taken_in_parts,
    an_unknown_app_is_not_found,
    a_deleted_app_is_gone_with_its_keys,
);

async fn create(app: &TestApp, domain: &str) -> AppId {
    app.operator().post("/admin/apps", json!({ "name": "Shop", "domain": domain })).await.expect(201).id("/app/id")
}

async fn listed(app: &TestApp, query: &str) -> Vec<Value> {
    let list = app.operator().get(&format!("/admin/apps{query}")).await.expect(200).json();
    list.as_array().expect("a list").clone()
}

async fn a_new_app_is_answered_whole_with_its_key(app: TestApp) {
    let made =
        app.operator().post("/admin/apps", json!({ "name": "Shop", "domain": "shop.example" })).await.expect(201);
    assert_body!(made, @r#"
    {
      "apiKey": "[API key]",
      "app": {
        "accessTokenTTL": 3600,
        "allowedOrigins": [],
        "allowedTokenPrivileges": null,
        "apiUrl": null,
        "cloudViews": true,
        "createdAt": "[time]",
        "defaultCallbackUri": null,
        "directoryAdSsoEnabled": false,
        "directoryMarketplaceEnabled": false,
        "domain": "shop.example",
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
        "redirectUris": [],
        "refreshTokenTTL": 604800,
        "requirePkce": false,
        "socialFourSsoEnabled": false,
        "socialOneSsoEnabled": false,
        "socialThreeSsoEnabled": false,
        "socialTwoSsoEnabled": false,
        "tenantSelfSignup": true,
        "termsOfServiceUrl": null,
        "uiUrl": null,
        "usageFromUsers": true,
        "webhookEnabled": true,
        "webhookEvents": [],
        "webhookUrl": null,
        "websiteUrl": null
      }
    }
    "#);
    let key = app.anon().with_api_key(made.id("/app/id"), &made.text("/apiKey"));
    assert_eq!(key.get("/account/app").await.expect(200).json(), made.at("/app"));
}

async fn what_was_made_is_listed_newest_first_and_found_by_its_id(app: TestApp) {
    let (one, two) = (create(&app, "one.example").await, create(&app, "two.example").await);
    let list = listed(&app, "").await;
    let ids: Vec<AppId> = list.iter().map(|app| app["id"].as_str().expect("an id").parse().expect("an id")).collect();
    assert_eq!(ids, [two, one, app.app_id()]);
    assert_eq!(app.operator().get(&format!("/admin/apps/{one}")).await.expect(200).json(), list[1]);
}

async fn everything_that_may_be_given_is_kept(app: TestApp) {
    let given = json!({
        "name": "  Shop \u{1F6D2} ", "domain": "shop.example", "uiUrl": "https://shop.example/start",
        "redirectUris": ["https://shop.example/cb", "com.shop.app:/cb"], "defaultCallbackUri": "https://shop.example/cb",
        "id": "app_of_my_choice", "mfaEnabled": true, "whatever": { "is": ["unknown"] },
    });
    let made = app.operator().post("/admin/apps", given.clone()).await.expect(201);
    let kept = app.operator().get(&format!("/admin/apps/{}", made.text("/app/id"))).await.expect(200);
    for member in ["domain", "uiUrl", "redirectUris", "defaultCallbackUri"] {
        assert_eq!(kept.at(&format!("/{member}")), given[member], "{member}");
    }
    assert_eq!((kept.text("/name").as_str(), kept.at("/mfaEnabled")), ("Shop \u{1F6D2}", json!(false)));
}

async fn each_wrong_field_is_named_and_nothing_is_made(app: TestApp) {
    let before = listed(&app, "").await;
    let refused = [
        (json!({}), &["domain", "name"][..]),
        (json!({ "name": "Shop" }), &["domain"]),
        (json!({ "name": " ", "domain": "" }), &["domain", "name"]),
        (json!({ "name": 7, "domain": "shop.example" }), &["name"]),
        (json!({ "name": "Shop", "domain": ["shop.example"] }), &["domain"]),
        (json!({ "name": null, "domain": "shop.example" }), &["name"]),
        (json!({ "name": "n\0l", "domain": "shop.example" }), &["name"]),
        (json!({ "name": "x".repeat(64 * 1024 + 1), "domain": "shop.example" }), &["name"]),
        (json!({ "name": "Shop", "domain": "https://shop.example" }), &["domain"]),
        (json!({ "name": "Shop", "domain": "shop.example", "uiUrl": "shop.example" }), &["uiUrl"]),
        (json!({ "name": "Shop", "domain": "shop.example", "redirectUris": "x" }), &["redirectUris"]),
        (
            json!({ "name": "Shop", "domain": "shop.example", "redirectUris": ["https://ok.example", "javascript:x", 1],
                    "defaultCallbackUri": "/cb" }),
            &["defaultCallbackUri", "redirectUris[1]", "redirectUris[2]"],
        ),
        (
            json!({ "name": "Shop", "domain": "shop.example", "redirectUris": ["https://ok.example", "javascript:x"],
                    "defaultCallbackUri": "/cb" }),
            &["defaultCallbackUri", "redirectUris[1]"],
        ),
        (
            json!({ "name": "Shop", "domain": "shop.example", "redirectUris": vec!["https://a.example"; 1001] }),
            &["redirectUris"],
        ),
    ];
    for (body, fields) in refused {
        let answer = app.operator().post("/admin/apps", body).await.error(400, "VALIDATION_FAILED");
        let named: HashSet<String> = answer.field_errors().into_iter().collect();
        assert_eq!(named, fields.iter().map(|field| (*field).to_owned()).collect(), "{answer:?}");
    }
    assert_eq!(listed(&app, "").await, before);
}

async fn a_domain_belongs_to_one_app_whatever_its_case(app: TestApp) {
    create(&app, "shop.example").await;
    let again = json!({ "name": "Copy", "domain": "Shop.EXAMPLE" });
    app.operator().post("/admin/apps", again).await.error(409, "DOMAIN_TAKEN");
    assert_eq!(listed(&app, "").await.len(), 2);
}

async fn of_sixteen_at_once_one_gets_the_domain(app: TestApp) {
    let caller = app.operator();
    let race =
        join_all((0..16).map(|_| caller.post("/admin/apps", json!({ "name": "Shop", "domain": "a.example" })))).await;
    assert_eq!(race.iter().filter(|answer| answer.status() == 201).count(), 1);
    race.into_iter().filter(|answer| answer.status() != 201).for_each(|answer| {
        answer.error(409, "DOMAIN_TAKEN");
    });
    assert_eq!(listed(&app, "").await.len(), 2);
}

async fn a_list_can_be_taken_in_parts(app: TestApp) {
    for number in 0..3 {
        create(&app, &format!("{number}.example")).await;
    }
    let whole = listed(&app, "").await;
    assert_eq!(listed(&app, "?limit=2").await, whole[..2]);
    assert_eq!(listed(&app, "?limit=2&offset=3").await, whole[3..]);
    assert_eq!(listed(&app, "?offset=1").await, whole[1..]);
    assert_eq!(listed(&app, "?offset=9&unknown=1").await, [] as [Value; 0]);
    for (query, field) in [("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"), ("offset=-1", "offset")]
    {
        app.operator().get(&format!("/admin/apps?{query}")).await.refuses(&[field]);
    }
}

async fn an_unknown_app_is_not_found(app: TestApp) {
    let nobody = AppId::from_u128(7).to_string();
    for id in [nobody.as_str(), "app_", "app_short", "tenant_00000000000000000000000007", "x%00y", "%F0%9F%9B%92"] {
        app.operator().get(&format!("/admin/apps/{id}")).await.error(404, "NOT_FOUND");
        app.operator().delete(&format!("/admin/apps/{id}")).await.error(404, "NOT_FOUND");
        app.operator().get(&format!("/admin/apps/{id}/keys")).await.error(404, "NOT_FOUND");
    }
    app.operator().post(&format!("/admin/apps/{nobody}/keys"), json!({ "name": "k" })).await.error(404, "NOT_FOUND");
}

async fn a_deleted_app_is_gone_with_its_keys(app: TestApp) {
    let other = app.other_app().await;
    other.get("/account/app").await.expect(200);
    let path = format!("/admin/apps/{}", other.app_id());
    let domain = app.operator().get(&path).await.text("/domain");

    assert_eq!(app.operator().delete(&path).await.expect(200).json(), json!({ "success": true }));
    other.get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    app.operator().get(&path).await.error(404, "NOT_FOUND");
    app.operator().delete(&path).await.error(404, "NOT_FOUND");
    assert_eq!(listed(&app, "").await.len(), 1);
    create(&app, &domain).await;
    app.drain().await;
    other.get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    app.key().get("/account/app").await.expect(200);
}
