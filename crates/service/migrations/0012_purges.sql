-- What is gone for everybody and whose rows are still being deleted, a batch at a time.
CREATE TABLE purges (
    id {key} PRIMARY KEY,
    -- The kind of the fact that called for it.
    kind TEXT NOT NULL,
    app_id {key} NOT NULL,
    tenant_id {key},
    created_at {int} NOT NULL
) {strict};
