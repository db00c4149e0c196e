-- What became of the last logins through a connection.
ALTER TABLE federation_connections ADD COLUMN last_success_at {int};
ALTER TABLE federation_connections ADD COLUMN last_failure_at {int};
ALTER TABLE federation_connections ADD COLUMN last_failure_step TEXT;

-- The domains whose addresses a connection takes, separated by spaces; and each with the one connection that has it.
ALTER TABLE federation_connections ADD COLUMN domains TEXT NOT NULL DEFAULT '';
CREATE TABLE connection_domains (
    app_id {key} NOT NULL,
    domain {key} NOT NULL,
    connection_id {key} NOT NULL,
    PRIMARY KEY (app_id, domain)
) {strict};
CREATE INDEX connection_domains_by_connection ON connection_domains (app_id, connection_id);
