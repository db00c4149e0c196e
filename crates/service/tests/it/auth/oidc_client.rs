//! An OpenID Connect client that the OpenID Foundation certified, against a server on a real port.

use testkit::{OnPort, counterparts, on_both_engines};

on_both_engines!(a_certified_client_signs_in_and_stays_signed_in);

async fn a_certified_client_signs_in_and_stays_signed_in(server: OnPort) {
    counterparts::run(&server, "oidc.mjs").await;
}
