//! `tenantry app export`, `tenantry app import` and `tenantry archive verify`.

use std::path::Path;

use store::EngineName;

use crate::program::{Home, on_both_engines};

on_both_engines!(an_app_moves_to_another_installation, archives_are_refused_where_they_do_not_fit);

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

fn written(home: &Home, name: &str, content: &str) -> String {
    let file = home.path(name);
    std::fs::write(&file, content).expect("written");
    text(&file).to_owned()
}

fn first_app(home: &Home) -> String {
    home.run(&["app", "list", "--json"]).ok().json()[0]["id"].as_str().expect("an id").to_owned()
}

async fn an_app_moves_to_another_installation(home: Home) {
    let server = home.serve();
    let (key, app, file) = (home.first_key(), first_app(&home), home.path("app.tenantry"));
    let passphrase = ["--passphrase-file", &written(&home, "passphrase", "correct horse battery\n")];
    home.run(&[&["app", "export", &app, text(&file)], &passphrase[..]].concat()).ok();
    home.run(&[&["app", "export", &app, text(&file)], &passphrase[..]].concat()).fails("already exists");
    server.stop();
    let told = home.run(&[&["archive", "verify", text(&file), "--json"], &passphrase[..]].concat()).ok().json();
    assert_eq!(told["appId"], app.as_str());

    for engine in [EngineName::Sqlite, EngineName::Postgres] {
        let target = Home::new(engine);
        let running = target.serve();
        let own = first_app(&target);
        let domain =
            target.run(&["app", "list", "--json"]).ok().json()[0]["domain"].as_str().expect("a domain").to_owned();
        target.run(&["app", "delete", &own, "--confirm", &domain]).ok();
        let dry = target.run(&[&["app", "import", text(&file), "--dry-run"], &passphrase[..]].concat()).ok().out;
        assert!(dry.starts_with("Nothing was imported. The archive would bring "), "{dry}");
        let told = target.run(&[&["app", "import", text(&file)], &passphrase[..]].concat()).ok().out;
        assert!(told.starts_with("Imported ") && told.contains(&app), "{told}");
        assert_eq!(running.get("/account/app", ("x-api-key", &key)).await.0, 200);
        running.stop();
        let again = target.run(&[&["app", "import", text(&file)], &passphrase[..]].concat());
        again.fails("exists already");
    }
}

async fn archives_are_refused_where_they_do_not_fit(home: Home) {
    home.serve().stop();
    let (app, file) = (first_app(&home), home.path("app.tenantry"));
    let key = written(&home, "archive.key", &format!("{}\n", "ab".repeat(32)));
    let other = written(&home, "other.key", &"cd".repeat(32));
    home.run(&["app", "export", &app, text(&file), "--key-file", &key]).ok();
    home.run(&["archive", "verify", text(&file), "--key-file", &key]).ok();
    home.run(&["archive", "verify", text(&file), "--key-file", &other]).fails("another one");
    home.run(&["archive", "verify", text(&file), "--passphrase-file", &key]).fails("made with a key file");
    home.run(&["archive", "verify", &key, "--key-file", &key]).fails("not an archive");
    let mut bytes = std::fs::read(&file).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = home.path("damaged.tenantry");
    std::fs::write(&damaged, bytes).expect("written");
    home.run(&["archive", "verify", text(&damaged), "--key-file", &key]).fails("altered");
    home.run(&["app", "import", text(&damaged), "--key-file", &key]).fails("altered");
}
