//! The hosted pages in Chromium: every way to sign in without scripts, passkeys with a virtual authenticator, how the pages
//! look to eyes, keyboards and an accessibility checker; and people on a slow line who press every button twice.

use testkit::{OnPort, counterparts, on_both_engines};

on_both_engines!(
    people_sign_in_with_a_browser,
    people_who_click_twice_sign_in_once,
    people_who_click_twice_with_scripts_sign_in_once,
);

async fn people_sign_in_with_a_browser(server: OnPort) {
    counterparts::run(&server, "browser.mjs").await;
}

async fn people_who_click_twice_sign_in_once(server: OnPort) {
    counterparts::run(&server, "impatient.mjs").await;
}

async fn people_who_click_twice_with_scripts_sign_in_once(server: OnPort) {
    counterparts::run(&server, "impatient-scripts.mjs").await;
}
