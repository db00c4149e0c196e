//! `tenantry app`, `key`, `keys`, `secret` and `doctor`, beside a running server and without one.

use serde_json::{Value, json};
use store::{Db, Limits, Options};

use crate::program::{Home, Server, on_both_engines, on_postgres, operator_key};

on_both_engines!(
    apps_are_made_with_and_without_a_server,
    keys_are_made_and_revoked,
    signing_keys_are_rotated,
    secrets_are_rotated_and_retired,
    a_refusal_is_explained,
    a_new_installation_is_well,
);
// An embedded database belongs to one folder, and nobody can harm it while a server runs on it.
on_postgres!(commands_reach_a_server_of_another_folder, the_doctor_fails_when_something_is_wrong);

async fn status(server: &Server, key: &Value) -> u16 {
    server.get("/account/app", ("x-api-key", key.as_str().expect("a key"))).await.0
}

async fn apps_are_made_with_and_without_a_server(home: Home) {
    let made = home.run(&["app", "create", "Alone", "--domain", "alone.example", "--json"]).ok().json();
    let server = home.serve();
    assert_eq!(status(&server, &made["apiKey"]).await, 200);
    let callback = "https://shop.example/cb";
    let arguments = ["app", "create", "Shop", "--domain", "shop.example", "--redirect-uri", callback, "--json"];
    let made = home.run(&arguments).ok().json();
    assert_eq!(made["app"]["redirectUris"], json!([callback]));
    assert_eq!(status(&server, &made["apiKey"]).await, 200, "the running server made it");
    let told = home.run(&["app", "create", "Shop 2", "--domain", "two.example"]).ok().out;
    assert!(told.contains("Created Shop 2 (app_") && told.contains("API key  tnt_"), "{told}");
    let list = home.run(&["app", "list", "--json"]).ok().json();
    server.stop();
    assert_eq!(home.run(&["app", "list", "--json"]).ok().json(), list);
    let domains: Vec<&str> = list.as_array().expect("a list").iter().filter_map(|app| app["domain"].as_str()).collect();
    assert_eq!(domains, ["two.example", "shop.example", "localhost", "alone.example"]);
    let table = home.run(&["app", "list"]).ok().out;
    assert!(table.lines().any(|line| line.contains(" shop.example ") && line.contains(" Shop ")), "{table}");
}

async fn keys_are_made_and_revoked(home: Home) {
    let server = home.serve();
    let app = server.printed_value("App id").expect("an app").to_owned();
    let made = home.run(&["key", "create", &app, "--name", "CI", "--privilege", "APP_READ", "--json"]).ok().json();
    assert_eq!((&made["record"]["name"], &made["record"]["privileges"]), (&json!("CI"), &json!(["APP_READ"])));
    assert_eq!(status(&server, &made["key"]).await, 200);
    let id = made["record"]["id"].as_str().expect("an id").to_owned();
    assert!(home.run(&["key", "revoke", &app, &id]).ok().out.contains(&format!("Revoked {id}")));
    assert_eq!(status(&server, &made["key"]).await, 401);
    home.run(&["key", "revoke", &app, &id]).fails("There is no such API key. (404)");
    server.stop();
    home.run(&["key", "create", &app, "--json"]).ok();
}

async fn secrets_are_rotated_and_retired(home: Home) {
    let made = home.run(&["app", "create", "Shop", "--domain", "shop.example", "--json"]).ok().json();
    let app = made["app"]["id"].as_str().expect("an id");
    let old = home.run(&["secret", "list", app, "--json"]).ok().json()[0]["id"].as_str().expect("an id").to_owned();
    home.run(&["secret", "retire", app, &old])
        .fails("This secret signs new API tokens. Rotate first, then retire it. (409)");
    let new = home.run(&["secret", "rotate", app, "--json"]).ok().json();
    assert_eq!(new["signs"], true);
    assert!(home.run(&["secret", "retire", app, &old]).ok().out.contains(&format!("Retired {old}")));
    let table = home.run(&["secret", "list", app]).ok().out;
    assert!(table.contains(" signs ") && table.contains(" retired 2"), "{table}");
}

