-- OpenID Connect: what the identity provider calls itself, what it is asked for, and what this service shows it.
ALTER TABLE federation_connections ADD COLUMN issuer TEXT;
ALTER TABLE federation_connections ADD COLUMN scopes TEXT;
ALTER TABLE federation_connections ADD COLUMN sealed_client_secret TEXT;

-- Whom a social or directory provider's subject stands for. In pending_federations, connection_id may name such a provider.
CREATE TABLE linked_identities (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    user_id {key} NOT NULL,
    provider {key} NOT NULL,
    -- A digest of the issuer and its subject.
    subject {key} NOT NULL,
    -- The address that it had when it was linked.
    email TEXT NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE UNIQUE INDEX linked_identities_by_subject ON linked_identities (app_id, provider, subject);
CREATE INDEX linked_identities_by_person ON linked_identities (app_id, user_id);
