-- How far a login reaches: the workspaces of this connection, or every workspace of the person; and when it ends at the latest.
ALTER TABLE refresh_families ADD COLUMN connection_id {key};
ALTER TABLE refresh_families ADD COLUMN ends_at {int};
ALTER TABLE browser_sessions ADD COLUMN connection_id {key};
ALTER TABLE browser_sessions ADD COLUMN ends_at {int};
ALTER TABLE authorization_codes ADD COLUMN connection_id {key};
ALTER TABLE authorization_codes ADD COLUMN ends_at {int};

-- Whether members come in through the workspace's connection only.
ALTER TABLE tenants ADD COLUMN sso_required {bool} NOT NULL DEFAULT FALSE;

-- What the identity provider calls itself, and whether its word on second factors counts.
ALTER TABLE federation_connections ADD COLUMN idp_entity_id TEXT;
ALTER TABLE federation_connections ADD COLUMN trust_mfa {bool} NOT NULL DEFAULT TRUE;

-- Somebody on the way to an identity provider and back.
CREATE TABLE pending_federations (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    connection_id {key} NOT NULL,
    -- A digest of what only the browser knows that began.
    browser {key} NOT NULL,
    -- The login request, as pages carry it.
    request TEXT NOT NULL,
    authenticated_since {int},
    -- A digest of the message that answered, and what was read from it.
    message {key},
    statement TEXT,
    handle {key},
    answered_at {int},
    used_at {int},
    expires_at {int} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX pending_federations_by_app ON pending_federations (app_id);
CREATE INDEX pending_federations_by_expiry ON pending_federations (expires_at);
CREATE UNIQUE INDEX pending_federations_by_handle ON pending_federations (handle);

-- Whom a connection's subject stands for.
CREATE TABLE federated_subjects (
    connection_id {key} NOT NULL,
    -- A digest of the subject, whose length is the provider's affair.
    subject {key} NOT NULL,
    app_id {key} NOT NULL,
    user_id {key} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (connection_id, subject)
) {strict};
CREATE INDEX federated_subjects_by_person ON federated_subjects (app_id, user_id);
