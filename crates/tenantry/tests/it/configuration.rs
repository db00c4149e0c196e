//! `tenantry config show`, and what becomes of a wrong configuration.

use std::process::Stdio;

use store::EngineName;

use crate::program::{Home, Outcome};

const SECRET: &str = "s3cret-s3cret-s3cret-s3cret-s3cret";

#[test]
fn settings_are_shown_with_their_source_and_without_their_secrets() {
    let home = Home::new(EngineName::Sqlite);
    std::fs::write(home.path("tenantry.toml"), "mail_from = \"Shop <a@shop.example>\"\n[limits]\nin_flight = 7\n")
        .expect("written");
    let mut command = home.command(&["config", "show", "--json", "--limits-in-flight", "9"]);
    command.env("TENANTRY_OPERATOR_KEY", SECRET).env("TENANTRY_MASTER_KEY", SECRET);
    command.env("TENANTRY_DATABASE_URL", format!("postgres://me:{SECRET}@db.example/tenantry"));
    command.env("TENANTRY_MAIL_URL", format!("smtp://me:{SECRET}@mail.example"));
    command.env("TENANTRY_FILES_URL", format!("s3://me:{SECRET}@s3.example/bucket?region=eu-1"));
    let shown = Outcome::of(&mut command).ok();
    assert!(!shown.out.contains("s3cret") && !shown.err.contains("s3cret"), "{shown:?}");
    let list = shown.json();
    let setting = |name: &str| {
        let found =
            list.as_array().expect("a list").iter().find(|setting| setting["name"] == name).expect("such a setting");
        [&found["value"], &found["from"]].map(|text| text.as_str().expect("text").to_owned())
    };
    assert_eq!(setting("mail_from"), ["Shop <a@shop.example>", "tenantry.toml"]);
    assert_eq!(setting("limits.in_flight"), ["9", "--limits-in-flight"]);
    assert_eq!(setting("listen"), ["127.0.0.1:0", "TENANTRY_LISTEN"]);
    assert_eq!(setting("operator_key"), ["(set)", "TENANTRY_OPERATOR_KEY"]);
    assert_eq!(setting("files_url"), ["(set)", "TENANTRY_FILES_URL"]);
    assert_eq!(setting("test_clock"), ["false", "default"]);
    assert!(setting("mail_url")[0].ends_with("@mail.example"));
}

#[test]
fn what_a_default_comes_to_is_shown() {
    let home = Home::new(EngineName::Sqlite);
    let mut command = home.command(&["config", "show"]);
    let shown = Outcome::of(command.env("TENANTRY_LISTEN", "127.0.0.1:4790").env("TENANTRY_DATA_DIR", "here")).ok();
    let has = |name: &str, value: &str| {
        let mut lines = shown.out.lines();
        lines.any(|line| line.starts_with(&format!("{name} ")) && line.contains(value) && line.ends_with("default"))
    };
    assert!(has("base_url", "http://localhost:4790") && has("database_url", "sqlite:here/tenantry.db"), "{shown:?}");
    assert!(has("master_key", "generated into here/master.key"), "{shown:?}");
}

#[test]
fn shells_are_told_how_to_complete_the_command_line() {
    let home = Home::new(EngineName::Sqlite);
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell]).ok().out;
        assert!(script.contains("signing-key") && script.contains("trusted-proxies"), "{shell}");
    }
}

#[test]
fn everything_that_is_wrong_is_named_at_once() {
    let home = Home::new(EngineName::Sqlite);
    let wrong = |command: &mut std::process::Command| {
        Outcome::of(
            command
                .env("TENANTRY_LISTEN", "nowhere")
                .env("TENANTRY_OPERATOR_KEY", "s3cret")
                .env("TENANTRY_MAIL_URL", "imap://me:s3cret@host")
                .env("TENANTRY_FILES_URL", "s3://me:s3cret/s3cret@host/bucket")
                .env("TENANTRY_TEST_CLOCK", "maybe"),
        )
    };
    for arguments in [&["serve"][..], &["app", "list"], &["config", "show"], &["restore", "x"]] {
        let outcome = wrong(&mut home.command(arguments)).fails("The configuration is not valid:");
        for problem in [
            "listen must be",
            "(from TENANTRY_LISTEN)",
            "operator_key must have at least 32",
            "test_clock must be true or false",
            "mail_url must be smtp://",
            "files_url must be file:DIR or s3://KEY:SECRET@host[:port]/bucket?region=…&path_style=true",
        ] {
            assert!(outcome.err.contains(problem), "{problem}: {outcome:?}");
        }
        assert!(!outcome.err.contains("s3cret"), "{outcome:?}");
    }
    assert!(!home.path("tenantry-data").exists(), "nothing was begun");
    std::fs::write(home.path("tenantry.toml"), "lsten = \"127.0.0.1:1\"").expect("written");
    home.run(&["app", "list"]).fails("lsten is not a setting");
    home.run(&["--config", "absent.toml", "serve"]).fails("absent.toml");
}

#[test]
fn the_document_needs_no_installation() {
    let home = Home::new(EngineName::Sqlite);
    let document = home.run(&["openapi"]).ok().json();
    assert_eq!(document, service::documents().openapi);
    assert!(!home.path("tenantry-data").exists());
}

#[test]
fn the_keys_of_another_installation_are_refused() {
    let home = Home::new(EngineName::Sqlite).set_up();
    let other = "op_of_somebody_else_entirely_0123456789";
    Outcome::of(home.command(&["serve"]).env("TENANTRY_OPERATOR_KEY", other)).fails("The operator key is not the one");
    std::fs::remove_file(home.path("tenantry-data/master.key")).expect("removed");
    let missing = home.run(&["serve"]).fails("The master key is missing");
    assert!(missing.err.contains("TENANTRY_MASTER_KEY") && missing.err.contains("tenantry-data"), "{missing:?}");
}

/// As behind `head`: what was read is enough.
#[test]
fn whoever_stops_reading_ends_it_quietly() {
    let home = Home::new(EngineName::Sqlite);
    let mut running =
        home.command(&["openapi"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    drop(running.stdout.take());
    let outcome = running.wait_with_output().expect("it ends");
    assert!(outcome.status.success() && outcome.stderr.is_empty(), "{outcome:?}");
}
