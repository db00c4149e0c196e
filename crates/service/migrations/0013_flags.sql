-- Feature flags. Rows carry no reference to `apps`: an app is deleted in one small step and its rows are purged
-- afterwards.
CREATE TABLE flags (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    key {key} NOT NULL,
    -- The whole definition as JSON: read and written whole, and kept compiled in memory.
    definition TEXT NOT NULL,
    version {int} NOT NULL,
    created_at {int} NOT NULL,
    updated_at {int} NOT NULL,
    UNIQUE (app_id, key)
) {strict};

CREATE TABLE flag_groups (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    key {key} NOT NULL,
    definition TEXT NOT NULL,
    version {int} NOT NULL,
    created_at {int} NOT NULL,
    updated_at {int} NOT NULL,
    UNIQUE (app_id, key)
) {strict};

-- One row per change of a flag or a group, which `subject_id` names.
CREATE TABLE flag_versions (
    subject_id {key} NOT NULL,
    version {int} NOT NULL,
    app_id {key} NOT NULL,
    action TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    changed_at {int} NOT NULL,
    definition TEXT NOT NULL,
    diff TEXT NOT NULL,
    PRIMARY KEY (subject_id, version)
) {strict};
CREATE INDEX flag_versions_by_app ON flag_versions (app_id);

-- Counts the changes of an app's flags and groups. Whoever changes them moves it on from what they read, so that two
-- changes that read the same state cannot both be made. Every app that has a row in any of these tables has one here.
CREATE TABLE flag_revisions (
    app_id {key} PRIMARY KEY,
    revision {int} NOT NULL
) {strict};

-- Keys that were asked for and that no flag has.
CREATE TABLE flag_discoveries (
    app_id {key} NOT NULL,
    key {key} NOT NULL,
    value_type TEXT,
    first_seen_at {int} NOT NULL,
    last_seen_at {int} NOT NULL,
    sightings {int} NOT NULL,
    PRIMARY KEY (app_id, key)
) {strict};
CREATE INDEX flag_discoveries_by_sight ON flag_discoveries (app_id, last_seen_at);

-- What clients report, per day counted from 1970.
CREATE TABLE flag_evaluations (
    app_id {key} NOT NULL,
    key {key} NOT NULL,
    variant_index {int} NOT NULL,
    day {int} NOT NULL,
    evaluations {int} NOT NULL,
    PRIMARY KEY (app_id, key, variant_index, day)
) {strict};
CREATE INDEX flag_evaluations_by_day ON flag_evaluations (day);

CREATE TABLE flag_last_uses (
    app_id {key} NOT NULL,
    key {key} NOT NULL,
    last_evaluated_at {int} NOT NULL,
    PRIMARY KEY (app_id, key)
) {strict};

CREATE TABLE flag_call_sites (
    app_id {key} NOT NULL,
    key {key} NOT NULL,
    file {key} NOT NULL,
    line {int} NOT NULL,
    first_seen_at {int} NOT NULL,
    last_seen_at {int} NOT NULL,
    PRIMARY KEY (app_id, key, file, line)
) {strict};
