-- Somebody whom a workspace wants as a member and who has not agreed yet. The id becomes that of the membership. No
-- reference to a person: whether the address has an account is nobody's business until they come.
CREATE TABLE invitations (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    email TEXT NOT NULL,
    email_key {key} NOT NULL,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    phone_number TEXT,
    role_id {key} NOT NULL,
    enabled {bool} NOT NULL,
    onboarded {bool} NOT NULL,
    consents_to_privacy_policy {bool} NOT NULL,
    teams TEXT NOT NULL,
    -- The member in whose name it was made.
    invited_by {key},
    created_at {int} NOT NULL,
    UNIQUE (tenant_id, email_key)
) {strict};
CREATE INDEX invitations_by_app ON invitations (app_id, tenant_id);
CREATE INDEX invitations_by_role ON invitations (role_id);

-- How many invitations a workspace has mailed since when.
ALTER TABLE tenants ADD COLUMN invitations_sent {int} NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN invitations_since {int} NOT NULL DEFAULT 0;

-- What the app says of a workspace, which the workspace itself cannot change.
ALTER TABLE tenants ADD COLUMN app_metadata TEXT NOT NULL DEFAULT '{}';

-- How often a login session was exchanged for tokens.
ALTER TABLE login_sessions ADD COLUMN exchanges {int} NOT NULL DEFAULT 0;

-- How many mails an address got of late because others wanted it to.
CREATE TABLE mail_counts (
    -- A digest of the address and the app.
    recipient {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    sent {int} NOT NULL,
    since {int} NOT NULL,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX mail_counts_by_app ON mail_counts (app_id);
CREATE INDEX mail_counts_by_expiry ON mail_counts (expires_at);
