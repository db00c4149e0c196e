//! `/auth/federation/…`: signing in through a workspace's own identity provider.

use std::time::Duration;

use kernel::TenantId;
use serde_json::{Value, json};
use testkit::{
    Browser, Caller, IdentityProvider, SamlRequest, TestApp, Tokens,
    facts::{told, told_of_app},
    hosted::{authorize, sign_in},
    on_both_engines,
    tokens::exchange,
};

on_both_engines!(
    somebody_comes_in_through_their_workspaces_provider,
    newcomers_join_as_far_as_the_workspace_lets_them,
    a_provider_opens_its_own_workspaces_and_no_other,
    a_login_ends_with_the_providers_session_and_with_the_connection,
    an_answer_belongs_to_one_login_in_one_browser,
    an_answer_that_cannot_be_trusted_is_a_page_and_a_fact,
    whoever_must_come_through_the_provider_comes_no_other_way,
    the_first_owner_settles_who_the_provider_is,
    a_second_factor_counts_where_the_provider_is_trusted,
    what_is_forced_but_not_there_goes_back_to_the_app,
    an_address_leads_to_its_workspaces_provider,
    metadata_names_what_the_provider_needs,
    of_many_at_once_one_gets_the_outcome,
    a_known_subject_with_a_new_address_is_renamed_unless_others_know_them,
    an_invited_person_comes_in_as_what_they_were_invited_to_be,
    operators_see_what_became_of_the_last_logins,
    an_unknown_address_of_a_domain_is_sent_to_its_connection,
    a_provider_that_renames_somebody_takes_their_ways_in,
    a_providers_word_tells_a_workspace_nothing_of_a_person,
    names_from_a_provider_are_bounded_and_name_nobody_elses_people,
    a_login_request_of_another_app_opens_no_connection,
    no_route_lets_a_providers_login_beyond_its_workspace,
    no_route_lets_a_scim_token_beyond_its_workspace,
);

pub(super) const ISSUER: &str = "https://idp.example/";

pub(super) async fn set(app: &TestApp, workspace: TenantId, change: Value) {
    app.key().put(&format!("/account/tenant/{workspace}"), change).await.expect(200);
}

/// A browser that was sent to the identity provider.
async fn at_provider(app: &TestApp, connection: &str) -> (Browser, SamlRequest) {
    let mut browser = app.browser();
    browser.open(&authorize(app, &[("federation_connection", connection)])).await;
    let asked = SamlRequest::of(&browser.location);
    (browser, asked)
}

pub(super) async fn come(app: &TestApp, idp: &IdentityProvider, connection: &str, email: &str) -> Browser {
    let (mut browser, asked) = at_provider(app, connection).await;
    browser.post(&asked.acs, &idp.answer(&asked, email, app.now())).await;
    browser
}

pub(super) async fn tokens(app: &TestApp, browser: &Browser) -> Tokens {
    let code = browser.answer("code").unwrap_or_else(|| panic!("no code: {}", browser.location));
    Tokens::of(&exchange(app, &code, None).await.expect(200))
}

pub(super) fn bearer(app: &TestApp, tokens: &Tokens) -> Caller {
    app.anon().header("authorization", &format!("Bearer {}", tokens.access))
}

async fn listed(app: &TestApp, tokens: &Tokens) -> Vec<String> {
    let list = app.anon().post("/auth/token/workspace-list", json!({ "accessToken": tokens.access })).await.expect(200);
    let entries = list.json().as_array().cloned().expect("a list");
    entries.iter().map(|entry| entry["tenant"]["id"].as_str().expect("an id").to_owned()).collect()
}

async fn somebody_comes_in_through_their_workspaces_provider(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let browser = come(&app, &idp, &connection, "Ada@acme.example").await;
    let tokens = tokens(&app, &browser).await;
    let me = bearer(&app, &tokens).get("/auth/userinfo").await.expect(200).json();
    assert_eq!((me["email"].as_str(), me["given_name"].as_str()), (Some("ada@acme.example"), Some("Grace")));
    let (_, told) = told(&app, "login.succeeded").await.pop().expect("it is told");
    assert_eq!(
        (told["method"].as_str(), told["connectionId"].as_str()),
        (Some("federation"), Some(connection.as_str()))
    );
    // The browser is signed in, through this connection: the next login asks nobody.
    let mut again = browser.clone();
    again.open(&authorize(&app, &[("federation_connection", &connection), ("prompt", "none")])).await;
    assert!(again.answer("code").is_some(), "{}", again.location);
}

