//! `GET /cloud-views/subscription-portal/selectPlan`, and the plan page behind it.

use std::time::Duration;

use serde_json::json;
use testkit::{
    Browser, Caller, TestApp,
    billing::{DAY, enable_provider, state},
    facts::told,
    on_both_engines,
    tokens::refresh,
};

on_both_engines!(
    a_code_opens_the_page_once_and_again_in_the_same_browser,
    plans_are_changed_on_the_page,
    pressing_a_button_twice_is_pressing_it_once,
    paid_plans_lead_to_a_checkout_and_back,
    a_keys_link_acts_in_its_name_for_an_hour,
    the_page_ends_with_the_login,
    the_page_ends_when_the_login_can_no_longer_be_refreshed,
    whoever_may_not_change_the_plan_only_looks,
    forms_of_others_are_refused,
);

async fn link(user: &Caller) -> String {
    user.get("/account/subscription/portal").await.expect(200).text("/portalUrl")
}

fn page(app: &TestApp) -> String {
    format!("/cloud-views/portal/{}/plan", app.app_id())
}

async fn press(browser: &mut Browser, app: &TestApp, fields: &[(&str, &str)]) {
    browser.submit(&page(app), fields).await;
}

async fn a_code_opens_the_page_once_and_again_in_the_same_browser(app: TestApp) {
    let acme = app.workspace("acme").await;
    let address = link(&acme.owner()).await;
    assert!(address.starts_with("http://tenantry.test/cloud-views/subscription-portal/selectPlan?code="), "{address}");
    let mut browser = app.browser();
    browser.open(&address).await.sees(200, "Choose a plan").sees(200, "You have no plan yet.");
    browser.open(&address).await.sees(200, "Choose a plan");
    browser.open(&page(&app)).await.sees(200, "Choose a plan");
    app.browser().open(&address).await.sees(401, "already been used");
    // Whatever else the browser is in.
    browser.open("/cloud-views/subscription-portal/selectPlan?code=nonesuch").await.sees(401, "not valid");
    app.anon().get("/cloud-views/subscription-portal/selectPlan").await.expect(400);
    app.browser().open(&page(&app)).await.sees(401, "not valid");
    let old = link(&acme.owner()).await;
    app.advance(Duration::from_secs(61)).await;
    app.browser().open(&old).await.sees(401, "expired");
    app.advance(Duration::from_hours(8)).await;
    browser.open(&page(&app)).await.sees(401, "");
}

async fn plans_are_changed_on_the_page(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut browser = app.browser();
    browser.open(&link(&acme.owner()).await).await;
    press(&mut browser, &app, &[("action", "trial"), ("plan", "pro")]).await;
    browser.sees(200, "Your plan is Pro.").sees(200, "Your trial ends on");
    press(&mut browser, &app, &[("action", "cancel")]).await;
    browser.sees(200, "It ends on");
    press(&mut browser, &app, &[("action", "reactivate")]).await;
    press(&mut browser, &app, &[("action", "take"), ("plan", "free")]).await;
    browser.sees(200, "Your plan is Free.");
    press(&mut browser, &app, &[("action", "trial"), ("plan", "pro")]).await;
    browser.sees(409, "has been used").sees(409, "Choose a plan");
    press(&mut browser, &app, &[("action", "take"), ("plan", "nonesuch"), ("currency", "EUR"), ("interval", "month")])
        .await;
    browser.sees(400, "must be the key of a plan");
    let euros = [("action", "take"), ("plan", "pro"), ("currency", "EUR"), ("interval", "month")];
    press(&mut browser, &app, &euros).await;
    browser.sees(200, "Your plan is Pro.").sees(200, "29 EUR / month");
    assert_eq!(state(&acme.owner()).await["status"], "active");
}

async fn pressing_a_button_twice_is_pressing_it_once(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut browser = app.browser();
    browser.open(&link(&acme.owner()).await).await;
    let euros = [("action", "take"), ("plan", "pro"), ("currency", "EUR"), ("interval", "month")];
    let presses: [(&[(&str, &str)], &str); 5] = [
        (&[("action", "trial"), ("plan", "pro")], "Your trial ends on"),
        (&[("action", "cancel")], "It ends on"),
        (&[("action", "reactivate")], "Your plan is Pro."),
        (&euros, "29 EUR / month"),
        (&[("action", "take"), ("plan", "free")], "Your plan is Free."),
    ];
    for (fields, says) in presses {
        let form = browser.filled(&page(&app), fields);
        for _ in 0..2 {
            browser.post(&page(&app), &form).await.sees(200, says);
        }
    }
}

async fn paid_plans_lead_to_a_checkout_and_back(app: TestApp) {
    enable_provider(&app, "sandbox_test").await;
    let acme = app.workspace("acme").await;
    let mut browser = app.browser();
    browser.open(&link(&acme.owner()).await).await;
    let euros = [("action", "take"), ("plan", "pro"), ("currency", "EUR"), ("interval", "month")];
    press(&mut browser, &app, &euros).await;
    browser.sees(200, "Total: 29 EUR");
    let session = browser.location.rsplit('/').next().expect("an id").to_owned();
    let form = [("cardNumber", "4242424242424242"), ("expiry", "12/40"), ("cvc", "123")];
    let form = form.map(|(name, value)| (name.to_owned(), value.to_owned()));
    browser.post(&format!("/cloud-views/sandbox/checkout/{session}"), &form).await;
    browser.sees(200, "Your plan is Pro.").sees(200, "Payment details");
    press(&mut browser, &app, &[("action", "manage")]).await;
    browser.sees(200, "Card ending in 4242");
    browser.open(&page(&app)).await;
    press(&mut browser, &app, &[("action", "take"), ("plan", "free")]).await;
    browser.sees(200, "It changes to Free on");
}

