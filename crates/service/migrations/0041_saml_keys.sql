-- The keys that identity providers encrypt assertions for. They are the installation's, so `app_id` is NULL.
CREATE TABLE saml_keys (
    id {key} PRIMARY KEY,
    app_id {key},
    sealed_key TEXT NOT NULL,
    created_at {int} NOT NULL,
    -- Set when a successor was published.
    retires_at {int}
) {strict};
CREATE INDEX saml_keys_by_end ON saml_keys (retires_at);
