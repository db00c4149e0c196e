CREATE TABLE plans (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    key {key} NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    trial {bool} NOT NULL,
    trial_days {int},
    -- JSON: { name: boolean } and [ { metric, limit, policy, entitlement } ].
    entitlements TEXT NOT NULL,
    quotas TEXT NOT NULL,
    created_at {int} NOT NULL,
    UNIQUE (app_id, key)
) {strict};

CREATE TABLE prices (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    plan_id {key} NOT NULL,
    -- The order in which the plan lists its prices.
    position {int} NOT NULL,
    amount_minor {int} NOT NULL,
    currency TEXT NOT NULL,
    recurrence_interval TEXT NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX prices_by_plan ON prices (plan_id, position);
CREATE INDEX prices_by_app ON prices (app_id);

CREATE TABLE taxes (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    country_code TEXT NOT NULL,
    name TEXT NOT NULL,
    percentage {real} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX taxes_by_app ON taxes (app_id, id);
