//! A server that is killed while it imports: exactly the people of the file are there in the end.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::EngineName;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::program::{Home, Server, on_both_engines};

on_both_engines!(an_import_stores_everybody_once_however_often_the_server_is_killed);

const WORKSPACES: usize = 20;
const PEOPLE: usize = 50;
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How often the server is killed. PostgreSQL keeps a dead node's claim for half a minute, which every kill waits out.
fn kills(engine: EngineName) -> usize {
    match std::env::var("TENANTRY_TEST_KILLS") {
        Ok(count) => count.parse().expect("a number of kills"),
        Err(_) => {
            if engine == EngineName::Sqlite {
                10
            } else {
                2
            }
        }
    }
}

fn address(workspace: usize, person: usize) -> String {
    format!("p{person}@w{workspace}.example")
}

fn batch() -> Vec<Value> {
    let item = |workspace: usize| {
        let users: Vec<Value> = (1..PEOPLE).map(|person| json!({ "username": address(workspace, person) })).collect();
        let owner = json!({ "username": address(workspace, 0) });
        json!({ "tenant": { "name": format!("w{workspace:02}"), "owner": owner }, "users": users })
    };
    (0..WORKSPACES).map(item).collect()
}

/// Everybody of the file by the name of their workspace.
fn expected() -> BTreeMap<String, Vec<String>> {
    let people = |workspace| {
        let mut people: Vec<String> = (0..PEOPLE).map(|person| address(workspace, person)).collect();
        people.sort();
        people
    };
    (0..WORKSPACES).map(|workspace| (format!("w{workspace:02}"), people(workspace))).collect()
}

/// Everybody who is there.
async fn stored(server: &Server, key: &str) -> BTreeMap<String, Vec<String>> {
    let (status, tenants) = server.get("/account/tenant", ("x-api-key", key)).await;
    assert_eq!(status, 200);
    let members = |tenant: Value| async move {
        let id = tenant["id"].as_str().expect("an id").to_owned();
        let request = server.client.get(server.url("/account/tenant/user")).header("x-api-key", key);
        let answer = request.header("x-tenant-id", id).send().await.expect("an answer");
        let users: Vec<Value> = answer.json().await.expect("a list");
        let mut names: Vec<String> =
            users.iter().map(|user| user["username"].as_str().expect("a name").to_owned()).collect();
        names.sort();
        (tenant["name"].as_str().expect("a name").to_owned(), names)
    };
    let tenants = tenants.as_array().expect("a list").clone();
    let found = join_all(tenants.into_iter().map(members)).await;
    let count = found.len();
    let by_name: BTreeMap<String, Vec<String>> = found.into_iter().collect();
    assert_eq!(by_name.len(), count, "a workspace is there twice");
    by_name
}

/// Half of a batch, and then nothing more.
async fn send_half(server: &Server, key: &str, body: &str) -> TcpStream {
    let address = server.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    let head = format!(
        "POST /account/import/tenants HTTP/1.1\r\nhost: {address}\r\nx-api-key: {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(&body.as_bytes()[..body.len() / 2]).await.expect("sent");
    stream.flush().await.expect("sent");
    stream
}

/// How many people are in, once there are so many or all of them.
async fn until(server: &Server, key: &str, reference: &str, people: usize) -> usize {
    loop {
        let (status, told) = server.get(&format!("/account/import/status/{reference}"), ("x-api-key", key)).await;
        assert_eq!(status, 200, "{told}");
        let done = usize::try_from(told["progress"]["users"].as_u64().expect("a number")).expect("a few");
        match told["status"].as_str() {
            Some("COMPLETED") => return done,
            Some("SCHEDULED" | "RUNNING") if done < people => tokio::time::sleep(LOOK_AGAIN).await,
            Some("SCHEDULED" | "RUNNING") => return done,
            _ => panic!("it failed: {told}"),
        }
    }
}

async fn an_import_stores_everybody_once_however_often_the_server_is_killed(home: Home) {
    let mut server = home.serve();
    let (key, body, all) = (home.first_key(), Value::from(batch()).to_string(), WORKSPACES * PEOPLE);
    let cut_off = send_half(&server, &key, &body).await;
    server.kill();
    drop(cut_off);
    server = home.serve();
    assert_eq!(stored(&server, &key).await, BTreeMap::new(), "of a batch that was cut off nothing is there");

    let request = server.client.post(server.url("/account/import/tenants")).header("x-api-key", &key);
    let request = request.header("content-type", "application/json").body(body);
    let taken: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    let reference = taken["reference"].as_str().expect("it was taken").to_owned();
    let (kills, mut done) = (kills(home.engine()), 0);
    let mut seen = Vec::new();
    for number in 0..kills {
        done = until(&server, &key, &reference, (all * number / kills).max(done + 1)).await;
        server.kill();
        seen.push(done);
        server = home.serve();
    }
    assert_eq!(until(&server, &key, &reference, all + 1).await, all);
    assert_eq!(stored(&server, &key).await, expected());
    println!("killed after {seen:?} of {all} people");
    assert!(seen.iter().filter(|done| **done < all).count() > kills / 2, "too late to prove anything: {seen:?}");
    server.stop();
}
