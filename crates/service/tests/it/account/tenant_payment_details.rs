//! `/account/tenant/{tenant_id}/paymentDetails` and `…/planDetails`.

use serde_json::{Value, json};
use testkit::{Person, TestApp, assert_body, billing::enable_provider, on_both_engines, tokens::claims};

on_both_engines!(
    a_workspace_without_a_plan_should_select_one,
    a_plan_is_assigned_with_one_of_its_prices,
    a_plan_without_prices_needs_no_offer,
    an_offer_for_a_plan_without_prices_says_nothing,
    the_provider_counts_at_once_with_a_plan_and_without,
    a_trial_and_a_free_plan_ask_for_no_payments,
    only_what_is_in_the_catalog_can_be_chosen,
    another_apps_workspaces_are_not_found,
    a_workspaces_own_token_may_look_but_not_choose,
);

async fn workspace(app: &TestApp, plan: Option<&str>) -> String {
    let owner = json!({ "email": "ada@example.com", "firstName": "Ada", "lastName": "L" });
    let body = json!({ "owner": owner, "plan": plan, "muteNotifications": true });
    format!("/account/tenant/{}", app.key().post("/account/tenant", body).await.expect(200).text("/id"))
}

fn monthly(plan: &str, currency: &str) -> Value {
    json!({ "planKey": plan, "priceOffer": { "currency": currency, "recurrenceInterval": "month" } })
}

