-- Webhooks. Rows carry no reference to `apps`: an app is deleted in one small step and its rows are purged afterwards.

-- Endpoints beside the one of the app's profile, as the operator sees and changes them.
CREATE TABLE webhook_endpoints (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    -- For endpoints that a customer owns; those of the whole app have none.
    tenant_id {key},
    url TEXT NOT NULL,
    enabled {bool} NOT NULL,
    events TEXT NOT NULL,
    description TEXT NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX webhook_endpoints_by_app ON webhook_endpoints (app_id, tenant_id);

-- Every endpoint, that of the profile included, as of the last fact that was turned into deliveries.
CREATE TABLE webhook_targets (
    endpoint_id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key},
    url TEXT,
    enabled {bool} NOT NULL,
    events TEXT NOT NULL,
    -- Deliveries that ended in a row without one that was delivered.
    exhausted {int} NOT NULL
) {strict};
CREATE INDEX webhook_targets_by_app ON webhook_targets (app_id, tenant_id);

-- What signs an endpoint's deliveries. One that was replaced signs beside its successors until it expires.
CREATE TABLE webhook_secrets (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    endpoint_id {key} NOT NULL,
    sealed TEXT NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int}
) {strict};
CREATE INDEX webhook_secrets_by_app ON webhook_secrets (app_id);
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (endpoint_id) WHERE expires_at IS NULL;
CREATE INDEX webhook_secrets_by_endpoint ON webhook_secrets (endpoint_id, id);
CREATE INDEX webhook_secrets_by_end ON webhook_secrets (expires_at);

CREATE TABLE webhook_deliveries (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key},
    endpoint_id {key} NOT NULL,
    event_id {key} NOT NULL,
    event_type {key} NOT NULL,
    -- Of the fact it tells of, in the outbox.
    position {int} NOT NULL,
    target_url TEXT NOT NULL,
    -- The bytes that are sent and signed at every attempt.
    payload TEXT NOT NULL,
    status {key} NOT NULL,
    -- The attempt under way or last made.
    attempt {int} NOT NULL,
    -- How many attempts have ended.
    made {int} NOT NULL,
    -- What became of each, as JSON.
    attempts TEXT NOT NULL,
    response_code {int},
    last_error TEXT,
    next_attempt_at {int},
    delivered_at {int},
    finished_at {int},
    -- The delivery that repeats this one.
    replayed_as {key},
    created_at {int} NOT NULL,
    lease_owner TEXT,
    lease_until {int}
) {strict};
CREATE INDEX webhook_deliveries_by_app ON webhook_deliveries (app_id, id);
CREATE INDEX webhook_deliveries_by_tenant ON webhook_deliveries (app_id, tenant_id, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, next_attempt_at)
    WHERE lease_owner IS NULL AND next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries (lease_until) WHERE lease_owner IS NOT NULL;
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (status, finished_at) WHERE finished_at IS NOT NULL;
