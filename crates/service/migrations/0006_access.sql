-- Roles and privileges of an app. Rows carry no reference to `apps`: an app is deleted in one small step and its rows
-- are purged afterwards.
CREATE TABLE privileges (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    key {key} NOT NULL,
    description TEXT NOT NULL,
    created_at {int} NOT NULL,
    UNIQUE (app_id, key)
) {strict};

CREATE TABLE roles (
    id {key} PRIMARY KEY,
    app_id {key} NOT NULL,
    key {key} NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    is_default {bool} NOT NULL,
    created_at {int} NOT NULL,
    UNIQUE (app_id, key)
) {strict};
CREATE UNIQUE INDEX roles_one_default ON roles (app_id) WHERE is_default;

CREATE TABLE role_privileges (
    role_id {key} NOT NULL,
    privilege_id {key} NOT NULL,
    app_id {key} NOT NULL,
    PRIMARY KEY (role_id, privilege_id)
) {strict};
CREATE INDEX role_privileges_by_privilege ON role_privileges (privilege_id);
CREATE INDEX role_privileges_by_app ON role_privileges (app_id);
