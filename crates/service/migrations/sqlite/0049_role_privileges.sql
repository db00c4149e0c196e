-- The keys of what a role grants, sorted by bytes, with a space between them: read on every call of whoever is signed in. The
-- database keeps the list: whatever is written into it, it becomes what `role_privileges` and `privileges` say.
ALTER TABLE roles ADD COLUMN privilege_keys TEXT NOT NULL DEFAULT '';

-- Triggers are for rows here, and a list for each of a thousand would be a million keys. Whoever changes many first writes a
-- space, which is no list: until they write something else, in the same transaction, it is left alone.
CREATE TRIGGER roles_listed AFTER UPDATE OF privilege_keys ON roles WHEN NEW.privilege_keys <> ' ' BEGIN
    UPDATE roles SET privilege_keys = coalesce((
        SELECT string_agg(privileges.key, ' ' ORDER BY privileges.key)
        FROM role_privileges JOIN privileges ON privileges.id = role_privileges.privilege_id
        WHERE role_privileges.role_id = NEW.id AND role_privileges.app_id = NEW.app_id AND privileges.app_id = NEW.app_id
    ), '') WHERE id = NEW.id;
END;

-- All others only touch the list, which has it written anew.
CREATE TRIGGER roles_inserted AFTER INSERT ON roles BEGIN
    UPDATE roles SET privilege_keys = '' WHERE id = NEW.id;
END;
CREATE TRIGGER role_privileges_inserted AFTER INSERT ON role_privileges BEGIN
    UPDATE roles SET privilege_keys = '' WHERE id = NEW.role_id AND privilege_keys <> ' ';
END;
CREATE TRIGGER role_privileges_updated AFTER UPDATE ON role_privileges BEGIN
    UPDATE roles SET privilege_keys = '' WHERE id IN (OLD.role_id, NEW.role_id);
END;
CREATE TRIGGER role_privileges_deleted AFTER DELETE ON role_privileges BEGIN
    UPDATE roles SET privilege_keys = '' WHERE id = OLD.role_id AND privilege_keys <> ' ';
END;
CREATE TRIGGER privileges_inserted AFTER INSERT ON privileges BEGIN
    UPDATE roles SET privilege_keys = '' WHERE id IN (SELECT role_id FROM role_privileges WHERE privilege_id = NEW.id);
END;
CREATE TRIGGER privileges_updated AFTER UPDATE OF id, key ON privileges BEGIN
    UPDATE roles SET privilege_keys = ''
    WHERE id IN (SELECT role_id FROM role_privileges WHERE privilege_id IN (OLD.id, NEW.id));
END;
CREATE TRIGGER privileges_deleted AFTER DELETE ON privileges BEGIN
    UPDATE roles SET privilege_keys = '' WHERE id IN (SELECT role_id FROM role_privileges WHERE privilege_id = OLD.id);
END;

UPDATE roles SET privilege_keys = '';
