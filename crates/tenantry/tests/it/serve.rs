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
    a_stopping_server_says_so_before_it_closes,
    what_is_most_likely_not_meant_is_warned_of,
);

async fn the_first_start_says_how_to_begin_and_the_second_keeps_quiet(home: Home) {
    let server = home.serve();
    let key = home.first_key();
    let app = server.printed_value("App id").expect("it prints the app").to_owned();
    let (status, profile) = server.get("/account/app", ("x-api-key", &key)).await;
    assert_eq!((status, profile["id"].as_str()), (200, Some(app.as_str())));
    assert!(!server.printed.contains(&key), "what is not a terminal may be kept by the system's log");
    assert!(server.printed_value("API key").expect("it says where").ends_with("tenantry-data/first-app.key"));
    let place = server.printed_value("Operator key").expect("it says where");
    let bearer = format!("Bearer {}", operator_key(&home.path("tenantry-data")));
    assert!(place.ends_with("tenantry-data/operator.key"), "{place}");
    assert_eq!(server.get("/admin/apps", ("authorization", &bearer)).await.1.as_array().map(Vec::len), Some(1));
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success() && !log.contains(&key), "the key does not belong in the log");
    assert!(!log.contains("migration applied"), "{log}");

    let again = home.serve();
    assert_eq!(again.printed_value("API key"), None, "{}", again.printed);
    assert!(!again.printed.contains("tnt_"));
    assert_eq!(again.get("/account/app", ("x-api-key", &key)).await.0, 200);
    again.stop();
}

async fn the_address_is_the_real_one(home: Home) {
    let server = home.serve();
    assert!(server.base.starts_with("http://localhost:") && !server.base.ends_with(":0"), "{}", server.base);
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

async fn a_stopping_server_says_so_before_it_closes(home: Home) {
    let server = Server::start(home.command(&["serve"]).env("TENANTRY_SERVER_LAME_DUCK_SECONDS", "600"));
    assert_eq!(server.get("/readyz", ("accept", "*/*")).await.0, 200);
    server.terminate();
    while server.get("/readyz", ("accept", "*/*")).await.0 != 503 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.get("/readyz", ("accept", "*/*")).await.1["error"], "SHUTTING_DOWN");
    assert_eq!(server.get("/", ("accept", "*/*")).await.0, 200, "everything else is still answered");
    // A second signal hurries: nobody waits for ten minutes.
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success() && log.contains("stopped in a hurry"), "{log}");
}

async fn what_is_most_likely_not_meant_is_warned_of(home: Home) {
    let mut command = home.command(&["serve"]);
    command.env("TENANTRY_BASE_URL", "https://login.example").env("TENANTRY_LISTEM", "1");
    let server = Server::start(&mut command);
    server.terminate();
    let (_, log) = server.wait();
    for word in ["set trusted_proxies", "TENANTRY_LISTEM is not a setting"] {
        assert!(log.contains(word), "{word}: {log}");
    }
    let server = Server::start(home.command(&["serve"]).env("TENANTRY_LISTEN", "0.0.0.0:0"));
    server.terminate();
    assert!(server.wait().1.contains("base_url is not set"));
    let told = home.run(&["app", "list", "--operator-key", "op_on_the_command_line_0123456789abcdef"]);
    assert!(
        told.err.contains("--operator-key can be read in the list of processes; use TENANTRY_OPERATOR_KEY"),
        "{told:?}"
    );
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
