-- Files of workspaces. Rows carry no reference to `apps` or `tenants`: these are deleted in one small step and their rows are
-- purged afterwards, and bytes without a row are swept.
CREATE TABLE files (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    -- What the bytes are called in the storage.
    object {key} NOT NULL,
    file_name TEXT NOT NULL,
    content_type TEXT NOT NULL,
    state TEXT NOT NULL,
    size {int} NOT NULL,
    sha256 TEXT NOT NULL,
    -- Whether the first bytes are what the type says.
    fits_type {bool} NOT NULL,
    persisted {bool} NOT NULL,
    public_file {bool} NOT NULL,
    expires_at {int},
    created_at {int} NOT NULL
) {strict};
CREATE INDEX files_by_workspace ON files (app_id, tenant_id, id);
CREATE UNIQUE INDEX files_by_object ON files (object);
CREATE INDEX files_by_expiry ON files (expires_at) WHERE expires_at IS NOT NULL;
