//! Whatever is done to roles and privileges, in whichever order and by however many at once: every role keeps a
//! privilege, and every app exactly one default role, its OWNER and the built-in privileges. And every role lists the
//! keys of what it grants, whoever writes the rows.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use kernel::Result;
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Value, json};
use store::{Db, Tx, args};
use tenancy::callers::privileges::BUILT_IN;
use testkit::{Answer, Caller, TestApp, on_both_engines};

on_both_engines!(
    no_sequence_breaks_an_app,
    nor_do_eight_callers_at_once,
    rows_are_listed_in_whichever_order_they_come,
    whatever_happens_to_rows_is_listed,
    of_several_who_grant_at_once_none_is_left_out,
);

/// Something that somebody may try. Roles and privileges are meant by their place in the list, whatever is there.
#[derive(Clone, Debug)]
enum Attempt {
    CreateRole { key: u8, privileges: Vec<usize>, default: bool },
    ChangeRole { role: usize, key: Option<u8>, privileges: Option<Vec<usize>>, default: Option<bool> },
    DeleteRole { role: usize },
    CreatePrivilege { key: u8 },
    RenamePrivilege { privilege: usize, key: u8 },
    DeletePrivilege { privilege: usize },
}

fn attempt() -> impl Strategy<Value = Attempt> {
    // Few keys and places, so that attempts meet.
    let (key, place) = (0u8..6, 0usize..12);
    let some = || prop::collection::vec(0usize..12, 1..3);
    let (role, privilege) = (place.clone(), place);
    prop_oneof![
        3 => (key.clone(), some(), any::<bool>())
            .prop_map(|(key, privileges, default)| Attempt::CreateRole { key, privileges, default }),
        3 => (role.clone(), prop::option::of(key.clone()), prop::option::of(some()), any::<Option<bool>>())
            .prop_map(|(role, key, privileges, default)| Attempt::ChangeRole { role, key, privileges, default }),
        2 => role.prop_map(|role| Attempt::DeleteRole { role }),
        3 => key.clone().prop_map(|key| Attempt::CreatePrivilege { key }),
        1 => (privilege.clone(), key).prop_map(|(privilege, key)| Attempt::RenamePrivilege { privilege, key }),
        3 => privilege.prop_map(|privilege| Attempt::DeletePrivilege { privilege }),
    ]
}

async fn listed(caller: &Caller, path: &str) -> Vec<Value> {
    caller.get(path).await.expect(200).json().as_array().expect("a list").clone()
}

impl Attempt {
    async fn make(&self, caller: &Caller) -> Answer {
        let (roles, privileges) =
            (listed(caller, "/account/role").await, listed(caller, "/account/role/privilege").await);
        let id = |list: &[Value], place: usize| list[place % list.len()]["id"].as_str().expect("an id").to_owned();
        let role_path = |place| format!("/account/role/{}", id(&roles, place));
        let privilege_path = |place| format!("/account/role/privilege/{}", id(&privileges, place));
        let ids = |places: &Vec<usize>| -> Value { places.iter().map(|place| id(&privileges, *place)).collect() };
        let name = |key: &u8| format!("KEY_{key}");
        match self {
            Self::CreateRole { key, privileges, default } => {
                let key = name(key);
                let body = json!({ "name": key, "key": key, "privileges": ids(privileges), "isDefault": default });
                caller.post("/account/role", body).await
            }
            Self::ChangeRole { role, key, privileges, default } => {
                let mut body = json!({});
                key.iter().for_each(|key| body["key"] = name(key).into());
                privileges.iter().for_each(|places| body["privileges"] = ids(places));
                default.iter().for_each(|default| body["isDefault"] = (*default).into());
                caller.put(&role_path(*role), body).await
            }
            Self::DeleteRole { role } => caller.delete(&role_path(*role)).await,
            Self::CreatePrivilege { key } => caller.post("/account/role/privilege", json!({ "key": name(key) })).await,
            Self::RenamePrivilege { privilege, key } => {
                caller.put(&privilege_path(*privilege), json!({ "key": name(key) })).await
            }
            Self::DeletePrivilege { privilege } => caller.delete(&privilege_path(*privilege)).await,
        }
    }
}

