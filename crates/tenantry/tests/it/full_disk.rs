//! Storage that can be read and not written: every signal says so, nothing acknowledged is lost, and the service goes on by
//! itself when there is room again.

use std::process::Command;

use serde_json::{Value, json};
use store::{DatabaseUrl, EngineName};

use crate::program::{Home, Server, on_both_engines, operator_key};

on_both_engines!(a_full_disk_is_seen_everywhere);

/// The server may write files of 3 MiB at most, which is soon too little for SQLite's log.
fn serve_on_a_small_disk(home: &Home) -> Server {
    if home.engine() == EngineName::Postgres {
        return home.serve();
    }
    let settings = home.command(&[]);
    let mut shell = Command::new("/bin/sh");
    let script = format!("trap '' XFSZ; ulimit -S -f 6144; exec {} serve", settings.get_program().display());
    shell.args(["-c", &script]).current_dir(home.path("")).env_clear();
    shell.envs(settings.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Server::start(&mut shell)
}

/// PostgreSQL is told to answer as if its disk were full.
const FILL: &str = "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS \
    $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$; \
    CREATE TRIGGER no_room BEFORE INSERT ON apps EXECUTE FUNCTION no_room(); \
    CREATE TRIGGER no_room BEFORE UPDATE ON schema_migrations EXECUTE FUNCTION no_room()";
const MAKE_ROOM: &str = "DROP FUNCTION no_room() CASCADE";

fn postgres(home: &Home, sql: &str) {
    let Some(DatabaseUrl::Postgres(url)) = home.database() else { return };
    let done = Command::new("psql").args(["-q", "-v", "ON_ERROR_STOP=1", "-c", sql, url.expose()]).status();
    assert!(done.expect("psql runs").success());
}

async fn create(server: &Server, bearer: &str, number: usize) -> reqwest::Response {
    let body = json!({ "name": "Load".repeat(40), "domain": format!("{number}.example") });
    let request = server.client.post(server.url("/admin/apps")).header("authorization", bearer).json(&body);
    request.send().await.expect("an answer")
}

async fn metric(server: &Server, bearer: &str, name: &str) -> String {
    let request = server.client.get(server.url("/metrics")).header("authorization", bearer);
    let text = request.send().await.expect("an answer").text().await.expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).map(str::to_owned);
    line.unwrap_or_else(|| panic!("{name} is not in {text}"))
}

fn storage(home: &Home, server: &Server) -> Value {
    let key = operator_key(&home.path("tenantry-data"));
    let mut command = home.command(&["doctor", "--json", "--url", &server.base]);
    let report = crate::program::Outcome::of(command.env("TENANTRY_OPERATOR_KEY", key)).json();
    let findings = report["findings"].as_array().expect("findings").clone();
    findings.into_iter().find(|finding| finding["check"] == "storage").expect("a finding")["level"].clone()
}

async fn a_full_disk_is_seen_everywhere(home: Home) {
    let server = serve_on_a_small_disk(&home);
    let bearer = format!("Bearer {}", operator_key(&home.path("tenantry-data")));
    assert_eq!(server.get("/readyz", ("accept", "*/*")).await.0, 200);
    assert_eq!(metric(&server, &bearer, "tenantry_storage_writable").await, "1");
    let mut made = 0;
    postgres(&home, FILL);
    let not_ready = loop {
        let answer = create(&server, &bearer, made).await;
        if answer.status().as_u16() == 201 {
            made += 1;
            continue;
        }
        assert_eq!(answer.status().as_u16(), 503);
        assert!(answer.headers().contains_key("retry-after"));
        assert_eq!(answer.json::<Value>().await.expect("JSON")["error"], "STORAGE_UNAVAILABLE");
        // What is left may still be enough for something small.
        let (status, body) = server.get("/readyz", ("accept", "*/*")).await;
        if status != 200 {
            break (status, body["error"].clone());
        }
    };
    assert_eq!(not_ready, (503, json!("STORAGE_UNAVAILABLE")));
    assert_eq!(metric(&server, &bearer, "tenantry_storage_writable").await, "0");
    assert_eq!(storage(&home, &server), "problem");
    // What is there can be read.
    let (status, apps) = server.get("/admin/apps", ("authorization", &bearer)).await;
    assert_eq!((status, apps.as_array().map(Vec::len)), (200, Some(made + 1)));

    match home.engine() {
        EngineName::Postgres => postgres(&home, MAKE_ROOM),
        EngineName::Sqlite => {
            let pid = server.id().to_string();
            let raised = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]).status();
            assert!(raised.expect("prlimit runs").success());
        }
    }
    assert_eq!(server.get("/readyz", ("accept", "*/*")).await.0, 200);
    assert_eq!(create(&server, &bearer, made).await.status().as_u16(), 201);
    assert_eq!(metric(&server, &bearer, "tenantry_storage_writable").await, "1");
    assert_eq!(storage(&home, &server), "ok");
    server.stop();
}
