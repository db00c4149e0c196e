//! `/admin/apps/{app_id}/flags` and `/flag-groups`.

use serde_json::{Value, json};
use testkit::{
    TestApp, assert_body,
    flags::{flag, flags, groups},
    on_both_engines,
};

on_both_engines!(
    a_flag_is_made_read_changed_and_deleted,
    a_boolean_flag_needs_only_its_key,
    everything_wrong_is_told_at_once,
    a_key_belongs_to_one_flag_and_stays,
    flags_of_another_app_are_not_there,
    an_update_is_partial_and_null_clears,
    each_change_is_a_version_that_can_be_returned_to,
    a_change_based_on_an_old_version_is_refused,
    of_two_changes_at_once_none_is_lost,
    groups_are_shared_checked_and_kept_while_used,
    a_group_has_a_history_too,
    an_explanation_shows_the_way_through_the_rule,
    an_explanation_of_a_flag_without_a_rule_and_of_one_with_a_group,
    nothing_is_saved_without_a_bound,
    a_version_whose_group_is_gone_cannot_be_returned_to,
    deleting_the_app_removes_its_flags,
    a_file_is_applied_whole_or_not_at_all,
    what_a_file_changes_together_is_checked_together,
);

fn branch(attribute: &str, operator: &str, values: impl Into<Value>, value: impl Into<Value>) -> Value {
    let (values, value): (Value, Value) = (values.into(), value.into());
    json!({ "conditions": [{ "attribute": attribute, "operator": operator, "values": values }], "returnValue": value })
}