async fn a_keys_link_acts_in_its_name_for_an_hour(app: TestApp) {
    let acme = app.workspace("acme").await;
    let path = format!("/account/tenant/{}/customerPortal", acme.id);
    let address = app.key().get(&path).await.expect(200).text("/url");
    let mut browser = app.browser();
    app.advance(Duration::from_mins(59)).await;
    browser.open(&address).await.sees(200, "Choose a plan");
    press(&mut browser, &app, &[("action", "take"), ("plan", "free")]).await;
    let history = format!("/account/tenant/{}/subscription/history", acme.id);
    assert_eq!(app.key().get(&history).await.expect(200).at("/0/actor/type"), "app_key");
    app.advance(Duration::from_mins(61)).await;
    browser.open(&page(&app)).await.sees(401, "");
    let late = app.key().get(&path).await.expect(200).text("/url");
    app.advance(Duration::from_mins(61)).await;
    app.browser().open(&late).await.sees(401, "expired");
    app.other_app().await.get(&path).await.error(404, "NOT_FOUND");
    let other = app.workspace("other").await.token(&["TENANT_WRITE"]).await;
    other.get(&path).await.error(403, "FORBIDDEN");
    let code = app.key().get(&path).await.expect(200).text("/url");
    app.key_with(&["TENANT_DELETE"]).await.delete(&format!("/account/tenant/{}", acme.id)).await.expect(200);
    app.browser().open(&code).await.sees(401, "");
}

async fn the_page_ends_with_the_login(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut browser = app.browser();
    browser.open(&link(&acme.owner()).await).await.sees(200, "Choose a plan");
    let bob = acme.add("bob@example.com", "ADMIN").await;
    let mut of_bob = app.browser();
    of_bob.open(&link(&app.user(&bob)).await).await.sees(200, "Choose a plan");
    acme.key().delete(&acme.path_of(&bob)).await.expect(200);
    of_bob.open(&page(&app)).await.sees(401, "");
    browser.open(&page(&app)).await.sees(200, "Choose a plan");
    acme.key().delete(&format!("{}/sessions", acme.path_of(&acme.owner))).await.expect(200);
    browser.open(&page(&app)).await.sees(401, "");
}

async fn the_page_ends_when_the_login_can_no_longer_be_refreshed(app: TestApp) {
    let lifetimes = json!({ "refreshTokenTTL": 300, "accessTokenTTL": 60 });
    app.key().put("/account/app", lifetimes).await.expect(200);
    let ada = app.owner("ada@example.com").await;
    let tokens = ada.sign_in().await;
    let user = app.anon().with_access_token(app.app_id(), &tokens.access);
    let mut browser = app.browser();
    browser.open(&link(&user).await).await.sees(200, "Choose a plan");
    // What keeps the login up keeps the page up.
    app.advance(Duration::from_secs(200)).await;
    refresh(&app, &tokens.refresh).await.expect(200);
    app.advance(Duration::from_secs(200)).await;
    browser.open(&page(&app)).await.sees(200, "Choose a plan");
    app.advance(Duration::from_secs(400)).await;
    browser.open(&page(&app)).await.sees(401, "");
}

async fn whoever_may_not_change_the_plan_only_looks(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let user = app.user(&bob);
    user.get("/account/subscription/portal").await.error(403, "MISSING_PRIVILEGE");
    let path = format!("/auth/handover/code/{}", app.app_id());
    let body = json!({ "accessToken": user.header_sent("authorization").replace("Bearer ", "") });
    let code = app.anon().post(&path, body).await.expect(200).text("/code");
    let mut browser = app.browser();
    browser.open(&format!("/cloud-views/subscription-portal/selectPlan?code={code}")).await;
    browser.sees(200, "does not allow you to change").sees(200, "29 EUR / month");
    assert!(!browser.html().contains("<form"));
    let form = [("action".to_owned(), "trial".to_owned()), ("plan".to_owned(), "pro".to_owned())];
    browser.post(&page(&app), &form).await.sees(403, "");
}

async fn forms_of_others_are_refused(app: TestApp) {
    let acme = app.workspace("acme").await;
    let (mut one, mut other) = (app.browser(), app.browser());
    one.open(&link(&acme.owner()).await).await;
    other.open(&link(&app.workspace("other").await.owner()).await).await;
    let form: Vec<(String, String)> = other.form(&page(&app));
    one.post(&page(&app), &form).await.sees(403, "expired");
    let mut foreign = one.header("sec-fetch-site", "cross-site");
    foreign.open(&page(&app)).await;
    foreign.submit(&page(&app), &[("action", "trial"), ("plan", "pro")]).await.sees(403, "expired");
    acme.owner().get("/billing/state").await.error(404, "NOT_FOUND");
    app.advance(DAY).await;
    assert_eq!(told(&app, "subscription.created").await.len(), 0);
}