async fn newcomers_join_as_far_as_the_workspace_lets_them(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let mails = app.mails().len();
    let bob = tokens(&app, &come(&app, &idp, &connection, "bob@acme.example").await).await;
    assert_eq!(listed(&app, &bob).await, [ada.tenant.to_string()]);
    app.drain().await;
    assert_eq!(app.mails().len(), mails, "nobody is mailed");
    let users = app.key().header("x-tenant-id", &ada.tenant.to_string());
    let bob = users.get("/account/tenant/user").await.expect(200).json()[0].clone();
    assert_eq!((bob["role"].as_str(), bob["firstName"].as_str()), (Some("MEMBER"), Some("Grace")));
    let path = format!("/account/tenant/user/{}", bob["id"].as_str().expect("an id"));
    users.put(&path, json!({ "enabled": false })).await.expect(200);
    come(&app, &idp, &connection, "bob@acme.example").await.sees(403, "disabled");
    users.delete(&path).await.expect(200);
    come(&app, &idp, &connection, "bob@acme.example").await.answer("code").expect("a removed one joins again");
    set(&app, ada.tenant, json!({ "jitProvisioning": false })).await;
    come(&app, &idp, &connection, "carl@acme.example").await.sees(403, "not a member");
    set(&app, ada.tenant, json!({ "federationConnection": null })).await;
    come(&app, &idp, &connection, "bob@acme.example").await.sees(403, "not a member");
}

async fn a_provider_opens_its_own_workspaces_and_no_other(app: TestApp) {
    let (mallory, victim) = (app.owner("mallory@evil.example").await, app.owner("vic@acme.example").await);
    let idp = IdentityProvider::new(ISSUER);
    let connection = idp.connect(&app, &[mallory.tenant]).await;
    let browser = come(&app, &idp, &connection, &victim.email).await;
    let stolen = tokens(&app, &browser).await;
    assert_eq!(listed(&app, &stolen).await, [mallory.tenant.to_string()]);
    let own = bearer(&app, &stolen).get("/account/tenant").await.expect(200).json();
    assert_eq!((own.as_array().map(Vec::len), &own[0]["id"]), (Some(1), &json!(mallory.tenant)));
    let switch = json!({ "accessToken": stolen.access, "targetTenantUserId": victim.member });
    app.anon().post("/auth/token/workspace-switch", switch).await.expect(401);
    let refresh = json!({ "refreshToken": stolen.refresh });
    let again =
        Tokens::of(&app.anon().post(&format!("/auth/token/refresh/{}", app.app_id()), refresh).await.expect(200));
    assert_eq!(listed(&app, &again).await, [mallory.tenant.to_string()]);
    // The browser's sign-in reaches no further either, and is no password's way around the limits on guessing.
    let mut chooser = browser.clone();
    chooser.open(&authorize(&app, &[("prompt", "select_account")])).await;
    assert!(!chooser.html().contains("Workspace of vic@"), "{}", chooser.html());
    assert!(!browser.cookies().keys().any(|name| name.contains("known")), "{:?}", browser.cookies());
    // Signing out everywhere ends the provider's own logins.
    let theirs = victim.sign_in().await;
    let everywhere = json!({ "refreshToken": again.refresh, "all": true });
    app.anon().post("/auth/auth/revoke", everywhere).await.expect(200);
    bearer(&app, &theirs).get("/auth/userinfo").await.expect(200);
    bearer(&app, &again).get("/auth/userinfo").await.expect(401);
    assert_eq!(listed(&app, &theirs).await.len(), 2, "what they join by their own word they see");
}

async fn a_login_ends_with_the_providers_session_and_with_the_connection(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let (mut browser, asked) = at_provider(&app, &connection).await;
    let end = app.now().plus(Duration::from_secs(600));
    let until = format!(" SessionNotOnOrAfter=\"{end}\"");
    browser.post(&asked.acs, &idp.answer_with(&asked, &ada.email, app.now(), "x", &until)).await;
    let code = browser.answer("code").expect("a code");
    let set_of_tokens = exchange(&app, &code, None).await.expect(200);
    assert!(set_of_tokens.json()["expires_in"].as_i64().expect("seconds") <= 600);
    app.advance(Duration::from_secs(601)).await;
    let refresh = json!({ "refreshToken": set_of_tokens.text("/refresh_token") });
    app.anon().post(&format!("/auth/token/refresh/{}", app.app_id()), refresh).await.expect(401);
    let tokens = tokens(&app, &come(&app, &idp, &connection, &ada.email).await).await;
    bearer(&app, &tokens).get("/auth/userinfo").await.expect(200);
    set(&app, ada.tenant, json!({ "federationConnection": null })).await;
    bearer(&app, &tokens).get("/auth/userinfo").await.expect(401);
}