async fn a_flag_is_made_read_changed_and_deleted(app: TestApp) {
    let rule = json!({ "branches": [branch("tenant.plan", "in", json!(["pro", "max"]), json!("B"))],
                       "otherwiseValue": "C", "rolloutPct": 12.5, "groupRef": null });
    let body = json!({ "key": "nav", "description": "New navigation", "state": "on-with-rule", "valueType": "string",
                       "offValue": "A", "onValue": "B", "rule": rule, "unknown": 1 });
    let made = app.operator().post(&flags(&app), body).await.expect(201);
    assert_eq!(made.header("etag"), Some("\"1\""));
    assert_body!(made, @r#"
    {
      "createdAt": "[time]",
      "description": "New navigation",
      "discovered": false,
      "id": "[flag id]",
      "key": "nav",
      "offValue": "A",
      "onValue": "B",
      "rule": {
        "branches": [
          {
            "conditions": [
              {
                "attribute": "tenant.plan",
                "operator": "in",
                "values": [
                  "pro",
                  "max"
                ]
              }
            ],
            "returnValue": "B"
          }
        ],
        "groupRef": null,
        "otherwiseValue": "C",
        "rolloutPct": 12.5
      },
      "state": "on-with-rule",
      "updatedAt": "[time]",
      "usage": {
        "callSites": [],
        "evaluations": 0,
        "lastEvaluatedAt": null,
        "neverEvaluated": true,
        "stale": false,
        "variants": []
      },
      "valueType": "string",
      "version": 1
    }
    "#);
    let path = format!("{}/{}", flags(&app), made.text("/id"));
    assert_eq!(app.operator().get(&path).await.expect(200).json(), made.json());
    assert_eq!(app.operator().get(&flags(&app)).await.expect(200).json(), json!([made.json()]));
    let changed = app.operator().put(&path, json!({ "state": "off" })).await.expect(200);
    assert_eq!((changed.at("/state"), changed.at("/version")), (json!("off"), json!(2)));
    assert_eq!(app.operator().delete(&path).await.expect(200).json(), json!({ "success": true }));
    app.operator().get(&path).await.error(404, "NOT_FOUND");
    app.operator().delete(&path).await.error(404, "NOT_FOUND");
}

async fn a_boolean_flag_needs_only_its_key(app: TestApp) {
    let made = app.operator().post(&flags(&app), json!({ "key": "k" })).await.expect(201);
    assert_eq!((made.at("/state"), made.at("/valueType")), (json!("off"), json!("boolean")));
    assert_eq!((made.at("/offValue"), made.at("/onValue")), (json!(false), json!(true)));
    let other = json!({ "key": "n", "valueType": "number" });
    app.operator().post(&flags(&app), other).await.refuses(&["offValue", "onValue"]);
}

async fn everything_wrong_is_told_at_once(app: TestApp) {
    let rule = json!({ "rolloutPct": 101, "otherwiseValue": "x", "branches": [
        branch("plan", "eq", json!(["a"]), json!(1)),
        branch("user.id", "matches", json!(["("]), json!(true)),
    ] });
    let body = json!({ "key": "a b", "state": "on-with-rule", "offValue": "no", "rule": rule });
    app.operator().post(&flags(&app), body).await.refuses(&[
        "key",
        "rule.rolloutPct",
        "offValue",
        "rule.otherwiseValue",
        "rule.branches[0].returnValue",
        "rule.branches[0].conditions[0].attribute",
        "rule.branches[1].conditions[0].values[0]",
    ]);
    for wrong in
        [json!({ "state": "maybe" }), json!({ "valueType": "date" }), json!({ "rule": [] }), json!({ "key": 3 })]
    {
        let mut body = json!({ "key": "k" });
        body.as_object_mut().expect("an object").extend(wrong.as_object().expect("an object").clone());
        app.operator().post(&flags(&app), body).await.error(400, "VALIDATION_FAILED");
    }
    app.operator().post(&flags(&app), json!({ "key": "k", "state": "on-with-rule" })).await.refuses(&["rule"]);
}

async fn a_key_belongs_to_one_flag_and_stays(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    app.operator().post(&flags(&app), json!({ "key": "k" })).await.error(409, "FLAG_KEY_TAKEN");
    app.operator().put(&path, json!({ "key": "other" })).await.refuses(&["key"]);
    app.operator().put(&path, json!({ "key": "k", "id": "ignored", "version": 77 })).await.expect(200);
}

async fn flags_of_another_app_are_not_there(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    let other = app.other_app().await.app_id();
    let there = path.replace(&app.app_id().to_string(), &other.to_string());
    app.operator().get(&there).await.error(404, "NOT_FOUND");
    app.operator().put(&there, json!({ "state": "on" })).await.error(404, "NOT_FOUND");
    app.operator().delete(&there).await.error(404, "NOT_FOUND");
    app.operator().get(&format!("{there}/versions")).await.error(404, "NOT_FOUND");
    assert_eq!(app.operator().get(&format!("/admin/apps/{other}/flags")).await.expect(200).json(), json!([]));
    let nowhere = "/admin/apps/app_00000000000000000000000000/flags";
    app.operator().get(nowhere).await.error(404, "NOT_FOUND");
    app.operator().post(nowhere, json!({ "key": "k" })).await.error(404, "NOT_FOUND");
}

async fn an_update_is_partial_and_null_clears(app: TestApp) {
    let path = flag(
        &app,
        json!({ "key": "k", "description": "d", "state": "on", "onValue": false,
                                  "rule": { "branches": [] } }),
    )
    .await;
    let kept = app.operator().put(&path, json!({ "state": "off" })).await.expect(200);
    assert_eq!((kept.at("/description"), kept.at("/onValue")), (json!("d"), json!(false)));
    let cleared = json!({ "description": null, "onValue": null, "rule": null });
    let cleared = app.operator().put(&path, cleared).await.expect(200);
    assert_eq!((cleared.at("/description"), cleared.at("/onValue")), (json!(""), json!(true)));
    assert!(cleared.json().get("rule").is_none());
    app.operator().put(&path, json!({ "state": "on-with-rule" })).await.refuses(&["rule"]);
    app.operator().put(&path, json!({ "valueType": "string" })).await.refuses(&["offValue", "onValue"]);
    for kept in ["state", "valueType", "key"] {
        app.operator().put(&path, json!({ kept: null })).await.refuses(&[kept]);
    }
    let group = app.operator().post(&groups(&app), json!({ "key": "g", "name": "G" })).await.expect(201);
    for kept in ["name", "branches", "key"] {
        let path = format!("{}/{}", groups(&app), group.text("/id"));
        app.operator().put(&path, json!({ kept: null })).await.refuses(&[kept]);
    }
}

async fn each_change_is_a_version_that_can_be_returned_to(app: TestApp) {
    let path = flag(&app, json!({ "key": "k", "description": "first" })).await;
    let ada = app.operator().header("x-actor", "Ada");
    ada.put(&path, json!({ "state": "on", "description": "second" })).await.expect(200);
    ada.put(&path, json!({ "state": "on" })).await.expect(200);
    let rolled = app.operator().post(&format!("{path}/rollback"), json!({ "version": 1 })).await.expect(200);
    assert_eq!((rolled.at("/version"), rolled.at("/state")), (json!(3), json!("off")));
    assert_eq!(rolled.header("etag"), Some("\"3\""));

    let history = app.operator().get(&format!("{path}/versions")).await.expect(200);
    let told: Vec<String> = history
        .json()
        .as_array()
        .expect("a list")
        .iter()
        .map(|version| {
            format!("{} {} by {}", version["version"], version["action"], version["changedBy"]).replace('"', "")
        })
        .collect();
    assert_eq!(told, ["3 rolled-back by operator", "2 updated by Ada", "1 created by operator"]);
    assert_eq!(
        history.at("/1/diff"),
        json!([
            { "path": "description", "from": "first", "to": "second" },
            { "path": "state", "from": "off", "to": "on" },
        ])
    );
    assert_eq!(history.at("/1/definition/state"), json!("on"));
    assert_eq!(
        app.operator().get(&format!("{path}/versions?limit=1&offset=2")).await.expect(200).at("/0/version"),
        json!(1)
    );
    app.operator().post(&format!("{path}/rollback"), json!({ "version": 9 })).await.refuses(&["version"]);
}

async fn a_change_based_on_an_old_version_is_refused(app: TestApp) {
    let path = flag(&app, json!({ "key": "k" })).await;
    let based_on = |version: &str| app.operator().header("if-match", version);
    based_on("\"1\"").put(&path, json!({ "state": "on" })).await.expect(200);
    based_on("\"1\"").put(&path, json!({ "state": "off" })).await.error(412, "VERSION_MISMATCH");
    based_on("\"1\"").delete(&path).await.error(412, "VERSION_MISMATCH");
    based_on("\"1\"").post(&format!("{path}/rollback"), json!({ "version": 1 })).await.error(412, "VERSION_MISMATCH");
    based_on("\"1\", W/\"2\"").put(&path, json!({ "state": "off" })).await.expect(200);
    based_on("*").delete(&path).await.expect(200);
}

async fn of_two_changes_at_once_none_is_lost(app: TestApp) {
    let (operator, flags) = (app.operator(), flags(&app));
    let changes = (0..8).map(|number| {
        let (operator, flags) = (operator.clone(), flags.clone());
        tokio::spawn(async move { operator.post(&flags, json!({ "key": format!("k{number}") })).await.expect(201) })
    });
    for change in changes.collect::<Vec<_>>() {
        change.await.expect("the change ends");
    }
    assert_eq!(operator.get(&flags).await.expect(200).json().as_array().map(Vec::len), Some(8));
    let bulk = format!("/cloud-views/flags/bulkEvaluate/{}", app.app_id());
    assert_eq!(app.anon().post(&bulk, json!({})).await.expect(200).at("/flags").as_array().map(Vec::len), Some(8));
}

async fn groups_are_shared_checked_and_kept_while_used(app: TestApp) {
    let pro = branch("tenant.plan", "eq", json!(["pro"]), json!(true));
    let body = json!({ "key": "pros", "name": "Paying", "branches": [pro] });
    let group = app.operator().post(&groups(&app), body.clone()).await.expect(201);
    assert_body!(group, @r#"
    {
      "branches": [
        {
          "conditions": [
            {
              "attribute": "tenant.plan",
              "operator": "eq",
              "values": [
                "pro"
              ]
            }
          ],
          "returnValue": true
        }
      ],
      "createdAt": "[time]",
      "id": "[flaggroup id]",
      "key": "pros",
      "name": "Paying",
      "updatedAt": "[time]",
      "usedBy": [],
      "version": 1
    }
    "#);
    app.operator().post(&groups(&app), body).await.error(409, "FLAG_KEY_TAKEN");
    app.operator().post(&groups(&app), json!({ "key": "", "name": " " })).await.refuses(&["key", "name"]);
    let path = format!("{}/{}", groups(&app), group.text("/id"));

    let by_group =
        |group: &str| json!({ "key": "k", "state": "on-with-rule", "onValue": false, "rule": { "groupRef": group } });
    app.operator().post(&flags(&app), by_group("gone")).await.refuses(&["rule.groupRef"]);
    let mut mixed = by_group("pros");
    mixed["rule"]["branches"] = json!([branch("user.id", "exists", json!([]), json!(true))]);
    app.operator().post(&flags(&app), mixed).await.refuses(&["rule.branches"]);
    let flag = flag(&app, by_group("pros")).await;

    let evaluate = format!("/cloud-views/flags/evaluate/{}/k", app.app_id());
    let for_plan = async |plan: &str| app.anon().post(&evaluate, json!({ "tenant": { "plan": plan } })).await;
    // A group change reaches the flags that use it.
    assert_eq!(for_plan("pro").await.at("/variantIndex"), json!(0));
    let max = branch("tenant.plan", "eq", json!(["max"]), json!(true));
    app.operator().put(&path, json!({ "branches": [max] })).await.expect(200);
    assert_eq!(for_plan("pro").await.at("/variantIndex"), json!(-1));
    assert_eq!(for_plan("max").await.at("/variantIndex"), json!(0));

    let text = branch("tenant.plan", "eq", json!(["max"]), json!("text"));
    app.operator().put(&path, json!({ "branches": [text] })).await.refuses(&["branches[0].returnValue"]);
    assert_eq!(app.operator().get(&path).await.expect(200).at("/usedBy"), json!(["k"]));
    app.operator().delete(&path).await.error(409, "FLAG_GROUP_IN_USE");
    app.operator().delete(&flag).await.expect(200);
    assert_eq!(app.operator().delete(&path).await.expect(200).json(), json!({ "success": true }));
    assert_eq!(app.operator().get(&groups(&app)).await.expect(200).json(), json!([]));
    app.operator().get(&path).await.error(404, "NOT_FOUND");
}

async fn a_group_has_a_history_too(app: TestApp) {
    let group = app.operator().post(&groups(&app), json!({ "key": "g", "name": "One" })).await.expect(201);
    let path = format!("{}/{}", groups(&app), group.text("/id"));
    let changed = app.operator().header("if-match", "\"1\"").put(&path, json!({ "name": "Two" })).await.expect(200);
    assert_eq!(changed.header("etag"), Some("\"2\""));
    app.operator().header("if-match", "\"1\"").delete(&path).await.error(412, "VERSION_MISMATCH");
    app.operator().post(&format!("{path}/rollback"), json!({ "version": 1 })).await.expect(200);
    let history = app.operator().get(&format!("{path}/versions")).await.expect(200);
    assert_eq!(history.at("/0/diff"), json!([{ "path": "name", "from": "Two", "to": "One" }]));
    app.operator().put(&path, json!({ "key": "other" })).await.refuses(&["key"]);
}

async fn an_explanation_shows_the_way_through_the_rule(app: TestApp) {
    let branches = json!([
        branch("user.role", "eq", json!(["OWNER"]), json!("A")),
        { "conditions": [{ "attribute": "tenant.plan", "operator": "neq", "values": ["free"] },
                         { "attribute": "custom.beta", "operator": "not_exists" }], "returnValue": "B" },
        branch("user.id", "exists", json!([]), json!("C")),
    ]);
    let path = flag(
        &app,
        json!({ "key": "k", "state": "on-with-rule", "valueType": "string", "offValue": "0",
                                  "onValue": "1", "rule": { "branches": branches, "rolloutPct": 99 } }),
    )
    .await;
    let context = json!({ "user": { "id": "u1", "role": "ADMIN" } });
    let told = app.operator().post(&format!("{path}/explain"), context.clone()).await.expect(200);
    assert_body!(told, @r#"
    {
      "branches": [
        {
          "conditions": [
            {
              "attribute": "user.role",
              "matched": false,
              "operator": "eq",
              "present": true,
              "seen": "ADMIN",
              "values": [
                "OWNER"
              ]
            }
          ],
          "index": 0,
          "matched": false
        },
        {
          "conditions": [
            {
              "attribute": "tenant.plan",
              "matched": true,
              "operator": "neq",
              "present": false,
              "seen": null,
              "values": [
                "free"
              ]
            },
            {
              "attribute": "custom.beta",
              "matched": true,
              "operator": "not_exists",
              "present": false,
              "seen": null,
              "values": []
            }
          ],
          "index": 1,
          "matched": true
        }
      ],
      "enabled": true,
      "flag": "k",
      "reason": "Branch 1 is the first that matches, and the identity is inside the rollout.",
      "rollout": {
        "bucket": 4487,
        "identity": "u1",
        "inside": true,
        "rolloutPct": 99
      },
      "state": "on-with-rule",
      "value": "B",
      "variantIndex": 1
    }
    "#);
    let evaluated = app.anon().post(&format!("/cloud-views/flags/evaluate/{}/k", app.app_id()), context).await;
    assert_eq!((told.at("/value"), told.at("/variantIndex")), (evaluated.at("/value"), evaluated.at("/variantIndex")));
    let nobody = app.operator().post(&format!("{path}/explain"), json!({ "accessToken": "x" })).await.expect(200);
    assert_eq!(nobody.at("/rollout/inside"), json!(false));
    assert_eq!(nobody.at("/errorCode"), json!("INVALID_TOKEN"));
}

async fn an_explanation_of_a_flag_without_a_rule_and_of_one_with_a_group(app: TestApp) {
    let path = flag(&app, json!({ "key": "k", "onValue": true })).await;
    let explain = async |context: Value| app.operator().post(&format!("{path}/explain"), context).await.expect(200);
    let off = json!({ "flag": "k", "state": "off", "value": false, "enabled": false, "variantIndex": -1,
                      "reason": "The flag is off.", "branches": [] });
    assert_eq!(explain(json!({})).await.json(), off);
    let pro = branch("tenant.plan", "eq", json!(["pro"]), json!(true));
    app.operator().post(&groups(&app), json!({ "key": "pros", "name": "P", "branches": [pro] })).await.expect(201);
    let by_group = json!({ "state": "on-with-rule", "rule": { "groupRef": "pros", "otherwiseValue": false } });
    app.operator().put(&path, by_group).await.expect(200);
    for (plan, value) in [("pro", true), ("free", false)] {
        let told = explain(json!({ "context": { "org": { "plan": plan } } })).await;
        assert_eq!((told.at("/value"), told.at("/branches/0/matched")), (json!(value), json!(value)));
        assert_eq!(told.at("/branches/0/conditions/0/seen"), json!(plan));
    }
    app.operator().post(&format!("{path}/explain"), json!({ "user": 1 })).await.refuses(&["user"]);
    let unknown = format!("{}/flag_00000000000000000000000000/explain", flags(&app));
    app.operator().post(&unknown, json!({})).await.error(404, "NOT_FOUND");
}

async fn nothing_is_saved_without_a_bound(app: TestApp) {
    let any = || branch("user.id", "exists", json!([]), json!(true));
    let condition = json!({ "attribute": "user.id", "operator": "exists" });
    let values = |values: Value| json!([branch("user.id", "eq", values, json!(true))]);
    for (branches, field) in [
        (json!(vec![any(); 101]), "rule.branches"),
        (json!([{ "conditions": vec![condition; 51], "returnValue": true }]), "rule.branches[0].conditions"),
        (values(json!((0..1_001).collect::<Vec<_>>())), "rule.branches[0].conditions[0].values"),
        (values(json!(["x".repeat(4_097)])), "rule.branches[0].conditions[0].values[0]"),
        (
            json!([branch(&format!("custom.{}", "x".repeat(250)), "exists", json!([]), json!(true))]),
            "rule.branches[0].conditions[0].attribute",
        ),
        (
            json!([branch("user.id", "matches", json!(["a".repeat(1_025)]), json!(true))]),
            "rule.branches[0].conditions[0].values[0]",
        ),
    ] {
        let body = json!({ "key": "k", "state": "on-with-rule", "rule": { "branches": branches } });
        app.operator().post(&flags(&app), body).await.refuses(&[field]);
    }
    let long = json!({ "key": "k", "valueType": "string", "offValue": "", "onValue": "x".repeat(64 * 1024) });
    app.operator().post(&flags(&app), long).await.refuses(&["onValue"]);
    let long_key = json!({ "key": "k".repeat(129) });
    app.operator().post(&flags(&app), long_key).await.refuses(&["key"]);
    let full = json!({ "key": "k", "state": "on-with-rule", "rule": { "branches": vec![any(); 100] } });
    app.operator().post(&flags(&app), full).await.expect(201);
}

async fn a_version_whose_group_is_gone_cannot_be_returned_to(app: TestApp) {
    let group = app.operator().post(&groups(&app), json!({ "key": "g", "name": "G" })).await.expect(201);
    let by_group = json!({ "key": "k", "state": "on-with-rule", "rule": { "groupRef": "g" } });
    let path = flag(&app, by_group).await;
    app.operator().put(&path, json!({ "state": "off", "rule": null })).await.expect(200);
    app.operator().delete(&format!("{}/{}", groups(&app), group.text("/id"))).await.expect(200);
    let back = app.operator().post(&format!("{path}/rollback"), json!({ "version": 1 })).await;
    back.refuses(&["rule.groupRef"]);
    assert_eq!(app.operator().get(&path).await.expect(200).at("/version"), json!(2));
}

async fn deleting_the_app_removes_its_flags(app: TestApp) {
    let other = app.other_app().await.app_id();
    let flags = format!("/admin/apps/{other}/flags");
    app.operator().post(&flags, json!({ "key": "k" })).await.expect(201);
    app.operator()
        .post(&format!("/admin/apps/{other}/flag-groups"), json!({ "key": "g", "name": "G" }))
        .await
        .expect(201);
    app.anon().get(&format!("/cloud-views/flags/evaluate/{other}/unknown")).await.expect(200);
    app.operator().delete(&format!("/admin/apps/{other}")).await.expect(200);
    app.anon().get(&format!("/cloud-views/flags/evaluate/{other}/k")).await.error(404, "NOT_FOUND");
    app.drain().await;
    let left = app.service().core().db.read(move |tx| {
        let (flags,): (i64,) = tx.one("SELECT count(*) FROM flags WHERE app_id = $1", &store::args![other])?;
        let (versions,): (i64,) =
            tx.one("SELECT count(*) FROM flag_versions WHERE app_id = $1", &store::args![other])?;
        let (revisions,): (i64,) =
            tx.one("SELECT count(*) FROM flag_revisions WHERE app_id = $1", &store::args![other])?;
        Ok(flags + versions + revisions)
    });
    assert_eq!(left.await.expect("a count"), 0);
}

fn apply(app: &TestApp) -> String {
    format!("{}/apply", flags(app))
}

fn steps(answer: &testkit::Answer) -> Vec<String> {
    let json = answer.json();
    let step = |step: &Value| format!("{} {} {}", step["action"], step["kind"], step["key"]).replace('"', "");
    json.as_array().expect("a list").iter().map(step).collect()
}

async fn a_file_is_applied_whole_or_not_at_all(app: TestApp) {
    let rule = json!({ "groupRef": "beta", "otherwiseValue": false });
    let group = json!({ "key": "beta", "name": "Beta", "branches": [{ "returnValue": true }] });
    let nav = json!({ "key": "nav", "state": "on-with-rule", "rule": rule });
    let file = |dry_run: bool, flags: Value| json!({ "groups": [group], "flags": flags, "dryRun": dry_run });
    let both = json!([nav, { "key": "banner", "description": "A banner" }]);
    let operator = app.operator();

    let wrong = json!([nav, { "key": "b", "valueType": "string" }, { "key": "c", "rule": { "groupRef": "gone" } }]);
    for dry_run in [true, false] {
        let answer = operator.post(&apply(&app), file(dry_run, wrong.clone())).await;
        answer.refuses(&["flags[1].offValue", "flags[1].onValue", "flags[2].rule.groupRef"]);
    }
    let would = operator.post(&apply(&app), file(true, both.clone())).await.expect(200);
    assert_eq!(steps(&would), ["created group beta", "created flag nav", "created flag banner"]);
    assert_eq!(operator.get(&flags(&app)).await.expect(200).json(), json!([]), "nothing was done so far");

    let done = operator.post(&apply(&app), file(false, both.clone())).await.expect(200);
    assert_eq!(steps(&done), steps(&would));
    let again = operator.post(&apply(&app), file(false, json!([{ "key": "nav", "state": "off" }]))).await.expect(200);
    assert_eq!(steps(&again), ["unchanged group beta", "changed flag nav"]);
    let list = operator.get(&flags(&app)).await.expect(200).json();
    let nav = list.as_array().expect("a list").iter().find(|flag| flag["key"] == "nav").expect("nav");
    assert_eq!((&nav["state"], &nav["version"], &nav["rule"]["groupRef"]), (&json!("off"), &json!(2), &json!("beta")));

    operator.post(&apply(&app), json!({ "flags": [{ "key": "x" }, { "key": "x" }] })).await.refuses(&["flags[1].key"]);
    let gone = apply(&app).replace(&app.app_id().to_string(), "app_00000000000000000000000007");
    operator.post(&gone, json!({})).await.error(404, "NOT_FOUND");
}

/// A group and the flag that uses it change their type together, which neither could alone.
async fn what_a_file_changes_together_is_checked_together(app: TestApp) {
    let file = |value: Value, value_type: &str| {
        json!({
            "groups": [{ "key": "g", "name": "G", "branches": [{ "returnValue": value }] }],
            "flags": [{ "key": "f", "valueType": value_type, "offValue": value, "onValue": value, "rule": { "groupRef": "g" } }],
        })
    };
    for (value, value_type) in [(json!(true), "boolean"), (json!("text"), "string"), (json!(3), "number")] {
        app.operator().post(&apply(&app), file(value, value_type)).await.expect(200);
    }
    app.operator().post(&apply(&app), file(json!("text"), "number")).await.error(400, "VALIDATION_FAILED");
}
