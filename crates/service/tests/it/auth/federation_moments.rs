//! How long a login through a provider waits at each of its stations, to the second.

use std::time::Duration;

use http::Method;
use testkit::{
    Answer, Browser, Caller, HERE, IdentityProvider, SamlRequest, TestApp, facts::told_of_app, hosted::authorize,
    on_both_engines,
};

use super::federation_oidc::{World, settings};

on_both_engines!(
    an_outcome_waits_a_minute_for_its_browser,
    a_message_that_comes_again_within_half_a_minute_is_the_same,
    a_login_waits_ten_minutes_for_its_answer,
    a_service_with_encryption_asks_no_provider_without,
);

/// A login that the provider has answered, before its browser has fetched the outcome.
struct Answered {
    app: TestApp,
    browser: Browser,
    acs: String,
    form: Vec<(String, String)>,
}

impl Answered {
    async fn new(app: &TestApp) -> Self {
        let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new("https://idp.example/"));
        let connection = idp.connect(app, &[ada.tenant]).await;
        Self::again(app, &idp, &connection).await
    }

    async fn again(app: &TestApp, idp: &IdentityProvider, connection: &str) -> Self {
        let mut browser = app.browser();
        browser.open(&authorize(app, &[("federation_connection", connection)])).await;
        let asked = SamlRequest::of(&browser.location);
        let form = idp.answer(&asked, "ada@acme.example", app.now());
        Self { app: app.clone(), browser, acs: asked.acs.replace(HERE, ""), form }
    }

    async fn post(&self) -> Answer {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.form).finish();
        let form = self.app.anon().header("content-type", "application/x-www-form-urlencoded");
        form.send(Method::POST, &self.acs, body).await
    }

    /// The address with the handle that the answer gets.
    async fn handle(&self) -> String {
        self.post().await.expect(303).header("location").expect("a handle").to_owned()
    }

    fn caller(&self) -> Caller {
        let cookies: Vec<String> =
            self.browser.cookies().iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.app.anon().header("cookie", &cookies.join("; "))
    }
}

async fn an_outcome_waits_a_minute_for_its_browser(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new("https://idp.example/"));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    for (seconds, status) in [(58, 303), (61, 400)] {
        let login = Answered::again(&app, &idp, &connection).await;
        let done = login.handle().await;
        app.advance(Duration::from_secs(seconds)).await;
        assert_eq!(login.caller().get(&done).await.status(), status, "after {seconds} seconds");
    }
}

async fn a_message_that_comes_again_within_half_a_minute_is_the_same(app: TestApp) {
    let login = Answered::new(&app).await;
    let first = login.handle().await;
    app.advance(Duration::from_secs(28)).await;
    assert_eq!(login.handle().await, first);
    app.advance(Duration::from_secs(3)).await;
    login.post().await.expect(400);
    let steps: Vec<_> = told_of_app(&app, "login.failed").await.iter().map(|told| told["step"].clone()).collect();
    assert_eq!(steps, ["replay"]);
    // The outcome of the first is still there.
    assert_eq!(login.caller().get(&first).await.status(), 303);
}

async fn a_login_waits_ten_minutes_for_its_answer(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new("https://idp.example/"));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    for (seconds, status) in [(598, 303), (601, 400)] {
        let mut browser = app.browser();
        browser.open(&authorize(&app, &[("federation_connection", &connection)])).await;
        let asked = SamlRequest::of(&browser.location);
        app.advance(Duration::from_secs(seconds)).await;
        let form = idp.answer(&asked, &ada.email, app.now());
        let login = Answered { app: app.clone(), browser, acs: asked.acs.replace(HERE, ""), form };
        assert_eq!(login.post().await.status(), status, "after {seconds} seconds");
    }
}

/// What a provider says of people would pass in the clear.
async fn a_service_with_encryption_asks_no_provider_without(world: World) {
    let providers = settings(&world.one, &world.two);
    let encrypted = |options: &mut service::Options| {
        options.providers = providers;
        options.base_url = "https://login.example".to_owned();
    };
    world.app.restart_with(encrypted).await;
    let mut browser = world.app.browser();
    browser.open(&authorize(&world.app, &[("force_federation", "social-one")])).await;
    let to = browser.location.replace("https://login.example", "");
    browser.open(&to).await.sees(502, "cannot be reached");
    assert!(world.one.asked().is_empty());
}
