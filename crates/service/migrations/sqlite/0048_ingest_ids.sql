-- An event's digest goes with the event, so that nothing needs to know when that happened. The key is the table: it is looked
-- at for every event that arrives.
CREATE TABLE event_ingest_ids_by_digest (
    app_id {key} NOT NULL,
    digest {bytes} NOT NULL,
    PRIMARY KEY (app_id, digest)
) {strict}, WITHOUT ROWID;
INSERT INTO event_ingest_ids_by_digest (app_id, digest)
SELECT app_id, digest FROM event_ingest_ids ORDER BY app_id, digest;
DROP TABLE event_ingest_ids;
ALTER TABLE event_ingest_ids_by_digest RENAME TO event_ingest_ids;
