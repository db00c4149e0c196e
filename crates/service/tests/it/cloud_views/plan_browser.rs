//! The plan page and the sandbox in Chromium.

use testkit::{OnPort, counterparts, on_both_engines};

on_both_engines!(a_customer_pays_with_a_browser);

async fn a_customer_pays_with_a_browser(server: OnPort) {
    counterparts::run(&server, "plans.mjs").await;
}
