//! The hosted pages in Chromium: every way to sign in without scripts, passkeys with a virtual authenticator, and how
//! the pages look to eyes, keyboards and an accessibility checker.

use testkit::{OnPort, counterparts, on_both_engines};

on_both_engines!(people_sign_in_with_a_browser);

async fn people_sign_in_with_a_browser(server: OnPort) {
    counterparts::run(&server, "browser.mjs").await;
}
