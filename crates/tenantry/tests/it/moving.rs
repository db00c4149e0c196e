//! `tenantry migrate-to`.

use serde_json::Value;
use store::{DatabaseUrl, EngineName};

use crate::program::{Home, Outcome, Server, on_sqlite};

on_sqlite!(an_installation_moves_to_postgres);

async fn an_installation_moves_to_postgres(home: Home) {
    let target = Home::new(EngineName::Postgres);
    let Some(DatabaseUrl::Postgres(url)) = target.database() else { panic!("not PostgreSQL") };
    let url = url.expose();
    home.run(&["migrate-to", url]).fails("There is no Tenantry store in ");
    let server = home.serve();
    let key = home.first_key();
    let refused = home.run(&["migrate-to", url]).fails("Stop it first");
    assert!(refused.err.contains("The embedded store is as it was."), "{refused:?}");
    server.stop();
    home.run(&["migrate-to", "mysql://x"]).fails("The address of the new store must be");
    let estimate = home.run(&["migrate-to", url, "--dry-run", "--json"]).ok().json();
    assert_eq!(estimate["moved"], false);
    assert!(home.run(&["migrate-to", url, "--dry-run"]).ok().out.starts_with("Nothing was moved. "));
    let moved = home.run(&["migrate-to", url, "--json"]).ok();
    let lines: Vec<Value> = moved.out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let last = lines.last().expect("lines");
    assert_eq!((&last["moved"], &last["rows"]), (&Value::Bool(true), &estimate["rows"]));
    assert!(lines.iter().any(|line| line["table"] == "apps" && line["rows"] == 1 && line["compared"] == true));

    for command in [&["serve"][..], &["app", "list"]] {
        home.run(command).fails("This store was moved to postgres://");
    }
    let moved = Server::start(home.command(&["serve"]).env("TENANTRY_DATABASE_URL", url));
    assert_eq!(moved.get("/account/app", ("x-api-key", &key)).await.0, 200);
    moved.stop();
    home.run(&["migrate-to", url]).fails("not empty");
    let back = Server::start(&mut home.command(&["serve", "--after-move"]));
    assert_eq!(back.get("/account/app", ("x-api-key", &key)).await.0, 200);
    back.stop();
    home.run(&["app", "list"]).ok();
    let other = Home::new(EngineName::Postgres);
    let Some(DatabaseUrl::Postgres(url)) = other.database() else { panic!("not PostgreSQL") };
    std::fs::write(home.path("address"), url.expose()).expect("written");
    let address = std::fs::File::open(home.path("address")).expect("a file");
    let told = Outcome::of(home.command(&["migrate-to", "-"]).stdin(address)).ok();
    assert!(told.out.contains("Set TENANTRY_DATABASE_URL") && told.err.contains(" rows/s "), "{told:?}");
}
