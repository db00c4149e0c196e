//! `tenantry backup` and `tenantry restore`.

use serde_json::{Value, json};
use store::EngineName;

use crate::program::{Home, Outcome, Server, on_both_engines, operator_key};

on_both_engines!(
    a_backup_of_a_running_server_can_be_restored,
    a_backup_and_the_master_key_are_enough,
    a_restore_is_refused_where_it_would_do_harm,
    files_are_in_a_backup_that_is_asked_for_them,
);

fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

async fn a_backup_of_a_running_server_can_be_restored(home: Home) {
    let server = home.serve();
    let key = home.first_key();
    let file = home.path("all.backup");
    let made = home.run(&["backup", text(&file), "--json"]).ok().json();
    assert_eq!(made["bytes"], file.metadata().expect("a file").len());
    home.run(&["backup", text(&file)]).fails("already exists");
    let apps = home.run(&["app", "list", "--json"]).ok().json();
    server.stop();
    home.run(&["backup", text(&home.path("stopped.backup"))]).ok();

    for engine in [EngineName::Sqlite, EngineName::Postgres] {
        let target = Home::new(engine);
        std::fs::create_dir(target.path("tenantry-data")).expect("made");
        for name in ["master.key", "operator.key"] {
            let kept = home.path("tenantry-data").join(name);
            std::fs::copy(kept, target.path("tenantry-data").join(name)).expect("copied");
        }
        let told = target.run(&["restore", text(&file)]).ok().out;
        assert!(told.starts_with("Restored "), "{told}");
        let restored = target.serve();
        assert_eq!(restored.printed_value("API key"), None, "{}", restored.printed);
        assert_eq!(restored.get("/account/app", ("x-api-key", &key)).await.0, 200);
        assert_eq!(target.run(&["app", "list", "--json"]).ok().json(), apps);
        restored.stop();
    }
}

/// As docs/operations.md words it: the machine is gone, the backup and the master key are not.
async fn a_backup_and_the_master_key_are_enough(home: Home) {
    let server = home.serve();
    let key = home.first_key();
    let (file, lost) = (home.path("all.backup"), operator_key(&home.path("tenantry-data")));
    home.run(&["backup", text(&file)]).ok();
    server.kill();

    for engine in [EngineName::Sqlite, EngineName::Postgres] {
        let target = Home::new(engine);
        std::fs::create_dir(target.path("tenantry-data")).expect("made");
        let kept = home.path("tenantry-data/master.key");
        std::fs::copy(kept, target.path("tenantry-data/master.key")).expect("copied");
        let told = target.run(&["restore", text(&file)]).ok().out;
        assert!(told.contains("The operator key is in ./tenantry-data/operator.key."), "{told}");
        let restored = target.serve();
        assert_eq!(restored.get("/account/app", ("x-api-key", &key)).await.0, 200);
        let new = operator_key(&target.path("tenantry-data"));
        assert_eq!(admin(&restored, &new).await, 200);
        assert_eq!(admin(&restored, &lost).await, 401, "whoever found the old machine is not the operator");
        target.run(&["app", "list"]).ok();
        restored.stop();
    }

    // The same with a key of one's own, and with the lost one when it turns up.
    for (given, others) in [("op_my_own_operator_key_0123456789abcdef", 401), (lost.as_str(), 200)] {
        let target = Home::new(home.engine());
        std::fs::create_dir(target.path("tenantry-data")).expect("made");
        std::fs::copy(home.path("tenantry-data/master.key"), target.path("tenantry-data/master.key")).expect("copied");
        let mut command = target.command(&["restore", text(&file)]);
        let told = Outcome::of(command.env("TENANTRY_OPERATOR_KEY", given)).ok().out;
        assert!(told.contains("The operator key is as configured."), "{told}");
        assert!(!target.path("tenantry-data/operator.key").exists());
        let restored = Server::start(target.command(&["serve"]).env("TENANTRY_OPERATOR_KEY", given));
        assert_eq!((admin(&restored, given).await, admin(&restored, &lost).await), (200, others));
        restored.stop();
    }
}

async fn admin(server: &Server, key: &str) -> u16 {
    server.get("/admin/apps", ("authorization", &format!("Bearer {key}"))).await.0
}

