//! `tenantry serve`.

use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use kernel::Ticker;

use crate::program::{Home, Server, on_both_engines, operator_key};

on_both_engines!(
    the_first_start_says_how_to_begin_and_the_second_keeps_quiet,
    the_address_is_the_real_one,
    a_second_server_on_the_same_data_is_told_so,
    a_stopping_server_answers_what_it_has_begun,
    a_server_that_was_killed_starts_again,
    only_the_owner_can_read_what_is_kept,
);

async fn the_first_start_says_how_to_begin_and_the_second_keeps_quiet(home: Home) {
    let server = home.serve();
    let key = server.printed_value("API key").expect("it prints the key").to_owned();
    let app = server.printed_value("App id").expect("it prints the app").to_owned();
    let (status, profile) = server.get("/account/app", ("x-api-key", &key)).await;
    assert_eq!((status, profile["id"].as_str()), (200, Some(app.as_str())));
    let place = server.printed_value("Operator key").expect("it says where");
    let bearer = format!("Bearer {}", operator_key(&home.path("tenantry-data")));
    assert!(place.ends_with("tenantry-data/operator.key"), "{place}");
    assert_eq!(server.get("/admin/apps", ("authorization", &bearer)).await.1.as_array().map(Vec::len), Some(1));
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success() && !log.contains(&key), "the key is no matter for the log");

    let again = home.serve();
    assert_eq!(again.printed_value("API key"), None, "{}", again.printed);
    assert!(!again.printed.contains("tnt_"));
    assert_eq!(again.get("/account/app", ("x-api-key", &key)).await.0, 200);
    again.stop();
}

async fn the_address_is_the_real_one(home: Home) {
    let server = home.serve();
    assert!(!server.base.ends_with(":0"), "{}", server.base);
    let (_, root) = server.get("/", ("accept", "*/*")).await;
    assert_eq!(root["documentation"], server.url("/docs"));
    server.stop();
}

async fn a_second_server_on_the_same_data_is_told_so(home: Home) {
    let server = home.serve();
    let port = server.base.rsplit(':').next().expect("a port").to_owned();
    let taken = format!("127.0.0.1:{port}");
    home.run(&["serve", "--listen", &taken]).fails(&format!("Cannot listen on {taken}"));
    if home.engine() == store::EngineName::Sqlite {
        home.run(&["serve"]).fails("is in use by another process");
    } else {
        // There it is a further node.
        let node = home.serve();
        assert_eq!(node.printed_value("API key"), None);
        node.stop();
    }
    assert_eq!(server.get("/healthz", ("accept", "*/*")).await.0, 200);
    server.stop();
}

async fn a_stopping_server_answers_what_it_has_begun(home: Home) {
    let server = home.serve();
    let slow = tokio::spawn(server.client.get(server.url("/tick?sleepMs=1500")).send());
    // The server takes up connections in their order, so the slow one has begun when the next is answered.
    let other = reqwest::Client::builder().no_proxy().build().expect("a client");
    let path = server.url("/tick?sleepMs=200");
    assert_eq!(other.get(path).send().await.expect("an answer").status().as_u16(), 200);
    server.terminate();
    let answer = slow.await.expect("the request ran").expect("an answer all the same");
    assert_eq!(answer.status().as_u16(), 200);
    let body: serde_json::Value = answer.json().await.expect("JSON");
    assert_eq!(body["sleptMs"], 1500);
    let (status, log) = server.wait();
    assert!(status.success(), "{status}");
    assert!(log.contains("every request in work was answered"), "{log}");
}

/// Everything in the data folder that somebody but the owner can do something with.
fn open_to_others(folder: &Path) -> Vec<PathBuf> {
    let inside = folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path());
    let open = |path: &PathBuf| path.metadata().expect("its mode").permissions().mode() & 0o077 != 0;
    inside.chain([folder.to_owned()]).filter(open).collect()
}

async fn only_the_owner_can_read_what_is_kept(home: Home) {
    let data = home.path("tenantry-data");
    // However generous the umask is.
    let settings = home.command(&[]);
    let mut generous = Command::new("/bin/sh");
    let script = format!("umask 000 && exec {} serve", settings.get_program().display());
    generous.args(["-c", &script]).current_dir(home.path("")).env_clear();
    generous.envs(settings.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let server = Server::start(&mut generous);
    assert_eq!(open_to_others(&data), Vec::<PathBuf>::new());
    home.run(&["backup", "all.backup"]).ok();
    assert_eq!(home.path("all.backup").metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    server.kill();

    // One that was made by an earlier release is closed at the next start.
    let opened: Vec<PathBuf> =
        data.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    for path in opened.iter().filter(|path| !path.ends_with("server.sock")) {
        std::fs::set_permissions(path, Permissions::from_mode(0o644)).expect("set");
    }
    std::fs::set_permissions(data.join("backups"), Permissions::from_mode(0o755)).expect("set");
    std::fs::set_permissions(&data, Permissions::from_mode(0o755)).expect("set");
    let told = home.run(&["doctor"]);
    assert!(told.code == Some(1) && told.out.contains("PROBLEM   files: other users"), "{told:?}");
    let server = home.serve();
    assert_eq!(open_to_others(&data), Vec::<PathBuf>::new());
    let told = home.run(&["doctor"]);
    assert!(told.out.contains("ok        files"), "{told:?}");
    server.stop();
}

async fn a_server_that_was_killed_starts_again(home: Home) {
    home.serve().kill();
    home.run(&["app", "list"]).ok();
    let started = Ticker.now();
    let server = home.serve();
    assert_eq!(server.get("/readyz", ("accept", "*/*")).await.0, 200);
    println!("first answer {} ms after a second start (debug build)", Ticker.since(started).as_millis());
    server.stop();
}
