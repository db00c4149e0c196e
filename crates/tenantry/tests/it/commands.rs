//! `tenantry app`, `key`, `keys`, `secret` and `doctor`, beside a running server and without one.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use store::{Db, EngineName, Limits, Options};

use crate::program::{Home, Outcome, Server, on_both_engines, on_postgres, on_sqlite, operator_key};

on_both_engines!(
    apps_are_made_with_and_without_a_server,
    keys_are_made_and_revoked,
    signing_keys_are_rotated,
    secrets_are_rotated_and_retired,
    events_are_exported_and_the_trail_is_verified,
    a_refusal_is_explained,
    the_doctor_says_whether_anybody_serves,
    the_operator_key_is_replaced,
    only_serve_and_restore_make_a_store,
    nobody_who_merely_listens_is_told_anything,
    a_server_elsewhere_is_reached_by_its_address,
);
// An embedded database belongs to one folder, and nobody can harm it while a server runs on it.
on_postgres!(the_doctor_fails_when_something_is_wrong);
// Only there is a socket: the folder has one server at most.
on_sqlite!(the_socket_needs_no_key_and_is_its_owners_alone);

async fn status(server: &Server, key: &Value) -> u16 {
    server.get("/account/app", ("x-api-key", key.as_str().expect("a key"))).await.0
}

async fn apps_are_made_with_and_without_a_server(home: Home) {
    let home = home.set_up();
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
    assert_eq!(domains, ["two.example", "shop.example", "alone.example", "localhost"]);
    let (id, domain) = (list[0]["id"].as_str().expect("an id"), "two.example");
    assert_eq!(home.run(&["app", "get", id, "--json"]).ok().json()["domain"], domain);
    let update =
        ["app", "update", id, "--redirect-uri", "https://two.example/cb", "--set", "requirePkce=true", "--json"];
    let changed = home.run(&update).ok().json();
    assert_eq!(
        (&changed["redirectUris"][0], &changed["requirePkce"]),
        (&"https://two.example/cb".into(), &true.into())
    );
    home.run(&["app", "update", id, "--set", "requirePkec=true"]).fails("requirePkec is not a member of the profile");
    home.run(&["app", "update", id]).fails("Say what to change");
    home.run(&["app", "delete", id, "--confirm", "shop.example"]).fails("has the domain two.example");
    home.run(&["app", "delete", id, "--confirm", domain]).ok();
    home.run(&["app", "get", id]).fails("(404)");
    let table = home.run(&["app", "list"]).ok().out;
    assert!(table.lines().any(|line| line.contains(" shop.example ") && line.contains(" Shop ")), "{table}");
}

async fn events_are_exported_and_the_trail_is_verified(home: Home) {
    let server = home.serve();
    let app = server.printed_value("App id").expect("an app").to_owned();
    home.run(&["app", "update", &app, "--name", "Shop"]).ok();
    assert!(home.run(&["audit", "verify", "--app", &app]).ok().out.contains("entries are as they were written."));
    assert_eq!(home.run(&["audit", "verify", "--json"]).ok().json()["ok"], true);
    let file = home.path("events.jsonl");
    let path = file.to_str().expect("a path");
    home.run(&["events", "export", path, "--from", "2020-01-01T00:00:00+01:00"]).ok();
    let lines = std::fs::read_to_string(&file).expect("a file");
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok_and(|line| line["id"].is_string())));
    home.run(&["events", "export", path]).fails("Cannot write");
    let csv = home.path("events.csv");
    home.run(&["events", "export", csv.to_str().expect("a path"), "--format", "csv"]).ok();
    assert!(std::fs::read_to_string(&csv).expect("a file").starts_with("app_id,event_id,"));
    server.stop();
    assert_eq!(home.run(&["audit", "verify", "--json"]).ok().json()["ok"], true);
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
    let kept = home.run(&["key", "list", &app]).ok().out;
    assert!(kept.starts_with("ID ") && kept.lines().nth(1).is_some_and(|line| line.starts_with("key_")), "{kept}");
    server.stop();
    home.run(&["key", "create", &app, "--json"]).ok();
}

