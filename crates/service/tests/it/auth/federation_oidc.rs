//! `/auth/federation/{provider}/…` and `/auth/federation/oidc/…`: signing in through OpenID Connect and OAuth providers.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use service::{ProviderSettings, Providers, ResponseMode};
use spine::outbound::{Outbound, Targets};
use tenancy::federation::Provider;
use testkit::{
    Browser, Caller, EngineName, Fixture, OnPort, OpenIdProvider, OpenIdRequest, TestApp, Tokens, counterparts,
    facts::{told, told_of_app},
    hosted::{authorize, signed_in},
    on_both_engines,
    tokens::exchange,
};

on_both_engines!(
    somebody_signs_in_with_a_provider_that_knows_their_address,
    a_known_subject_stays_the_same_person,
    a_newcomer_signs_up_without_a_mail,
    who_is_not_believed_or_not_let_in_sees_why,
    an_answer_belongs_to_one_login_at_one_provider_in_one_browser,
    a_token_that_is_wrong_in_any_claim_is_refused,
    a_token_that_proves_nothing_is_refused,
    a_posted_answer_is_fetched_by_its_own_browser,
    keys_are_rolled_over_without_a_failed_login,
    a_provider_that_fails_is_a_page,
    a_provider_inside_the_network_is_not_asked,
    a_provider_without_id_tokens_is_asked_who_it_is,
    a_fresh_sign_in_travels_on_and_is_held_against_the_answer,
    what_is_off_is_not_offered,
    of_many_at_once_one_gets_in,
    a_login_begun_on_one_node_ends_on_another,
    identities_are_listed_and_removed_but_for_the_last_way_in,
    a_connection_opens_its_own_workspaces_and_no_other,
    a_connection_keeps_its_type_and_its_secret,
    a_certified_provider_is_understood,
);

/// An app with two providers: one answers in the query, one by a form, and both know how to be an OAuth provider.
#[derive(Clone)]
pub(super) struct World {
    pub(super) app: TestApp,
    pub(super) one: Arc<OpenIdProvider>,
    pub(super) two: Arc<OpenIdProvider>,
}

impl Fixture for World {
    async fn prepare(engine: EngineName) -> Self {
        let (one, two) = (OpenIdProvider::start().await, OpenIdProvider::start().await);
        let providers = settings(&one, &two);
        let app = TestApp::start_with(engine, |options| options.providers = providers).await;
        let clients = json!({
            "socialOneClientId": "one", "socialOneClientSecret": "s1", "socialTwoClientId": "two",
            "socialTwoClientSecret": "s2", "socialThreeClientId": "three", "socialThreeClientSecret": "s3",
        });
        app.key().put("/account/app/credentials", clients).await.expect(200);
        let on = json!({ "socialOneSsoEnabled": true, "socialTwoSsoEnabled": true, "socialThreeSsoEnabled": true });
        app.key().put("/account/app", on).await.expect(200);
        Self { app, one: Arc::new(one), two: Arc::new(two) }
    }

    async fn finish(self) {
        self.app.finish().await;
    }
}

pub(super) fn settings(one: &OpenIdProvider, two: &OpenIdProvider) -> Providers {
    let with_issuer = |name: &str, issuer: &str, response_mode| ProviderSettings {
        name: name.into(),
        issuer: Some(issuer.to_owned()),
        scopes: "openid email profile".into(),
        verified_claim: "email_verified".into(),
        response_mode,
        ..ProviderSettings::default()
    };
    let at_two = |path: &str| Some(format!("{}/{path}", two.issuer));
    let plain = ProviderSettings {
        name: "Forge".into(),
        scopes: "user:email".into(),
        verified_claim: "email_verified".into(),
        authorization_endpoint: at_two("authorize"),
        token_endpoint: at_two("token"),
        userinfo_endpoint: at_two("userinfo"),
        emails_endpoint: at_two("emails"),
        ..ProviderSettings::default()
    };
    Providers::new([
        (Provider::SocialOne, with_issuer("Acme", &one.issuer, ResponseMode::Query)),
        (Provider::SocialTwo, with_issuer("Pear", &two.issuer, ResponseMode::FormPost)),
        (Provider::SocialThree, plain),
    ])
}

impl World {
    fn now(&self) -> i64 {
        self.app.now().as_seconds()
    }

    /// A browser that was sent to a provider.
    pub(super) async fn at(&self, provider: &str) -> (Browser, OpenIdRequest) {
        self.asked(&[("force_federation", provider)]).await
    }

