-- A checkout that was begun: what is to be bought, as it was offered then.
CREATE TABLE checkout_sessions (
    -- Random: whoever has it may pay.
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    plan_key {key} NOT NULL,
    plan_name TEXT NOT NULL,
    amount_minor {int} NOT NULL,
    currency TEXT NOT NULL,
    recurrence_interval TEXT NOT NULL,
    success_url TEXT,
    cancel_url TEXT,
    paid_at {int},
    expires_at {int} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX checkout_sessions_by_tenant ON checkout_sessions (app_id, tenant_id);
CREATE INDEX checkout_sessions_by_expiry ON checkout_sessions (expires_at);

-- What the sandbox renews.
CREATE TABLE sandbox_subscriptions (
    tenant_id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    card_last4 TEXT NOT NULL,
    -- Whether the card pays renewals.
    pays {bool} NOT NULL,
    tax_percentage {real},
    -- When it is charged next.
    charge_at {int}
) {strict};
CREATE INDEX sandbox_subscriptions_by_tenant ON sandbox_subscriptions (app_id, tenant_id);
CREATE INDEX sandbox_subscriptions_by_charge ON sandbox_subscriptions (charge_at) WHERE charge_at IS NOT NULL;

-- Events of payment providers that were taken in, so that a repeat is known.
CREATE TABLE provider_events (
    app_id {key} NOT NULL,
    event_id {key} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (app_id, event_id)
) {strict};
CREATE INDEX provider_events_by_expiry ON provider_events (expires_at);
