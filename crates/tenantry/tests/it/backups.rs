//! `tenantry backup` and `tenantry restore`.

use crate::program::{Home, on_both_engines};

on_both_engines!(a_backup_of_a_running_server_can_be_restored, a_restore_is_refused_where_it_would_do_harm);

fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

async fn a_backup_of_a_running_server_can_be_restored(home: Home) {
    let server = home.serve();
    let key = server.printed_value("API key").expect("a key").to_owned();
    let file = home.path("all.backup");
    let made = home.run(&["backup", text(&file), "--json"]).ok().json();
    assert_eq!(made["bytes"], file.metadata().expect("a file").len());
    home.run(&["backup", text(&file)]).fails("already exists");
    let apps = home.run(&["app", "list", "--json"]).ok().json();
    server.stop();
    home.run(&["backup", text(&home.path("stopped.backup"))]).ok();

    for engine in [store::EngineName::Sqlite, store::EngineName::Postgres] {
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