/// One answer, which is one view of the database: true at every moment.
async fn check_roles(caller: &Caller) -> Vec<Value> {
    let roles = listed(caller, "/account/role").await;
    assert_eq!(roles.iter().filter(|role| role["isDefault"] == true).count(), 1, "{roles:#?}");
    assert_eq!(roles.iter().filter(|role| role["key"] == "OWNER").count(), 1, "{roles:#?}");
    assert!(roles.iter().all(|role| role["privileges"] != json!([])), "{roles:#?}");
    roles
}

fn db(app: &TestApp) -> Db {
    app.service().core().db.clone()
}

/// The keys that each role lists, by its id, after a look at the rows that they are made of.
async fn listed_keys(db: &Db) -> BTreeMap<String, String> {
    let read = |tx: &mut Tx<'_>| {
        let lists: Vec<(String, String)> = tx.all("SELECT id, privilege_keys FROM roles", &[])?;
        let grants = "SELECT role_id, privileges.key FROM role_privileges AS granted \
                      JOIN roles ON roles.id = role_id AND roles.app_id = granted.app_id \
                      JOIN privileges ON privileges.id = privilege_id AND privileges.app_id = granted.app_id";
        Ok((lists, tx.all::<(String, String)>(grants, &[])?))
    };
    let (lists, mut grants) = db.snapshot(read).await.expect("can be read");
    grants.sort_unstable();
    for (role, list) in &lists {
        let granted: Vec<&str> = grants.iter().filter(|grant| grant.0 == *role).map(|grant| &*grant.1).collect();
        assert_eq!(*list, granted.join(" "), "{role}");
    }
    lists.into_iter().collect()
}

async fn check(app: &TestApp, caller: &Caller) {
    listed_keys(&db(app)).await;
    let roles = check_roles(caller).await;
    let privileges = listed(caller, "/account/role/privilege").await;
    for role in &roles {
        let granted = role["privileges"].as_array().expect("a list");
        assert!(granted.iter().all(|privilege| privileges.contains(privilege)), "{role:#}");
    }
    for built_in in BUILT_IN {
        assert!(privileges.iter().any(|privilege| privilege["key"] == built_in.key), "{} is gone", built_in.key);
    }
}

async fn no_sequence_breaks_an_app(app: TestApp) {
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() });
    let outcome = runner.run(&prop::collection::vec(attempt(), 1..25), |attempts| {
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                let caller = app.other_app().await;
                for attempt in &attempts {
                    let status = attempt.make(&caller).await.status();
                    prop_assert!(matches!(status, 200 | 409), "{attempt:?}: {status}");
                    check(&app, &caller).await;
                }
                Ok(())
            })
        })
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

async fn nor_do_eight_callers_at_once(app: TestApp) {
    let mut runner = TestRunner::default();
    let mut sequence = || {
        let tree = prop::collection::vec(attempt(), 12).new_tree(&mut runner).expect("a sequence can be made");
        tree.current()
    };
    let caller = app.other_app().await;
    let several: Vec<_> = (0..8).map(|_| sequence()).collect();
    let work = several.iter().map(async |attempts| {
        for attempt in attempts {
            // What was listed may be gone by now.
            let answer = attempt.make(&caller).await;
            assert!(matches!(answer.status(), 200 | 400 | 404 | 409), "{attempt:?}: {answer:?}");
            check_roles(&caller).await;
        }
    });
    join_all(work).await;
    check(&app, &caller).await;
}

const ROLE: &str = "INSERT INTO roles (id, app_id, key, name, description, is_default, created_at) \
     VALUES ($1, $2, $1, '', '', FALSE, 0)";
const PRIVILEGE: &str = "INSERT INTO privileges (id, app_id, key, description, created_at) VALUES ($1, $2, $3, '', 0)";
const GRANT: &str = "INSERT INTO role_privileges (role_id, privilege_id, app_id) VALUES ($1, $2, $3)";
/// Two privileges to two roles, in one statement.
const GRANT_EACH: &str = "INSERT INTO role_privileges (role_id, privilege_id, app_id) \
     SELECT roles.id, privileges.id, 'app' FROM roles CROSS JOIN privileges \
     WHERE roles.id IN ('one', 'two') AND privileges.id IN ('one c', 'two d')";

