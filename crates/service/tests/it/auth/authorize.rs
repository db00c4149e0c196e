//! `/auth/authorize` and `/auth/url/…`: what an app may ask for, what it gets back, and where nobody is ever sent.

use std::time::Duration;

use http::Method;
use serde_json::json;
use testkit::{
    TestApp,
    hosted::{authorize, sign_in, signed_in},
    on_both_engines,
    tokens::{CHALLENGE, REDIRECT, VERIFIER, exchange},
};

on_both_engines!(
    an_app_gets_a_code_and_its_state_back,
    the_short_form_needs_nothing_but_the_app,
    an_id_token_comes_in_the_fragment,
    an_id_token_is_for_apps_without_pkce_and_never_silent_without_a_nonce,
    whoever_is_signed_in_is_sent_back_at_once,
    prompts_are_obeyed,
    a_login_may_be_asked_to_be_young,
    signing_out_ends_what_came_from_the_browser,
    an_app_signs_somebody_out_and_gets_them_back,
    several_workspaces_are_a_choice,
    a_second_factor_is_asked_for_where_a_workspace_wants_one,
    wrong_requests_go_back_to_the_app,
    what_cannot_be_read_goes_back_to_the_app,
    nobody_is_sent_to_an_address_that_is_not_the_apps,
    a_login_at_one_app_means_nothing_at_another,
    a_code_does_not_outlive_the_end_of_all_sessions,
);