async fn a_workspace_without_a_plan_should_select_one(app: TestApp) {
    let details = app.key().get(&format!("{}/paymentDetails", workspace(&app, None).await)).await.expect(200);
    assert_body!(details, @r#"
    {
      "details": {
        "plan": null,
        "price": null,
        "trial": false,
        "trialDaysLeft": 0
      },
      "planKey": null,
      "priceOffer": null,
      "status": {
        "paymentsEnabled": false,
        "provider": null,
        "shouldSelectPlan": true,
        "shouldSetupPayments": false
      }
    }
    "#);
}

async fn a_plan_is_assigned_with_one_of_its_prices(app: TestApp) {
    let (key, path) = (app.key(), workspace(&app, None).await);
    let answer = key.post(&format!("{path}/paymentDetails"), monthly("pro", "USD")).await.expect(200);
    assert_eq!(answer.body(), "");
    let details = key.get(&format!("{path}/paymentDetails")).await.expect(200);
    let mut shown = details.json();
    let plan = shown["details"]["plan"].take();
    assert_eq!(key.get(&format!("/account/payments/plan/{}", plan["id"].as_str().expect("an id"))).await.json(), plan);
    testkit::assert_text!(testkit::redacted(&shown), @r#"
    {
      "details": {
        "plan": null,
        "price": {
          "amount": 29,
          "currency": "USD",
          "recurrenceInterval": "month"
        },
        "trial": false,
        "trialDaysLeft": 0
      },
      "planKey": "pro",
      "priceOffer": {
        "currency": "USD",
        "recurrenceInterval": "month"
      },
      "status": {
        "paymentsEnabled": false,
        "provider": null,
        "shouldSelectPlan": false,
        "shouldSetupPayments": false
      }
    }
    "#);
    let other = key.post(&format!("{path}/planDetails"), monthly("pro", "EUR")).await.expect(200);
    assert_eq!(other.json(), key.get(&format!("{path}/paymentDetails")).await.json());
    assert_eq!(other.text("/details/price/currency"), "EUR");
    let tenant = key.get(&path.replace("tenant/", "tenant/byId/")).await.expect(200);
    assert_eq!((tenant.text("/plan").as_str(), tenant.at("/paymentStatus")), ("pro", other.at("/status")));
}

async fn a_plan_without_prices_needs_no_offer(app: TestApp) {
    let (key, path) = (app.key(), workspace(&app, Some("pro")).await);
    for body in [json!({ "planKey": "free" }), json!({ "planKey": "free", "priceOffer": null })] {
        key.post(&format!("{path}/paymentDetails"), body).await.expect(200);
        let details = key.get(&format!("{path}/paymentDetails")).await.expect(200);
        assert_eq!((details.text("/planKey").as_str(), details.at("/priceOffer")), ("free", Value::Null));
    }
}

async fn an_offer_for_a_plan_without_prices_says_nothing(app: TestApp) {
    let workspace = app.workspace("acme").await;
    let path = format!("/account/tenant/{}", workspace.id);
    for place in ["planDetails/dry-run", "planDetails", "paymentDetails"] {
        app.key().post(&format!("{path}/{place}"), monthly("free", "EUR")).await.expect(200);
    }
    for place in ["checkout", "change", "select"] {
        workspace.owner().post(&format!("/account/subscription/{place}"), monthly("free", "EUR")).await.expect(201);
    }
    let details = app.key().get(&format!("{path}/paymentDetails")).await.expect(200);
    assert_eq!((details.text("/planKey").as_str(), details.at("/priceOffer")), ("free", Value::Null));
}

/// The payment status of somebody's workspace, which is the same wherever it is told.
async fn payments_of(app: &TestApp, person: &Person) -> Value {
    let (key, access) = (app.key(), person.sign_in().await.access);
    let user = app.anon().with_access_token(app.app_id(), &access);
    let shown = key.get(&format!("/account/tenant/byId/{}", person.tenant)).await.expect(200).at("/paymentStatus");
    let details = key.get(&format!("/account/tenant/{}/paymentDetails", person.tenant)).await.expect(200);
    assert_eq!(details.at("/status"), shown);
    for listed in [key.get("/account/tenant").await, user.get("/account/tenant").await] {
        let listed = listed.expect(200).json();
        let own = listed.as_array().into_iter().flatten().find(|tenant| tenant["id"] == json!(person.tenant));
        assert_eq!(own.map(|tenant| &tenant["paymentStatus"]), Some(&shown));
    }
    let (status, claims) = (user.get("/account/subscription/status").await.expect(200).json(), claims(&access));
    for member in ["shouldSelectPlan", "shouldSetupPayments"] {
        assert_eq!((&status[member], &claims[member]), (&shown[member], &shown[member]), "{member}");
    }
    shown
}

async fn the_provider_counts_at_once_with_a_plan_and_without(app: TestApp) {
    let (paying, choosing) = (app.owner("ada@example.com").await, app.owner("bob@example.com").await);
    let path = format!("/account/tenant/{}/paymentDetails", paying.tenant);
    app.key().post(&path, monthly("pro", "EUR")).await.expect(200);
    for (place, member, value, has_provider) in [
        ("/account/app", "payproviderEnabled", json!(true), false),
        ("/account/app/credentials", "payproviderSecretKey", json!("sandbox_1"), true),
        ("/account/app", "payproviderEnabled", json!(false), false),
        ("/account/app", "payproviderEnabled", json!(true), true),
        ("/account/app/credentials", "payproviderSecretKey", Value::Null, false),
    ] {
        app.key().put(place, json!({ member: value })).await.expect(200);
        let provider = has_provider.then_some("payprovider");
        let expected = |has_plan: bool| {
            json!({
                "shouldSelectPlan": !has_plan, "shouldSetupPayments": has_plan && has_provider, "paymentsEnabled": false,
                "provider": provider,
            })
        };
        assert_eq!(payments_of(&app, &paying).await, expected(true), "{member}: {value}");
        assert_eq!(payments_of(&app, &choosing).await, expected(false), "{member}: {value}");
    }
}

async fn a_trial_and_a_free_plan_ask_for_no_payments(app: TestApp) {
    enable_provider(&app, "sandbox_1").await;
    let workspace = app.workspace("acme").await;
    let path = format!("/account/tenant/byId/{}", workspace.id);
    let shown = async || app.key().get(&path).await.expect(200).at("/paymentStatus/shouldSetupPayments");
    workspace.owner().post("/billing/trial/start", json!({ "planSlug": "pro" })).await.expect(201);
    assert_eq!(shown().await, false);
    for (choice, expected) in [(monthly("pro", "EUR"), true), (json!({ "planKey": "free" }), false)] {
        app.key().post(&format!("/account/tenant/{}/planDetails", workspace.id), choice).await.expect(200);
        assert_eq!(shown().await, expected);
    }
}

async fn only_what_is_in_the_catalog_can_be_chosen(app: TestApp) {
    let (key, path) = (app.key(), workspace(&app, Some("free")).await);
    let interval = json!({ "planKey": "pro", "priceOffer": { "currency": "EUR", "recurrenceInterval": "decade" } });
    for (body, field) in [
        (json!({}), "planKey"),
        (monthly("unknown", "EUR"), "planKey"),
        (monthly("pro", "GBP"), "priceOffer"),
        (json!({ "planKey": "pro" }), "priceOffer"),
        (monthly("pro", "EURO"), "priceOffer.currency"),
        (interval, "priceOffer.recurrenceInterval"),
    ] {
        key.post(&format!("{path}/paymentDetails"), body.clone()).await.refuses(&[field]);
        key.post(&format!("{path}/planDetails"), body).await.refuses(&[field]);
    }
    assert_eq!(key.get(&format!("{path}/paymentDetails")).await.text("/planKey"), "free");
}

async fn another_apps_workspaces_are_not_found(app: TestApp) {
    let (other, path) = (app.other_app().await, workspace(&app, None).await);
    other.post("/account/payments/plan", json!({ "key": "free", "name": "F", "prices": [] })).await.expect(200);
    other.get(&format!("{path}/paymentDetails")).await.error(404, "NOT_FOUND");
    other.post(&format!("{path}/paymentDetails"), json!({ "planKey": "free" })).await.error(404, "NOT_FOUND");
    other.post(&format!("{path}/planDetails"), json!({ "planKey": "free" })).await.error(404, "NOT_FOUND");
}

async fn a_workspaces_own_token_may_look_but_not_choose(app: TestApp) {
    let (own, other) = (app.workspace("acme").await, app.workspace("other").await);
    let token = own.token(&["TENANT_READ", "TENANT_WRITE"]).await;
    let details = |id| format!("/account/tenant/{id}/paymentDetails");
    assert_eq!(token.get(&details(own.id)).await.expect(200).at("/planKey"), Value::Null);
    token.get(&details(other.id)).await.error(403, "FORBIDDEN");
    for path in ["paymentDetails", "planDetails"] {
        let path = format!("/account/tenant/{}/{path}", own.id);
        token.post(&path, json!({ "planKey": "free" })).await.error(403, "FORBIDDEN");
    }
}
