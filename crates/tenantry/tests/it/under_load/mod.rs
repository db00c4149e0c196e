//! Servers that are killed while they write, or flooded.

mod attacks;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::program::{Home, Server, on_both_engines, operator_key};

on_both_engines!(what_was_acknowledged_before_a_kill_is_there_exactly_once);

const ROUNDS: usize = 5;
const WRITERS: usize = 16;
const ACKNOWLEDGEMENTS: usize = 60;

/// What the clients were told, by domain: the app's id and its key.
#[derive(Default)]
struct Acknowledged(Mutex<BTreeMap<String, (String, String)>>);

/// Makes apps until the server is gone.
async fn write(
    server: Arc<Server>,
    bearer: String,
    names: String,
    acks: Arc<Acknowledged>,
    told: Arc<(AtomicUsize, Notify)>,
) {
    for number in 0.. {
        let domain = format!("{number}.{names}.example");
        let request = server.client.post(server.url("/admin/apps")).header("authorization", &bearer);
        let Ok(answer) = request.json(&json!({ "name": "Load", "domain": domain })).send().await else { return };
        let status = answer.status().as_u16();
        let Ok(body) = answer.json::<Value>().await else { return };
        assert_eq!(status, 201, "{body}");
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).expect("text").to_owned();
        let known = (text("/app/id"), text("/apiKey"));
        acks.0.lock().expect("no writer panicked").insert(domain, known);
        if told.0.fetch_add(1, Ordering::Relaxed) + 1 == ACKNOWLEDGEMENTS {
            told.1.notify_one();
        }
    }
}

async fn what_was_acknowledged_before_a_kill_is_there_exactly_once(home: Home) {
    let acks = Arc::new(Acknowledged::default());
    home.serve().stop();
    let bearer = format!("Bearer {}", operator_key(&home.path("tenantry-data")));
    for round in 0..ROUNDS {
        let server = Arc::new(home.serve());
        let told = Arc::new((AtomicUsize::new(0), Notify::new()));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let names = format!("w{writer}.r{round}");
                tokio::spawn(write(Arc::clone(&server), bearer.clone(), names, Arc::clone(&acks), Arc::clone(&told)))
            })
            .collect();
        told.1.notified().await;
        server.kill();
        for writer in writers {
            writer.await.expect("a writer ends with its server");
        }
    }
    let server = home.serve();
    let (_, apps) = server.get("/admin/apps", ("authorization", &bearer)).await;
    let apps = apps.as_array().expect("a list");
    let found: Vec<(&str, &str)> =
        apps.iter().filter_map(|app| Some((app["domain"].as_str()?, app["id"].as_str()?))).collect();
    let domains: HashSet<&str> = found.iter().map(|(domain, _)| *domain).collect();
    assert_eq!(domains.len(), found.len(), "something is there twice");
    let acks = std::mem::take(&mut *acks.0.lock().expect("no writer panicked"));
    assert!(acks.len() >= ROUNDS * ACKNOWLEDGEMENTS);
    for (domain, (id, _)) in acks.iter() {
        assert!(found.contains(&(domain.as_str(), id.as_str())), "{domain} was acknowledged and is lost");
    }
    let (_, key) = acks.values().next_back().expect("acknowledged");
    assert_eq!(server.get("/account/app", ("x-api-key", key)).await.0, 200, "its key works as well");
    println!("{} acknowledged writes over {ROUNDS} kills, all there; {} apps in all", acks.len(), apps.len());
    server.stop();
}
