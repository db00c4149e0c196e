//! A directory that says many things at once: whatever order they come in, roles follow the groups, and whoever was put out is out.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};
use testkit::{
    DirectoryCaller, Person, TestApp, Tokens, Workspace, on_both_engines,
    tokens::{is_signed_in, refresh},
};
use tokio::task::JoinSet;

on_both_engines!(
    whatever_comes_at_once_roles_follow_the_groups,
    whoever_is_deactivated_while_they_sign_in_is_out,
    whoever_is_deactivated_while_they_come_from_another_workspace_is_out,
    a_group_and_its_role_change_while_members_come_and_go,
);

const CALLERS: usize = 16;
const TURNS: usize = 8;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % sides
    }
}

struct Setting {
    acme: Workspace,
    directory: DirectoryCaller,
    people: Vec<(Person, Tokens, &'static str)>,
    /// The id of each group, with the role that it carries.
    groups: Vec<(String, Option<&'static str>)>,
}

impl Setting {
    async fn new(app: &TestApp) -> Self {
        let acme = app.workspace("acme").await;
        let directory = acme.directory().await;
        let mut people = Vec::new();
        for n in 0..10 {
            let own = if n % 3 == 0 { "ADMIN" } else { "MEMBER" };
            let person = app.member(&format!("user{n}@acme.example"), acme.id, own).await;
            let tokens = person.sign_in().await;
            people.push((person, tokens, own));
        }
        let mut groups = Vec::new();
        for (name, role) in [("Admins", Some("ADMIN")), ("Staff", Some("MEMBER")), ("Poets", None)] {
            let id = directory.group(name, &[]).await;
            if role.is_some() {
                acme.key().put(&format!("/account/scim/group/{id}"), json!({ "role": role })).await.expect(200);
            }
            groups.push((id, role));
        }
        Self { acme, directory, people, groups }
    }

    async fn seen(&self, id: &str) -> Option<Value> {
        let answer = self.acme.key().get(&format!("/account/tenant/user/{id}")).await;
        (answer.status() == 200).then(|| answer.json())
    }

    /// Holds every member against the groups that name them.
    async fn check_roles(&self, carried: &[(String, Option<&'static str>)]) {
        let mut of: BTreeMap<String, Vec<(String, Option<&str>)>> = BTreeMap::new();
        for (id, role) in carried {
            let group = self.directory.get(&format!("/Groups/{id}")).await.expect(200).json();
            for member in group["members"].as_array().into_iter().flatten() {
                let name = group["displayName"].as_str().expect("a name").to_owned();
                of.entry(member["value"].as_str().expect("an id").to_owned()).or_default().push((name, *role));
            }
        }
        for (person, _, own) in &self.people {
            let id = person.member.to_string();
            let groups = of.remove(&id).unwrap_or_default();
            let Some(seen) = self.seen(&id).await else {
                assert!(groups.is_empty(), "somebody who is gone is still in {groups:?}");
                continue;
            };
            let given = groups.iter().filter_map(|(_, role)| *role).min();
            assert_eq!(seen["role"], given.unwrap_or(own), "{} in {groups:?}: {seen}", person.email);
            let teams: HashSet<&str> =
                seen["teams"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            assert_eq!(teams, groups.iter().map(|(name, _)| name.as_str()).collect(), "{}", person.email);
        }
        assert!(of.is_empty(), "strangers are in groups: {of:?}");
    }
}

/// What a caller does to whom; the answer's status.
async fn turn(directory: &DirectoryCaller, group: &str, user: &str, kind: usize) -> u16 {
    let (group, one) = (format!("/Groups/{group}"), json!([{ "value": user }]));
    let path = format!("/Users/{user}");
    let answer = match kind {
        0..=3 => directory.patch(&group, json!([{ "op": "add", "path": "members", "value": one }])).await,
        4..=6 => {
            let removal = json!([{ "op": "remove", "path": format!("members[value eq \"{user}\"]") }]);
            directory.patch(&group, removal).await
        }
        7 => directory.patch(&group, json!([{ "op": "replace", "path": "members", "value": one }])).await,
        8 => directory.patch(&path, json!([{ "op": "replace", "path": "active", "value": false }])).await,
        9 => directory.patch(&path, json!([{ "op": "replace", "path": "active", "value": true }])).await,
        _ => directory.delete(&path).await,
    };
    // Somebody may be gone, and a group may change too often: the directory sends it again. Nothing else goes wrong.
    let status = answer.status();
    assert!(matches!(status, 200 | 204 | 404 | 409) || (status == 400 && kind <= 7), "{kind}: {answer:?}");
    status
}

async fn whatever_comes_at_once_roles_follow_the_groups(app: TestApp) {
    let setting = Setting::new(&app).await;
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let directory = setting.directory.clone();
        let users: Vec<String> = setting.people.iter().map(|(person, ..)| person.member.to_string()).collect();
        let groups: Vec<String> = setting.groups.iter().map(|(id, _)| id.clone()).collect();
        callers.spawn(async move {
            let mut dice = Dice(caller as u64 + 1);
            let mut put_out = HashSet::new();
            for _ in 0..TURNS {
                // Few are deleted, and half of the people are never put out.
                let (who, kind) = (dice.roll(users.len()), dice.roll(40).min(11));
                let kind = if kind == 11 { dice.roll(8) } else { kind };
                let kind = if kind >= 8 && who % 2 == 0 { dice.roll(8) } else { kind };
                let status = turn(&directory, &groups[dice.roll(groups.len())], &users[who], kind).await;
                if matches!(kind, 8 | 10) && status < 300 {
                    put_out.insert(who);
                }
            }
            put_out
        });
    }
    let put_out: HashSet<usize> = callers.join_all().await.into_iter().flatten().collect();
    assert!(!put_out.is_empty(), "somebody was put out");
    setting.check_roles(&setting.groups).await;
    for (who, (person, tokens, _)) in setting.people.iter().enumerate() {
        let (live, refreshed) =
            (is_signed_in(&app, &tokens.access).await, refresh(&app, &tokens.refresh).await.status());
        let expected = if put_out.contains(&who) { (false, 400) } else { (true, 200) };
        assert_eq!((live, refreshed), expected, "{}", person.email);
    }
}

async fn whoever_is_deactivated_while_they_sign_in_is_out(app: TestApp) {
    let setting = Setting::new(&app).await;
    let mut logins = JoinSet::new();
    let mut directory = JoinSet::new();
    for (who, (person, ..)) in setting.people.iter().take(4).enumerate() {
        for _ in 0..3 {
            let person = person.clone();
            logins.spawn(async move {
                let session = person.log_in().await;
                let session = (session.status() == 200).then(|| session.text("/session"))?;
                let answer = person.exchange(&session).await;
                assert!(matches!(answer.status(), 200 | 401 | 403), "{answer:?}");
                (answer.status() == 200).then(|| Tokens::of(&answer))
            });
        }
        let (caller, path) = (setting.directory.clone(), format!("/Users/{}", person.member));
        directory.spawn(async move {
            if who % 2 == 0 {
                let off = json!([{ "op": "replace", "path": "active", "value": false }]);
                caller.patch(&path, off).await.expect(200);
            } else {
                caller.delete(&path).await.expect(204);
            }
        });
    }
    directory.join_all().await;
    let signed_in = logins.join_all().await.into_iter().flatten();
    let first = setting.people.iter().take(4).map(|(_, tokens, _)| tokens.clone());
    let back = setting.people.iter().take(4).step_by(2).map(|(person, ..)| person);
    nothing_from_before_counts(&app, &setting.directory, back, signed_in.chain(first)).await;
}

async fn whoever_is_deactivated_while_they_come_from_another_workspace_is_out(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let directory = acme.directory().await;
    let mut people = Vec::new();
    for n in 0..3 {
        let email = format!("user{n}@acme.example");
        let elsewhere = app.member(&email, other.id, "MEMBER").await;
        people.push((app.member(&email, acme.id, "MEMBER").await, elsewhere));
    }
    let (mut logins, mut deactivations) = (JoinSet::new(), JoinSet::new());
    for (person, elsewhere) in &people {
        for _ in 0..2 {
            let access = elsewhere.sign_in().await.access;
            let (session, person) = (person.log_in().await.expect(200).text("/session"), person.clone());
            let coming = json!({ "accessToken": access, "targetTenantUserId": person.member });
            let anon = app.anon();
            logins.spawn(async move { anon.post("/auth/token/workspace-switch", coming).await });
            logins.spawn(async move { person.exchange(&session).await });
        }
        let (caller, path) = (directory.clone(), format!("/Users/{}", person.member));
        let off = json!([{ "op": "replace", "path": "active", "value": false }]);
        deactivations.spawn(async move { caller.patch(&path, off).await.expect(200) });
    }
    deactivations.join_all().await;
    let answers = logins.join_all().await;
    assert!(answers.iter().all(|answer| matches!(answer.status(), 200 | 401 | 403)), "{answers:?}");
    let signed_in = answers.iter().filter(|answer| answer.status() == 200).map(Tokens::of);
    nothing_from_before_counts(&app, &directory, people.iter().map(|(person, _)| person), signed_in).await;
}

/// Whoever comes back signs in again; nothing from before counts, nor what began while they were put out.
async fn nothing_from_before_counts(
    app: &TestApp,
    directory: &DirectoryCaller,
    back: impl Iterator<Item = &Person>,
    before: impl Iterator<Item = Tokens>,
) {
    for person in back {
        let on = json!([{ "op": "replace", "path": "active", "value": true }]);
        directory.patch(&format!("/Users/{}", person.member), on).await.expect(200);
        assert!(is_signed_in(app, &person.sign_in().await.access).await);
    }
    for tokens in before {
        assert!(!is_signed_in(app, &tokens.access).await, "a sign-in outlived the membership");
        assert_eq!(refresh(app, &tokens.refresh).await.status(), 400);
    }
}

/// The role that a group carries is settled member by member, in transactions of their own.
async fn a_group_and_its_role_change_while_members_come_and_go(app: TestApp) {
    let setting = Setting::new(&app).await;
    let group = setting.groups[0].0.clone();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (directory, key, group) = (setting.directory.clone(), setting.acme.key(), group.clone());
        let user = setting.people[caller % setting.people.len()].0.member.to_string();
        callers.spawn(async move {
            let path = format!("/account/scim/group/{group}");
            match caller % 4 {
                0 => _ = key.put(&path, json!({ "role": null })).await.expect(200),
                1 => _ = key.put(&path, json!({ "role": "ADMIN" })).await.expect(200),
                2 => {
                    let renamed =
                        json!([{ "op": "replace", "path": "displayName", "value": format!("Group {caller}") }]);
                    let answer = directory.patch(&format!("/Groups/{group}"), renamed).await;
                    assert!(matches!(answer.status(), 204 | 409), "{answer:?}");
                }
                _ => _ = turn(&directory, &group, &user, 0).await,
            }
        });
    }
    callers.join_all().await;
    let shown = setting.acme.key().put(&format!("/account/scim/group/{group}"), json!({ "role": "ADMIN" })).await;
    assert_eq!(shown.expect(200).at("/role"), "ADMIN");
    setting.check_roles(&[(group.clone(), Some("ADMIN"))]).await;
    setting.acme.key().put(&format!("/account/scim/group/{group}"), json!({ "role": null })).await.expect(200);
    setting.check_roles(&[(group, None)]).await;
}