    pub(super) async fn asked(&self, more: &[(&str, &str)]) -> (Browser, OpenIdRequest) {
        let mut browser = self.app.browser();
        browser.open(&authorize(&self.app, more)).await;
        assert!(browser.location.contains("/authorize?"), "{} {}", browser.location, browser.html());
        let asked = OpenIdRequest::of(&browser.location);
        (browser, asked)
    }

    pub(super) fn claims(&self, asked: &OpenIdRequest, email: &str) -> Value {
        asked.claims(&self.one.issuer, email, self.now())
    }

    pub(super) async fn come(&self, email: &str) -> Browser {
        let (mut browser, asked) = self.at("social-one").await;
        let answer = self.one.answer(&asked, self.claims(&asked, email));
        browser.open(&callback(&asked, &answer)).await;
        browser
    }

    async fn come_as(&self, change: Value) -> Browser {
        let (mut browser, asked) = self.at("social-one").await;
        let answer = self.one.answer(&asked, with(self.claims(&asked, "ada@acme.example"), &change));
        browser.open(&callback(&asked, &answer)).await;
        browser
    }

    async fn tokens(&self, browser: &Browser) -> Tokens {
        let code = browser.answer("code").unwrap_or_else(|| panic!("no code: {}", browser.location));
        Tokens::of(&exchange(&self.app, &code, None).await.expect(200))
    }

    fn bearer(&self, tokens: &Tokens) -> Caller {
        self.app.anon().header("authorization", &format!("Bearer {}", tokens.access))
    }

    async fn me(&self, browser: &Browser) -> Value {
        self.bearer(&self.tokens(browser).await).get("/auth/userinfo").await.expect(200).json()
    }

    /// The steps at which logins failed, oldest first.
    pub(super) async fn failed(&self) -> Vec<String> {
        let told = told_of_app(&self.app, "login.failed").await;
        told.iter().map(|told| told["step"].as_str().expect("a step").to_owned()).collect()
    }
}

fn with(mut claims: Value, change: &Value) -> Value {
    for (name, value) in change.as_object().expect("an object") {
        claims[name] = value.clone();
    }
    claims
}

pub(super) fn callback(asked: &OpenIdRequest, answer: &[(String, String)]) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(answer).finish();
    format!("{}?{query}", asked.get("redirect_uri"))
}

pub(super) const REFUSED: &str = "could not be accepted";

async fn somebody_signs_in_with_a_provider_that_knows_their_address(world: World) {
    let ada = world.app.owner("ada@acme.example").await;
    let mut browser = world.app.browser();
    browser.open(&authorize(&world.app, &[])).await.sees(200, "Continue with Acme");
    let button = browser.link("Continue with Acme");
    browser.open(&button).await;
    let asked = OpenIdRequest::of(&browser.location);
    assert_eq!((asked.get("response_type"), asked.get("scope")), ("code", "openid email profile"));
    assert_eq!((asked.get("client_id"), asked.get("code_challenge_method")), ("one", "S256"));
    let answer = world.one.answer(&asked, world.claims(&asked, "Ada@acme.example"));
    browser.open(&callback(&asked, &answer)).await;
    let me = world.me(&browser).await;
    assert_eq!((me["email"].as_str(), me["email_verified"].as_bool()), (Some(ada.email.as_str()), Some(true)));
    let (_, told) = told(&world.app, "login.succeeded").await.pop().expect("it is told");
    assert_eq!((told["method"].as_str(), told["provider"].as_str()), (Some("federation"), Some("social-one")));
    // The browser's sign-in counts for this provider, and for no other.
    let quiet = |provider| authorize(&world.app, &[("force_federation", provider), ("prompt", "none")]);
    assert!(browser.open(&quiet("social-one")).await.answer("code").is_some(), "{}", browser.location);
    assert_eq!(browser.open(&quiet("social-two")).await.answer("error").as_deref(), Some("login_required"));
    let mut other = signed_in(&world.app, &ada).await;
    assert_eq!(other.open(&quiet("social-one")).await.answer("error").as_deref(), Some("login_required"));
}

