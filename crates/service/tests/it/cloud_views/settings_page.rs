//! The portal's page of the workspace's settings.

use futures_util::future::join;
use serde_json::{Value, json};
use testkit::{
    TestApp, Tokens, Workspace,
    factors::{log_in_with, shown, with_authenticator},
    facts::told,
    on_both_engines,
};

use super::members_page::{at_members, author, is_by, with_scope};

on_both_engines!(
    settings_are_shown_and_changed,
    a_second_factor_is_asked_of_everybody_by_who_has_shown_one,
    what_nobody_touched_stays_as_somebody_else_has_set_it,
    a_long_address_is_not_shortened,
    wrong_settings_change_nothing_and_stay_in_the_form,
    settings_are_read_and_changed_with_the_tokens_privileges,
    a_form_of_another_browser_changes_nothing,
    a_double_click_saves_once,
);

pub(super) fn settings(app: &TestApp) -> String {
    format!("/cloud-views/portal/{}/settings", app.app_id())
}

async fn stored(workspace: &Workspace) -> Value {
    let read = workspace.key().get(&format!("/account/tenant/byId/{}", workspace.id)).await.expect(200);
    json!([read.at("/name"), read.at("/locale"), read.at("/logo"), read.at("/mfa")])
}

const LOGO: &str = "https://cdn.example/logo.svg";

async fn settings_are_shown_and_changed(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut browser = at_members(&app, &acme.owner()).await;
    let way = browser.link("Settings");
    assert_eq!(way, settings(&app));
    browser.open(&way).await.sees(200, "value=\"acme\"").sees(200, "Up to each member");
    let fields = [("name", " Acme & Sons "), ("locale", "DE"), ("logo", LOGO), ("mfa", "optional")];
    browser.submit(&way, &fields).await.sees(200, "The settings have been saved.").sees(200, "Acme &amp; Sons");
    assert_eq!(stored(&acme).await, json!(["Acme & Sons", "de", LOGO, false]));
    is_by(&author(&app, "tenant.updated").await, &acme.owner);
    // What was saved is said once; an empty logo is none.
    browser.open(&way).await;
    assert!(!browser.html().contains("have been saved"));
    browser.submit(&way, &[("logo", "")]).await.sees(200, "The settings have been saved.");
    assert_eq!(stored(&acme).await, json!(["Acme & Sons", "de", null, false]));
}

async fn a_second_factor_is_asked_of_everybody_by_who_has_shown_one(app: TestApp) {
    let (ada, secret) = with_authenticator(&app, "ada@example.com").await;
    let session = log_in_with(&app, &ada, &shown(&app, &secret, 0)).await.expect(200).text("/session");
    let tokens = Tokens::of(&ada.exchange(&session).await.expect(200));
    let mallory = app.member("mallory@example.com", ada.tenant, "ADMIN").await.signed_in().await;
    let mut mallory = at_members(&app, &mallory).await;
    let mut browser = at_members(&app, &app.anon().with_access_token(app.app_id(), &tokens.access)).await;
    let required = async || {
        let path = format!("/account/tenant/byId/{}", ada.tenant);
        app.key().get(&path).await.expect(200).at("/mfa")
    };
    for (choice, kept) in [("required", false), ("optional", true)] {
        mallory.open(&settings(&app)).await;
        mallory.submit(&settings(&app), &[("mfa", choice)]).await.sees(400, "Sign in with two-step verification");
        assert_eq!(required().await, kept);
        browser.open(&settings(&app)).await;
        browser.submit(&settings(&app), &[("mfa", choice)]).await.sees(200, "The settings have been saved.");
        assert_eq!(required().await, !kept);
    }
}

