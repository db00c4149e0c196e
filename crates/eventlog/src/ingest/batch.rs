//! `POST /event-log/batch`.

use kernel::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;
use store::LONGEST_LIST;
use tenancy::callers::{AppCaller, EventWrite};
use web::{Created, Entries, EntryError, State};

use super::{
    ArrivedEvent,
    http::{EventBody, IngestAnswer, PrefersWait, SentEvent, accepted},
};
use crate::{EventLog, keeping};

/// For the documentation only.
#[derive(JsonSchema)]
#[schemars(rename = "EventBatch")]
#[expect(dead_code, reason = "names the form in the schema")]
pub(super) struct BatchBody {
    #[schemars(length(min = 1, max = LONGEST_LIST))]
    events: Vec<EventBody>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventBatchAnswer")]
pub struct BatchAnswer {
    /// In the order of the events.
    results: Vec<EntryAnswer>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "EventEntryAnswer")]
pub enum EntryAnswer {
    Stored(IngestAnswer),
    Refused { error: EntryError },
}

pub(super) async fn ingest_batch(
    caller: AppCaller<EventWrite>,
    State(log): State<EventLog>,
    PrefersWait(wait): PrefersWait,
    Entries(entries, _): Entries<BatchBody>,
) -> Result<Created<BatchAnswer>> {
    let (app, now) = (caller.app_id(), log.db.clock().now());
    let sent: Vec<Result<SentEvent>> = entries.into_iter().map(SentEvent::of).collect();
    let oldest = sent.iter().flatten().map(SentEvent::timestamp).min().unwrap_or(now);
    let taken = keeping::oldest_taken(&log.db, app, oldest).await?;
    let events: Vec<Result<ArrivedEvent>> =
        sent.into_iter().map(|sent| sent.and_then(|sent| sent.admit(app, now, taken))).collect();
    let right: Vec<ArrivedEvent> = events.iter().filter_map(|event| event.as_ref().ok()).cloned().collect();
    let mut stored = log.store(app, right).await?.into_iter();
    let queued = !log.finish(app, wait).await?;
    let mut results = Vec::with_capacity(events.len());
    for event in events {
        let outcome = match event {
            Ok(_) => {
                stored.next().unwrap_or_else(|| Err(Error::internal("an event without an answer"))).and_then(accepted)
            }
            Err(error) => Err(error),
        };
        results.push(match outcome {
            Ok(()) => EntryAnswer::Stored(IngestAnswer { queued }),
            Err(error) => EntryAnswer::Refused { error: (&error).into() },
        });
    }
    Ok(Created(BatchAnswer { results }))
}
