//! Whatever is done to roles and privileges, in whichever order and by however many at once: every role keeps a
//! privilege, and every app exactly one default role, its OWNER and the built-in privileges.

use futures_util::future::join_all;
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Value, json};
use tenancy::callers::privileges::BUILT_IN;
use testkit::{Answer, Caller, TestApp, on_both_engines};

on_both_engines!(no_sequence_breaks_an_app, nor_do_eight_callers_at_once);

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

async fn check(caller: &Caller) {
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
                    check(&caller).await;
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
    check(&caller).await;
}
