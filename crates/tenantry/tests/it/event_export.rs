//! `tenantry events export` of more than one part.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::program::{Home, Server, on_both_engines};

on_both_engines!(an_export_to_a_file_goes_on_where_it_was_cut_off, an_export_to_a_folder_goes_on_where_it_was_cut_off);

/// A part of small events, and a part of fewer that are larger.
async fn serve_events(home: &Home) -> Server {
    let server = home.serve();
    let (app, key) = (server.printed_value("App id").expect("an app").to_owned(), home.first_key());
    let event = |name: &str, parameters: Value| json!({ "appId": app, "eventName": name, "timestamp": "2026-03-01T10:00:00Z", "parameters": parameters });
    for batch in 0..11 {
        let one = |number: usize| match batch {
            // Hardly to be compressed.
            10 => event("large", json!({ "text": digests(number) })),
            _ => event("small", json!({ "n": number })),
        };
        let events: Vec<Value> = (0..1_000).map(one).collect();
        let sent = server.client.post(server.url("/event-log/batch")).header("x-api-key", &key).json(&events);
        assert_eq!(sent.send().await.expect("an answer").status(), 201);
    }
    let last = || {
        let sent = server.client.post(server.url("/event-log")).header("x-api-key", &key).header("prefer", "wait");
        sent.json(&event("large", json!({}))).send()
    };
    while last().await.expect("an answer").json::<Value>().await.expect("JSON")["queued"].as_bool().expect("stored") {}
    server
}

fn digests(number: usize) -> String {
    (0..64).map(|part| format!("{:016x}", (number * 64 + part + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect()
}

/// Exports with files limited to so many bytes, as on a disk that is nearly full: the system ends whoever writes more.
fn export_with_little_room(home: &Home, arguments: &[&str], bytes: u64) -> Output {
    let export = home.command(arguments);
    let mut limited = Command::new("sh");
    let limit = format!("ulimit -c 0; ulimit -f {}; exec \"$0\" \"$@\"", bytes / 512);
    limited.arg("-c").arg(limit).arg(export.get_program()).args(export.get_args());
    for (name, value) in export.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    if let Some(folder) = export.get_current_dir() {
        limited.current_dir(folder);
    }
    limited.output().expect("a shell")
}

async fn an_export_to_a_file_goes_on_where_it_was_cut_off(home: Home) {
    let server = serve_events(&home).await;
    let (whole, cut) = (home.path("whole.jsonl"), home.path("cut.jsonl"));
    let told = home.run(&["events", "export", whole.to_str().expect("text"), "--json"]).ok().json();
    let expected = fs::read(&whole).expect("a file");
    assert_eq!((&told["parts"], &told["bytes"]), (&json!(2), &json!(expected.len())));
    assert_eq!(told["events"], expected.iter().filter(|byte| **byte == b'\n').count());

    let arguments = ["events", "export", cut.to_str().expect("text")];
    let room = fs::metadata(&whole).expect("a file").len() - 10_000;
    assert!(!export_with_little_room(&home, &arguments, room).status.success());
    let begun = fs::read(&cut).expect("what was written");
    assert!(begun.len() < expected.len() && expected.starts_with(&begun));
    let other = [&arguments[..], &["--from", "2026-03-01T00:00:00Z"]].concat();
    home.run(&other).fails("was begun with other options");
    home.run(&arguments).ok();
    assert!(fs::read(&cut).expect("a file") == expected, "not what an export in one go has");
    assert!(!home.path("cut.jsonl.part").exists());
    home.run(&arguments).fails("Cannot write");
    server.stop();
}

async fn an_export_to_a_folder_goes_on_where_it_was_cut_off(home: Home) {
    let server = serve_events(&home).await;
    let (whole, cut) = (home.path("whole"), home.path("cut"));
    let arguments = |folder: &Path| {
        ["events", "export", folder.to_str().expect("text"), "--format", "parquet", "--json"].map(str::to_owned)
    };
    let (first, second) = (arguments(&whole), arguments(&cut));
    let (first, second) = (first.each_ref().map(String::as_str), second.each_ref().map(String::as_str));
    let told = home.run(&first).ok().json();
    let expected = files(&whole);
    assert_eq!(expected.keys().collect::<Vec<_>>(), ["part-000001.parquet", "part-000002.parquet"]);
    assert!(expected.values().all(|bytes| bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")));

    let room = expected["part-000002.parquet"].len() as u64 - 10_000;
    assert!(room > expected["part-000001.parquet"].len() as u64, "the first part would be cut off");
    assert!(!export_with_little_room(&home, &second, room).status.success());
    let resumed = home.run(&second).ok().json();
    assert!(files(&cut) == expected, "not what an export in one go has");
    assert_eq!((&resumed["events"], &resumed["parts"]), (&told["events"], &told["parts"]));
    server.stop();
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    files.map(|file| (file.file_name().into_string().expect("text"), fs::read(file.path()).expect("a file"))).collect()
}
