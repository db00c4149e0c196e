-- Events that are no longer rows: up to some thousand of one name and month, as a Parquet file.
CREATE TABLE event_blocks (
    app_id {key} NOT NULL,
    name_id {int} NOT NULL,
    id {key} NOT NULL,
    -- When its oldest and its newest event happened.
    first_at {int} NOT NULL,
    last_at {int} NOT NULL,
    -- The smallest and the largest id of its events.
    first_id {key} NOT NULL,
    last_id {key} NOT NULL,
    events {int} NOT NULL,
    -- How many of them are in the audit trail.
    audited {int} NOT NULL,
    digest {bytes} NOT NULL,
    data {bytes} NOT NULL,
    PRIMARY KEY (app_id, name_id, id)
) {strict};
CREATE INDEX event_blocks_by_start ON event_blocks (app_id, name_id, first_at, id, last_at);
CREATE INDEX event_blocks_by_end ON event_blocks (app_id, name_id, last_at, id, first_at);
CREATE INDEX event_blocks_of_app ON event_blocks (app_id, last_at, id);
CREATE INDEX event_blocks_by_events ON event_blocks (app_id, last_id, first_id);

-- How many events of a name are rows, without the service's own.
CREATE TABLE event_series (
    app_id {key} NOT NULL,
    name_id {int} NOT NULL,
    unpacked {int} NOT NULL,
    -- Moves when rows are changed, so that a block that was worked out from them is not written.
    version {int} NOT NULL,
    look_at {int} NOT NULL,
    PRIMARY KEY (app_id, name_id)
) {strict};
CREATE INDEX event_series_due ON event_series (look_at) WHERE unpacked >= 256;

-- Looked at an hour after the newest event came: by then no node of the release before answers questions.
INSERT INTO event_series (app_id, name_id, unpacked, version, look_at)
SELECT event_rows.app_id, event_rows.name_id, count(*), 0, max(event_rows.ingested_at) + 3600000000
FROM event_rows JOIN event_names ON event_names.app_id = event_rows.app_id AND event_names.id = event_rows.name_id
WHERE substr(event_names.name, 1, 9) <> 'tenantry.'
GROUP BY event_rows.app_id, event_rows.name_id;
