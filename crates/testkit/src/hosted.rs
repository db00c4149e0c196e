//! Ways through the hosted pages.

use crate::{Browser, Person, TestApp, tokens::REDIRECT};

/// The address of a login with all that is required, and more.
pub fn authorize(app: &TestApp, more: &[(&str, &str)]) -> String {
    let id = app.app_id().to_string();
    let mut pairs = vec![("client_id", id.as_str()), ("response_type", "code"), ("redirect_uri", REDIRECT)];
    pairs.push(("scope", "openid profile email"));
    pairs.retain(|(name, _)| !more.iter().any(|(given, _)| given == name));
    pairs.extend(more);
    format!("/auth/authorize?{}", url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish())
}

/// Types the address and the password.
pub async fn sign_in(browser: &mut Browser, person: &Person) {
    browser.sees(200, "Sign in to").submit("/auth/login", &[("username", &person.email)]).await;
    browser.sees(200, "Password").submit("/auth/login/password", &[("password", &person.password)]).await;
}

pub async fn signed_in(app: &TestApp, person: &Person) -> Browser {
    let mut browser = app.browser();
    sign_in(browser.open(&authorize(app, &[])).await, person).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
    browser
}

/// A browser on the page that asks for the password.
pub async fn at_password(app: &TestApp, email: &str, asked: &[(&str, &str)]) -> Browser {
    let mut browser = app.browser();
    browser.open(&authorize(app, asked)).await.submit("/auth/login", &[("username", email)]).await;
    browser.sees(200, "Password");
    browser
}

/// The address of the last page that was mailed to somebody.
pub async fn mailed(app: &TestApp, email: &str) -> String {
    app.drain().await;
    app.mailed_link(email)
}
