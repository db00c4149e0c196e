-- Until when a staged row waits for its batch to be approved.
ALTER TABLE import_rows ADD COLUMN expires_at {int} NOT NULL DEFAULT 0;
