//! `tenantry import tenants` and `tenantry import template`.

use serde_json::{Value, json};

use crate::program::{Home, Outcome, Server, on_both_engines, on_sqlite};

on_both_engines!(
    the_templates_are_imported_as_they_are,
    what_is_wrong_with_a_file_is_said_with_its_place_and_value,
    one_of_several_apps_is_chosen,
    progress_is_told_in_lines_of_json,
);
on_sqlite!(an_import_without_a_server_waits_for_one);

fn written(home: &Home, name: &str, content: &str) -> String {
    let file = home.path(name);
    std::fs::write(&file, content).expect("written");
    file.to_str().expect("a temporary path is text").to_owned()
}

fn template(home: &Home, format: &str) -> String {
    let printed = home.run(&["import", "template", "--format", format]).ok().out;
    written(home, &format!("template.{format}"), &printed)
}

async fn workspaces(server: &Server, home: &Home) -> Vec<String> {
    let key = home.first_key();
    let (status, tenants) = server.get("/account/tenant", ("x-api-key", &key)).await;
    assert_eq!(status, 200);
    let mut names: Vec<String> = tenants
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|tenant| tenant["name"].as_str())
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

async fn the_templates_are_imported_as_they_are(home: Home) {
    let server = home.serve();
    let default = home.run(&["import", "template"]).ok().out;
    assert_eq!(default, home.run(&["import", "template", "--format", "json"]).ok().out);
    for (format, brought) in [("json", ["Acme", "Zoe Quinn"]), ("csv", ["Acme", "Bolt, Inc."])] {
        let file = template(&home, format);
        let dry = home.run(&["import", "tenants", &file, "--dry-run"]).ok().out;
        assert!(dry.starts_with("The file is right: 2 workspaces, 4 users. Nothing was imported."), "{dry}");
        let before = workspaces(&server, &home).await;
        let told = home.run(&["import", "tenants", &file, "--wait"]).ok();
        assert!(told.out.contains("Imported 2 workspaces, 4 users."), "{told:?}");
        assert!(!told.err.contains('\r'), "nobody watches: {told:?}");
        let mut expected = before;
        expected.extend(brought.map(str::to_owned));
        expected.sort();
        assert_eq!(workspaces(&server, &home).await, expected);
    }
    server.stop();
}

async fn what_is_wrong_with_a_file_is_said_with_its_place_and_value(home: Home) {
    let server = home.serve();
    let owner = json!({ "username": "ada@example.com" });
    let batch = json!([{ "tenant": { "owner": owner, "name": "Acme" },
                         "users": [{ "username": "bob", "role": "\u{1b}[2JWIZARD" },
                                   { "username": "eve@example.com", "password": { "algorithm": "MD5", "value": "s3cret" } }] }]);
    let file = written(&home, "people.json", &batch.to_string());
    for extra in [&[][..], &["--dry-run"], &["--wait"]] {
        let refused = home.run(&[&["import", "tenants", &file], extra].concat());
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let Outcome { out, .. } = &refused;
        assert!(out.starts_with("The file cannot be imported: 1 workspaces, 3 users. Nothing was imported."), "{out}");
        assert!(out.contains("\n  [0].users[0].username: must be an email address (it is \"bob\")\n"), "{out}");
        assert!(out.contains("[0].users[0].role: there is no role \u{fffd}[2JWIZARD"), "{out}");
        assert!(out.contains("[0].users[1].password.value: must be the digest"), "{out}");
        assert!(!out.contains("s3cret"), "{out}");
    }
    let refused = home.run(&["import", "tenants", &file, "--json"]);
    assert_eq!((refused.code, &refused.json()["status"]), (Some(1), &json!("ERROR")));
    let table = written(&home, "people.CSV", "workspace,username\nAcme,bob\n");
    let refused = home.run(&["import", "tenants", &table, "--dry-run"]);
    assert!(refused.out.contains("\n  row 2, username: must be an email address (it is \"bob\")"), "{refused:?}");
    let table = written(&home, "people.txt", "workspace,username\nAcme,bob\n");
    home.run(&["import", "tenants", &table]).fails("ends with .csv");
    home.run(&["import", "tenants", &home.path("absent.json").display().to_string()]).fails("absent.json");
    let large = home.path("large.json");
    std::fs::File::create(&large).expect("made").set_len(64 * 1024 * 1024 + 1).expect("a sparse file");
    home.run(&["import", "tenants", &large.display().to_string()]).fails("more than 64 MiB");
    assert_eq!(workspaces(&server, &home).await, [""; 0]);
    server.stop();
}

async fn one_of_several_apps_is_chosen(home: Home) {
    let server = home.serve();
    let made = home.run(&["app", "create", "Other", "--domain", "other.example", "--json"]).ok().json();
    let (id, key) = (made["app"]["id"].as_str().expect("an id"), made["apiKey"].as_str().expect("a key"));
    let file = template(&home, "csv");
    home.run(&["import", "tenants", &file]).fails("--app");
    home.run(&["import", "tenants", &file, "--app", id, "--wait", "--no-webhooks"]).ok();
    let (_, tenants) = server.get("/account/tenant", ("x-api-key", key)).await;
    assert_eq!(tenants.as_array().map(Vec::len), Some(2));
    assert_eq!(workspaces(&server, &home).await, [""; 0]);
    server.stop();
}

async fn progress_is_told_in_lines_of_json(home: Home) {
    let server = home.serve();
    let user = |number: usize| json!({ "username": format!("user{number}@example.com") });
    let item = |number: usize| {
        let users: Vec<Value> = (0..50).map(|user_number| user(number * 50 + user_number)).collect();
        json!({ "tenant": { "owner": { "username": format!("owner{number}@example.com") } }, "users": users })
    };
    let batch: Vec<Value> = (0..20).map(item).collect();
    let file = written(&home, "people.json", &Value::from(batch).to_string());
    let url = ["--url", &server.base];
    let told = home.run(&[&["import", "tenants", &file, "--wait", "--json"], &url[..]].concat()).ok().out;
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let (first, last) = (&lines[0], lines.last().expect("several"));
    assert_eq!((&first["status"], &first["import"]["users"]), (&json!("SCHEDULED"), &json!(1020)));
    assert_eq!((&last["status"], &last["progress"]), (&json!("COMPLETED"), &json!({ "tenants": 20, "users": 1020 })));
    assert!(lines.iter().all(|line| line["reference"] == first["reference"]), "{told}");
    server.stop();
}

async fn an_import_without_a_server_waits_for_one(home: Home) {
    let home = home.set_up();
    let file = template(&home, "json");
    home.run(&["import", "tenants", &file, "--wait"]).fails("no running server");
    let told = home.run(&["import", "tenants", &file]).ok().out;
    assert!(told.contains("It is carried out once the server runs. Its reference is "), "{told}");
    let app = home.run(&["app", "list", "--json"]).ok().json()[0]["id"].as_str().expect("an id").to_owned();
    let reference = told.trim().rsplit(' ').next().expect("a reference").trim_end_matches('.');
    let server = home.serve();
    let operator = format!("Bearer {}", crate::program::operator_key(&home.path("tenantry-data")));
    let path = format!("/admin/apps/{app}/import/status/{reference}");
    let deadline = std::time::Duration::from_secs(30);
    let done = tokio::time::timeout(deadline, async {
        while server.get(&path, ("authorization", &operator)).await.1["status"] != "COMPLETED" {
            tokio::task::yield_now().await;
        }
    });
    done.await.expect("it is carried out");
    server.stop();
}
