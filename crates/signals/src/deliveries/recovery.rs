//! `POST /admin/apps/{app_id}/webhook/recover`: repeats what did not arrive while a receiver was away.

use kernel::{AppId, Error, Problems, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::emit;
use tenancy::{apps::EventType, callers::Operator};
use web::{Accepted, Path, Routes, State, Valid, Validate};

use super::{
    replay,
    store::{self, Lost},
};
use crate::{
    Signals,
    endpoints::{self, EndpointId},
    facts::DeliveriesRecovered,
};

/// Deliveries that one call repeats.
const MOST: usize = 10_000;
/// Deliveries that one transaction repeats.
const BATCH: i64 = 100;

pub(super) fn routes() -> Routes<Signals> {
    Routes::new("Webhooks")
        .post("/admin/apps/{app_id}/webhook/recover", recover, "Send again what was not delivered, oldest first")
        .description(
            "Repeats deliveries with the status `dlq` that were made in this time, at most 10,000 a call. One that was \
             repeated before is left out: if its replay failed too, that one is repeated.",
        )
        .answers(409, "There is no URL to send to, or the webhook is disabled")
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Recovery {
    /// Deliveries that were made at this time or later.
    since: Timestamp,
    /// Deliveries that were made at this time or earlier; now without it.
    until: Option<Timestamp>,
    /// All types without it.
    types: Option<Vec<EventType>>,
    /// All of the app's endpoints that are enabled without it.
    endpoint_id: Option<EndpointId>,
}

impl Validate for Recovery {
    fn validate(&self, problems: &mut Problems) {
        if self.until.is_some_and(|until| until < self.since) {
            problems.add("until", "must not be before since");
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Recovered {
    #[schemars(range(min = 0))]
    replayed: i64,
}

async fn recover(
    caller: Operator,
    State(signals): State<Signals>,
    Path(app): Path<AppId>,
    Valid(recovery): Valid<Recovery>,
) -> Result<Accepted<Recovered>> {
    let now = signals.db.clock().now();
    if recovery.since > now {
        return Err(Error::invalid("since", "must not be in the future"));
    }
    let until = recovery.until.unwrap_or(now);
    let types = recovery.types.iter().flatten().map(ToString::to_string).collect();
    let (lost, endpoint) = (Lost { since: recovery.since, until, types }, recovery.endpoint_id);
    let db = signals.db.by(&caller);
    let (mut replayed, mut after) = (0, String::new());
    while replayed < MOST {
        let (place, lost, due) = (after.clone(), lost.clone(), signals.due.clone());
        let step = db.write(move |tx| {
            let urls = endpoints::current_urls(tx, app, endpoint)?;
            let reached: Vec<EndpointId> = urls.keys().copied().collect();
            let found = store::lost(tx, app, &place, &lost, &reached, BATCH)?;
            for delivery in &found {
                replay::again(tx, delivery, &urls[&delivery.endpoint])?;
            }
            let due = due.clone();
            tx.on_commit(move || due.wake());
            Ok((found.len(), found.last().map(|delivery| delivery.id.to_string())))
        });
        let (count, last) = step.await?;
        replayed += count;
        match last {
            Some(last) => after = last,
            None => break,
        }
    }
    let replayed = i64::try_from(replayed).map_err(Error::internal)?;
    let told = DeliveriesRecovered { since: recovery.since, until, replayed };
    db.write(move |tx| emit(tx, app, &told)).await?;
    Ok(Accepted(Recovered { replayed }))
}
