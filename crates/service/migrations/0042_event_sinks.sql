-- Where an app's events are sent as well.
CREATE TABLE event_sinks (
    app_id {key} PRIMARY KEY,
    kind TEXT NOT NULL,
    -- JSON with the address and the headers, which may hold credentials.
    sealed TEXT NOT NULL,
    -- The address without credentials.
    shown_url TEXT NOT NULL,
    table_name TEXT,
    -- JSON: names of events that are sent, all where empty.
    events TEXT NOT NULL,
    since {int} NOT NULL,
    -- The fold's revision when it was set up: what was folded until then is sent by the backfill.
    made_at {int} NOT NULL,
    -- JSON: how far it is among new events and in the backfill, which is NULL when done.
    fresh TEXT NOT NULL,
    backfill TEXT,
    -- Since the last success.
    failures {int} NOT NULL,
    last_error TEXT,
    last_sent_at {int},
    next_attempt_at {int} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX event_sinks_by_due ON event_sinks (next_attempt_at);

-- The fold that wrote the event, where its app has a sink.
ALTER TABLE event_rows ADD COLUMN revision {int};
CREATE INDEX event_rows_by_revision ON event_rows (app_id, revision, id) WHERE revision IS NOT NULL;
