//! The hosted login under attack: foreign forms, planted cookies, injected text, raced links, and what the pages must
//! never show, log or lead to.

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{
    Browser, EngineName, Log, TestApp,
    hosted::{at_password, authorize, mailed, sign_in},
    on_both_engines,
    tokens::{REDIRECT, claims, exchange},
};

/// A page without the scripts there are.
fn without_scripts(html: &str) -> String {
    let script = |name: &str| format!("<script src=\"/cloud-views/{name}.js\" defer></script>");
    html.replace(&script("form"), "").replace(&script("passkey"), "")
}

on_both_engines!(
    no_form_is_taken_from_elsewhere,
    a_planted_cookie_is_never_what_is_signed_in,
    a_link_raced_for_is_used_once,
    pages_have_the_apps_looks_and_words,
    nothing_typed_becomes_html,
    addresses_that_were_taken_back_or_changed_lead_nowhere,
    the_address_of_a_page_works_for_two_days,
    what_is_typed_injects_nothing_and_no_secret_is_logged,
);

const NEW: &str = "violet harbour lamb";

/// A form of each kind: a browser on its page, where it posts to, and what is typed.
async fn forms(app: &TestApp) -> Vec<(Browser, &'static str, Vec<(&'static str, String)>)> {
    let ada = app.owner("ada@customer.example").await;
    let bob = app.owner("bob@customer.example").await;
    app.workspace("Other").await.add("bob@customer.example", "MEMBER").await;
    let start = app.browser().open(&authorize(app, &[])).await.clone();
    let password = at_password(app, &ada.email, &[]).await;
    let mut forgot = password.clone();
    forgot.open(&password.link("Forgot your password?")).await;
    let mut sign_up = start.clone();
    sign_up.open(&start.link("Create an account")).await;
    let (mut asking, mut magic) = (password.clone(), app.browser());
    asking.submit("/auth/login/send-link", &[]).await;
    magic.open(&mailed(app, &ada.email).await).await;
    let (mut asking, mut set) = (forgot.clone(), app.browser());
    asking.submit("/auth/login/forgot", &[]).await;
    set.open(&mailed(app, &ada.email).await).await;
    let mut workspace = app.browser();
    sign_in(workspace.open(&authorize(app, &[])).await, &bob).await;
    let typed = |name: &'static str, value: &str| vec![(name, value.to_owned())];
    // In an order in which none spoils what comes after it.
    vec![
        (password.clone(), "/auth/login/password", typed("password", &ada.password)),
        (magic, "/auth/login/magic-link", Vec::new()),
        (set, "/auth/login/set-password", typed("password", NEW)),
        (start, "/auth/login", typed("username", "ada@customer.example")),
        (password, "/auth/login/send-link", Vec::new()),
        (forgot, "/auth/login/forgot", typed("username", "ada@customer.example")),
        (sign_up, "/auth/login/signup", [typed("email", "new@customer.example"), typed("first_name", "New")].concat()),
        (workspace, "/auth/login/workspace", typed("member", &bob.member.to_string())),
    ]
}

