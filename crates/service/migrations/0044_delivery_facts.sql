-- The fact that a delivery tells of, by which its entry in the audit trail is found. Older deliveries do not know it.
ALTER TABLE webhook_deliveries ADD COLUMN fact_id {key};
