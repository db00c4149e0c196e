-- An event's digest goes with the event, so that nothing needs to know when that happened.
-- Those whose events went before them go now.
DELETE FROM event_ingest_ids USING event_settings
WHERE event_settings.app_id = event_ingest_ids.app_id AND event_ingest_ids.happened_at < event_settings.swept_before
    AND event_ingest_ids.happened_at
        < CAST(extract(epoch FROM now()) AS BIGINT) * 1000000 - event_settings.retention_days * 86400000000;
ALTER TABLE event_ingest_ids DROP COLUMN happened_at;
