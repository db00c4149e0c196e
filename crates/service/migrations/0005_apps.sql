CREATE TABLE apps (
    id {key} PRIMARY KEY,
    domain {key} NOT NULL UNIQUE,
    -- The profile as JSON: always read and written whole, and kept in memory.
    profile TEXT NOT NULL,
    version {int} NOT NULL,
    created_at {int} NOT NULL
) {strict};

CREATE TABLE app_keys (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL REFERENCES apps (id),
    name TEXT NOT NULL,
    -- SHA-256 of the key; the key itself is never stored.
    digest {key} NOT NULL UNIQUE,
    privileges TEXT NOT NULL,
    created_at {int} NOT NULL
) {strict};

CREATE INDEX app_keys_by_app ON app_keys (app_id, id);