async fn a_known_subject_stays_the_same_person(world: World) {
    let (ada, bob) = (world.app.owner("ada@acme.example").await, world.app.owner("bob@acme.example").await);
    let first = world.me(&world.come_as(json!({ "sub": "4711" })).await).await;
    for change in [
        json!({ "sub": "4711", "email": bob.email }),
        json!({ "sub": "4711", "email": "new@acme.example", "email_verified": false }),
        json!({ "sub": "4711", "email": null }),
    ] {
        let again = world.me(&world.come_as(change.clone()).await).await;
        assert_eq!((&again["sub"], &again["email"]), (&first["sub"], &json!(ada.email)), "{change}");
    }
    // The same subject at another provider is somebody else.
    let (mut browser, asked) = world.at("social-two").await;
    let claims = with(asked.claims(&world.two.issuer, &bob.email, world.now()), &json!({ "sub": "4711" }));
    browser.post(asked.get("redirect_uri"), &world.two.answer(&asked, claims)).await;
    assert_eq!(world.me(&browser).await["email"], json!(bob.email));
}

async fn a_newcomer_signs_up_without_a_mail(world: World) {
    let mut browser = world.come("eve@new.example").await;
    browser.sees(200, "Hopper").sees(200, "eve@new.example");
    let page = browser.location.clone();
    let form = "/auth/login/signup-provider";
    browser.submit(form, &[("first_name", " "), ("workspace", "Eve & Co")]).await.sees(400, "Enter your first name.");
    // What was proven in one browser proves nothing in another.
    let mut thief = world.app.browser();
    thief.open(&authorize(&world.app, &[])).await;
    thief.open(&page).await.sees(400, "proof");
    browser.submit(form, &[("first_name", "Eve"), ("workspace", "Eve & Co"), ("username", "ada@acme.example")]).await;
    let me = world.me(&browser).await;
    assert_eq!((me["email"].as_str(), me["email_verified"].as_bool()), (Some("eve@new.example"), Some(true)));
    assert_eq!(me["given_name"], "Eve");
    world.app.drain().await;
    assert!(world.app.mails().is_empty(), "{:?}", world.app.mails().len());
    let again = world.me(&world.come("eve@new.example").await).await;
    assert_eq!(again["sub"], me["sub"]);
    assert_eq!(told_of_app(&world.app, "identity.linked").await.len(), 1);
}

async fn who_is_not_believed_or_not_let_in_sees_why(world: World) {
    let ada = world.app.owner("ada@acme.example").await;
    let bob = world.app.member("bob@acme.example", ada.tenant, "MEMBER").await;
    world.come_as(json!({ "email_verified": false })).await.sees(403, "has not verified");
    world.come_as(json!({ "email_verified": null })).await.sees(403, "has not verified");
    world.come_as(json!({ "email": "not an address" })).await.sees(403, "did not tell");
    let path = format!("/account/tenant/user/{}", bob.member);
    world.app.key().in_workspace(ada.tenant).put(&path, json!({ "enabled": false })).await.expect(200);
    world.come(&bob.email).await.sees(403, "disabled");
    world.app.key().put("/account/app", json!({ "tenantSelfSignup": false })).await.expect(200);
    world.come("eve@new.example").await.sees(403, "no account");
    assert_eq!(world.failed().await, ["entry"; 5]);
    assert!(told_of_app(&world.app, "identity.linked").await.is_empty());
}

async fn an_answer_belongs_to_one_login_at_one_provider_in_one_browser(world: World) {
    world.app.owner("ada@acme.example").await;
    let (mut browser, asked) = world.at("social-one").await;
    let answer = world.one.answer(&asked, world.claims(&asked, "ada@acme.example"));
    let replace = |name: &str, value: &str| {
        let change =
            |(own, kept): &(String, String)| (own.clone(), if own == name { value.to_owned() } else { kept.clone() });
        callback(&asked, &answer.iter().map(change).collect::<Vec<_>>())
    };
    // Login CSRF: an attacker's answer in a victim's browser.
    let mut victim = world.app.browser();
    victim.open(&authorize(&world.app, &[])).await;
    victim.open(&callback(&asked, &answer)).await.sees(400, REFUSED);
    for address in [
        replace("state", "unknown"),
        replace("state", ""),
        callback(&asked, &[]),
        // Mix-up: another provider's callback, and another provider's name.
        callback(&asked, &answer).replace("social-one", "social-two"),
    ] {
        browser.open(&address).await.sees(400, REFUSED);
    }
    let (mut mixed_up, other) = world.at("social-one").await;
    let answered = [
        ("state".to_owned(), other.get("state").to_owned()),
        answer[1].clone(),
        ("iss".to_owned(), world.two.issuer.clone()),
    ];
    mixed_up.open(&callback(&other, &answered)).await.sees(400, REFUSED);
    let (mut unnamed, other) = world.at("social-one").await;
    let answered = [("state".to_owned(), other.get("state").to_owned()), answer[1].clone()];
    unnamed.open(&callback(&other, &answered)).await.sees(400, REFUSED);
    // Code injection: the code of one login in another, whose verifier does not fit.
    let (mut injected, other) = world.at("social-one").await;
    let answered = [("state".to_owned(), other.get("state").to_owned()), answer[1].clone(), answer[2].clone()];
    injected.open(&callback(&other, &answered)).await.sees(400, REFUSED);
    let (mut refused, other) = world.at("social-one").await;
    let answered =
        [("state".to_owned(), other.get("state").to_owned()), ("error".to_owned(), "access_denied<".to_owned())];
    refused.open(&callback(&other, &answered)).await.sees(400, REFUSED).sees(400, "/auth/login?r=");
    // The victim's code was used up by the injection; the login that it belonged to fails, and is over.
    browser.open(&callback(&asked, &answer)).await.sees(400, REFUSED);
    browser.open(&callback(&asked, &answer)).await.sees(400, REFUSED);
    // Too late.
    let (mut slow, asked) = world.at("social-one").await;
    let answer = world.one.answer(&asked, world.claims(&asked, "ada@acme.example"));
    world.app.advance(Duration::from_secs(601)).await;
    slow.open(&callback(&asked, &answer)).await.sees(400, REFUSED);
    let failed = world.failed().await;
    assert_eq!(failed, ["browser", "iss", "iss", "token", "answer", "token", "replay"]);
}