async fn what_nobody_touched_stays_as_somebody_else_has_set_it(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut browser = at_members(&app, &acme.owner()).await;
    browser.open(&settings(&app)).await;
    let meanwhile = json!({ "mfa": true, "locale": "de", "logo": LOGO });
    acme.key().put(&format!("/account/tenant/{}", acme.id), meanwhile).await.expect(200);
    browser.submit(&settings(&app), &[("name", "Acme")]).await.sees(200, "The settings have been saved.");
    assert_eq!(stored(&acme).await, json!(["Acme", "de", LOGO, true]));
}

async fn a_long_address_is_not_shortened(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut browser = at_members(&app, &acme.owner()).await;
    let long = format!("https://cdn.example/{}", "x".repeat(900));
    browser.open(&settings(&app)).await;
    browser.submit(&settings(&app), &[("logo", &long)]).await.sees(200, "The settings have been saved.");
    let other = format!("{long}y");
    browser.submit(&settings(&app), &[("logo", &other), ("locale", "xx")]).await.sees(400, "Language must");
    browser.submit(&settings(&app), &[("locale", "de")]).await.sees(200, "The settings have been saved.");
    assert_eq!(stored(&acme).await, json!(["acme", "de", long, false]));
}

async fn wrong_settings_change_nothing_and_stay_in_the_form(app: TestApp) {
    let acme = app.workspace("acme").await;
    let before = stored(&acme).await;
    let mut browser = at_members(&app, &acme.owner()).await;
    let long = "x".repeat(201);
    for (field, wrong, says) in [
        ("name", " ", "Workspace name must"),
        ("name", long.as_str(), "Workspace name must"),
        ("locale", "xx", "Language must be an ISO 639-1 language code"),
        ("logo", "javascript:alert(1)", "Logo must"),
        ("logo", "no address", "Logo must"),
        ("mfa", "maybe", "Two-step verification must"),
    ] {
        browser.open(&settings(&app)).await;
        let right = if field == "name" { ("locale", "de") } else { ("name", "Changed") };
        browser.submit(&settings(&app), &[right, (field, wrong)]).await.sees(400, says);
        let shown = browser.form(&settings(&app));
        assert!(field == "mfa" || shown.contains(&(field.to_owned(), wrong.trim().to_owned())), "{shown:?}");
    }
    assert_eq!(stored(&acme).await, before);
    assert_eq!(told(&app, "tenant.updated").await.len(), 0);
}

async fn settings_are_read_and_changed_with_the_tokens_privileges(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut browser = with_scope(&app, &ada, "openid USER_READ").await;
    assert!(!browser.html().contains(">Settings</a>"));
    browser.open(&settings(&app)).await.sees(403, "does not allow you to see the settings");
    let mut browser = with_scope(&app, &ada, "openid TENANT_READ").await;
    browser.open(&settings(&app)).await.sees(200, "Language: en").sees(200, "Two-step verification: Up to each member");
    assert!(!browser.html().contains("<form"));
    let form = [("name".to_owned(), "Mine".to_owned())];
    browser.post(&settings(&app), &form).await.sees(403, "does not allow you to change the settings");
}

async fn a_form_of_another_browser_changes_nothing(app: TestApp) {
    let acme = app.workspace("acme").await;
    let before = stored(&acme).await;
    let mut browser = at_members(&app, &acme.owner()).await;
    let mut other = at_members(&app, &app.workspace("other").await.owner()).await;
    let form = other.open(&settings(&app)).await.filled(&settings(&app), &[("name", "Taken")]);
    browser.post(&settings(&app), &form).await.sees(403, "expired");
    assert_eq!(stored(&acme).await, before);
}

async fn a_double_click_saves_once(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut first = at_members(&app, &acme.owner()).await;
    first.open(&settings(&app)).await;
    let mut second = first.clone();
    let (path, fields) = (settings(&app), [("name", "Once")]);
    join(first.submit(&path, &fields), second.submit(&path, &fields)).await;
    for browser in [&mut first, &mut second] {
        browser.sees(200, "The settings have been saved.");
    }
    assert_eq!(told(&app, "tenant.updated").await.len(), 1);
}
