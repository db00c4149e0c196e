-- Facts that servers outside are not told of.
ALTER TABLE outbox ADD COLUMN quiet {bool} NOT NULL DEFAULT FALSE;

-- Bulk imports. Rows carry no reference to `apps`: an app is deleted in one small step and its rows are purged afterwards.
CREATE TABLE imports (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    state TEXT NOT NULL,
    -- The digest of the caller's Idempotency-Key.
    repeat_digest TEXT,
    tenants {int} NOT NULL,
    users {int} NOT NULL,
    passwords {bool} NOT NULL,
    -- JSON.
    errors TEXT NOT NULL,
    warnings TEXT NOT NULL,
    -- What is stored, and what could not be.
    done_tenants {int} NOT NULL,
    done_users {int} NOT NULL,
    left_out {int} NOT NULL,
    -- The workspace that is being filled.
    item {int},
    workspace TEXT,
    quiet {bool} NOT NULL,
    -- In whose name it runs.
    actor TEXT NOT NULL,
    address TEXT,
    request_id TEXT,
    lease_owner TEXT,
    lease_until {int},
    -- When it was worked on last: the others have their turn first.
    turn_at {int} NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX imports_by_app ON imports (app_id, repeat_digest);
CREATE INDEX imports_unfinished ON imports (turn_at) WHERE state IN ('SCHEDULED', 'RUNNING');

-- What an import has still to store, in the order of its ids.
CREATE TABLE import_rows (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    import_id {key} NOT NULL,
    people {int} NOT NULL,
    sealed TEXT NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX import_rows_by_app ON import_rows (app_id, import_id);
