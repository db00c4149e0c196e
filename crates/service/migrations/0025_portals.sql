-- Codes with which a key opens the plan page for somebody of a workspace.
CREATE TABLE portal_codes (
    -- SHA-256 of the code.
    digest {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    -- JSON: the key or token that made it.
    actor TEXT NOT NULL,
    used_at {int},
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX portal_codes_by_tenant ON portal_codes (app_id, tenant_id);
CREATE INDEX portal_codes_by_expiry ON portal_codes (expires_at);

-- Somebody in a hosted portal, in one browser.
CREATE TABLE portal_sessions (
    -- SHA-256 of the cookie.
    digest {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    -- SHA-256 of the code that opened it.
    code_digest {key} NOT NULL,
    -- The login that it continues; a key's code has none.
    member_id {key},
    family_id {key},
    -- The privileges that the access token had; NULL means all of the role's.
    privileges TEXT,
    -- JSON: the key or token whose code opened it.
    actor TEXT,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX portal_sessions_by_tenant ON portal_sessions (app_id, tenant_id);
CREATE INDEX portal_sessions_by_expiry ON portal_sessions (expires_at);

-- Links to the sandbox's portal.
CREATE TABLE sandbox_portals (
    -- SHA-256 of the id in its address: whoever has it may use it.
    digest {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX sandbox_portals_by_tenant ON sandbox_portals (app_id, tenant_id);
CREATE INDEX sandbox_portals_by_expiry ON sandbox_portals (expires_at);

-- What is charged at the next renewal beside the price: usage beyond the limits of a period that was cut short.
ALTER TABLE sandbox_subscriptions ADD COLUMN owed_minor {int} NOT NULL DEFAULT 0;
-- The bill that is being dunned, without tax.
ALTER TABLE sandbox_subscriptions ADD COLUMN bill_minor {int};

-- When what was used is due to be sent to the payment provider.
ALTER TABLE usage_counters ADD COLUMN sync_at {int};
CREATE INDEX usage_counters_by_sync ON usage_counters (sync_at) WHERE sync_at IS NOT NULL;

-- When the set last differed from what was told before, and when the overrides were last changed.
ALTER TABLE entitlement_sets ADD COLUMN changed_at {int};
ALTER TABLE entitlement_overrides ADD COLUMN changed_at {int};
