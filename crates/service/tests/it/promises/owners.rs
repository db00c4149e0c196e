//! A workspace always has an enabled OWNER, whatever is done to its members, in whatever order, by however many at once.

use kernel::Entropy;
use proptest::{
    prelude::{Strategy, any},
    strategy::ValueTree,
    test_runner::TestRunner,
};
use serde_json::{Value, json};
use testkit::{Caller, TestApp, Workspace, on_both_engines};

on_both_engines!(
    no_sequence_of_changes_leaves_a_workspace_without_an_owner,
    nor_do_eight_callers_at_once,
    a_person_stays_while_any_workspace_has_them,
);

const ROLES: [&str; 3] = ["OWNER", "ADMIN", "MEMBER"];

/// Something a key does to the n-th member of a workspace, counted around.
#[derive(Clone, Copy, Debug)]
enum Change {
    Add(&'static str),
    Role(usize, &'static str),
    Enable(usize, bool),
    Both(usize, &'static str, bool),
    Remove(usize),
}

fn changes() -> impl Strategy<Value = Change> {
    let role = || (0..ROLES.len()).prop_map(|index| ROLES[index]);
    let who = || 0..6usize;
    proptest::prop_oneof![
        1 => role().prop_map(Change::Add),
        3 => (who(), role()).prop_map(|(who, role)| Change::Role(who, role)),
        3 => (who(), any::<bool>()).prop_map(|(who, enabled)| Change::Enable(who, enabled)),
        2 => (who(), role(), any::<bool>()).prop_map(|(who, role, enabled)| Change::Both(who, role, enabled)),
        3 => who().prop_map(Change::Remove),
    ]
}

async fn members(key: &Caller) -> Vec<Value> {
    key.get("/account/tenant/user").await.expect(200).json().as_array().expect("a list").clone()
}

/// Does it; what is refused is refused as a conflict, or because somebody else was quicker.
async fn apply(workspace: &Workspace, change: Change, name: &str) {
    let key = workspace.key();
    let listed = members(&key).await;
    let path = |who: usize| workspace.path_of(&listed[who % listed.len()]);
    let answer = match change {
        Change::Add(role) => {
            let body = json!({ "username": format!("{name}@example.com"), "role": role, "muteNotifications": true });
            key.post("/account/tenant/user", body).await
        }
        Change::Role(who, role) => key.put(&path(who), json!({ "role": role })).await,
        Change::Enable(who, enabled) => key.put(&path(who), json!({ "enabled": enabled })).await,
        Change::Both(who, role, enabled) => key.put(&path(who), json!({ "role": role, "enabled": enabled })).await,
        Change::Remove(who) => key.delete(&path(who)).await,
    };
    assert!(matches!(answer.status(), 200 | 201 | 404 | 409), "{change:?}: {answer:?}");
}

async fn assert_owned(workspace: &Workspace, after: &[Change]) {
    let listed = members(&workspace.key()).await;
    let owned = listed.iter().any(|member| member["role"] == "OWNER" && member["enabled"] == true);
    assert!(owned, "no enabled OWNER after {after:?}");
}

async fn no_sequence_of_changes_leaves_a_workspace_without_an_owner(app: TestApp) {
    let mut runner = TestRunner::deterministic();
    for round in 0..6 {
        let workspace = app.workspace(&format!("w{round}")).await;
        let sequence = proptest::collection::vec(changes(), 25).new_tree(&mut runner).expect("a sequence").current();
        for (step, change) in sequence.iter().enumerate() {
            apply(&workspace, *change, &format!("{round}.{step}")).await;
            assert_owned(&workspace, &sequence[..=step]).await;
        }
    }
}

async fn nor_do_eight_callers_at_once(app: TestApp) {
    let workspace = app.workspace("crowded").await;
    for index in 0..4 {
        workspace.add(&format!("owner{index}@example.com"), "OWNER").await;
    }
    let callers = (0..8).map(|caller| {
        let (workspace, entropy) = (workspace.clone(), Entropy::seeded_for_tests(caller));
        tokio::spawn(async move {
            let pick = |below: usize| usize::from(entropy.bytes::<1>()[0]) % below;
            for step in 0..12 {
                let who = pick(6);
                let change = match pick(4) {
                    0 => Change::Remove(who),
                    1 => Change::Enable(who, false),
                    2 => Change::Role(who, "MEMBER"),
                    _ if step % 3 == 0 => Change::Add("OWNER"),
                    _ => Change::Both(who, "OWNER", true),
                };
                apply(&workspace, change, &format!("{caller}.{step}")).await;
                assert_owned(&workspace, &[change]).await;
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("the caller saw an owner all the time");
    }
}

/// Eight callers add and remove one person in several workspaces, and delete some of these: no membership ever stands
/// without its person, and no person without a membership.
async fn a_person_stays_while_any_workspace_has_them(app: TestApp) {
    let mut workspaces = Vec::new();
    for index in 0..4 {
        workspaces.push(app.workspace(&format!("w{index}")).await);
    }
    let deleter = app.key_with(&["TENANT_DELETE"]).await;
    let callers = (0..8).map(|caller| {
        let (workspace, deleter) = (workspaces[caller % 4].clone(), deleter.clone());
        tokio::spawn(async move {
            for _ in 0..6 {
                let body = json!({ "username": "bob@example.com", "muteNotifications": true });
                let added = workspace.key().post("/account/tenant/user", body).await;
                assert!(matches!(added.status(), 201 | 404 | 409), "{added:?}");
                if added.status() == 201 {
                    let removed = workspace.key().delete(&workspace.path_of(&added.json())).await;
                    assert!(matches!(removed.status(), 200 | 404), "{removed:?}");
                }
            }
            if caller == 7 {
                deleter.delete(&format!("/account/tenant/{}", workspace.id)).await.expect(200);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("the caller was answered properly");
    }
    let count = async |query: &'static str| {
        app.service().core().db.read(move |tx| tx.one::<(i64,)>(query, &[])).await.expect("a count").0
    };
    let lost = "SELECT count(*) FROM members WHERE NOT EXISTS (SELECT 1 FROM users WHERE users.id = members.user_id)";
    let stray = "SELECT count(*) FROM users WHERE NOT EXISTS (SELECT 1 FROM members WHERE members.user_id = users.id)";
    assert_eq!((count(lost).await, count(stray).await), (0, 0));
}
