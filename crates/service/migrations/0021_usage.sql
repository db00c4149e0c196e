-- Grows with every change of the plan, so that what was worked out from it is known to be old.
ALTER TABLE plans ADD COLUMN revision {int} NOT NULL DEFAULT 1;

-- What a workspace may use, as it was last told.
CREATE TABLE entitlement_sets (
    tenant_id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    -- JSON: { name: boolean }.
    entitlements TEXT NOT NULL,
    -- The plan that it was worked out from.
    plan_id {key},
    plan_revision {int},
    -- When time next changes it.
    next_at {int}
) {strict};
CREATE INDEX entitlement_sets_by_tenant ON entitlement_sets (app_id, tenant_id);
CREATE INDEX entitlement_sets_by_plan ON entitlement_sets (plan_id, plan_revision);
CREATE INDEX entitlement_sets_by_next ON entitlement_sets (next_at) WHERE next_at IS NOT NULL;

-- What the app grants one workspace instead of its plan's values.
CREATE TABLE entitlement_overrides (
    tenant_id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    -- JSON: { name: boolean } and [ { metric, limit } ].
    entitlements TEXT NOT NULL,
    quotas TEXT NOT NULL,
    until {int}
) {strict};
CREATE INDEX entitlement_overrides_by_tenant ON entitlement_overrides (app_id, tenant_id);

-- What a workspace used of a metric in a period.
CREATE TABLE usage_counters (
    tenant_id {key} NOT NULL,
    metric {key} NOT NULL,
    period_start {int} NOT NULL,
    app_id {key} NOT NULL,
    period_end {int} NOT NULL,
    used {int} NOT NULL,
    -- Whether a gauge wrote it last; then the next period begins with it.
    gauge {bool} NOT NULL,
    -- Which transaction made the row.
    made_by {key} NOT NULL,
    exhausted_at {int},
    last_synced_at {int},
    last_sync_status TEXT,
    last_sync_error TEXT,
    PRIMARY KEY (tenant_id, metric, period_start)
) {strict};
CREATE INDEX usage_counters_by_tenant ON usage_counters (app_id, tenant_id);

CREATE TABLE usage_events (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    idempotency_key {key} NOT NULL,
    metric {key} NOT NULL,
    value {int} NOT NULL,
    period_start {int} NOT NULL,
    -- Until then an event with the same key is known to be the same.
    expires_at {int} NOT NULL,
    voided_at {int},
    UNIQUE (tenant_id, idempotency_key)
) {strict};
CREATE INDEX usage_events_by_tenant ON usage_events (app_id, tenant_id);
CREATE INDEX usage_events_by_expiry ON usage_events (expires_at);
