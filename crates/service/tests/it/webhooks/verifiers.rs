//! Libraries of others verify what is sent.

use testkit::{OnPort, counterparts, on_both_engines};

on_both_engines!(verifiers);

async fn verifiers(server: OnPort) {
    counterparts::run(&server, "webhooks.mjs").await;
}
