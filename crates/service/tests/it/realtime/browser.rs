//! A browser's `EventSource` on a real port.

use testkit::{OnPort, counterparts, on_both_engines};

on_both_engines!(event_source);

async fn event_source(server: OnPort) {
    counterparts::run(&server, "realtime.mjs").await;
}
