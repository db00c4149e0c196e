-- How often each value of a parameter occurred in a bucket. The values of a bucket are in parts of about two kilobytes, so
-- that a fold writes a few rows instead of one for every value; part 0 counts what has no counter of its own, and what was
-- erased.
CREATE TABLE event_counts (
    app_id {key} NOT NULL,
    name_id {int} NOT NULL,
    grain {int} NOT NULL,
    starts_at {int} NOT NULL,
    parameter_id {int} NOT NULL,
    part {int} NOT NULL,
    -- JSON: events by value.
    counts TEXT NOT NULL,
    PRIMARY KEY (app_id, name_id, grain, starts_at, parameter_id, part)
) {strict};
INSERT INTO event_counts (app_id, name_id, grain, starts_at, parameter_id, part, counts)
SELECT app_id, name_id, grain, starts_at, parameter_id, part, json_group_object(value, events)
FROM (
    SELECT app_id, name_id, grain, starts_at, parameter_id, value, events,
        CASE WHEN value IN ('__other__', '__erased__') THEN 0 ELSE 1 + sum(octet_length(value) + 8) OVER (
            PARTITION BY app_id, name_id, grain, starts_at, parameter_id ORDER BY value
        ) / 2048 END AS part
    FROM event_values
) AS parted
GROUP BY app_id, name_id, grain, starts_at, parameter_id, part;
DROP TABLE event_values;

-- The key is the table, and there is no index by `last_at`: both were written with every new entity, and read now and then.
-- Where the last time is not known, it is the end of the last hour in which such an event happened to anybody.
CREATE TABLE event_firsts_by_entity (
    app_id {key} NOT NULL,
    entity_digest {key} NOT NULL,
    name_id {int} NOT NULL,
    parameter_id {int} NOT NULL,
    first_at {int} NOT NULL,
    -- At most ten minutes too early.
    last_at {int} NOT NULL,
    PRIMARY KEY (app_id, entity_digest, name_id)
) {strict}, WITHOUT ROWID;
INSERT INTO event_firsts_by_entity (app_id, entity_digest, name_id, parameter_id, first_at, last_at)
SELECT app_id, entity_digest, name_id, parameter_id, first_at, coalesce(last_at, (
    SELECT max(starts_at) + 3600000000 FROM event_buckets
    WHERE app_id = firsts.app_id AND name_id = firsts.name_id AND grain = 0
), first_at)
FROM event_firsts AS firsts ORDER BY app_id, entity_digest, name_id;
DROP TABLE event_firsts;
ALTER TABLE event_firsts_by_entity RENAME TO event_firsts;
CREATE INDEX event_firsts_by_name ON event_firsts (app_id, name_id, parameter_id, first_at);
