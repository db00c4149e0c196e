//! Usage at a high rate: what billing's lossy channel brings, told to the workspace's streams.

use billing::usage::UsageSignal;
use kernel::Clock;
use serde_json::json;
use spine::{Heard, Listener};

use super::{Audience, Hub, Signal};

/// Passes on what is recorded until the channel ends.
pub(crate) async fn tell_usage(hub: Hub, clock: Clock, mut listener: Listener<UsageSignal>) {
    while let Some(heard) = listener.next().await {
        if let Heard::Signal(keyed) = heard {
            hub.tell_in_passing(&signals_of(&keyed.signal, &clock));
        }
    }
}

fn signals_of(recorded: &UsageSignal, clock: &Clock) -> Vec<Signal> {
    let UsageSignal { app, tenant, metric, value, used, quota } = recorded;
    let signal = |name, data| Signal {
        id: None,
        name,
        app: *app,
        audience: Audience::Workspace(*tenant),
        data,
        at: clock.now(),
    };
    let told = signal("usage.recorded", json!({ "metric": metric, "value": value, "used": used }));
    let quota = quota.as_ref().map(|quota| signal("quota.updated", json!(quota)));
    [told].into_iter().chain(quota).collect()
}
