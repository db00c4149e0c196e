//! Providers that are slow, endless or empty: a page for whoever signs in, and nothing for everybody else.

use std::time::Duration;

use spine::outbound::{Outbound, Targets};
use testkit::{Browser, Instead, on_both_engines};
use tokio::task::JoinSet;

use super::federation_oidc::{World, callback, settings};

on_both_engines!(
    a_provider_that_never_answers_is_a_page,
    a_provider_that_says_too_much_or_nothing_is_a_page,
    nobody_waits_for_somebody_elses_provider,
    keys_are_read_once_for_all_who_need_them,
);

/// What is read of an answer.
const LARGEST: usize = 256 * 1024;

/// Ten seconds are a fifth of one.
async fn hurry(world: &World) {
    let providers = settings(&world.one, &world.two);
    let hurried = |options: &mut service::Options| {
        options.providers = providers;
        options.outbound = Outbound::hurried(Targets::PublicAndLoopback, 50);
    };
    world.app.restart_with(hurried).await;
}

/// Signs in without an address in the ID token, so that each endpoint is asked; the page's status is this, at this step.
async fn fails(world: &World, endpoint: &'static str, instead: Instead, status: u16, step: &str) {
    let what = format!("{endpoint}: {instead:?}");
    world.one.instead(endpoint, Some(instead));
    let mut browser = world.app.browser();
    browser.open(&testkit::hosted::authorize(&world.app, &[("force_federation", "social-one")])).await;
    if endpoint != "discovery" {
        let asked = testkit::OpenIdRequest::of(&browser.location);
        let mut claims = world.claims(&asked, "x");
        claims.as_object_mut().expect("claims").remove("email");
        browser.open(&callback(&asked, &world.one.answer(&asked, claims))).await;
    }
    assert_eq!(browser.page().status(), status, "{what}: {}", browser.html());
    assert!(browser.html().contains("/auth/login?r="), "{what} leaves no way on: {}", browser.html());
    assert_eq!(world.failed().await.pop().as_deref(), Some(step), "{what}");
    // No connection outlives its call.
    world.one.until_held(0).await;
    world.one.instead(endpoint, None);
}

async fn a_provider_that_never_answers_is_a_page(world: World) {
    world.app.owner("ada@acme.example").await;
    hurry(&world).await;
    for (endpoint, step) in [("discovery", "discovery"), ("token", "token"), ("jwks", "keys"), ("userinfo", "userinfo")]
    {
        fails(&world, endpoint, Instead::Silence, 502, step).await;
        fails(&world, endpoint, Instead::Drip, 502, step).await;
    }
    // It was the provider's fault, and is over with it.
    assert!(world.come("ada@acme.example").await.answer("code").is_some());
}

async fn a_provider_that_says_too_much_or_nothing_is_a_page(world: World) {
    world.app.owner("ada@acme.example").await;
    let said = |text: &str| Instead::Answer(200, text.to_owned());
    fails(&world, "discovery", said("{}"), 502, "discovery").await;
    for (endpoint, step) in [("discovery", "discovery"), ("token", "token"), ("jwks", "keys"), ("userinfo", "userinfo")]
    {
        for instead in
            [Instead::Endless, Instead::Padded(LARGEST), said(""), said("[]"), said("null"), said("\u{fffd}")]
        {
            fails(&world, endpoint, instead, 502, step).await;
        }
        fails(&world, endpoint, Instead::Answer(503, String::new()), 502, step).await;
    }
    for endpoint in ["discovery", "token", "jwks"] {
        world.one.instead(endpoint, Some(Instead::Padded(LARGEST / 2)));
    }
    assert!(world.come("ada@acme.example").await.answer("code").is_some(), "what is long enough for anybody is read");
    for endpoint in ["discovery", "token", "jwks"] {
        world.one.instead(endpoint, None);
    }
    fails(&world, "token", said("{}"), 400, "token").await;
    fails(&world, "token", Instead::Answer(401, String::new()), 400, "token").await;
    fails(&world, "userinfo", said("{}"), 400, "userinfo").await;
    // Keys are known by now; once they are too old, nothing takes their place.
    world.app.advance(Duration::from_secs(3601)).await;
    fails(&world, "jwks", said("{}"), 502, "keys").await;
    world.app.advance(Duration::from_secs(301)).await;
    fails(&world, "jwks", said("{\"keys\":[]}"), 400, "id_token").await;
}

/// Logins of one person that are all at the provider, whose answers have come back.
async fn at_once(world: &World, count: usize) -> JoinSet<Browser> {
    let mut logins = JoinSet::new();
    for _ in 0..count {
        let (mut browser, asked) = world.at("social-one").await;
        let address = callback(&asked, &world.one.answer(&asked, world.claims(&asked, "ada@acme.example")));
        logins.spawn(async move {
            browser.open(&address).await;
            browser
        });
    }
    logins
}

/// More logins hang at the provider than there are connections to the database.
async fn nobody_waits_for_somebody_elses_provider(world: World) {
    const MANY: usize = 24;
    let ada = world.app.owner("ada@acme.example").await;
    world.one.instead("token", Some(Instead::Silence));
    let mut hanging = at_once(&world, MANY).await;
    world.one.until_held(MANY).await;
    ada.sign_in().await;
    world.app.owner("bob@acme.example").await.sign_in().await;
    assert!(hanging.try_join_next().is_none(), "they are still at the provider");
    world.one.instead("token", None);
    for login in hanging.join_all().await {
        assert!(login.answer("code").is_some(), "{}", login.html());
    }
}

/// Whoever comes while somebody else reads them waits for the same answer.
async fn keys_are_read_once_for_all_who_need_them(world: World) {
    let ada = world.app.owner("ada@acme.example").await;
    let reads = || world.one.asked().iter().filter(|path| *path == "jwks").count();
    // None are known; one is unknown; all are too old.
    for (turn, waits) in [1, 301, 3601].into_iter().enumerate() {
        world.app.advance(Duration::from_secs(waits)).await;
        if waits == 301 {
            world.one.rotate("second");
        }
        world.one.instead("jwks", Some(Instead::Silence));
        let logins = at_once(&world, 8).await;
        world.one.until_held(1).await;
        ada.sign_in().await;
        world.one.instead("jwks", None);
        for login in logins.join_all().await {
            assert!(login.answer("code").is_some(), "{turn}: {}", login.html());
        }
        assert_eq!(reads(), turn + 1);
    }
}