async fn no_form_is_taken_from_elsewhere(app: TestApp) {
    let forms = forms(&app).await;
    app.drain().await;
    let mails = app.mails().len();
    for (browser, action, typed) in &forms {
        let typed: Vec<(&str, &str)> = typed.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut other = app.browser();
        other.open(&authorize(&app, &[])).await;
        let others = other.form("/auth/login").into_iter().find(|(name, _)| name == "csrf").expect("a value").1;
        for wrong in ["", "x", &others, "é"] {
            let mut browser = browser.clone();
            browser
                .submit(action, &[&typed[..], &[("csrf", wrong)]].concat())
                .await
                .sees(403, "This request could not be completed");
        }
        let mut missing = browser.form(action);
        missing.retain(|(name, _)| name != "csrf" && !typed.iter().any(|(given, _)| given == name));
        missing.extend(typed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        browser.clone().post(action, &missing).await.sees(403, "This request could not be completed");
        browser
            .header("sec-fetch-site", "cross-site")
            .submit(action, &typed)
            .await
            .sees(403, "This request could not be completed");
        // The whole form in a browser that never saw the page, and in another one.
        let mut form = browser.form(action);
        form.retain(|(name, _)| !typed.iter().any(|(given, _)| given == name));
        form.extend(typed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        for mut victim in [app.browser(), other] {
            victim.post(action, &form).await.sees(403, "This request could not be completed");
            let signed_in = |name: &String| name.contains("-session-") || name.contains("-login-");
            assert!(!victim.cookies().keys().any(signed_in), "{action}");
        }
    }
    app.drain().await;
    assert_eq!(app.mails().len(), mails, "no form from elsewhere mails anything");
    // Nothing was used up or changed: from their own pages all of them are taken.
    for (browser, action, typed) in forms {
        let typed: Vec<(&str, &str)> = typed.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut browser = browser.header("sec-fetch-site", "same-origin");
        browser.submit(action, &typed).await;
        assert!(browser.page().status() < 400, "{action}: {}", browser.html());
    }
}

fn session_of(browser: &Browser) -> (String, String) {
    let mut cookies = browser.cookies().iter();
    let (name, value) = cookies.find(|(name, _)| name.contains("-session-")).expect("somebody is signed in");
    (name.clone(), value.clone())
}

async fn subject(app: &TestApp, browser: &Browser) -> Value {
    let code = browser.answer("code").unwrap_or_else(|| panic!("no code in {}", browser.location));
    claims(&exchange(app, &code, None).await.expect(200).text("/access_token"))["sub"].clone()
}

async fn a_planted_cookie_is_never_what_is_signed_in(app: TestApp) {
    let (ada, eve) = (app.owner("ada@customer.example").await, app.owner("eve@customer.example").await);
    let mut attacker = app.browser();
    sign_in(attacker.open(&authorize(&app, &[])).await, &eve).await;
    let (name, evil) = session_of(&attacker);
    let login = name.replace("-session-", "-login-");
    let evil_login = eve.log_in().await.expect(200).text("/session");
    let browser_name = name.replace("-session-", "-browser-");
    let evil_browser = attacker.cookies()[&browser_name].clone();
    for planted in ["x".repeat(43), evil.clone()] {
        let mut victim = app.browser();
        victim.set_cookie(&name, &planted);
        victim.set_cookie(&login, &evil_login);
        victim.set_cookie(&browser_name, &evil_browser);
        sign_in(victim.open(&authorize(&app, &[("prompt", "login")])).await, &ada).await;
        assert_eq!(subject(&app, &victim).await, json!(ada.user));
        let (_, own) = session_of(&victim);
        assert_ne!(own, planted);
        assert!(!victim.cookies().contains_key(&login));
        // Who planted it is not signed in as Ada, nor as anybody.
        let mut planter = app.browser();
        planter.set_cookie(&name, &planted);
        planter.open(&authorize(&app, &[])).await.sees(200, "Sign in to");
        victim.open(&authorize(&app, &[])).await;
        assert_eq!(subject(&app, &victim).await, json!(ada.user));
    }
    // A cookie from before a login is void after it, not even the same person's.
    let mut browser = app.browser();
    sign_in(browser.open(&authorize(&app, &[])).await, &ada).await;
    let (_, before) = session_of(&browser);
    sign_in(browser.open(&authorize(&app, &[("prompt", "login")])).await, &ada).await;
    assert_ne!(session_of(&browser).1, before);
    let mut old = app.browser();
    old.set_cookie(&name, &before);
    old.open(&authorize(&app, &[])).await.sees(200, "Sign in to");
}

async fn a_link_raced_for_is_used_once(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut password = at_password(&app, &ada.email, &[]).await;
    let mut forgot = password.clone();
    password.submit("/auth/login/send-link", &[]).await;
    let magic = mailed(&app, &ada.email).await;
    forgot.open(&forgot.link("Forgot your password?")).await.submit("/auth/login/forgot", &[]).await;
    let reset = mailed(&app, &ada.email).await;
    for (link, action, typed) in
        [(magic, "/auth/login/magic-link", vec![]), (reset, "/auth/login/set-password", vec![("password", NEW)])]
    {
        let mut browsers = vec![app.browser(); 8];
        for browser in &mut browsers {
            browser.open(&link).await;
        }
        let racers = browsers.into_iter().map(|mut browser| {
            let typed = typed.clone();
            async move { browser.submit(action, &typed).await.page().status() }
        });
        let mut outcomes = join_all(racers).await;
        outcomes.sort_unstable();
        assert_eq!(outcomes, [303, 404, 404, 404, 404, 404, 404, 404], "{action}");
    }
}

async fn pages_have_the_apps_looks_and_words(app: TestApp) {
    let looks = json!({ "name": "R&D", "logo": "https://cdn.shop.example/logo.svg" });
    app.key().put("/account/app", looks).await.expect(200);
    app.key().post("/admin/brand/css", json!({ "content": "a{}" })).await.expect(200);
    let words = json!({
        "en": "de", "Sign in to {appName}": "Anmelden bei {appName}", "Reset your password": "Neues Passwort",
        "Sign up for {appName}": "Registrieren bei {appName}", "Check your inbox": "Mail prüfen",
        "Password": "Passwort", "must have at least 8 characters": "braucht mindestens 8 Zeichen",
        "Email me a sign-in link": "Link per Mail", "Forgot your password?": "Passwort vergessen?",
        "Create an account": "Konto anlegen", "This link no longer works": "Link abgelaufen",

        "If an account exists for {email}, we have sent a link to that address.": "Post an {email}.",
    });
    app.key().post("/cloud-views/brand/translations", words).await.expect(200);
    app.owner("ada@customer.example").await;
    let mut seen = Vec::new();
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[])).await;
    seen.push((browser.clone(), 200, "Anmelden bei R&amp;D"));
    let mut sign_up = browser.clone();
    sign_up.open(&browser.link("Konto anlegen")).await;
    seen.push((sign_up, 200, "Registrieren bei R&amp;D"));
    browser.submit("/auth/login", &[("username", "ada@customer.example")]).await;
    seen.push((browser.clone(), 200, "Passwort"));
    let mut forgot = browser.clone();
    forgot.open(&browser.link("Passwort vergessen?")).await;
    seen.push((forgot.clone(), 200, "Neues Passwort"));
    forgot.submit("/auth/login/forgot", &[]).await;
    seen.push((forgot, 200, "Post an ada@customer.example."));
    let reset = mailed(&app, "ada@customer.example").await;
    browser.submit("/auth/login/send-link", &[]).await;
    let link = mailed(&app, "ada@customer.example").await;
    browser.open(&link).await;
    seen.push((browser.clone(), 200, "Anmelden bei R&amp;D"));
    browser.submit("/auth/login/magic-link", &[]).await;
    let mut again = app.browser();
    again.open(&link).await;
    seen.push((again, 404, "Link abgelaufen"));
    let mut set = app.browser();
    set.open(&reset).await.submit("/auth/login/set-password", &[("password", "x")]).await;
    seen.push((set, 400, "Passwort braucht mindestens 8 Zeichen"));
    for (mut browser, status, text) in seen {
        browser.sees(status, text).sees(status, "<html lang=\"de\">");
        let html = browser.html();
        assert!(html.contains(&format!("/cloud-views/brand/{}/style.css?v=", app.app_id())), "{html}");
        assert!(html.contains("src=\"https://cdn.shop.example/logo.svg\""), "{html}");
        assert!(!without_scripts(html).contains("<script"), "{html}");
        let page = browser.page();
        let policy = page.header("content-security-policy").expect("a policy");
        let policy = policy.replace("connect-src 'self'; ", "");
        let start = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https://cdn.shop.example;";
        assert!(policy.starts_with(start), "{policy}");
        assert!(policy.contains("form-action 'self' http://localhost:3000;"), "{policy}");
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(page.header("cache-control"), Some("no-store"));
    }
}

