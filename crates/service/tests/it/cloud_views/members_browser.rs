//! The members' portal in Chromium.

use testkit::{OnPort, counterparts, on_both_engines};

on_both_engines!(an_owner_manages_members_with_a_browser);

async fn an_owner_manages_members_with_a_browser(server: OnPort) {
    counterparts::run(&server, "members.mjs").await;
}
