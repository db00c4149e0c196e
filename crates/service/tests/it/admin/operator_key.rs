//! `POST /admin/operator-key`, and what becomes of the keys before.

use std::os::unix::fs::PermissionsExt as _;

use kernel::Secret;
use serde_json::json;
use service::Options;
use testkit::{Answer, Caller, OPERATOR_KEY, TestApp, assert_body, on_both_engines};

on_both_engines!(
    the_key_before_works_for_another_hour,
    a_key_that_somebody_else_may_have_ends_at_once,
    the_other_node_knows_the_new_key_at_once,
    a_node_that_has_the_key_before_still_starts,
    a_change_that_was_cut_off_is_finished_at_the_next_start,
    a_key_can_be_given,
    changes_at_once_leave_one_key,
);

const PATH: &str = "/admin/operator-key";
const GIVEN: &str = "op_given_by_the_operator_0123456789abcdef";

async fn replace(app: &TestApp, key: &str, now: bool) -> Answer {
    with(app, key).post(PATH, json!({ "now": now })).await.expect(200)
}

fn with(app: &TestApp, key: &str) -> Caller {
    app.anon().with_operator_key(key)
}

async fn status(app: &TestApp, key: &str) -> u16 {
    with(app, key).get("/admin/apps").await.status()
}

fn kept(app: &TestApp) -> String {
    std::fs::read_to_string(app.site().folder().join("operator.key")).expect("the key is kept").trim().to_owned()
}

fn without_operator_key(options: &mut Options) {
    options.keys.operator = None;
}

async fn the_key_before_works_for_another_hour(app: TestApp) {
    let replaced = replace(&app, OPERATOR_KEY, false).await;
    assert_body!(replaced, @r#"
    {
      "key": "[operator key]",
      "previousUntil": "[time]"
    }
    "#);
    let new = replaced.text("/key");
    assert_eq!(kept(&app), new);
    let mode = app.site().folder().join("operator.key").metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!((status(&app, &new).await, status(&app, OPERATOR_KEY).await), (200, 200));
    let minutes = |minutes: u64| json!({ "advanceSeconds": minutes * 60 });
    with(&app, &new).post("/admin/test-clock", minutes(59)).await.expect(200);
    assert_eq!(status(&app, OPERATOR_KEY).await, 200);
    with(&app, &new).post("/admin/test-clock", minutes(2)).await.expect(200);
    assert_eq!((status(&app, &new).await, status(&app, OPERATOR_KEY).await), (200, 401));
    app.drain().await;
}

async fn a_key_that_somebody_else_may_have_ends_at_once(app: TestApp) {
    let second = replace(&app, OPERATOR_KEY, false).await.text("/key");
    let third = replace(&app, &second, true).await.text("/key");
    let all = [OPERATOR_KEY, &second, &third];
    for (key, wanted) in all.into_iter().zip([401, 401, 200]) {
        assert_eq!(status(&app, key).await, wanted);
    }
    app.drain().await;
}

async fn the_other_node_knows_the_new_key_at_once(app: TestApp) {
    let node = app.another_node().await;
    assert_eq!(status(&node, OPERATOR_KEY).await, 200);
    let new = replace(&app, OPERATOR_KEY, true).await.text("/key");
    assert_eq!((status(&node, &new).await, status(&node, OPERATOR_KEY).await), (200, 401));
    app.drain().await;
}

async fn a_node_that_has_the_key_before_still_starts(app: TestApp) {
    let new = replace(&app, OPERATOR_KEY, true).await.text("/key");
    app.drain().await;
    // The configuration still names the key before; the folder has the present one.
    app.restart().await;
    assert_eq!((status(&app, &new).await, status(&app, OPERATOR_KEY).await), (200, 401));
    app.restart_with(without_operator_key).await;
    assert_eq!(status(&app, &new).await, 200);
    std::fs::remove_file(app.site().folder().join("operator.key")).expect("removed");
    app.restart().await;
    assert_eq!((status(&app, &new).await, status(&app, OPERATOR_KEY).await), (200, 401));
}

async fn a_change_that_was_cut_off_is_finished_at_the_next_start(app: TestApp) {
    let new = replace(&app, OPERATOR_KEY, true).await.text("/key");
    app.drain().await;
    let folder = app.site().folder().to_owned();
    // As if the process had ended after the commit and before the file got its name.
    std::fs::rename(folder.join("operator.key"), folder.join("operator.key.new")).expect("renamed");
    std::fs::write(folder.join("operator.key"), OPERATOR_KEY).expect("written");
    app.restart_with(without_operator_key).await;
    assert_eq!(kept(&app), new);
    assert!(!folder.join("operator.key.new").exists());
    // And before the commit: what was staged never counted.
    std::fs::write(folder.join("operator.key.new"), "op_never_committed_0123456789_0123456789").expect("written");
    app.restart_with(without_operator_key).await;
    assert_eq!(kept(&app), new);
    assert_eq!(replace(&app, &new, false).await.text("/key"), kept(&app));
    app.drain().await;
}

async fn a_key_can_be_given(app: TestApp) {
    let give = async |key: &str| app.operator().post(PATH, json!({ "key": key })).await;
    give(GIVEN).await.expect(200);
    assert_eq!((status(&app, GIVEN).await, status(&app, OPERATOR_KEY).await), (200, 200));
    assert!(!app.site().folder().join("operator.key").exists(), "its giver keeps it");
    for wrong in [GIVEN, OPERATOR_KEY, "short", &"ü".repeat(40), &"with spaces ".repeat(4)] {
        give(wrong).await.error(400, "VALIDATION_FAILED");
    }
    assert!(!app.site().folder().join("operator.key.new").exists(), "nothing is left behind");
    app.restart_with(|options| options.keys.operator = Some(Secret::new(GIVEN.into()))).await;
    let generated = replace(&app, GIVEN, true).await.text("/key");
    with(&app, &generated).post(PATH, json!({ "key": "op_given_once_more_0123456789_0123456789" })).await.expect(200);
    assert_eq!(kept(&app), "op_given_once_more_0123456789_0123456789", "a file that is there is kept true");
    app.drain().await;
}

async fn changes_at_once_leave_one_key(app: TestApp) {
    let calls = (0..6).map(|_| replace(&app, OPERATOR_KEY, false));
    let keys: Vec<String> =
        futures_util::future::join_all(calls).await.iter().map(|answer| answer.text("/key")).collect();
    let present = replace(&app, &kept(&app), true).await.text("/key");
    assert_eq!(kept(&app), present);
    for key in keys.iter().map(String::as_str).chain([OPERATOR_KEY]) {
        assert_eq!(status(&app, key).await, 401);
    }
    app.drain().await;
}
