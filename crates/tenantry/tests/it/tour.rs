//! The tour of the README, as a newcomer takes it: line by line, with nothing to fill in.

use std::{fs, path::Path, process::Command};

use crate::program::{Home, on_both_engines, program};

on_both_engines!(the_readmes_tour_needs_nothing_but_a_running_server);

/// The lines to be typed: the first block below the heading.
fn tour() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).expect("the README");
    let section = readme.split("\n## ").find(|section| section.starts_with("A short tour")).expect("a tour");
    section.split("```").nth(1).and_then(|block| block.strip_prefix("sh\n")).expect("a block of commands").to_owned()
}

async fn the_readmes_tour_needs_nothing_but_a_running_server(home: Home) {
    let server = home.serve();
    let script = tour()
        .replace("http://localhost:4780", server.url("").trim_end_matches('/'))
        .replace("target/release/tenantry", &program().display().to_string());
    let program = home.command(&[]);
    let settings = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut shell = Command::new("bash");
    shell
        .current_dir(home.path(""))
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .envs(settings);
    // Whatever fails on the way, a request or a filter, ends the tour.
    let outcome = shell.args(["-euo", "pipefail", "-c", &script]).output().expect("bash runs");
    let printed = String::from_utf8_lossy(&outcome.stdout);
    let failed = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "{failed}\n{printed}");
    for seen in ["\"active\": true", "\"tenant_name\": \"Acme\"", "\"variantIndex\"", "order.placed", "No problems."] {
        assert!(printed.contains(seen), "nothing shows {seen}: {printed}");
    }
    server.stop();
}
