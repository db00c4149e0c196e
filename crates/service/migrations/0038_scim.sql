-- Tokens with which a workspace's directory provisions its people. Only digests are stored.
CREATE TABLE scim_tokens (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    digest {key} NOT NULL UNIQUE,
    name TEXT NOT NULL,
    -- What its maker held, as JSON: the token gives no role beyond it. `null` for a maker who may give everything.
    privileges TEXT NOT NULL,
    made_by_key {key},
    made_by_token {key},
    expire_at {int},
    last_used_at {int},
    created_at {int} NOT NULL
) {strict};
CREATE INDEX scim_tokens_by_workspace ON scim_tokens (app_id, tenant_id, id);

-- What a directory says of a member or of somebody invited, beyond what everybody is told of them. The id is theirs.
CREATE TABLE scim_users (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    external_id {key},
    -- While groups give them a role: which one, and the one that they have without.
    given_role_id {key},
    former_role_id {key}
) {strict};
CREATE INDEX scim_users_by_external_id ON scim_users (app_id, tenant_id, external_id);

CREATE TABLE scim_groups (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    display_name TEXT NOT NULL,
    -- In lower case.
    name_key {key} NOT NULL,
    external_id {key},
    role_id {key},
    -- Counts its changes.
    version {int} NOT NULL,
    created_at {int} NOT NULL,
    UNIQUE (tenant_id, name_key)
) {strict};
CREATE INDEX scim_groups_by_workspace ON scim_groups (app_id, tenant_id, id);

CREATE TABLE scim_group_members (
    group_id {key} NOT NULL,
    -- A member, or somebody invited.
    member_id {key} NOT NULL,
    app_id {key} NOT NULL,
    tenant_id {key} NOT NULL,
    PRIMARY KEY (group_id, member_id)
) {strict};
CREATE INDEX scim_group_members_by_member ON scim_group_members (member_id);
CREATE INDEX scim_group_members_by_workspace ON scim_group_members (app_id, tenant_id);
