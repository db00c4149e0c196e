-- An event's digest goes with the event, so that nothing needs to know when that happened. The key is the table: it is looked
-- at for every event that arrives.
CREATE TABLE event_ingest_ids_by_digest (
    app_id {key} NOT NULL,
    digest {bytes} NOT NULL,
    PRIMARY KEY (app_id, digest)
) {strict}, WITHOUT ROWID;
INSERT INTO event_ingest_ids_by_digest (app_id, digest)
SELECT app_id, digest FROM event_ingest_ids
-- Those whose events went before them go now.
WHERE NOT EXISTS (
    SELECT 1 FROM event_settings
    WHERE event_settings.app_id = event_ingest_ids.app_id AND event_ingest_ids.happened_at < event_settings.swept_before
        AND event_ingest_ids.happened_at < unixepoch() * 1000000 - event_settings.retention_days * 86400000000
)
ORDER BY app_id, digest;
DROP TABLE event_ingest_ids;
ALTER TABLE event_ingest_ids_by_digest RENAME TO event_ingest_ids;
