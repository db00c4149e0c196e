-- What the operator decided about an app's event log.
CREATE TABLE event_settings (
    app_id {key} PRIMARY KEY,
    -- NULL keeps everything.
    retention_days {int}
) {strict};

-- When the event last happened to the entity, at most ten minutes too early; NULL where that is not known.
ALTER TABLE event_firsts ADD COLUMN last_at {int};
CREATE INDEX event_firsts_by_last ON event_firsts (app_id, last_at);

-- Entities that are to be taken out of the log.
CREATE TABLE event_erasures (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    entity_type TEXT NOT NULL,
    -- Emptied once it is done.
    entity_value TEXT NOT NULL,
    -- Whether everything that was told before it is in the log.
    ready {bool} NOT NULL,
    -- JSON: how far it is; NULL before the first step.
    place TEXT,
    created_at {int} NOT NULL,
    finished_at {int}
) {strict};
CREATE INDEX event_erasures_by_app ON event_erasures (app_id, id);
CREATE INDEX event_erasures_open ON event_erasures (id) WHERE finished_at IS NULL;