async fn an_answer_belongs_to_one_login_in_one_browser(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let (mut browser, asked) = at_provider(&app, &connection).await;
    let form = idp.answer(&asked, &ada.email, app.now());
    // Somebody else's browser delivers it, as a forged form would: it opens nothing there.
    app.browser().post(&asked.acs, &form).await.sees(400, "could not be accepted");
    // The same message again within half a minute is the same outcome, which opens once.
    browser.post(&asked.acs, &form).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
    browser.post(&asked.acs, &form).await.sees(400, "could not be accepted");
    // Another answer to the same login, and this one to another login.
    let other = idp.answer(&asked, "eve@acme.example", app.now());
    browser.post(&asked.acs, &other).await.sees(400, "could not be accepted");
    let (mut second, later) = at_provider(&app, &connection).await;
    let replayed = vec![form[0].clone(), ("RelayState".to_owned(), later.relay_state.clone())];
    second.post(&later.acs, &replayed).await.sees(400, "could not be accepted");
    // Too late.
    let (mut slow, asked) = at_provider(&app, &connection).await;
    app.advance(Duration::from_secs(601)).await;
    slow.post(&asked.acs, &idp.answer(&asked, &ada.email, app.now())).await.sees(400, "could not be accepted");
}

async fn an_answer_that_cannot_be_trusted_is_a_page_and_a_fact(app: TestApp) {
    let (ada, mut idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let (ours, theirs) = (idp.connect(&app, &[ada.tenant]).await, idp.connect(&app, &[]).await);
    let other = IdentityProvider::new(ISSUER);
    let (mut browser, asked) = at_provider(&app, &ours).await;
    browser.post(&asked.acs, &other.answer(&asked, &ada.email, app.now())).await.sees(400, "could not be accepted");
    browser.sees(400, "Sign in");
    // Another tenant of the same identity provider, with the same certificate.
    idp.entity_id = "https://idp.example/other".to_owned();
    browser.post(&asked.acs, &idp.answer(&asked, &ada.email, app.now())).await.sees(400, "could not be accepted");
    idp.entity_id = ISSUER.to_owned();
    // The answer to one connection at another, although the certificate is the same.
    let (mut elsewhere, foreign) = at_provider(&app, &theirs).await;
    let crossed = vec![
        idp.answer(&asked, &ada.email, app.now())[0].clone(),
        ("RelayState".to_owned(), foreign.relay_state.clone()),
    ];
    elsewhere.post(&foreign.acs, &crossed).await.sees(400, "could not be accepted");
    for form in [
        vec![],
        vec![("SAMLResponse".to_owned(), "?".to_owned()), ("RelayState".to_owned(), asked.relay_state.clone())],
    ] {
        browser.post(&asked.acs, &form).await.sees(400, "could not be accepted");
    }
    let failed = told_of_app(&app, "login.failed").await;
    let steps: Vec<&str> = failed.iter().map(|told| told["step"].as_str().expect("a step")).collect();
    assert_eq!(steps, ["signature", "issuer", "destination", "encoding"], "what nobody asked for is not told");
    let unknown = format!("/auth/federation/saml/{}/acs", kernel::AppId::from_u128(7));
    browser.post(&unknown, &[]).await.sees(404, "");
}

async fn whoever_must_come_through_the_provider_comes_no_other_way(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let bob = app.member("bob@acme.example", ada.tenant, "MEMBER").await;
    let path = format!("/account/tenant/{}", ada.tenant);
    app.key().put(&path, json!({ "ssoRequired": true })).await.expect(400);
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let before = bob.sign_in().await;
    set(&app, ada.tenant, json!({ "ssoRequired": true })).await;
    let session = bob.log_in().await.expect(200).text("/session");
    bob.exchange(&session).await.error(401, "SSO_REQUIRED");
    let refresh = json!({ "refreshToken": before.refresh });
    app.anon().post(&format!("/auth/token/refresh/{}", app.app_id()), refresh).await.error(401, "SSO_REQUIRED");
    // Nor does another workspace's login read what it keeps.
    set(&app, ada.tenant, json!({ "metadata": { "secret": "formula" } })).await;
    let elsewhere = app.workspace("own").await.add(&bob.email, "MEMBER").await;
    let session = bob.log_in().await.text("/session");
    let body = json!({ "session": session, "tenantUserId": elsewhere["id"], "appId": app.app_id(), "mode": "sdk" });
    let own = Tokens::of(&app.page().post("/auth/token/direct", body).await.expect(200));
    let seen = bearer(&app, &own).get("/account/tenant").await.expect(200).body().to_owned();
    assert!(seen.contains(&ada.tenant.to_string()) && !seen.contains("formula"), "{seen}");
    // An OWNER's other way is told of.
    ada.sign_in().await;
    assert_eq!(told(&app, "login.bypassed_sso").await.len(), 1);
    let own = app.workspace("adas").await.add(&ada.email, "MEMBER").await;
    let session = ada.log_in().await.text("/session");
    let body = json!({ "session": session, "tenantUserId": own["id"], "appId": app.app_id(), "mode": "sdk" });
    let elsewhere = Tokens::of(&app.page().post("/auth/token/direct", body).await.expect(200));
    let switch = json!({ "accessToken": elsewhere.access, "targetTenantUserId": ada.member });
    app.anon().post("/auth/token/workspace-switch", switch).await.expect(200);
    assert_eq!(told(&app, "login.bypassed_sso").await.len(), 2);
    let bob = tokens(&app, &come(&app, &idp, &connection, &bob.email).await).await;
    bearer(&app, &bob).get("/auth/userinfo").await.expect(200);
}

async fn the_first_owner_settles_who_the_provider_is(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let carl = app.member("carl@acme.example", ada.tenant, "MEMBER").await;
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let path = format!("/account/federation/connection/{connection}");
    let cleared = app.key().put(&path, json!({ "idpEntityId": null })).await.expect(200);
    assert_eq!(cleared.json()["idpEntityId"], Value::Null);
    come(&app, &idp, &connection, "bob@acme.example").await.sees(403, "not set up yet");
    // Whoever is a member comes in, and settles nothing.
    come(&app, &idp, &connection, &carl.email).await.answer("code").expect("a member comes in");
    assert_eq!(app.key().get(&path).await.expect(200).at("/idpEntityId"), Value::Null);
    come(&app, &idp, &connection, &ada.email).await.answer("code").expect("the owner comes in");
    assert_eq!(app.key().get(&path).await.expect(200).text("/idpEntityId"), ISSUER);
    come(&app, &idp, &connection, "bob@acme.example").await.answer("code").expect("and then everybody");
}

async fn a_second_factor_counts_where_the_provider_is_trusted(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    set(&app, ada.tenant, json!({ "mfa": true })).await;
    let strong = "https://refeds.org/profile/mfa";
    let (mut browser, asked) = at_provider(&app, &connection).await;
    browser.post(&asked.acs, &idp.answer_with(&asked, &ada.email, app.now(), strong, "")).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
    let path = format!("/account/federation/connection/{connection}");
    app.key().put(&path, json!({ "trustMfa": false })).await.expect(200);
    let (mut browser, asked) = at_provider(&app, &connection).await;
    browser.post(&asked.acs, &idp.answer_with(&asked, &ada.email, app.now(), strong, "")).await;
    browser.sees(200, "").submit("/auth/login/mfa/setup", &[("method", "totp")]).await.sees(200, "<svg class=\"qr\"");
}

async fn what_is_forced_but_not_there_goes_back_to_the_app(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let force = [("force_federation", "saml")];
    let refused = async |more: &[(&str, &str)]| {
        let mut browser = app.browser();
        browser.open(&authorize(&app, more)).await;
        browser.answer("error").unwrap_or_else(|| panic!("{more:?}: {}", browser.location))
    };
    assert_eq!(refused(&force).await, "invalid_request", "there is no connection");
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let connection = connection.as_str();
    for more in [
        &[("force_federation", "social-one")][..],
        &[("force_federation", "carrier-pigeon")],
        &[("force_federation", "oidc"), ("federation_connection", connection)],
        &[("federation_connection", "nonsense")],
        &[("federation_connection", connection), ("signup", "true")],
    ] {
        assert_eq!(refused(more).await, "invalid_request", "{more:?}");
    }
    let prompt = [("federation_connection", connection), ("prompt", "none")];
    assert_eq!(refused(&prompt).await, "login_required");
    // The only connection need not be named; a fresh sign-in is asked for there, too.
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[force[0], ("prompt", "login")])).await;
    assert!(SamlRequest::of(&browser.location).xml.contains("ForceAuthn=\"true\""));
    // Whoever is signed in another way is not, for a forced login.
    let zoe = app.owner("zoe@other.example").await;
    let mut signed_in = testkit::hosted::signed_in(&app, &zoe).await;
    signed_in.open(&authorize(&app, &force)).await;
    assert!(signed_in.location.starts_with("https://idp.example/sso?"), "{}", signed_in.location);
}

