//! Questions about events that are folded: series of buckets, single queries, journeys, funnels, lists.
//!
//! Whole buckets are answered from aggregates, ragged ends and filters from rows. What is quick runs with the readers; what
//! reads many rows begins again on the lane for scans, where an app has one at a time and ten seconds.

mod charts;
mod funnel;
mod journeys;
mod listing;
mod query;
mod series;

use web::Routes;

use crate::EventLog;
pub(crate) use journeys::parameters_of;
pub(crate) use listing::RawEvent;

pub(crate) fn routes() -> Routes<EventLog> {
    Routes::new("Event log")
        .post("/event-log/query", query::query, "Count and sum the events of a name")
        .description(
            "`from` and `to` are inclusive. `filters` compares parameters with plain values, by type and value. `totalSum` \
             and `total` are there exactly when `sumField` is. `currency` and `limit` are reserved.",
        )
        .answers(503, TOO_WIDE)
        .get("/event-log/charts", charts::charts, "List the buckets of an event, oldest first")
        .description(
            "Buckets are in UTC, weeks begin on Monday, empty ones are left out. The first and the last are cut to `from` \
             and `to`; of more than `limit` buckets the newest are answered. A parameter with over 1,000 values in a bucket \
             counts the rest as `__other__`.",
        )
        .answers(503, TOO_WIDE)
        .get("/event-log/entities/{entity_type}/{entity_value}", journeys::entity, "Get the journey of an entity")
        .description(
            "When each event first happened to it, and how long it took from each to each later one. `entity_type` is a \
             parameter's name (`userId`) or, where no parameter is called so, its stem (`user`).",
        )
        .answers(503, TOO_WIDE)
        .get("/event-log/journeys/stats", journeys::stats, "Get how long entities take from one event to another")
        .description("Between first occurrences. `from` and `to` are about the end event.")
        .answers(503, TOO_WIDE)
        .post("/event-log/funnel", funnel::funnel, "Count how many entities got how far")
        .description(
            "An entity has reached a step when its first occurrences of all steps up to that one lie in their order. `from` \
             and `to` are about the first step.",
        )
        .answers(503, TOO_WIDE)
        .get("/event-log/names", listing::list_names, "List which events are sent, how often and with which parameters")
        .answers(503, TOO_WIDE)
        .get("/event-log/events", listing::list_events, "List the events of a name, newest first")
        .answers(503, TOO_WIDE)
        .get("/event-log/events/{event_id}", listing::get_event, "Get an event")
}

const TOO_WIDE: &str = "The question takes over ten seconds";
