-- People: one row per app and address, compared without case through `email_key`.
CREATE TABLE users (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    email TEXT NOT NULL,
    email_key {key} NOT NULL,
    email_verified_at {int},
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    phone_number TEXT,
    -- Tokens issued before this instant are refused: password change, sign-out everywhere.
    sessions_ended_at {int},
    last_seen_at {int},
    created_at {int} NOT NULL,
    UNIQUE (app_id, email_key)
) {strict};

-- Workspaces; `tenant` on the wire. The billing view is written by billing alone.
CREATE TABLE tenants (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    name TEXT NOT NULL,
    locale TEXT NOT NULL,
    logo TEXT,
    mfa {bool} NOT NULL,
    onboarded {bool} NOT NULL,
    metadata TEXT NOT NULL,
    federation_connection_id {key},
    jit_provisioning {bool} NOT NULL,
    signup_email TEXT NOT NULL,
    signup_first_name TEXT NOT NULL,
    signup_last_name TEXT NOT NULL,
    plan_key {key},
    price_currency TEXT,
    price_interval TEXT,
    trial_ends_at {int},
    should_select_plan {bool} NOT NULL,
    should_setup_payments {bool} NOT NULL,
    payments_enabled {bool} NOT NULL,
    payment_provider TEXT,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX tenants_by_app ON tenants (app_id, id);
CREATE INDEX tenants_by_plan ON tenants (app_id, plan_key);
CREATE INDEX tenants_by_connection ON tenants (federation_connection_id);

-- A person's membership of one workspace; `tenantUser` on the wire.
CREATE TABLE members (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    user_id {key} NOT NULL,
    role_id {key} NOT NULL,
    enabled {bool} NOT NULL,
    onboarded {bool} NOT NULL,
    consents_to_privacy_policy {bool} NOT NULL,
    teams TEXT NOT NULL,
    last_seen_at {int},
    created_at {int} NOT NULL,
    UNIQUE (tenant_id, user_id)
) {strict};
CREATE INDEX members_by_user ON members (user_id);
CREATE INDEX members_by_role ON members (role_id);
CREATE INDEX members_by_app ON members (app_id, tenant_id);

-- Values mailed to people that work once: invitations, resets, verifications. Only digests are stored.
CREATE TABLE one_time_links (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    purpose TEXT NOT NULL,
    digest {key} NOT NULL UNIQUE,
    user_id {key},
    payload TEXT NOT NULL,
    expires_at {int} NOT NULL,
    used_at {int},
    created_at {int} NOT NULL
) {strict};
CREATE INDEX one_time_links_by_expiry ON one_time_links (expires_at);
CREATE INDEX one_time_links_by_user ON one_time_links (user_id);