async fn an_address_leads_to_its_workspaces_provider(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let carl = app.owner("carl@other.example").await;
    idp.connect(&app, &[ada.tenant]).await;
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[])).await.submit("/auth/login", &[("username", "ada@acme.example")]).await;
    assert!(browser.location.starts_with("https://idp.example/sso?"), "{}", browser.location);
    sign_in(app.browser().open(&authorize(&app, &[])).await, &carl).await;
    // Somebody with both is asked.
    let both = json!({ "username": "ada@acme.example", "role": "MEMBER", "muteNotifications": true });
    app.key().in_workspace(carl.tenant).post("/account/tenant/user", both).await.expect(201);
    browser.open(&authorize(&app, &[])).await.submit("/auth/login", &[("username", "ada@acme.example")]).await;
    let (provider, password) =
        (browser.sees(200, "Continue with Acme").link("Continue with Acme"), browser.link("Sign in another way"));
    browser.clone().open(&password).await.sees(200, "Password");
    browser.open(&provider).await;
    assert!(browser.location.starts_with("https://idp.example/sso?"), "{}", browser.location);
}

async fn metadata_names_what_the_provider_needs(app: TestApp) {
    let idp = IdentityProvider::new(ISSUER);
    let connection = idp.connect(&app, &[]).await;
    let path = format!("/auth/federation/saml/{connection}/metadata");
    let metadata = app.anon().get(&path).await.expect(200);
    assert_eq!(metadata.header("content-type"), Some("application/samlmetadata+xml"));
    let acs = format!("{}/auth/federation/saml/{connection}/acs", testkit::HERE);
    assert!(metadata.body().contains(&acs) && metadata.body().contains(&path), "{}", metadata.body());
    let change = json!({ "signedRequest": true, "signedRequestAlgorithm": "sha256", "privateKey": crate::account::federation::KEY });
    app.key().put(&format!("/account/federation/connection/{connection}"), change).await.expect(200);
    let signed = app.anon().get(&path).await.expect(200);
    assert!(signed.body().contains("AuthnRequestsSigned=\"true\"") && signed.body().contains("use=\"signing\""));
    let (_, asked) = at_provider(&app, &connection).await;
    assert!(asked.xml.contains("AuthnRequest"));
    let post = json!({ "requestMethod": "POST" });
    app.key().put(&format!("/account/federation/connection/{connection}"), post).await.expect(200);
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[("federation_connection", &connection)])).await;
    browser.sees(200, "name=\"SAMLRequest\"");
    let policy = browser.page().header("content-security-policy").expect("a policy");
    assert!(policy.contains("form-action 'self' https://idp.example"), "{policy}");
}

