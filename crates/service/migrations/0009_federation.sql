CREATE TABLE federation_connections (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    client_id TEXT,
    login_url TEXT NOT NULL,
    certificate TEXT NOT NULL,
    request_method TEXT NOT NULL,
    signed_request {bool} NOT NULL,
    signed_request_algorithm TEXT,
    sealed_private_key TEXT,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX federation_connections_by_app ON federation_connections (app_id, id);