async fn secrets_are_rotated_and_retired(home: Home) {
    let home = home.set_up();
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
    let home = home.set_up();
    let rotated = home.run(&["signing-key", "rotate", "--json"]).ok().json();
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
    let saml = home.run(&["keys", "rotate", "--saml", "--json"]).ok().json();
    assert_eq!(saml["started"], true);
    let told = home.run(&["keys", "rotate", "--saml"]).ok().out;
    let list = home.run(&["keys", "list", "--saml", "--json"]).ok().json();
    assert_eq!((list.as_array().map(Vec::len), &list[1]["id"]), (Some(2), &saml["key"]["id"]));
    assert!(told.contains(list[0]["id"].as_str().expect("an id")), "{told}");
}

async fn a_refusal_is_explained(home: Home) {
    let home = home.set_up();
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

async fn a_server_elsewhere_is_reached_by_its_address(home: Home) {
    let server = home.serve();
    let elsewhere = Home::new(EngineName::Sqlite);
    let list = |key: &str, url: &str| {
        let mut command = elsewhere.command(&["app", "list", "--json", "--url", url]);
        Outcome::of(command.env("TENANTRY_OPERATOR_KEY", key))
    };
    let key = operator_key(&home.path("tenantry-data"));
    assert_eq!(list(&key, &server.base).ok().json().as_array().map(Vec::len), Some(1));
    let mut command = elsewhere.command(&["app", "list", "--json"]);
    command.env("TENANTRY_OPERATOR_KEY", &key).env("TENANTRY_URL", format!("{}/", server.base));
    Outcome::of(&mut command).ok();
    list("op_of_somebody_else_entirely_0123456789", &server.base).fails("The operator key is not valid. (401)");
    list(&key, "ftp://server.example").fails("is not an http or https address");
    list(&key, "http://127.0.0.1:1").fails("The server does not respond");
    elsewhere.run(&["app", "list", "--url", &server.base]).fails("Set TENANTRY_OPERATOR_KEY");
    assert!(!elsewhere.path("tenantry-data").exists());
    server.stop();
}

/// Somebody else may listen where a server once did, or where one is configured to.
async fn nobody_who_merely_listens_is_told_anything(home: Home) {
    let server = home.serve();
    server.kill();
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    stranger.set_nonblocking(true).expect("set");
    let address = stranger.local_addr().expect("an address").to_string();
    std::fs::write(home.path("tenantry-data/server.address"), format!("http://{address}\n")).expect("written");
    for arguments in [&["app", "list"][..], &["doctor"], &["operator-key", "rotate"]] {
        let outcome = Outcome::of(home.command(arguments).env("TENANTRY_LISTEN", &address));
        assert!(outcome.code.is_some(), "{outcome:?}");
        let heard = stranger.accept().map(|_| ()).map_err(|error| error.kind());
        assert_eq!(heard, Err(std::io::ErrorKind::WouldBlock), "{arguments:?}");
    }
    home.run(&["app", "list"]).ok();
}

async fn the_socket_needs_no_key_and_is_its_owners_alone(home: Home) {
    let server = home.serve();
    let socket = home.path("tenantry-data/server.sock");
    let mode = socket.metadata().expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The key that the folder holds is of no matter there: who may open the socket is the operator.
    std::fs::remove_file(home.path("tenantry-data/operator.key")).expect("removed");
    home.run(&["app", "list"]).ok();
    home.run(&["operator-key", "rotate", "--now"]).ok();
    let bearer = format!("Bearer {}", operator_key(&home.path("tenantry-data")));
    assert_eq!(server.get("/admin/apps", ("authorization", &bearer)).await.0, 200);
    // Over the network nothing has changed.
    assert_eq!(server.get("/admin/apps", ("accept", "*/*")).await.0, 401);
    server.stop();
    assert!(!socket.exists());
    let killed = home.serve();
    killed.kill();
    assert!(socket.exists(), "a killed server leaves its socket behind");
    home.run(&["app", "list"]).ok();
    home.serve().stop();
}

async fn the_operator_key_is_replaced(home: Home) {
    let home = home.set_up();
    let data = home.path("tenantry-data");
    let first = operator_key(&data);
    let told = home.run(&["operator-key", "rotate"]).ok().out;
    let second = operator_key(&data);
    assert!(first != second && told.contains(&second) && told.contains("The key before it works until"), "{told}");
    let server = home.serve();
    let status = async |key: &str| server.get("/admin/apps", ("authorization", &format!("Bearer {key}"))).await.0;
    assert_eq!((status(&first).await, status(&second).await), (200, 200));
    let third = home.run(&["operator-key", "rotate", "--now", "--json"]).ok().json()["key"].clone();
    assert_eq!(third, operator_key(&data));
    assert_eq!((status(&first).await, status(&second).await), (401, 401));
    std::fs::write(home.path("mine"), "op_my_own_operator_key_0123456789abcdef\n").expect("written");
    home.run(&["operator-key", "rotate", "--key-file", "mine"]).ok();
    assert_eq!(status("op_my_own_operator_key_0123456789abcdef").await, 200);
    server.stop();

    // It was lost: who has the store and its master key makes another.
    std::fs::remove_file(data.join("operator.key")).expect("removed");
    let missing = home.run(&["serve"]).fails("The operator key is missing");
    assert!(missing.err.contains("tenantry operator-key rotate"), "{missing:?}");
    home.run(&["operator-key", "rotate", "--now"]).ok();
    home.serve().stop();
}

/// A job in the wrong folder, or without the server's settings, must not report success about nothing.
async fn only_serve_and_restore_make_a_store(home: Home) {
    let place = match home.database() {
        Some(url) => url.to_string(),
        None => "tenantry-data/tenantry.db".to_owned(),
    };
    for arguments in [
        &["backup", "nightly.backup"][..],
        &["app", "list"],
        &["app", "create", "Shop", "--domain", "shop.example"],
        &["keys", "rotate"],
        &["key", "create", "app_x"],
        &["operator-key", "rotate"],
        &["flag", "list"],
        &["secret", "list", "app_x"],
        &["doctor"],
    ] {
        let refused = home.run(arguments).fails("There is no Tenantry store in ");
        assert!(refused.err.contains(&place) && refused.out.is_empty(), "{refused:?}");
        assert_eq!(std::fs::read_dir(home.path("")).expect("a folder").count(), 0, "{arguments:?}");
    }
    let home = home.set_up();
    home.run(&["doctor", "--json"]);
    home.run(&["app", "list"]).ok();
}

async fn the_doctor_says_whether_anybody_serves(home: Home) {
    let home = home.set_up();
    let alone = home.run(&["doctor"]);
    match home.engine() {
        EngineName::Sqlite => {
            assert!(alone.code == Some(1) && alone.out.contains("PROBLEM   server: no server is running"), "{alone:?}");
        }
        EngineName::Postgres => {
            assert!(
                alone.code == Some(0) && alone.out.contains("warning   server: the store was looked at"),
                "{alone:?}"
            );
        }
    }
    assert!(!alone.out.contains("Everything is fine"), "{alone:?}");
    let server = home.serve();
    let examine = || {
        let mut command = home.command(&["doctor", "--url", &server.base]);
        Outcome::of(command.env("TENANTRY_OPERATOR_KEY", operator_key(&home.path("tenantry-data")))).ok().out
    };
    let told = examine();
    assert!(told.contains("ok        server: ") && told.contains("No problems. Warnings: "), "{told}");
    for what_a_new_one_lacks in ["warning   mail: ", "warning   SMS: ", "warning   backup: no backup"] {
        assert!(told.contains(what_a_new_one_lacks), "{told}");
    }
    home.run(&["backup", "all.backup"]).ok();
    assert!(examine().contains("ok        backup: the last backup is 0 days old"));
    assert!(home.run(&["doctor", "--json"]).json()["findings"].is_array());
    server.stop();
}

async fn the_doctor_fails_when_something_is_wrong(home: Home) {
    let server = home.serve();
    let url = home.database().expect("a database on PostgreSQL");
    let (clock, entropy) = (kernel::Clock::system(), kernel::Entropy::os());
    let db = Db::open(Options { url: url.clone(), clock, entropy, limits: Limits::default() }).await.expect("opens");
    db.exec_one("DELETE FROM signing_keys", &[]).await.expect("deleted");
    db.close().await;
    // A command that opens the store would make a key.
    let mut command = home.command(&["doctor", "--url", &server.base]);
    let sick = Outcome::of(command.env("TENANTRY_OPERATOR_KEY", operator_key(&home.path("tenantry-data"))));
    assert_eq!(sick.code, Some(1), "{sick:?}");
    assert!(
        sick.out.contains("Some problems need fixing")
            && sick.out.contains("PROBLEM   signing keys")
            && sick.out.contains("Run tenantry signing-key rotate."),
        "{sick:?}"
    );
    server.stop();
}
