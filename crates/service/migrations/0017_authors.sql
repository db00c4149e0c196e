-- Who made a fact true, from where, in which request. Facts from before were not told: they read as the system's.
ALTER TABLE outbox ADD COLUMN actor TEXT;
ALTER TABLE outbox ADD COLUMN address TEXT;
ALTER TABLE outbox ADD COLUMN request_id TEXT;
ALTER TABLE outbox_parked ADD COLUMN actor TEXT;
ALTER TABLE outbox_parked ADD COLUMN address TEXT;
ALTER TABLE outbox_parked ADD COLUMN request_id TEXT;
