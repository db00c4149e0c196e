-- An event's digest goes with the event, so that nothing needs to know when that happened.
ALTER TABLE event_ingest_ids DROP COLUMN happened_at;