async fn of_many_at_once_one_gets_the_outcome(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let (browser, asked) = at_provider(&app, &connection).await;
    let form = idp.answer(&asked, &ada.email, app.now());
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&form).finish();
    let cookies: Vec<String> = browser.cookies().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let attempts = (0..16).map(|_| {
        let (posts, body, path) = (app.anon(), body.clone(), asked.acs.replace(testkit::HERE, ""));
        let comes_back = app.anon().header("cookie", &cookies.join("; "));
        tokio::spawn(async move {
            let posts = posts.header("content-type", "application/x-www-form-urlencoded");
            let answer = posts.send(http::Method::POST, &path, body).await.expect(303);
            let done = answer.header("location").expect("a handle").to_owned();
            (comes_back.get(&done).await.status(), done)
        })
    });
    let mut outcomes = Vec::new();
    for attempt in attempts.collect::<Vec<_>>() {
        outcomes.push(attempt.await.expect("ends"));
    }
    assert!(outcomes.iter().all(|(_, handle)| *handle == outcomes[0].1), "one handle for one message");
    assert_eq!(outcomes.iter().filter(|(status, _)| *status == 303).count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|(status, _)| *status == 400).count(), 15, "{outcomes:?}");
}

async fn a_known_subject_with_a_new_address_is_renamed_unless_others_know_them(app: TestApp) {
    let (ada, mut idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let carl = app.owner("carl@other.example").await;
    let connection = idp.connect(&app, &[ada.tenant]).await;
    idp.subject = Some("4711".to_owned());
    let me = async |email: &str| {
        let tokens = tokens(&app, &come(&app, &idp, &connection, email).await).await;
        bearer(&app, &tokens).get("/auth/userinfo").await.expect(200).json()
    };
    let (before, after) = (me("bob@acme.example").await, me("robert@acme.example").await);
    assert_eq!((&before["sub"], after["email"].as_str()), (&after["sub"], Some("robert@acme.example")));
    let elsewhere = json!({ "username": "robert@acme.example", "role": "MEMBER", "muteNotifications": true });
    app.key().in_workspace(carl.tenant).post("/account/tenant/user", elsewhere).await.expect(201);
    come(&app, &idp, &connection, "rob@acme.example").await.sees(403, "has changed");
}

async fn an_invited_person_comes_in_as_what_they_were_invited_to_be(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    set(&app, ada.tenant, json!({ "jitProvisioning": false })).await;
    let wanted =
        json!({ "name": "Invitations", "privileges": ["USER_WRITE", "USER_READ"], "tenantUserId": ada.member });
    let token = app.key().in_workspace(ada.tenant).post("/account/api-token/workspace", wanted).await.expect(201);
    let inviter = app.anon().header("x-api-key", &token.text("/token"));
    let invited = inviter.post("/account/tenant/user", json!({ "username": "bob@acme.example" })).await.expect(201);
    let users = app.key().in_workspace(ada.tenant);
    let path = format!("/account/tenant/user/{}", invited.text("/id"));
    users.put(&path, json!({ "role": "ADMIN", "teams": ["R&D"] })).await.expect(200);
    let bob = tokens(&app, &come(&app, &idp, &connection, "bob@acme.example").await).await;
    assert_eq!(listed(&app, &bob).await, [ada.tenant.to_string()]);
    let member = users.get(&path).await.expect(200);
    assert_eq!((member.text("/role").as_str(), member.at("/teams")), ("ADMIN", json!(["R&D"])));
    let me = bearer(&app, &bob).get("/auth/userinfo").await.expect(200).json();
    assert_eq!(me["email_verified"], json!(false), "a connection proves no address");
    come(&app, &idp, &connection, "carl@acme.example").await.sees(403, "not a member");
}

async fn operators_see_what_became_of_the_last_logins(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let path = format!("/account/federation/connection/{connection}");
    come(&app, &IdentityProvider::new(ISSUER), &connection, &ada.email).await.sees(400, "could not be accepted");
    let seen = app.key().get(&path).await.expect(200);
    assert_eq!((seen.text("/lastFailure/step").as_str(), seen.at("/lastSuccessAt")), ("signature", Value::Null));
    come(&app, &idp, &connection, &ada.email).await.answer("code").expect("a code");
    assert!(app.key().get(&path).await.expect(200).at("/lastSuccessAt").is_string());
}

async fn an_unknown_address_of_a_domain_is_sent_to_its_connection(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let carl = app.owner("carl@acme.example").await;
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let path = format!("/account/federation/connection/{connection}");
    app.key().put(&path, json!({ "domains": ["acme.example"] })).await.expect(200);
    let lands = async |email: &str| {
        let mut browser = app.browser();
        browser.open(&authorize(&app, &[])).await.submit("/auth/login", &[("username", email)]).await;
        browser.location.starts_with("https://idp.example/sso?")
    };
    assert!(lands("new@ACME.example").await && lands(&ada.email).await);
    assert!(!lands("new@other.example").await && !lands("new@sub.acme.example").await);
    assert!(!lands(&carl.email).await, "whoever belongs elsewhere goes on as before");
}

/// Whoever runs a provider could otherwise give the address of somebody who is still to come to an account with a password
/// of their own.
async fn a_provider_that_renames_somebody_takes_their_ways_in(app: TestApp) {
    let (ada, mut idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let mut puppet = app.member("puppet@acme.example", ada.tenant, "MEMBER").await;
    idp.subject = Some("4711".to_owned());
    come(&app, &idp, &connection, &puppet.email).await.answer("code").expect("the subject is linked");
    let before = puppet.sign_in().await;
    let forgotten = json!({ "username": puppet.email, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/password", forgotten).await.expect(200);
    app.drain().await;
    let reset = app.mailed_token(&puppet.email);

    come(&app, &idp, &connection, "ceo@corp.example").await.answer("code").expect("the same subject is renamed");
    assert_eq!(told(&app, "tenant_user.updated").await.last().expect("a fact").1["email"], "ceo@corp.example");
    assert_eq!(testkit::tokens::refresh(&app, &before.refresh).await.status(), 400);
    assert!(!testkit::tokens::is_signed_in(&app, &before.access).await);
    let chosen = json!({ "token": reset, "password": "amber lantern quay" });
    app.anon().put("/auth/auth/password", chosen).await.error(401, "INVALID_CREDENTIAL");
    puppet.email = "ceo@corp.example".to_owned();
    app.page().post("/auth/auth/authenticate", puppet.credentials()).await.error(401, "INVALID_CREDENTIAL");
}

async fn a_providers_word_tells_a_workspace_nothing_of_a_person(app: TestApp) {
    let (acme, idp) = (app.workspace("acme").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[acme.id]).await;
    let vicky = app.owner("vicky@corp.example").await;
    let known = json!({ "firstName": "Vicky", "lastName": "Secret", "phoneNumber": "+4915112345678" });
    let path = format!("/account/tenant/user/{}", vicky.member);
    app.key().in_workspace(vicky.tenant).put(&path, known).await.expect(200);
    come(&app, &idp, &connection, &vicky.email).await.answer("code").expect("she joins");

    let token = acme.token(&["USER_READ"]).await;
    let listed = token.get("/account/tenant/user").await.expect(200).json();
    let found = listed.as_array().into_iter().flatten().find(|one| one["email"] == "vicky@corp.example");
    let found = found.expect("she is a member").clone();
    let one = format!("/account/tenant/user/{}", found["id"].as_str().expect("an id"));
    for seen in [found, token.get(&one).await.expect(200).json()] {
        assert_eq!((&seen["fullName"], &seen["phoneNumber"]), (&json!(""), &Value::Null));
    }
    assert_eq!(acme.key().get(&one).await.expect(200).text("/firstName"), "Vicky", "the app itself knows her");
    // What a workspace that she has never been to asks for is not asked of her elsewhere.
    set(&app, acme.id, json!({ "mfa": true })).await;
    vicky.sign_in().await;

    set(&app, acme.id, json!({ "mfa": false })).await;
    let session = vicky.log_in().await.text("/session");
    let body =
        json!({ "session": session, "tenantUserId": one.rsplit('/').next(), "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/token/direct", body).await.expect(200);
    assert_eq!(token.get(&one).await.expect(200).text("/firstName"), "Vicky", "she has come by herself");
}

async fn names_from_a_provider_are_bounded_and_name_nobody_elses_people(app: TestApp) {
    let (acme, mut idp) = (app.workspace("acme").await, IdentityProvider::new(ISSUER));
    idp.first_name = format!("Pay\nnow {}", "x".repeat(5_000));
    let connection = idp.connect(&app, &[acme.id]).await;
    let corp = app.workspace("corp").await;
    corp.add("vicky@corp.example", "MEMBER").await;
    for email in ["vicky@corp.example", "newcomer@acme.example"] {
        come(&app, &idp, &connection, email).await.answer("code").expect("they come in");
    }
    let named = async |workspace: &testkit::Workspace, email: &str| {
        let all = workspace.key().get("/account/tenant/user").await.expect(200).json();
        let found = all.as_array().into_iter().flatten().find(|one| one["email"] == email).expect("a member").clone();
        found["firstName"].as_str().expect("a name").to_owned()
    };
    assert_eq!(named(&corp, "vicky@corp.example").await, "");
    let newcomer = named(&acme, "newcomer@acme.example").await;
    assert!(newcomer.starts_with("Pay now x") && newcomer.chars().count() == 200, "{newcomer}");
}

async fn a_login_request_of_another_app_opens_no_connection(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let other = app.other_app().await;
    other.put("/account/app", json!({ "redirectUris": ["https://app.example/callback"] })).await.expect(200);
    let mut browser = app.browser();
    let asked =
        [("client_id", other.app_id().to_string()), ("redirect_uri", "https://app.example/callback".to_owned())];
    let asked: Vec<(&str, &str)> = asked.iter().map(|(name, value)| (*name, value.as_str())).collect();
    browser.open(&authorize(&app, &asked)).await.sees(200, "Sign in");
    let sealed = browser.location.split_once("?r=").expect("a request").1.to_owned();
    browser.open(&format!("/auth/federation/saml/{connection}/login?r={sealed}")).await.sees(404, "");
}

/// What must not show, and must not change: everything of a workspace that the login does not reach.
const MARKER: &str = "zanzibar";

/// Calls a route with whatever its caller could try about somebody else's workspace.
async fn try_route(caller: &Caller, app: &TestApp, route: &web::RouteEntry, victim: &testkit::Person, body: &Value) {
    let path = route
        .path
        .replace("{tenant_id}", &victim.tenant.to_string())
        .replace("{workspace_id}", &victim.tenant.to_string())
        .replace("/scim/v2/Users/{user_id}", &format!("/scim/v2/Users/{}", victim.member))
        .replace("{user_id}", &victim.user.to_string());
    let path = testkit::routes::path(app, &path);
    let query = format!("{path}?tenantId={0}&appId={1}", victim.tenant, app.app_id());
    let sent = (route.method != http::Method::GET).then(|| body.clone());
    for path in [path, query] {
        let answer = caller.call(route.method.clone(), &path, sent.clone()).await;
        let text = String::from_utf8_lossy(answer.bytes()).to_lowercase();
        assert!(!text.contains(MARKER), "{} {path} shows it: {text}", route.method);
        assert!(answer.status() < 500 || answer.status() == 501, "{} {path}: {answer:?}", route.method);
    }
}

/// The facts of a workspace and of a person's logins.
async fn facts_about(app: &TestApp, victim: &testkit::Person) -> i64 {
    let (tenant, user) = (victim.tenant, format!("%{}%", victim.user));
    let count = "SELECT count(*) FROM outbox WHERE tenant_id = $1 OR (payload LIKE $2 AND kind LIKE 'user%')";
    let read = app.service().core().db.read(move |tx| tx.one::<(i64,)>(count, &store::args![tenant, user]));
    read.await.expect("facts can be counted").0
}

fn is_walked(route: &web::RouteEntry) -> bool {
    let endless = ["/admin/apps/{app_id}/webhook/stream", "/admin/apps/{app_id}/events/tail", "/realtime/stream"];
    // Ends this login, or moves time.
    let ends = ["/auth/revoke", "/auth/auth/revoke", "/admin/test-clock"];
    !endless.contains(&route.path) && !ends.contains(&route.path)
}

async fn no_route_lets_a_providers_login_beyond_its_workspace(app: TestApp) {
    let body = json!({ "owner": { "email": "ada@bolt.example", "firstName": "Ada", "lastName": "Zanzibar" }, "name": "Zanzibar" });
    app.key().post("/account/tenant", body).await.expect(200);
    let ada = app.owner("ada@bolt.example").await;
    set(&app, ada.tenant, json!({ "name": "Second Zanzibar" })).await;
    let (mallory, idp) = (app.owner("mallory@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[mallory.tenant]).await;
    let mut browser = come(&app, &idp, &connection, "ada@bolt.example").await;
    let tokens = tokens(&app, &browser).await;
    let handover = json!({ "accessToken": tokens.access });
    let handover_path = format!("/auth/handover/code/{}", app.app_id());
    let code = app.anon().post(&handover_path, handover.clone()).await.expect(200).text("/code");
    let portal = format!("/cloud-views/user-management-portal/users?code={code}");
    browser.open(&portal).await.sees(200, "ada@bolt.example");
    let handover = app.anon().post(&handover_path, handover).await;
    let body = json!({
        "accessToken": tokens.access, "token": tokens.access, "refreshToken": tokens.refresh, "refresh_token": tokens.refresh,
        "grant_type": "refresh_token", "client_id": app.app_id(), "appId": app.app_id(), "mode": "sdk",
        "targetTenantUserId": ada.member, "tenantUserId": ada.member, "tenantId": ada.tenant, "workspaceId": ada.tenant,
        "username": "ada@bolt.example", "email": "ada@bolt.example", "name": "x", "planKey": "free", "role": "OWNER",
        "privileges": ["TENANT_READ"], "password": "violet harbour lamp", "code": handover.at("/code"),
    });
    let before = facts_about(&app, &ada).await;
    let signed_in = app.anon().with_access_token(app.app_id(), &tokens.access);
    let callers = [
        signed_in.clone(),
        signed_in.header("x-tenant-id", &ada.tenant.to_string()),
        app.anon().header("x-api-key", &tokens.access).in_workspace(ada.tenant),
    ];
    for route in service::route_table().iter().filter(|route| is_walked(route)) {
        for caller in &callers {
            try_route(caller, &app, route, &ada, &body).await;
        }
    }
    // The browser of that login, on every page, as the app's own and as a portal's.
    for route in service::route_table().iter().filter(|route| is_walked(route) && route.method == http::Method::GET) {
        let (mut browser, path) = (browser.clone(), testkit::routes::path(&app, route.path));
        browser.open(&path).await;
        let shown = String::from_utf8_lossy(browser.page().bytes()).to_lowercase();
        assert!(!shown.contains(MARKER), "{path} shows it");
    }
    assert_eq!(facts_about(&app, &ada).await, before, "nothing changed there");
    ada.sign_in().await;
}

async fn no_route_lets_a_scim_token_beyond_its_workspace(app: TestApp) {
    let ada = app.owner("ada@bolt.example").await;
    set(&app, ada.tenant, json!({ "name": "Zanzibar" })).await;
    let path = format!("/account/tenant/user/{}", ada.member);
    app.key().in_workspace(ada.tenant).put(&path, json!({ "lastName": "Zanzibar" })).await.expect(200);
    let acme = app.workspace("acme").await;
    let directory = acme.directory().await;
    directory.provision("ada@bolt.example").await;
    let token = directory.caller.header_sent("authorization").trim_start_matches("Bearer ").to_owned();
    let body = json!({
        "accessToken": token, "token": token, "refreshToken": token, "refresh_token": token, "session": token,
        "grant_type": "refresh_token", "client_id": app.app_id(), "appId": app.app_id(), "mode": "sdk", "code": token,
        "targetTenantUserId": ada.member, "tenantUserId": ada.member, "tenantId": ada.tenant,
        "userName": "x@example.com", "displayName": "x", "members": [{ "value": ada.member }], "name": "x",
        "Operations": [{ "op": "replace", "path": "externalId", "value": "x" }], "filter": "id pr",
    });
    let before = facts_about(&app, &ada).await;
    let callers = [
        directory.caller.clone(),
        directory.caller.header("x-app-id", &app.app_id().to_string()).in_workspace(ada.tenant),
        app.anon().header("x-api-key", &token).in_workspace(ada.tenant),
    ];
    for route in service::route_table().iter().filter(|route| is_walked(route)) {
        for caller in &callers {
            try_route(caller, &app, route, &ada, &body).await;
        }
        if !matches!(route.access, web::Access::Public | web::Access::Scim) {
            let path = testkit::routes::path(&app, route.path);
            let answer = directory.caller.call(route.method.clone(), &path, None).await;
            assert_eq!(answer.status(), 401, "{} {path}: {answer:?}", route.method);
        }
    }
    assert_eq!(facts_about(&app, &ada).await, before, "nothing changed there");
    ada.sign_in().await;
}
