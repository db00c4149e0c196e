-- What an event stores besides itself is short rows, and their keys were most of each: the app's id thrice, in 30 characters.
-- A number stands for it here, the last 12 characters of the id; 16 characters of an entity's digest are enough; and most
-- entities have their event once, so that there is no other time.
CREATE TABLE event_app_numbers (app_id {key} PRIMARY KEY, number {int} NOT NULL) {strict};
INSERT INTO event_app_numbers (app_id, number)
WITH RECURSIVE digits (app_id, place, number) AS (
    SELECT DISTINCT app_id, 19, 0 FROM event_names
    UNION ALL
    SELECT app_id, place + 1,
        number * 32 + instr('0123456789abcdefghjkmnpqrstvwxyz', substr(app_id, place, 1)) - 1
    FROM digits WHERE place <= 30
)
SELECT app_id, number FROM digits WHERE place = 31;

CREATE TABLE event_ingest_ids_by_number (
    app_number {int} NOT NULL,
    digest {bytes} NOT NULL,
    PRIMARY KEY (app_number, digest)
) {strict}, WITHOUT ROWID;
INSERT INTO event_ingest_ids_by_number (app_number, digest)
SELECT number, digest FROM event_ingest_ids JOIN event_app_numbers USING (app_id) ORDER BY number, digest;
DROP TABLE event_ingest_ids;
ALTER TABLE event_ingest_ids_by_number RENAME TO event_ingest_ids;

CREATE TABLE event_firsts_by_number (
    app_number {int} NOT NULL,
    entity_digest {key} NOT NULL,
    name_id {int} NOT NULL,
    parameter_id {int} NOT NULL,
    first_at {int} NOT NULL,
    -- At most ten minutes too early; NULL where it is the first time.
    last_at {int},
    PRIMARY KEY (app_number, entity_digest, name_id)
) {strict}, WITHOUT ROWID;
INSERT INTO event_firsts_by_number (app_number, entity_digest, name_id, parameter_id, first_at, last_at)
SELECT number, substr(entity_digest, 1, 16), name_id, parameter_id, first_at, nullif(last_at, first_at)
FROM event_firsts JOIN event_app_numbers USING (app_id) ORDER BY number, entity_digest, name_id;
DROP TABLE event_firsts;
ALTER TABLE event_firsts_by_number RENAME TO event_firsts;
CREATE INDEX event_firsts_by_name ON event_firsts (app_number, name_id, parameter_id, first_at);

DROP TABLE event_app_numbers;