async fn a_token_that_is_wrong_in_any_claim_is_refused(world: World) {
    world.app.owner("ada@acme.example").await;
    let now = world.now();
    let wrong = [
        json!({ "iss": world.two.issuer }),
        json!({ "aud": "two" }),
        json!({ "aud": ["one", "two"] }),
        json!({ "azp": "two" }),
        json!({ "nonce": "of another login" }),
        json!({ "nonce": null }),
        json!({ "exp": now - 120 }),
        json!({ "iat": now + 120 }),
        json!({ "iat": now - 3600 }),
        json!({ "sub": "" }),
        json!({ "sub": null }),
        json!({ "exp": null }),
    ];
    for change in &wrong {
        world.come_as(change.clone()).await.sees(400, REFUSED);
    }
    assert_eq!(world.failed().await, vec!["id_token"; wrong.len()]);
    assert!(world.come("ada@acme.example").await.answer("code").is_some());
}

async fn a_token_that_proves_nothing_is_refused(world: World) {
    world.app.owner("ada@acme.example").await;
    let forged = async |header: Value, secret: Option<&str>| {
        let (mut browser, asked) = world.at("social-one").await;
        let encoded = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let input = format!("{}.{}", encoded(&header), encoded(&world.claims(&asked, "ada@acme.example")));
        let signature =
            secret.map(|key| vault::hmac_sha256(key.as_bytes(), input.as_bytes()).to_vec()).unwrap_or_default();
        let token = format!("{input}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
        browser.open(&callback(&asked, &world.one.answer_raw(&asked, &token))).await.sees(400, REFUSED);
    };
    forged(json!({ "alg": "none" }), None).await;
    forged(json!({ "alg": "PS256", "kid": "first" }), None).await;
    forged(json!({ "alg": "HS256", "kid": "first" }), Some(&world.one.modulus())).await;
    forged(json!({ "alg": "HS256" }), Some("s1")).await;
    // Signed well, by another provider.
    let (mut browser, asked) = world.at("social-one").await;
    let (mut posted, other) = world.at("social-two").await;
    let answer = world.one.answer(&asked, world.claims(&other, "ada@acme.example"));
    browser.open(&callback(&asked, &answer)).await.sees(400, REFUSED);
    posted.post(other.get("redirect_uri"), &answer).await.sees(400, REFUSED);
}

async fn a_posted_answer_is_fetched_by_its_own_browser(world: World) {
    let ada = world.app.owner("ada@acme.example").await;
    let (mut browser, asked) = world.at("social-two").await;
    assert_eq!(asked.get("response_mode"), "form_post");
    let answer = world.two.answer(&asked, asked.claims(&world.two.issuer, &ada.email, world.now()));
    // The form brings no cookies: whoever posts it learns a handle, which opens nothing elsewhere.
    world.app.browser().post(asked.get("redirect_uri"), &answer).await.sees(400, REFUSED);
    browser.post(asked.get("redirect_uri"), &answer).await;
    assert_eq!(world.me(&browser).await["email"], json!(ada.email));
    browser.post(asked.get("redirect_uri"), &answer).await.sees(400, REFUSED);
}

async fn keys_are_rolled_over_without_a_failed_login(world: World) {
    world.app.owner("ada@acme.example").await;
    let comes_in = async || world.come("ada@acme.example").await.answer("code").is_some();
    let reads = || world.one.asked().iter().filter(|path| *path == "jwks").count();
    assert!(comes_in().await && comes_in().await);
    assert_eq!((reads(), world.one.asked().iter().filter(|path| *path == "discovery").count()), (1, 1));
    world.app.advance(Duration::from_secs(301)).await;
    world.one.rotate("second");
    assert!(comes_in().await, "an unknown key is asked for");
    assert_eq!(reads(), 2);
    // Whoever names keys that do not exist makes nobody ask more often than every five minutes.
    world.one.rotate("third");
    world.come("ada@acme.example").await.sees(400, REFUSED);
    world.come("ada@acme.example").await.sees(400, REFUSED);
    assert_eq!(reads(), 2);
    world.app.advance(Duration::from_secs(301)).await;
    assert!(comes_in().await);
    // The document is read again after an hour, and so are keys that are no longer published.
    world.app.advance(Duration::from_secs(3601)).await;
    world.one.keys(200, "{\"keys\":[]}");
    world.come("ada@acme.example").await.sees(400, REFUSED);
    assert_eq!(world.one.asked().iter().filter(|path| *path == "discovery").count(), 2);
}

async fn a_provider_that_fails_is_a_page(world: World) {
    world.app.owner("ada@acme.example").await;
    let start = authorize(&world.app, &[("force_federation", "social-one")]);
    for (discovery, step) in [
        (json!({ "issuer": "https://elsewhere.example" }), "discovery"),
        (json!({ "issuer": format!("{}/", world.one.issuer) }), "discovery"),
        (json!({ "redirect": format!("{}/.well-known/openid-configuration", world.two.issuer) }), "discovery"),
        (json!({ "token_endpoint": "ftp://elsewhere.example" }), "discovery"),
        (json!({ "jwks_uri": null }), "discovery"),
        (json!({ "token_endpoint_auth_methods_supported": ["private_key_jwt"] }), "discovery"),
    ] {
        world.one.discovery(discovery);
        let mut browser = world.app.browser();
        browser.open(&start).await.sees(502, "cannot be reached").sees(502, "/auth/login?r=");
        assert_eq!(world.failed().await.pop().as_deref(), Some(step));
    }
    assert!(!world.two.asked().contains(&"discovery".to_owned()), "redirects are not followed");
    world.one.discovery(json!({}));
    for (status, body) in [(500, "{}"), (200, "no keys"), (200, "x".repeat(300_000).as_str())] {
        world.one.keys(status, body);
        world.come("ada@acme.example").await.sees(502, "cannot be reached");
        assert_eq!(world.failed().await.pop().as_deref(), Some("keys"));
    }
    world.one.keys(200, "{\"keys\":[]}");
    world.come("ada@acme.example").await.sees(400, REFUSED);
}

async fn a_provider_inside_the_network_is_not_asked(world: World) {
    let providers = settings(&world.one, &world.two);
    world
        .app
        .restart_with(|options| {
            options.providers = providers;
            options.outbound = Outbound::new(Targets::Public);
        })
        .await;
    let mut browser = world.app.browser();
    browser.open(&authorize(&world.app, &[("force_federation", "social-one")])).await.sees(502, "cannot be reached");
    assert!(world.one.asked().is_empty());
}

async fn a_provider_without_id_tokens_is_asked_who_it_is(world: World) {
    let ada = world.app.owner("ada@acme.example").await;
    world.two.without_id_tokens();
    world.two.userinfo(json!({ "id": 4711, "name": "Ada", "email": "public@elsewhere.example" }));
    let come = async |emails: Value| {
        world.two.emails(emails);
        let (mut browser, asked) = world.at("social-three").await;
        browser.open(&callback(&asked, &world.two.answer(&asked, json!({}))[..2])).await;
        browser
    };
    let entry = |email: &str, primary: bool, verified: bool| json!({ "email": email, "primary": primary, "verified": verified });
    come(json!([entry(&ada.email, true, false)])).await.sees(403, "did not tell");
    let first =
        world.me(&come(json!([entry("other@acme.example", false, true), entry(&ada.email, true, true)])).await).await;
    assert_eq!(first["email"], json!(ada.email));
    assert_eq!(world.me(&come(json!([])).await).await["sub"], first["sub"], "a known subject");
    // An ID token's address may be told by `userinfo`, about the same subject.
    let without = json!({ "email": null, "sub": "5" });
    for (said, email) in [
        (json!({ "sub": "6", "email": ada.email, "email_verified": true }), None),
        // The ID token calls an address verified that it does not name: that is not this one.
        (json!({ "sub": "5", "email": ada.email }), None),
        (json!({ "sub": "5", "email": ada.email, "email_verified": true }), Some(&ada.email)),
    ] {
        world.one.userinfo(said);
        let (mut browser, asked) = world.at("social-one").await;
        let mut claims = with(world.claims(&asked, "x"), &without);
        claims.as_object_mut().expect("claims").remove("email");
        browser.open(&callback(&asked, &world.one.answer(&asked, claims))).await;
        match email {
            None => assert!(matches!(browser.page().status(), 400 | 403), "{}", browser.html()),
            Some(email) => assert_eq!(world.me(&browser).await["email"], json!(email)),
        }
    }
}

async fn a_fresh_sign_in_travels_on_and_is_held_against_the_answer(world: World) {
    world.app.owner("ada@acme.example").await;
    let force = ("force_federation", "social-one");
    let (_, plain) = world.asked(&[force, ("login_hint", "ada@acme.example")]).await;
    assert_eq!((plain.find("prompt"), plain.find("max_age")), (None, None));
    assert_eq!(plain.get("login_hint"), "ada@acme.example");
    let (_, aged) = world.asked(&[force, ("max_age", "300")]).await;
    assert_eq!((aged.find("prompt"), aged.get("max_age")), (None, "300"));
    let come = async |auth_time: Value| {
        let (mut browser, asked) = world.asked(&[force, ("prompt", "login")]).await;
        assert_eq!((asked.get("prompt"), asked.get("max_age")), ("login", "0"));
        let claims = with(world.claims(&asked, "ada@acme.example"), &json!({ "auth_time": auth_time }));
        browser.open(&callback(&asked, &world.one.answer(&asked, claims))).await;
        browser
    };
    assert!(come(json!(world.now() - 50)).await.answer("code").is_some());
    come(json!(world.now() - 100)).await.sees(400, REFUSED);
    come(Value::Null).await.sees(400, REFUSED);
}

async fn what_is_off_is_not_offered(world: World) {
    world.app.owner("ada@acme.example").await;
    let list = format!("/auth/federation/providers/{}", world.app.app_id());
    let offered = async || world.app.anon().get(&list).await.expect(200).json();
    let all = json!([{ "id": "social-one", "name": "Acme" }, { "id": "social-two", "name": "Pear" }, { "id": "social-three", "name": "Forge" }]);
    assert_eq!(offered().await, all);
    world.app.anon().get(&format!("/auth/federation/providers/{}", kernel::AppId::from_u128(7))).await.expect(404);
    let (mut browser, asked) = world.at("social-one").await;
    let answer = world.one.answer(&asked, world.claims(&asked, "ada@acme.example"));
    let mut page = world.app.browser();
    page.open(&authorize(&world.app, &[])).await;
    let stale = page.link("Continue with Acme");
    world.app.key().put("/account/app", json!({ "socialOneSsoEnabled": false })).await.expect(200);
    world.app.key().put("/account/app/credentials", json!({ "socialThreeClientSecret": null })).await.expect(200);
    assert_eq!(offered().await, json!([all[1]]));
    page.open(&stale).await.sees(400, "not available").sees(400, "/auth/login?r=");
    browser.open(&callback(&asked, &answer)).await.sees(400, "not available");
    for provider in ["social-one", "social-three", "social-four", "directory-ad"] {
        let mut browser = world.app.browser();
        browser.open(&authorize(&world.app, &[("force_federation", provider)])).await;
        assert_eq!(browser.answer("error").as_deref(), Some("invalid_request"), "{provider}");
    }
    world.app.browser().open("/auth/federation/social-one/login").await.sees(400, "");
    world.app.browser().open("/auth/federation/carrier-pigeon/login?r=x").await.sees(404, "");
}

async fn of_many_at_once_one_gets_in(world: World) {
    world.app.owner("ada@acme.example").await;
    let (browser, asked) = world.at("social-one").await;
    let address = callback(&asked, &world.one.answer(&asked, world.claims(&asked, "ada@acme.example")));
    let cookies: Vec<String> = browser.cookies().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let attempts = (0..16).map(|_| {
        let (comes, path) =
            (world.app.anon().header("cookie", &cookies.join("; ")), address.replace(testkit::HERE, ""));
        tokio::spawn(async move {
            let answer = comes.get(&path).await.expect(303);
            let done = answer.header("location").expect("a handle").to_owned();
            (comes.get(&done).await.status(), done)
        })
    });
    let mut outcomes = Vec::new();
    for attempt in attempts.collect::<Vec<_>>() {
        outcomes.push(attempt.await.expect("ends"));
    }
    assert!(outcomes.iter().all(|(_, handle)| *handle == outcomes[0].1), "one handle for one code");
    assert_eq!(outcomes.iter().filter(|(status, _)| *status == 303).count(), 1, "{outcomes:?}");
    assert_eq!(world.one.asked().iter().filter(|path| *path == "token").count(), 1);
}

async fn a_login_begun_on_one_node_ends_on_another(world: World) {
    world.app.owner("ada@acme.example").await;
    let connection = connect(&world, &[]).await;
    let ada = world.app.owner("ada@customer.example").await;
    let change = json!({ "federationConnection": connection });
    world.app.key().put(&format!("/account/tenant/{}", ada.tenant), change).await.expect(200);
    let (browser, asked) = world.asked(&[("federation_connection", &connection)]).await;
    let answer = world.one.answer(&asked, world.claims(&asked, &ada.email));
    let other = world.app.another_node().await;
    let mut there = other.browser();
    for (name, value) in browser.cookies() {
        there.set_cookie(name, value);
    }
    there.open(&callback(&asked, &answer)).await;
    assert!(there.answer("code").is_some(), "{}", there.location);
}

async fn identities_are_listed_and_removed_but_for_the_last_way_in(world: World) {
    let ada = world.app.owner("ada@acme.example").await;
    let tokens = world.tokens(&world.come(&ada.email).await).await;
    let me = world.bearer(&tokens);
    let list = me.get("/account/me/identities").await.expect(200);
    assert_eq!((list.text("/0/provider").as_str(), list.text("/0/email")), ("social-one", ada.email.clone()));
    let path = format!("/account/me/identities/{}", list.text("/0/id"));
    let bob = world.app.owner("bob@acme.example").await;
    let theirs = world.bearer(&bob.sign_in().await);
    assert_eq!(theirs.get("/account/me/identities").await.expect(200).json(), json!([]));
    theirs.delete(&path).await.expect(404);
    me.delete(&path).await.expect(200);
    me.delete(&path).await.expect(404);
    assert_eq!(told_of_app(&world.app, "identity.unlinked").await.len(), 1);
    // Somebody who has nothing else keeps it.
    let mut browser = world.come("eve@new.example").await;
    browser.submit("/auth/login/signup-provider", &[("workspace", "Eve & Co")]).await;
    let eve = world.bearer(&world.tokens(&browser).await);
    let only = eve.get("/account/me/identities").await.expect(200).text("/0/id");
    eve.delete(&format!("/account/me/identities/{only}")).await.error(409, "LAST_WAY_IN");
}

/// An OpenID Connect connection, used by these workspaces.
pub(super) async fn connect(world: &World, workspaces: &[kernel::TenantId]) -> String {
    let body = json!({ "type": "oidc", "name": "Directory", "issuer": world.one.issuer, "clientId": "corp", "clientSecret": "s" });
    let made = world.app.key().post("/account/federation/connection", body).await.expect(201);
    let id = made.text("/id");
    for workspace in workspaces {
        let change = json!({ "federationConnection": id });
        world.app.key().put(&format!("/account/tenant/{workspace}"), change).await.expect(200);
    }
    id
}

async fn a_connection_opens_its_own_workspaces_and_no_other(world: World) {
    let (mallory, victim) = (world.app.owner("mallory@evil.example").await, world.app.owner("vic@acme.example").await);
    let connection = connect(&world, &[mallory.tenant]).await;
    let come = async |email: &str| {
        let (mut browser, asked) = world.asked(&[("federation_connection", &connection)]).await;
        assert_eq!(asked.get("client_id"), "corp");
        let claims = with(world.claims(&asked, email), &json!({ "email_verified": false }));
        browser.open(&callback(&asked, &world.one.answer(&asked, claims))).await;
        browser
    };
    // Nobody's address is trusted: it opens the connection's own workspace.
    let stolen = world.tokens(&come(&victim.email).await).await;
    let own = world.bearer(&stolen).get("/account/tenant").await.expect(200).json();
    assert_eq!((own.as_array().map(Vec::len), &own[0]["id"]), (Some(1), &json!(mallory.tenant)));
    let switch = json!({ "accessToken": stolen.access, "targetTenantUserId": victim.member });
    world.app.anon().post("/auth/token/workspace-switch", switch).await.expect(401);
    world.bearer(&stolen).get("/account/me/identities").await.expect(403);
    let joined = come("new@evil.example").await;
    assert_eq!(world.me(&joined).await["email_verified"], json!(false));
    // Its members are sent there; an app may insist on it.
    let mut browser = world.app.browser();
    browser.open(&authorize(&world.app, &[])).await.submit("/auth/login", &[("username", "new@evil.example")]).await;
    assert!(browser.location.starts_with(&format!("{}/authorize?", world.one.issuer)), "{}", browser.location);
    let (_, asked) = world.asked(&[("force_federation", "oidc")]).await;
    assert_eq!(asked.get("client_id"), "corp");
    for more in
        [&[("force_federation", "saml")][..], &[("force_federation", "saml"), ("federation_connection", &connection)]]
    {
        let mut browser = world.app.browser();
        assert_eq!(
            browser.open(&authorize(&world.app, more)).await.answer("error").as_deref(),
            Some("invalid_request")
        );
    }
    // The word of a provider of the app reaches further than that of a connection, at the same issuer.
    world.come(&victim.email).await.sees(200, "Workspace of vic@").sees(200, "Workspace of mallory@");
    // A connection that was moved to another issuer meanwhile is not answered by the former.
    let (mut late, asked) = world.asked(&[("federation_connection", &connection)]).await;
    let answer = world.one.answer(&asked, world.claims(&asked, "new@evil.example"));
    let path = format!("/account/federation/connection/{connection}");
    world.app.key().put(&path, json!({ "issuer": world.two.issuer })).await.expect(200);
    late.open(&callback(&asked, &answer)).await.sees(400, REFUSED);
    // Nobody knows that login: the way back is a new one through the connection.
    let unknown = format!("/auth/federation/oidc/{connection}/callback?state=unknown&code=x");
    let start = format!("/auth/federation/oidc/{connection}/login\"");
    world.app.browser().open(&unknown).await.sees(400, "Back to sign-in").sees(400, &start);
}

async fn a_connection_keeps_its_type_and_its_secret(world: World) {
    let key = world.app.key();
    let path = "/account/federation/connection";
    key.post(path, json!({ "name": "x", "type": "oidc" })).await.refuses(&["issuer", "clientId", "clientSecret"]);
    let id = connect(&world, &[]).await;
    let one = format!("{path}/{id}");
    let shown = key.get(&one).await.expect(200);
    assert!(!shown.body().contains("ecret"), "{}", shown.body());
    assert_eq!((shown.text("/type").as_str(), shown.text("/scopes").as_str()), ("oidc", "openid email profile"));
    key.put(&one, json!({ "type": "saml" })).await.refuses(&["type"]);
    key.put(&one, json!({ "clientId": null })).await.refuses(&["clientId"]);
    key.put(&one, json!({ "clientSecret": " " })).await.refuses(&["clientSecret"]);
    key.put(&one, json!({ "loginUrl": "https://a.example" })).await.refuses(&["loginUrl"]);
    let changed =
        key.put(&one, json!({ "type": "oidc", "scopes": "email groups", "clientSecret": "t" })).await.expect(200);
    assert_eq!(changed.text("/scopes"), "openid email groups");
    // Its secret travels as the provider's document says: here in the form.
    world.one.discovery(json!({ "token_endpoint_auth_methods_supported": ["client_secret_post"] }));
    let ada = world.app.owner("ada@acme.example").await;
    key.put(&format!("/account/tenant/{}", ada.tenant), json!({ "federationConnection": id })).await.expect(200);
    let (mut browser, asked) = world.asked(&[("federation_connection", &id)]).await;
    browser.open(&callback(&asked, &world.one.answer(&asked, world.claims(&asked, &ada.email)))).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
}

async fn a_certified_provider_is_understood(engine: EngineName) {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let of = |name: &str, response_mode| ProviderSettings {
        name: name.into(),
        issuer: Some(format!("http://127.0.0.1:{port}")),
        scopes: "openid email profile".into(),
        verified_claim: "email_verified".into(),
        response_mode,
        ..ProviderSettings::default()
    };
    let providers = Providers::new([
        (Provider::SocialOne, of("Acme", ResponseMode::Query)),
        (Provider::SocialTwo, of("Pear", ResponseMode::FormPost)),
    ]);
    let server = OnPort::start_with(engine, |options| options.providers = providers).await;
    counterparts::run_with(&server, "federation.mjs", &[("OPENID_PORT", port.to_string())]).await;
    server.finish().await;
}