async fn nothing_typed_becomes_html(app: TestApp) {
    let evil = "\"><script>alert(1)</script>";
    app.key().put("/account/app", json!({ "name": evil })).await.expect(200);
    let words = json!({ "Check your inbox": evil, "Password": evil, "en": evil });
    app.key().post("/cloud-views/brand/translations", words).await.expect(200);
    let clean = |browser: &Browser| {
        let html = browser.html();
        let html = without_scripts(html);
        assert!(!html.contains("<script") && !html.contains("<i>") && !html.contains("<b>"), "{html}");
        assert!(html.contains("&lt;script"), "{html}");
    };
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[("login_hint", evil), ("state", evil)])).await;
    clean(&browser);
    browser.clone().submit("/auth/login", &[("username", evil)]).await.sees(400, "username-error");
    let mut sign_up = browser.clone();
    sign_up.open(&browser.link("Create an account")).await;
    let typed = [("first_name", evil), ("last_name", evil), ("email", evil)];
    clean(sign_up.submit("/auth/login/signup", &typed).await.sees(400, "email-error"));
    let typed = [("first_name", evil), ("last_name", "\u{202e}<i>"), ("email", "new&<b>@customer.example")];
    sign_up.submit("/auth/login/signup", &typed).await;
    clean(&sign_up);
    let typed = [("first_name", evil), ("last_name", ""), ("email", "new@customer.example")];
    let mut sign_up = browser.clone();
    sign_up.open(&browser.link("Create an account")).await.submit("/auth/login/signup", &typed).await;
    clean(&sign_up);
    sign_up.open(&mailed(&app, "new@customer.example").await).await;
    clean(&sign_up);
    clean(sign_up.submit("/auth/login/set-password", &[("password", "x"), ("workspace", evil)]).await);
    browser.submit("/auth/login", &[("username", "ada@customer.example")]).await;
    clean(&browser);
}

