//! `tenantry serve`.

use kernel::Ticker;

use crate::program::{Home, on_both_engines, operator_key};

on_both_engines!(
    the_first_start_says_how_to_begin_and_the_second_keeps_quiet,
    the_address_is_the_real_one,
    a_second_server_on_the_same_data_is_told_so,
    a_stopping_server_answers_what_it_has_begun,
    a_server_that_was_killed_starts_again,
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

async fn a_server_that_was_killed_starts_again(home: Home) {
    home.serve().kill();
    home.run(&["app", "list"]).ok();
    let started = Ticker.now();
    let server = home.serve();
    assert_eq!(server.get("/readyz", ("accept", "*/*")).await.0, 200);
    println!("first answer {} ms after a second start (debug build)", Ticker.since(started).as_millis());
    server.stop();
}
