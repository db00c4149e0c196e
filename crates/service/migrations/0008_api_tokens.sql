-- The secrets that sign an app's API tokens; the newest one signs, all that are not retired verify.
CREATE TABLE app_secrets (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    -- Empty once it is retired.
    sealed TEXT NOT NULL,
    created_at {int} NOT NULL,
    retired_at {int}
) {strict};
CREATE INDEX app_secrets_by_app ON app_secrets (app_id, id);

CREATE TABLE api_tokens (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    -- NULL for tokens of the whole app.
    tenant_id {key},
    -- The secret that signed it.
    secret_id {key} NOT NULL,
    name TEXT NOT NULL,
    privileges TEXT NOT NULL,
    expire_at {int},
    last_used_at {int},
    created_at {int} NOT NULL
) {strict};
CREATE INDEX api_tokens_by_app ON api_tokens (app_id, id);
CREATE INDEX api_tokens_by_tenant ON api_tokens (tenant_id, id);