fn query(pairs: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

async fn an_app_gets_a_code_and_its_state_back(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let pkce = [("code_challenge", CHALLENGE), ("code_challenge_method", "S256")];
    let asked = [&pkce[..], &[("state", "a b&c=d"), ("nonce", "n-0S6")]].concat();
    let mut browser = app.browser();
    sign_in(browser.open(&authorize(&app, &asked)).await, &ada).await;
    assert!(browser.location.starts_with(&format!("{REDIRECT}?code=")), "{}", browser.location);
    assert_eq!(browser.answer("state").as_deref(), Some("a b&c=d"));
    assert_eq!(browser.answer("iss").as_deref(), Some("http://tenantry.test/auth"));
    let code = browser.answer("code").expect("a code");
    exchange(&app, &code, None).await.expect(400);
    let tokens = exchange(&app, &code, Some(VERIFIER)).await.expect(200);
    assert!(tokens.text("/id_token").len() > 100);
    // The login page's cookie is gone, the sign-in's is there.
    let names: Vec<&String> = browser.cookies().keys().collect();
    assert!(names.iter().any(|name| name.contains("session")) && !names.iter().any(|name| name.contains("login")));
}

async fn the_short_form_needs_nothing_but_the_app(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = app.browser();
    sign_in(browser.open(&format!("/auth/url/login/{}?state=x", app.app_id())).await, &ada).await;
    assert!(browser.location.starts_with(REDIRECT) && browser.answer("state").as_deref() == Some("x"));
    let body = json!({ "code": browser.answer("code") });
    app.anon().post(&format!("/auth/token/code/{}", app.app_id()), body).await.expect(200);
}

async fn an_id_token_comes_in_the_fragment(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = app.browser();
    let address = format!("/auth/url/login/{}?responseType=id_token&state=s&nonce=n1", app.app_id());
    sign_in(browser.open(&address).await, &ada).await;
    assert!(browser.location.starts_with(&format!("{REDIRECT}#id_token=")), "{}", browser.location);
    assert_eq!(browser.answer("state").as_deref(), Some("s"));
    let token = browser.answer("id_token").expect("a token");
    let claims = testkit::tokens::claims(&token);
    assert_eq!((claims["nonce"].as_str(), claims["email"].as_str()), (Some("n1"), Some("ada@customer.example")));
    assert_eq!(claims["aud"], app.app_id().to_string());
}

async fn an_id_token_is_for_apps_without_pkce_and_never_silent_without_a_nonce(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = signed_in(&app, &ada).await;
    let address = format!("/auth/url/login/{}?responseType=id_token&prompt=none", app.app_id());
    browser.open(&address).await;
    assert_eq!(browser.answer("error").as_deref(), Some("invalid_request"), "{}", browser.location);
    browser.open(&format!("{address}&nonce=n1")).await;
    assert!(browser.answer("id_token").is_some(), "{}", browser.location);
    app.key().put("/account/app", json!({ "requirePkce": true })).await.expect(200);
    browser.open(&format!("{address}&nonce=n1")).await;
    assert_eq!(browser.answer("error").as_deref(), Some("unsupported_response_type"), "{}", browser.location);
}

async fn whoever_is_signed_in_is_sent_back_at_once(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = signed_in(&app, &ada).await;
    let first = browser.answer("code");
    browser.open(&authorize(&app, &[("state", "2")])).await;
    assert_eq!(browser.answer("state").as_deref(), Some("2"));
    assert!(browser.answer("code").is_some() && browser.answer("code") != first);
    // As long as tokens could be refreshed, and no longer.
    app.advance(Duration::from_secs(604_800)).await;
    browser.open(&authorize(&app, &[])).await.sees(200, "Sign in to");
}

async fn prompts_are_obeyed(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut nobody = app.browser();
    nobody.open(&authorize(&app, &[("prompt", "none"), ("state", "s")])).await;
    assert_eq!(
        (nobody.answer("error").as_deref(), nobody.answer("state").as_deref()),
        (Some("login_required"), Some("s"))
    );
    let mut browser = signed_in(&app, &ada).await;
    browser.open(&authorize(&app, &[("prompt", "none")])).await;
    assert!(browser.answer("code").is_some());
    browser.open(&authorize(&app, &[("prompt", "login"), ("login_hint", "ada@customer.example")])).await;
    browser.sees(200, "value=\"ada@customer.example\"");
    sign_in(&mut browser, &ada).await;
    assert!(browser.answer("code").is_some());
    browser.open(&authorize(&app, &[("prompt", "none login")])).await;
    assert_eq!(browser.answer("error").as_deref(), Some("invalid_request"));
}

async fn a_login_may_be_asked_to_be_young(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = signed_in(&app, &ada).await;
    app.advance(Duration::from_secs(100)).await;
    browser.open(&authorize(&app, &[("max_age", "200")])).await;
    assert!(browser.answer("code").is_some());
    browser.open(&authorize(&app, &[("max_age", "50")])).await.sees(200, "Sign in to");
    browser.open(&authorize(&app, &[("max_age", "soon")])).await;
    assert_eq!(browser.answer("error").as_deref(), Some("invalid_request"));
}

async fn signing_out_ends_what_came_from_the_browser(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = signed_in(&app, &ada).await;
    let tokens = exchange(&app, &browser.answer("code").expect("a code"), None).await.expect(200);
    browser.open(&authorize(&app, &[])).await;
    let unused = browser.answer("code").expect("a code");

    let logout = format!("/auth/url/logout/{}", app.app_id());
    let answer = app.anon().get(&logout).await.expect(302);
    assert_eq!(
        answer.header("location"),
        Some(format!("http://tenantry.test/auth/url/login/{}", app.app_id()).as_str())
    );
    browser.open(&logout).await.sees(200, "Sign in to");
    let refresh = json!({ "refreshToken": tokens.text("/refresh_token") });
    app.anon().post(&format!("/auth/token/refresh/{}", app.app_id()), refresh).await.expect(401);
    let caller = app.anon().with_access_token(app.app_id(), &tokens.text("/access_token"));
    caller.get("/auth/userinfo").await.expect(401);
    exchange(&app, &unused, None).await.expect(400);
    // The redirect is for the login after this one, and has to be the app's.
    let there = query(&[("redirect_uri", REDIRECT)]);
    let answer = app.anon().get(&format!("{logout}?{there}")).await.expect(302);
    assert!(answer.header("location").is_some_and(|to| to.contains("redirectUri=http%3A%2F%2Flocalhost")));
    app.anon().get(&format!("{logout}?redirect_uri=https%3A%2F%2Fevil.example")).await.expect(400);
}

async fn an_app_signs_somebody_out_and_gets_them_back(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let endpoint = app.anon().get("/auth/.well-known/openid-configuration").await.expect(200);
    assert_eq!(endpoint.text("/end_session_endpoint"), "http://tenantry.test/auth/logout");
    let mut browser = signed_in(&app, &ada).await;
    let tokens = exchange(&app, &browser.answer("code").expect("a code"), None).await.expect(200);
    let (id, hint) = (app.app_id().to_string(), tokens.text("/id_token"));
    let logout = |pairs: &[(&str, &str)]| format!("/auth/logout?{}", query(pairs));
    let caller = app.anon().with_access_token(app.app_id(), &tokens.text("/access_token"));

    // What is wrong is said on a page, and ends nothing.
    let other = app.other_app().await.app_id().to_string();
    let unknown = "app_00000000000000000000000000";
    for (pairs, status) in [
        (&[][..], 400),
        (&[("client_id", "nonsense")], 400),
        (&[("client_id", unknown)], 404),
        (&[("id_token_hint", "nonsense")], 400),
        (&[("id_token_hint", tokens.text("/access_token").as_str())], 400),
        (&[("client_id", other.as_str()), ("id_token_hint", hint.as_str())], 400),
        (&[("client_id", id.as_str()), ("post_logout_redirect_uri", "https://evil.example")], 400),
    ] {
        browser.open(&logout(pairs)).await.sees(status, "<h1>");
        assert!(!browser.location.starts_with("https://evil.example"), "{pairs:?}");
    }
    caller.get("/auth/userinfo").await.expect(200);

    // With a form of another site, to which the browser sends no cookies.
    let form = app.anon().header("content-type", "application/x-www-form-urlencoded");
    let asked = query(&[("id_token_hint", &hint), ("post_logout_redirect_uri", REDIRECT), ("state", "a b")]);
    let again = form.send(Method::POST, "/auth/logout", asked).await.expect(303);
    let expected = logout(&[("client_id", &id), ("post_logout_redirect_uri", REDIRECT), ("state", "a b")]);
    assert_eq!(again.header("location"), Some(format!("http://tenantry.test{expected}").as_str()));

    // An ID token that has expired still tells whose login it was.
    app.advance(Duration::from_secs(7_200)).await;
    browser.open(&logout(&[("id_token_hint", &hint), ("post_logout_redirect_uri", REDIRECT), ("state", "a b")])).await;
    assert!(browser.location.starts_with(REDIRECT), "{}", browser.location);
    assert_eq!(browser.answer("state").as_deref(), Some("a b"));
    let refresh = json!({ "refreshToken": tokens.text("/refresh_token") });
    app.anon().post(&format!("/auth/token/refresh/{id}"), refresh).await.expect(401);
    caller.get("/auth/userinfo").await.expect(401);
    browser.open(&logout(&[("client_id", &id)])).await.sees(200, "Sign in to");
}

async fn several_workspaces_are_a_choice(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let other = app.workspace("Other").await;
    other.add("ada@customer.example", "MEMBER").await;
    let mut browser = app.browser();
    sign_in(browser.open(&authorize(&app, &[])).await, &ada).await;
    browser.sees(200, "Choose a workspace").sees(200, ">Other</button>");
    let member = ada.member.to_string();
    browser.submit("/auth/login/workspace", &[("member", &member)]).await;
    let tokens = exchange(&app, &browser.answer("code").expect("a code"), None).await.expect(200);
    let claims = testkit::tokens::claims(&tokens.text("/access_token"));
    assert_eq!(claims["tid"], ada.tenant.to_string());
    // Signed in, the choice comes again, unless nobody may be asked: then the last one counts.
    browser.open(&authorize(&app, &[])).await.sees(200, "Choose a workspace");
    browser.open(&authorize(&app, &[("prompt", "none")])).await;
    let tokens = exchange(&app, &browser.answer("code").expect("a code"), None).await.expect(200);
    assert_eq!(testkit::tokens::claims(&tokens.text("/access_token"))["tid"], ada.tenant.to_string());
    // Somebody else's workspace is none of hers.
    let bob = app.owner("bob@customer.example").await;
    browser.open(&authorize(&app, &[])).await;
    browser.submit("/auth/login/workspace", &[("member", &bob.member.to_string())]).await.sees(401, "Session expired");
}

async fn a_second_factor_is_asked_for_where_a_workspace_wants_one(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = signed_in(&app, &ada).await;
    app.key().put(&format!("/account/tenant/{}", ada.tenant), json!({ "mfa": true })).await.expect(200);
    browser.open(&authorize(&app, &[("prompt", "none")])).await;
    assert_eq!(browser.answer("error").as_deref(), Some("interaction_required"));
}

async fn wrong_requests_go_back_to_the_app(app: TestApp) {
    app.key().put("/account/app", json!({ "requirePkce": true })).await.expect(200);
    let pkce = [("code_challenge", CHALLENGE), ("code_challenge_method", "S256")];
    let long = "x".repeat(4097);
    for (change, error) in [
        (vec![("response_type", "token")], "unsupported_response_type"),
        (vec![("response_type", "id_token")], "unsupported_response_type"),
        (vec![("response_mode", "fragment")], "invalid_request"),
        (vec![("scope", "")], "invalid_scope"),
        (vec![("scope", "openid nonsense")], "invalid_scope"),
        (vec![("request", "e30")], "request_not_supported"),
        (vec![("request_uri", "https://evil.example/r")], "request_uri_not_supported"),
        (vec![("nonce", long.as_str())], "invalid_request"),
        (vec![("login_hint", long.as_str())], "invalid_request"),
        (vec![("force_federation", "nonsense")], "invalid_request"),
        (vec![("signup", "yes")], "invalid_request"),
        (vec![("signup", "true"), ("signup_plan", "nonsense")], "invalid_request"),
    ] {
        let mut browser = app.browser();
        browser.open(&authorize(&app, &[&pkce[..], &[("state", "s")], &change].concat())).await;
        assert!(browser.location.starts_with(&format!("{REDIRECT}?")), "{change:?} {}", browser.location);
        assert_eq!(browser.answer("error").as_deref(), Some(error), "{change:?}");
        assert_eq!(browser.answer("state").as_deref(), Some("s"), "{change:?}");
    }
    // Downgraded PKCE: none at all, the plain method, a method alone, and half a challenge.
    for change in [
        vec![],
        vec![("code_challenge", CHALLENGE)],
        vec![("code_challenge", CHALLENGE), ("code_challenge_method", "plain")],
        vec![("code_challenge_method", "S256")],
        vec![("code_challenge", "short"), ("code_challenge_method", "S256")],
    ] {
        let mut browser = app.browser();
        browser.open(&authorize(&app, &change)).await;
        assert_eq!(browser.answer("error").as_deref(), Some("invalid_request"), "{change:?}");
    }
}

async fn nobody_is_sent_to_an_address_that_is_not_the_apps(app: TestApp) {
    let (id, evil) = (app.app_id(), "https://evil.example/");
    for uri in [
        evil,
        "//evil.example",
        "javascript:alert(1)",
        "http://localhost:3000/callback/../evil",
        "http://localhost:3000/callback@evil.example",
        "http://localhost:3000/callback\r\nlocation: https://evil.example",
        "",
    ] {
        for address in [
            authorize(&app, &[("redirect_uri", uri)]),
            authorize(&app, &[("redirect_uri", uri), ("response_type", "nonsense")]),
            format!("/auth/url/login/{id}?{}", query(&[("redirectUri", uri)])),
            format!("/auth/url/signup/{id}?{}", query(&[("redirectUri", uri)])),
            format!("/auth/url/logout/{id}?{}", query(&[("redirect_uri", uri)])),
        ] {
            let answer = app.anon().get(&address).await.expect(400);
            assert_eq!(answer.header("location"), None, "{address}");
            assert!(answer.body().contains("<h1>This request could not be completed</h1>"), "{address}");
        }
    }
    for id in ["nonsense", "app_00000000000000000000000000"] {
        let answer = app.anon().get(&authorize(&app, &[("client_id", id)])).await.expect(400);
        assert!(answer.body().contains("client_id"), "{}", answer.body());
    }
    app.anon().get("/auth/url/login/app_00000000000000000000000000").await.expect(404);
    // Twice the same parameter is nobody's request.
    for twice in [format!("redirect_uri={evil}"), format!("client_id={}", app.app_id())] {
        let answer = app.anon().get(&format!("{}&{twice}&nonce=%00", authorize(&app, &[]))).await.expect(400);
        assert_eq!(answer.header("location"), None);
    }
}

async fn what_cannot_be_read_goes_back_to_the_app(app: TestApp) {
    for malformed in ["scope=openid", "nonce=a%00b", "nonce=%ff", "login_hint=%c3"] {
        let query = format!("{}&state=s1&{malformed}", authorize(&app, &[]));
        let form = app.anon().header("content-type", "application/x-www-form-urlencoded");
        let (path, body) = query.split_once('?').expect("a query");
        let answers = [app.anon().get(&query).await, form.send(Method::POST, path, body.to_owned()).await];
        for answer in answers {
            let location = answer.expect(302).header("location").expect("an address").to_owned();
            assert!(location.starts_with(&format!("{REDIRECT}?error=invalid_request&")), "{location}");
            assert!(location.contains("&state=s1"), "{location}");
        }
    }
    // A state that was given twice is nobody's.
    let query = format!("{}&state=s1&state=s2", authorize(&app, &[]));
    let location = app.anon().get(&query).await.expect(302).header("location").expect("an address").to_owned();
    assert!(location.contains("error=invalid_request") && !location.contains("state="), "{location}");
}

async fn a_login_at_one_app_means_nothing_at_another(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = signed_in(&app, &ada).await;
    let other = app.other_app().await;
    other.put("/account/app", json!({ "defaultCallbackUri": "https://other.example/cb" })).await.expect(200);
    let login = format!("/auth/url/login/{}", other.app_id());
    browser.open(&login).await.sees(200, "Sign in to");
    // Not even under the other app's name.
    let stolen = browser.cookies().iter().find(|(name, _)| name.contains("-session-")).expect("signed in").1.clone();
    browser.set_cookie(&format!("tenantry-session-{}", other.app_id()), &stolen);
    browser.open(&login).await.sees(200, "Sign in to");
}

async fn a_code_does_not_outlive_the_end_of_all_sessions(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let browser = signed_in(&app, &ada).await;
    let path = format!("/account/tenant/user/{}/sessions", ada.member);
    app.key().in_workspace(ada.tenant).delete(&path).await.expect(200);
    exchange(&app, &browser.answer("code").expect("a code"), None).await.expect(400);
}