async fn signing_keys_are_rotated(home: Home) {
    let rotated = home.run(&["keys", "rotate", "--json"]).ok().json();
    assert_eq!(rotated["started"], true);
    let again = home.run(&["keys", "rotate", "--json"]).ok().json();
    assert_eq!((&again["started"], &again["key"]), (&json!(false), &rotated["key"]));
    let list = home.run(&["keys", "list", "--json"]).ok().json();
    assert_eq!((list.as_array().map(Vec::len), &list[1]), (Some(2), &rotated["key"]));
    let told = home.run(&["keys", "rotate"]).ok().out;
    let kid = rotated["key"]["kid"].as_str().expect("a kid");
    assert!(told.contains(kid), "{told}");
    let revoked = home.run(&["keys", "revoke", kid, "--json"]).ok().json();
    assert_eq!(revoked["made"], true);
    let told = home.run(&["keys", "revoke", list[0]["kid"].as_str().expect("a kid")]).ok().out;
    assert!(told.contains(revoked["key"]["kid"].as_str().expect("a kid")), "{told}");
}

async fn a_refusal_is_explained(home: Home) {
    home.run(&["app", "create", "Shop", "--domain", "shop.example"]).ok();
    let taken = ["app", "create", "Shop", "--domain", "SHOP.example"];
    home.run(&taken).fails("Another app already has the domain shop.example. (409)");
    let wrong = home.run(&["app", "create", " ", "--domain", "no domain", "--ui-url", "x"]).fails("(400)");
    for field in ["- name must not be empty", "- domain must be a host name", "- uiUrl must be an absolute"] {
        assert!(wrong.err.contains(field), "{wrong:?}");
    }
    assert_eq!(wrong.out, "");
    home.run(&["key", "create", "app_nonsense"]).fails("(404)");
    let misspelt = home.run(&["ap", "list"]);
    assert!(misspelt.code == Some(2) && misspelt.err.contains("app"), "{misspelt:?}");
}

async fn commands_reach_a_server_of_another_folder(home: Home) {
    let server = home.serve();
    let elsewhere = |key: &str| {
        let mut command = home.command(&["app", "list", "--json"]);
        command.env("TENANTRY_DATA_DIR", home.path("elsewhere"));
        command.env("TENANTRY_LISTEN", server.base.strip_prefix("http://").expect("an address"));
        crate::program::Outcome::of(command.env("TENANTRY_OPERATOR_KEY", key))
    };
    let listed = elsewhere(&operator_key(&home.path("tenantry-data"))).ok().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    elsewhere("op_of_somebody_else_entirely_0123456789").fails("The operator key is not valid. (401)");
    server.stop();
}

async fn a_new_installation_is_well(home: Home) {
    let told = home.run(&["doctor"]).ok();
    assert!(told.out.contains("Everything is fine.") && told.out.contains("warning   mail"), "{told:?}");
    assert!(home.run(&["doctor", "--json"]).ok().json()["findings"].is_array());
}

async fn the_doctor_fails_when_something_is_wrong(home: Home) {
    let server = home.serve();
    let url = home.database().expect("a database on PostgreSQL");
    let (clock, entropy) = (kernel::Clock::system(), kernel::Entropy::os());
    let db = Db::open(Options { url: url.clone(), clock, entropy, limits: Limits::default() }).await.expect("opens");
    db.exec_one("DELETE FROM signing_keys", &[]).await.expect("deleted");
    db.close().await;
    let sick = home.run(&["doctor"]);
    assert_eq!(sick.code, Some(1), "{sick:?}");
    assert!(sick.out.contains("PROBLEM   signing keys") && sick.out.contains("Run tenantry keys rotate."), "{sick:?}");
    server.stop();
}