async fn a_restore_is_refused_where_it_would_do_harm(home: Home) {
    let server = home.serve();
    let file = home.path("all.backup");
    home.run(&["backup", text(&file)]).ok();
    assert_eq!(home.run(&["restore", text(&file)]).code, Some(1), "a server is running");
    server.stop();
    let refused = home.run(&["restore", text(&file)]).fails("empty");
    assert!(refused.err.len() < 500, "{refused:?}");
    let other = Home::new(home.engine());
    other.run(&["restore", text(&file)]).fails("The master key is missing");
    home.run(&["restore", text(&home.path("absent.backup"))]).fails("absent.backup");
    let broken = home.path("broken.backup");
    std::fs::write(&broken, "not a backup").expect("written");
    home.run(&["restore", text(&broken)]).fails("broken.backup");
    home.run(&["app", "list"]).ok();
}

/// A file of a workspace; its key.
async fn upload(server: &Server, key: &str, bytes: &str) -> (String, String) {
    let post = async |path: &str, tenant: &str, body: Value| {
        let request = server.client.post(server.url(path)).header("x-api-key", key).header("x-tenant-id", tenant);
        let answer = request.json(&body).send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        answer.json::<Value>().await.expect("JSON")
    };
    let owner = json!({ "email": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace" });
    let made = post("/account/tenant", "", json!({ "name": "Acme", "owner": owner, "muteNotifications": true })).await;
    let tenant = made["id"].as_str().expect("an id").to_owned();
    let new = json!({ "fileName": "a.txt", "contentType": "text/plain" });
    let form = post("/account/tenant/upload/prepare", &tenant, new).await;
    let field = |(name, value): (&String, &Value)| {
        let value = value.as_str().expect("a text");
        format!("--b0undary\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let fields: String = form["fields"].as_object().expect("fields").iter().map(field).collect();
    let file = "Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain";
    let body = format!("{fields}--b0undary\r\n{file}\r\n\r\n{bytes}\r\n--b0undary--\r\n");
    let request = server.client.post(server.url("/cloud-views/files")).body(body);
    let posted = request.header("content-type", "multipart/form-data; boundary=b0undary").send().await;
    assert_eq!(posted.expect("an answer").status(), 204);
    let finish = json!({ "key": form["fields"]["key"], "persist": true });
    post("/account/tenant/upload/finish", &tenant, finish).await;
    (tenant, form["fields"]["key"].as_str().expect("a key").to_owned())
}

async fn files_are_in_a_backup_that_is_asked_for_them(home: Home) {
    let server = home.serve();
    let key = home.first_key();
    let (tenant, file_key) = upload(&server, &key, "the bytes of a file").await;
    let (with, without) = (home.path("with.backup"), home.path("without.backup"));
    let told = home.run(&["backup", text(&without)]).ok().out;
    assert!(told.contains("\n1 file of workspaces are not in it: use --with-files"), "{told}");
    assert!(told.contains("Neither that key nor the operator key is in it."), "{told}");
    let told = home.run(&["backup", text(&with), "--with-files"]).ok().out;
    assert!(told.contains("\n1 file of workspaces: they are in it as they are"), "{told}");
    assert!(!told.contains("not in it: use"), "{told}");
    server.stop();

    let other = if home.engine() == EngineName::Sqlite { EngineName::Postgres } else { EngineName::Sqlite };
    for (file, words, status) in [(&with, "were put into", 200), (&without, "are not in the backup", 500)] {
        let target = Home::new(other);
        std::fs::create_dir(target.path("tenantry-data")).expect("made");
        std::fs::copy(home.path("tenantry-data/master.key"), target.path("tenantry-data/master.key")).expect("copied");
        let told = target.run(&["restore", text(file)]).ok().out;
        assert!(told.contains(&format!("\n1 file of workspaces {words}")), "{told}");
        let restored = target.serve();
        let asked = restored.client.post(restored.url("/account/tenant/file/signedUrl"));
        let asked = asked.header("x-api-key", &key).header("x-tenant-id", &tenant);
        let urls: Value =
            asked.json(&json!({ "keys": [file_key] })).send().await.expect("sent").json().await.expect("JSON");
        let answer = restored.client.get(urls[0].as_str().expect("an address")).send().await.expect("an answer");
        assert_eq!(answer.status(), status);
        if status == 200 {
            assert_eq!(answer.text().await.expect("a text"), "the bytes of a file");
        }
    }
}
