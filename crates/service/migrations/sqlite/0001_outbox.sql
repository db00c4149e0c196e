-- The outbox. SQLite has one writer, so a fact gets its position when it is inserted.
CREATE TABLE outbox_head (
    id {int} PRIMARY KEY CHECK (id = 1),
    last_position {int} NOT NULL
) {strict};
INSERT INTO outbox_head (id, last_position) VALUES (1, 0);

-- inserted orders facts that wait for a position; recorded_at is the database's own time, created_at business time.
CREATE TABLE outbox (
    id {key} PRIMARY KEY,
    position {int} UNIQUE,
    inserted {int} NOT NULL DEFAULT 0,
    kind TEXT NOT NULL,
    app_id {key},
    tenant_id {key},
    payload TEXT NOT NULL,
    created_at {int} NOT NULL,
    recorded_at {int} NOT NULL
) {strict};
CREATE INDEX outbox_unnumbered ON outbox (inserted) WHERE position IS NULL;

CREATE TRIGGER outbox_numbered AFTER INSERT ON outbox WHEN NEW.position IS NULL BEGIN
    UPDATE outbox_head SET last_position = last_position + 1 WHERE id = 1;
    UPDATE outbox SET position = (SELECT last_position FROM outbox_head WHERE id = 1) WHERE id = NEW.id;
END;

-- A consumer that is removed from the program has its row removed by a migration: it would hold up trimming.
CREATE TABLE outbox_cursors (
    name {key} PRIMARY KEY,
    position {int} NOT NULL,
    attempts {int} NOT NULL DEFAULT 0,
    next_attempt_at {int},
    last_error TEXT,
    lease_owner TEXT,
    lease_until {int}
) {strict};

CREATE TABLE outbox_parked (
    consumer {key} NOT NULL,
    position {int} NOT NULL,
    fact_id {key} NOT NULL,
    kind TEXT NOT NULL,
    app_id {key},
    tenant_id {key},
    payload TEXT NOT NULL,
    created_at {int} NOT NULL,
    attempts {int} NOT NULL,
    error TEXT NOT NULL,
    parked_at {int} NOT NULL,
    PRIMARY KEY (consumer, position)
) {strict};

CREATE TABLE leases (
    name {key} PRIMARY KEY,
    owner TEXT NOT NULL,
    until {int} NOT NULL
) {strict};

CREATE TABLE test_clock (
    id {int} PRIMARY KEY CHECK (id = 1),
    offset_micros {int} NOT NULL
) {strict};
INSERT INTO test_clock (id, offset_micros) VALUES (1, 0);
