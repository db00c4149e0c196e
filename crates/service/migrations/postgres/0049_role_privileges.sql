-- The keys of what a role grants, sorted by bytes, with a space between them: read on every call of whoever is signed in. The
-- database keeps the list, also for a node of the release before: whatever is written into it, it becomes what
-- `role_privileges` and `privileges` say.
ALTER TABLE roles ADD COLUMN privilege_keys TEXT NOT NULL DEFAULT '';

-- Functions are replaced: a move that clears its target drops tables, which leaves the functions of an earlier one.
--
-- Before the row and not after: by then the row is locked, so of two who change what a role grants, the second one sees what
-- the first one did.
CREATE OR REPLACE FUNCTION list_privileges_of_role() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.privilege_keys := coalesce((
        SELECT string_agg(privileges.key, ' ' ORDER BY privileges.key)
        FROM role_privileges JOIN privileges ON privileges.id = role_privileges.privilege_id
        WHERE role_privileges.role_id = NEW.id AND role_privileges.app_id = NEW.app_id AND privileges.app_id = NEW.app_id
    ), '');
    RETURN NEW;
END $$;
CREATE TRIGGER roles_listed BEFORE INSERT OR UPDATE OF privilege_keys ON roles
    FOR EACH ROW EXECUTE FUNCTION list_privileges_of_role();

-- All others only touch the list, which has it written anew: once for each role, however many rows a statement changed.
CREATE OR REPLACE FUNCTION touch_roles_of_grants() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE roles SET privilege_keys = '' WHERE id IN (SELECT role_id FROM changed);
    RETURN NULL;
END $$;
CREATE TRIGGER role_privileges_inserted AFTER INSERT ON role_privileges REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION touch_roles_of_grants();
CREATE TRIGGER role_privileges_updated_from AFTER UPDATE ON role_privileges REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION touch_roles_of_grants();
CREATE TRIGGER role_privileges_updated_to AFTER UPDATE ON role_privileges REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION touch_roles_of_grants();
CREATE TRIGGER role_privileges_deleted AFTER DELETE ON role_privileges REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION touch_roles_of_grants();

-- Where there is no row before, or none after, OLD or NEW is null.
CREATE OR REPLACE FUNCTION touch_roles_of_privilege() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE roles SET privilege_keys = ''
    WHERE id IN (SELECT role_id FROM role_privileges WHERE privilege_id IN (OLD.id, NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER privileges_changed AFTER INSERT OR DELETE OR UPDATE OF id, key ON privileges
    FOR EACH ROW EXECUTE FUNCTION touch_roles_of_privilege();

UPDATE roles SET privilege_keys = '';
