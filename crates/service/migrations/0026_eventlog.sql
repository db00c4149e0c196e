-- The event log. Rows carry no reference to `apps`: an app is deleted in one small step and its rows are purged afterwards.

-- Events that were answered for and are not folded yet, many to a row.
CREATE TABLE event_arrivals (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    -- How many of its events are folded.
    folded {int} NOT NULL,
    -- JSON, in the order of arrival.
    events TEXT NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX event_arrivals_by_app ON event_arrivals (app_id, id);

-- Digests of the `ingestId`s of the events that are kept.
CREATE TABLE event_ingest_ids (
    app_id {key} NOT NULL,
    digest {bytes} NOT NULL,
    -- The event's own time.
    happened_at {int} NOT NULL,
    PRIMARY KEY (app_id, digest)
) {strict};
CREATE INDEX event_ingest_ids_by_time ON event_ingest_ids (app_id, happened_at);

-- Names of events and of their parameters, by the numbers that stand for them within an app.
CREATE TABLE event_names (
    app_id {key} NOT NULL,
    name {key} NOT NULL,
    id {int} NOT NULL,
    PRIMARY KEY (app_id, name)
) {strict};
CREATE UNIQUE INDEX event_names_by_id ON event_names (app_id, id);
CREATE TABLE event_parameters (
    app_id {key} NOT NULL,
    name {key} NOT NULL,
    id {int} NOT NULL,
    PRIMARY KEY (app_id, name)
) {strict};
CREATE UNIQUE INDEX event_parameters_by_id ON event_parameters (app_id, id);

-- Grows with every fold, so that what was worked out before it is known to be old.
CREATE TABLE event_folds (
    app_id {key} PRIMARY KEY,
    revision {int} NOT NULL
) {strict};

-- Events by name and hour (0), day (1), week (2) and month (3).
CREATE TABLE event_buckets (
    app_id {key} NOT NULL,
    name_id {int} NOT NULL,
    grain {int} NOT NULL,
    starts_at {int} NOT NULL,
    events {int} NOT NULL,
    PRIMARY KEY (app_id, name_id, grain, starts_at)
) {strict};
CREATE TABLE event_sums (
    app_id {key} NOT NULL,
    name_id {int} NOT NULL,
    grain {int} NOT NULL,
    starts_at {int} NOT NULL,
    parameter_id {int} NOT NULL,
    total {real} NOT NULL,
    PRIMARY KEY (app_id, name_id, grain, starts_at, parameter_id)
) {strict};
CREATE TABLE event_values (
    app_id {key} NOT NULL,
    name_id {int} NOT NULL,
    grain {int} NOT NULL,
    starts_at {int} NOT NULL,
    parameter_id {int} NOT NULL,
    value {key} NOT NULL,
    events {int} NOT NULL,
    PRIMARY KEY (app_id, name_id, grain, starts_at, parameter_id, value)
) {strict};

-- When each event first happened to an entity, which is known by a digest of parameter and value.
CREATE TABLE event_firsts (
    app_id {key} NOT NULL,
    entity_digest {key} NOT NULL,
    name_id {int} NOT NULL,
    parameter_id {int} NOT NULL,
    first_at {int} NOT NULL,
    PRIMARY KEY (app_id, entity_digest, name_id)
) {strict};
CREATE INDEX event_firsts_by_name ON event_firsts (app_id, name_id, parameter_id, first_at);

-- The events themselves.
CREATE TABLE event_rows (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    name_id {int} NOT NULL,
    happened_at {int} NOT NULL,
    ingested_at {int} NOT NULL,
    ingest_source TEXT,
    ingest_id TEXT,
    -- Of the service's own entries.
    tenant_id {key},
    -- Whether it is in the audit trail.
    audited {bool} NOT NULL,
    parameters TEXT NOT NULL
) {strict};
CREATE INDEX event_rows_by_name ON event_rows (app_id, name_id, happened_at, id);
CREATE INDEX event_rows_audited ON event_rows (app_id, happened_at, id) WHERE audited;
CREATE INDEX event_rows_of_tenant ON event_rows (app_id, tenant_id, happened_at, id) WHERE tenant_id IS NOT NULL;