async fn addresses_that_were_taken_back_or_changed_lead_nowhere(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let uris = json!({ "redirectUris": [REDIRECT, "https://gone.example/cb"], "defaultCallbackUri": REDIRECT });
    app.key().put("/account/app", uris).await.expect(200);
    let mut browser = at_password(&app, &ada.email, &[("redirect_uri", "https://gone.example/cb")]).await;
    let page = browser.location.clone();
    browser.clone().submit("/auth/login/send-link", &[]).await;
    let link = mailed(&app, &ada.email).await;
    let uris = json!({ "redirectUris": [REDIRECT], "defaultCallbackUri": REDIRECT });
    app.key().put("/account/app", uris).await.expect(200);
    let (path, sealed) = page.split_once("?r=").expect("a sealed request");
    for pages in ["", "/password", "/forgot", "/signup", "/link-sent", "/signup-sent", "/workspace"] {
        let path = path.replace("/password", pages);
        for r in [sealed, "", "x", "https://evil.example", &format!("{sealed}A"), &sealed[1..], &sealed.to_uppercase()]
        {
            let mut stranger = browser.clone();
            stranger.open(&format!("{path}?r={r}")).await.sees(400, "This request could not be completed");
            assert_eq!(stranger.page().header("location"), None);
        }
    }
    browser.submit("/auth/login/password", &[("password", &ada.password)]).await.sees(400, "no longer registered");
    // The mailed link still signs in, at an address that is the app's.
    let mut follower = app.browser();
    follower.open(&link).await.submit("/auth/login/magic-link", &[]).await;
    assert!(follower.location.starts_with(&format!("{REDIRECT}?code=")), "{}", follower.location);
}

async fn the_address_of_a_page_works_for_two_days(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = at_password(&app, &ada.email, &[]).await;
    let page = browser.location.clone();
    app.advance(std::time::Duration::from_secs(47 * 3600)).await;
    browser.open(&page).await.sees(200, "Password");
    app.advance(std::time::Duration::from_secs(2 * 3600)).await;
    browser.open(&page).await.sees(400, "This request could not be completed");
}

async fn what_is_typed_injects_nothing_and_no_secret_is_logged(engine: EngineName) {
    let log = Log::of_this_process();
    let app = TestApp::start(engine).await;
    let ada = app.owner("ada@customer.example").await;
    let lines = "s3cret-state\r\nset-cookie: evil=1\r\n\r\n{\"level\":\"ERROR\"} \u{1b}[31m";
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[("state", lines), ("login_hint", lines)])).await.sees(200, "Sign in to");
    browser.clone().submit("/auth/login", &[("username", "s3cret\r\nbcc: eve@evil.example")]).await.sees(400, "error");
    browser
        .clone()
        .submit("/auth/login", &[("username", "s3cret@x.example\nbcc: a@b.example")])
        .await
        .sees(400, "error");
    browser.submit("/auth/login", &[("username", &ada.email)]).await;
    browser
        .clone()
        .submit("/auth/login/password", &[("password", "s3cret-wrong")])
        .await
        .sees(401, "Incorrect email address or password.");
    browser.submit("/auth/login/send-link", &[]).await;
    let link = mailed(&app, &ada.email).await;
    browser.open(&link).await.submit("/auth/login/magic-link", &[]).await;
    assert_eq!(browser.answer("state").as_deref(), Some(lines));
    assert!(!browser.location.contains(['\r', '\n']) && !browser.cookies().contains_key("evil"));
    let code = browser.answer("code").expect("a code");
    let mut forgot = at_password(&app, &ada.email, &[]).await;
    forgot.open(&forgot.link("Forgot your password?")).await.submit("/auth/login/forgot", &[]).await;
    let reset = mailed(&app, &ada.email).await;
    forgot.open(&reset).await.submit("/auth/login/set-password", &[("password", "s3cret-new harbour")]).await;
    app.drain().await;

    let text = log.text();
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "every line is one entry");
    let token = |link: &str| link.rsplit_once("token=").expect("a token").1.to_owned();
    let mut hidden = vec![code, token(&link), token(&reset), ada.password.clone(), "s3cret".into()];
    hidden.extend([&browser, &forgot].iter().flat_map(|browser| browser.cookies().values().cloned()));
    for hidden in hidden {
        assert_eq!(text.lines().find(|line| line.contains(&hidden)), None, "{hidden} was logged");
    }
    assert!(app.mails().iter().all(|mail| !mail.to.contains("evil")));
}
