//! `/auth/demo`: where a first login can end in development.

use serde_json::json;
use testkit::{EngineName, TestApp, hosted::sign_in, on_both_engines};

on_both_engines!(a_first_login_ends_at_a_page_that_shows_its_tokens, elsewhere_there_is_no_such_page);

async fn a_first_login_ends_at_a_page_that_shows_its_tokens(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| options.base_url = "http://localhost:4780".into()).await;
    let (ada, start) = (app.owner("ada@example.com").await, format!("/auth/demo?app={}", app.app_id()));
    let mut browser = app.browser();
    browser.open(&start).await.sees(200, "A login of My app");
    let login = browser.link("Sign in");
    sign_in(browser.open(&login).await, &ada).await;
    // The login ends at the demo's own address, which a browser would open.
    let answer = browser.location.strip_prefix("http://localhost:4780").expect("at this service").to_owned();
    browser.open(&answer).await.sees(200, "The login succeeded");
    let mut again = browser.clone();
    browser
        .submit("/auth/demo", &[])
        .await
        .sees(200, "&quot;email&quot;: &quot;ada@example.com&quot;")
        .sees(200, "PS256");
    // As anywhere, a code is good for once, and ends what it began when it comes back.
    again.submit("/auth/demo", &[]).await;
    again.sees(401, "The code is not valid");

    // Another app has to allow it first.
    let new = json!({ "name": "Two", "domain": "two.example" });
    let other = app.operator().post("/admin/apps", new).await.expect(201).text("/app/id");
    browser.open(&format!("/auth/demo?app={other}")).await.sees(200, "http://localhost:4780/auth/demo");
    browser.open("/auth/demo?app=app_00000000000000000000000007").await;
    assert_eq!(browser.page().status(), 404);
}

async fn elsewhere_there_is_no_such_page(app: TestApp) {
    let mut browser = app.browser();
    browser.open(&format!("/auth/demo?app={}", app.app_id())).await;
    assert_eq!(browser.page().status(), 404);
    let redirects = app.key().get("/account/app").await.expect(200).at("/redirectUris");
    assert_eq!(redirects, json!(["http://localhost:3000/callback"]));
}
