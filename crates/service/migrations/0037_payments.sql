-- What was made at a payment provider when it was first needed: products, prices, tax rates and meters.
CREATE TABLE provider_objects (
    app_id {key} NOT NULL,
    -- Which account of the provider, by a digest of its secret key.
    account {key} NOT NULL,
    kind {key} NOT NULL,
    -- What it stands for here.
    key {key} NOT NULL,
    object_id {key} NOT NULL,
    -- JSON: what is bought at a price.
    about TEXT,
    PRIMARY KEY (app_id, account, kind, key)
) {strict};
CREATE INDEX provider_objects_by_object ON provider_objects (app_id, object_id);

-- Whom a payment provider knows for a workspace.
CREATE TABLE provider_customers (
    tenant_id {key} NOT NULL,
    account {key} NOT NULL,
    app_id {key} NOT NULL,
    customer_id {key} NOT NULL,
    PRIMARY KEY (tenant_id, account)
) {strict};
CREATE INDEX provider_customers_by_tenant ON provider_customers (app_id, tenant_id);
CREATE INDEX provider_customers_by_customer ON provider_customers (app_id, customer_id);

-- Subscriptions that a payment provider renews.
CREATE TABLE provider_subscriptions (
    tenant_id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    subscription_id {key} NOT NULL,
    customer_id {key} NOT NULL,
    -- The price there that was taken over last.
    price_id {key},
    -- Counts what was taken over, so that an answer that is older than that is asked for again.
    revision {int} NOT NULL
) {strict};
CREATE INDEX provider_subscriptions_by_tenant ON provider_subscriptions (app_id, tenant_id);
CREATE INDEX provider_subscriptions_by_subscription ON provider_subscriptions (app_id, subscription_id);

-- What is to be done at a payment provider: a row before the call, gone once its outcome is written down.
CREATE TABLE provider_intents (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    kind {key} NOT NULL,
    -- JSON: what is to be done, and in whose name.
    work TEXT NOT NULL,
    actor TEXT NOT NULL,
    -- When a job takes it over from whoever began it.
    next_at {int} NOT NULL,
    attempts {int} NOT NULL
) {strict};
CREATE INDEX provider_intents_by_tenant ON provider_intents (app_id, tenant_id);
CREATE INDEX provider_intents_by_next ON provider_intents (next_at);

-- Apps whose address for callbacks is to be registered at the provider.
CREATE TABLE provider_endpoints (
    app_id {key} PRIMARY KEY,
    next_at {int} NOT NULL,
    attempts {int} NOT NULL
) {strict};

-- What a callback asks to be done, until it is.
ALTER TABLE provider_events ADD COLUMN payload TEXT;
ALTER TABLE provider_events ADD COLUMN next_at {int};
ALTER TABLE provider_events ADD COLUMN attempts {int} NOT NULL DEFAULT 0;
CREATE INDEX provider_events_by_next ON provider_events (next_at) WHERE next_at IS NOT NULL;

-- How often a total was sent that the provider then had otherwise, and what it had.
ALTER TABLE usage_counters ADD COLUMN drift_attempts {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_counters ADD COLUMN drift_total {int};
