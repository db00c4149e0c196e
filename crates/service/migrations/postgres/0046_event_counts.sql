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
LOCK TABLE event_values IN ACCESS EXCLUSIVE MODE;
INSERT INTO event_counts (app_id, name_id, grain, starts_at, parameter_id, part, counts)
SELECT app_id, name_id, grain, starts_at, parameter_id, part, json_object_agg(value, events)::text
FROM (
    SELECT app_id, name_id, grain, starts_at, parameter_id, value, events,
        CASE WHEN value IN ('__other__', '__erased__') THEN 0 ELSE 1 + sum(octet_length(value) + 8) OVER (
            PARTITION BY app_id, name_id, grain, starts_at, parameter_id ORDER BY value
        ) / 2048 END AS part
    FROM event_values
) AS parted
GROUP BY app_id, name_id, grain, starts_at, parameter_id, part;
DROP TABLE event_values;

-- No index by `last_at`: it was written with every new entity, and read now and then. Where the last time is not known, it is
-- the end of the last hour in which such an event happened to anybody.
DROP INDEX event_firsts_by_last;
UPDATE event_firsts AS firsts SET last_at = coalesce((
    SELECT max(starts_at) + 3600000000 FROM event_buckets
    WHERE app_id = firsts.app_id AND name_id = firsts.name_id AND grain = 0
), first_at) WHERE last_at IS NULL;
ALTER TABLE event_firsts ALTER COLUMN last_at SET NOT NULL;
