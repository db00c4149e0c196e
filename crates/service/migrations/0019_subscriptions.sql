-- What workspaces have subscribed to. The newest of a workspace is the one that counts; at most one is not canceled.
CREATE TABLE subscriptions (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    -- What was bought, as it was then.
    plan_key {key} NOT NULL,
    plan_name TEXT NOT NULL,
    -- Whether the plan costs nothing, at whichever price.
    free {bool} NOT NULL,
    amount_minor {int},
    currency TEXT,
    recurrence_interval TEXT,
    status TEXT NOT NULL,
    -- Whether what is left of a canceled one is a trial.
    trial {bool} NOT NULL,
    gate_engaged {bool} NOT NULL,
    ends_at {int},
    anchor {int} NOT NULL,
    scheduled_plan_key {key},
    scheduled_plan_name TEXT,
    scheduled_at {int},
    failing_since {int},
    failed_attempts {int},
    renewed_by_provider {bool} NOT NULL,
    -- When time next changes it.
    next_at {int},
    created_at {int} NOT NULL
) {strict};
CREATE INDEX subscriptions_by_tenant ON subscriptions (app_id, tenant_id, id);
CREATE INDEX subscriptions_by_plan ON subscriptions (app_id, plan_key);
CREATE INDEX subscriptions_by_next ON subscriptions (next_at) WHERE next_at IS NOT NULL;
CREATE UNIQUE INDEX one_running_subscription ON subscriptions (tenant_id) WHERE status <> 'canceled';

-- Which plans a workspace has tried.
CREATE TABLE trials (
    tenant_id {key} NOT NULL,
    plan_id {key} NOT NULL,
    app_id {key} NOT NULL,
    started_at {int} NOT NULL,
    PRIMARY KEY (tenant_id, plan_id)
) {strict};
CREATE INDEX trials_by_tenant ON trials (app_id, tenant_id);

CREATE TABLE subscription_changes (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    at {int} NOT NULL,
    from_status TEXT,
    to_status TEXT NOT NULL,
    plan_key TEXT NOT NULL,
    cause TEXT NOT NULL,
    -- JSON: who did it.
    actor TEXT NOT NULL
) {strict};
CREATE INDEX subscription_changes_by_tenant ON subscription_changes (app_id, tenant_id, id);

-- Workspaces that have a plan get their subscription, under the workspace's own number.
INSERT INTO subscriptions (id, app_id, tenant_id, plan_key, plan_name, free, amount_minor, currency, recurrence_interval,
    status, trial, gate_engaged, anchor, renewed_by_provider, created_at)
SELECT 'subscription_' || substr(tenants.id, length('tenant_') + 1), tenants.app_id, tenants.id, plans.key, plans.name,
    NOT EXISTS (SELECT 1 FROM prices AS any_price WHERE any_price.plan_id = plans.id AND any_price.amount_minor > 0),
    prices.amount_minor, prices.currency, prices.recurrence_interval, 'active', FALSE, FALSE, tenants.created_at, FALSE,
    tenants.created_at
FROM tenants
JOIN plans ON plans.app_id = tenants.app_id AND plans.key = tenants.plan_key
LEFT JOIN prices ON prices.plan_id = plans.id AND prices.currency = tenants.price_currency
    AND prices.recurrence_interval = tenants.price_interval;
