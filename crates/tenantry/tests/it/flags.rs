//! `tenantry flag list|get|apply|delete`.

use serde_json::{Value, json};

use crate::program::{Home, on_both_engines};

on_both_engines!(flags_live_in_a_file, a_wrong_file_is_explained);

const FILE: &str = r"
groups:
  - key: payers
    name: Paying workspaces
    branches:
      - conditions:
          - { attribute: tenant.plan, operator: in, values: [pro, max] }
        returnValue: true
flags:
  - key: new-nav
    description: The new navigation
    state: on-with-rule
    rule: { groupRef: payers, rolloutPct: 20, otherwiseValue: false }
  - key: banner
    state: off
    valueType: string
    offValue: ''
    onValue: Hello
";

fn applied(home: &Home, arguments: &[&str]) -> Vec<String> {
    let done = home.run(arguments).ok().json();
    let step = |step: &Value| format!("{} {}", step["action"], step["key"]).replace('"', "");
    done.as_array().expect("a list").iter().map(step).collect()
}

async fn flags_live_in_a_file(home: Home) {
    let server = home.serve();
    let app = server.printed_value("App id").expect("an app").to_owned();
    let file = home.path("flags.yaml");
    std::fs::write(&file, FILE).expect("the file can be written");
    let file = file.to_str().expect("a path");
    let would = applied(&home, &["flag", "apply", file, "--dry-run", "--json"]);
    assert_eq!(would, ["would create payers", "would create new-nav", "would create banner"]);
    let told = home.run(&["flag", "apply", file, "--dry-run"]).ok().out;
    assert!(told.contains("would create group payers"), "nothing was done: {told}");
    let done = applied(&home, &["flag", "apply", file, "--app", &app, "--json"]);
    assert_eq!(done, ["created payers", "created new-nav", "created banner"]);
    std::fs::write(file, FILE.replace("state: off", "state: on")).expect("the file can be written");
    let again = home.run(&["flag", "apply", file]).ok().out;
    assert!(again.contains("changed flag banner") && again.contains("unchanged group payers"), "{again}");

    let path = format!("/cloud-views/flags/evaluate/{app}/banner");
    // On PostgreSQL the command was a node of its own; the server hears of the change a moment later.
    while server.get(&path, ("x-nothing", "")).await.1["value"] != json!("Hello") {
        tokio::task::yield_now().await;
    }
    let table = home.run(&["flag", "list"]).ok().out;
    assert!(table.lines().any(|line| line.starts_with("new-nav") && line.contains("on-with-rule")), "{table}");
    // What is shown can be applied.
    let shown = home.run(&["flag", "get", "new-nav"]).ok().out;
    assert!(shown.contains("groupRef: payers") && !shown.contains("usage"), "{shown}");
    std::fs::write(file, shown).expect("the file can be written");
    assert_eq!(applied(&home, &["flag", "apply", file, "--json"]), ["unchanged new-nav"]);
    home.run(&["flag", "delete", "new-nav"]).ok();
    home.run(&["flag", "get", "new-nav"]).fails("No flag has the key new-nav.");
    server.stop();
    assert_eq!(home.run(&["flag", "get", "banner", "--json"]).ok().json()["version"], 2);
}

async fn a_wrong_file_is_explained(home: Home) {
    let home = home.set_up();
    let file = home.path("flags.json");
    let wrong = json!([{ "key": "k", "state": "on-with-rule", "rule": { "groupRef": "gone" } }]);
    std::fs::write(&file, wrong.to_string()).expect("the file can be written");
    let file = file.to_str().expect("a path");
    home.run(&["flag", "apply", file]).fails("flags[0].rule.groupRef is not a saved group of this app");
    // Nothing of a file is done unless all of it can be, and a dry run says the same.
    let half =
        json!({ "groups": [{ "key": "beta" }], "flags": [{ "key": "one" }, { "key": "two", "state": "sometimes" }] });
    for (content, word) in [
        (half.clone(), "flags[1].state must be one of"),
        (json!({ "groups": half["groups"], "flags": [{ "key": "one" }] }), "groups[0].name must not be empty"),
        (json!([{ "key": "one" }, { "key": "two", "stat": "on" }]), "flags[1].stat is not known"),
        (json!([{ "key": "one" }, { "key": "one" }]), "flags[1].key is given twice"),
    ] {
        std::fs::write(file, content.to_string()).expect("the file can be written");
        home.run(&["flag", "apply", file, "--dry-run"]).fails(word);
        home.run(&["flag", "apply", file]).fails(word);
    }
    assert_eq!(home.run(&["flag", "list", "--json"]).ok().json(), json!([]));
    home.run(&["flag", "apply", "nowhere.yaml"]).fails("Cannot read nowhere.yaml");
}