/// What another app would give to a role that is not its own.
const GRANT_ELSEWHERE: &str =
    "INSERT INTO role_privileges (role_id, privilege_id, app_id) VALUES ('one', 'other TENANT_DELETE', 'elsewhere')";

/// A role that grants privileges with these keys, put in as rows: of the role, of the privileges and of the grants in this order.
fn put_in(tx: &mut Tx<'_>, (app, role): (&str, &str), keys: &[&str], order: &str) -> Result<()> {
    let id = |key: &str| format!("{role} {key}");
    for kind in order.chars() {
        match kind {
            'r' => tx.run(ROLE, &args![role, app])?,
            'p' => keys.iter().try_for_each(|key| tx.run(PRIVILEGE, &args![id(key), app, *key]))?,
            _ => keys.iter().try_for_each(|key| tx.run(GRANT, &args![role, id(key), app]))?,
        }
    }
    Ok(())
}

async fn rows_are_listed_in_whichever_order_they_come(app: TestApp) {
    let (db, keys) = (db(&app), ["b", "a_b", "B", "a:b", "A.b"]);
    for order in ["rpg", "rgp", "prg", "pgr", "grp", "gpr"] {
        db.write(move |tx| put_in(tx, (order, order), &keys, order)).await.expect("stored");
        assert_eq!(listed_keys(&db).await[order], "A.b B a:b a_b b", "{order}");
    }
}

async fn whatever_happens_to_rows_is_listed(app: TestApp) {
    let db = db(&app);
    let fill = |tx: &mut Tx<'_>| {
        put_in(tx, ("app", "one"), &["a", "b", "c"], "rpg")?;
        put_in(tx, ("app", "two"), &["d"], "rpg")?;
        put_in(tx, ("elsewhere", "other"), &["TENANT_DELETE"], "rpg")
    };
    db.write(fill).await.expect("stored");
    for (happens, one, two) in [
        (GRANT_ELSEWHERE, "a b c", "d"),
        ("UPDATE privileges SET description = 'x', key = 'e' WHERE id = 'one a'", "b c e", "d"),
        ("UPDATE role_privileges SET role_id = 'two' WHERE privilege_id = 'one b'", "c e", "b d"),
        ("UPDATE role_privileges SET privilege_id = 'one a' WHERE privilege_id = 'two d'", "c e", "b e"),
        ("UPDATE privileges SET key = 'f' WHERE id = 'one a'", "c f", "b f"),
        ("UPDATE privileges SET id = 'gone' WHERE id = 'one a'", "c", "b"),
        ("UPDATE privileges SET id = 'one a' WHERE id = 'gone'", "c f", "b f"),
        ("UPDATE roles SET privilege_keys = 'everything'", "c f", "b f"),
        ("UPDATE roles SET name = 'x'", "c f", "b f"),
        ("DELETE FROM role_privileges WHERE privilege_id = 'one c'", "f", "b f"),
        ("DELETE FROM privileges WHERE id = 'one a'", "", "b"),
        ("DELETE FROM role_privileges", "", ""),
        (GRANT_EACH, "c d", "c d"),
    ] {
        db.write(move |tx| tx.run(happens, &[])).await.expect("it can happen");
        let listed = listed_keys(&db).await;
        assert_eq!((&*listed["one"], &*listed["two"]), (one, two), "after {happens}");
    }
}

/// Nobody takes the lock that the service takes.
async fn of_several_who_grant_at_once_none_is_left_out(app: TestApp) {
    let db = db(&app);
    let ids: Vec<String> = (10..74).map(|number| format!("k{number}")).collect();
    let made = ids.clone();
    let fill = move |tx: &mut Tx<'_>| {
        tx.run(ROLE, &args!["role", "app"])?;
        made.iter().try_for_each(|id| tx.run(PRIVILEGE, &args![id, "app", id]))
    };
    db.write(fill).await.expect("stored");
    let granted = ids.iter().map(|id| {
        let id = id.clone();
        db.write(move |tx| tx.run(GRANT, &args!["role", id, "app"]))
    });
    join_all(granted).await.into_iter().collect::<Result<Vec<()>>>().expect("stored");
    assert_eq!(listed_keys(&db).await["role"], ids.join(" "));
}
