-- What an event stores besides itself is short rows, and their keys were most of each: the app's id thrice, in 30 characters.
-- A number stands for it here, the last 12 characters of the id; 16 characters of an entity's digest are enough; and most
-- entities have their event once, so that there is no other time.
LOCK TABLE event_ingest_ids, event_firsts IN ACCESS EXCLUSIVE MODE;
CREATE TABLE event_app_numbers (app_id {key} PRIMARY KEY, number {int} NOT NULL);
INSERT INTO event_app_numbers (app_id, number)
WITH RECURSIVE digits (app_id, place, number) AS (
    SELECT DISTINCT app_id, 19, CAST(0 AS BIGINT) FROM event_names
    UNION ALL
    SELECT app_id, place + 1,
        number * 32 + strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(app_id, place, 1)) - 1
    FROM digits WHERE place <= 30
)
SELECT app_id, number FROM digits WHERE place = 31;

ALTER TABLE event_ingest_ids RENAME TO event_ingest_ids_by_id;
ALTER INDEX event_ingest_ids_pkey RENAME TO event_ingest_ids_by_id_pkey;
CREATE TABLE event_ingest_ids (
    app_number {int} NOT NULL,
    digest {bytes} NOT NULL,
    PRIMARY KEY (app_number, digest)
);
INSERT INTO event_ingest_ids (app_number, digest)
SELECT number, digest FROM event_ingest_ids_by_id JOIN event_app_numbers USING (app_id) ORDER BY number, digest;
DROP TABLE event_ingest_ids_by_id;

ALTER TABLE event_firsts RENAME TO event_firsts_by_id;
ALTER INDEX event_firsts_pkey RENAME TO event_firsts_by_id_pkey;
ALTER INDEX event_firsts_by_name RENAME TO event_firsts_by_id_by_name;
CREATE TABLE event_firsts (
    app_number {int} NOT NULL,
    entity_digest {key} NOT NULL,
    name_id {int} NOT NULL,
    parameter_id {int} NOT NULL,
    first_at {int} NOT NULL,
    -- At most ten minutes too early; NULL where it is the first time.
    last_at {int},
    PRIMARY KEY (app_number, entity_digest, name_id)
);
INSERT INTO event_firsts (app_number, entity_digest, name_id, parameter_id, first_at, last_at)
SELECT number, substr(entity_digest, 1, 16), name_id, parameter_id, first_at, nullif(last_at, first_at)
FROM event_firsts_by_id JOIN event_app_numbers USING (app_id) ORDER BY number, entity_digest, name_id;
DROP TABLE event_firsts_by_id;
CREATE INDEX event_firsts_by_name ON event_firsts (app_number, name_id, parameter_id, first_at);

DROP TABLE event_app_numbers;
