//! Servers that are killed while they talk to a payment provider that fails, is late and loses its answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::payments::{PaymentProvider, SECRET_KEY, Trouble, WEBHOOK_SECRET, signature};
use tokio::sync::Notify;

use crate::program::{Home, Server, on_both_engines, operator_key};

on_both_engines!(nothing_is_lost_or_done_twice_however_often_the_server_is_killed);

const KILLS: usize = 10;
const CUSTOMERS: usize = 6;
/// The server is killed once so many calls of a round were answered.
const ANSWERS: usize = 90;

/// What the callers were told.
#[derive(Default)]
struct Acknowledged {
    /// Keys of usage.
    usage: BTreeSet<String>,
    /// Events of the provider, with the workspace they are about.
    events: BTreeSet<(String, String)>,
    /// Workspaces that were put on the free plan.
    freed: BTreeSet<String>,
}

struct World {
    server: Server,
    app: String,
    key: String,
    provider: Arc<PaymentProvider>,
    told: Arc<Mutex<Acknowledged>>,
    answers: Mutex<usize>,
    enough: Notify,
}

fn serve(home: &Home, provider: &PaymentProvider) -> Server {
    let mut command = home.command(&["serve"]);
    Server::start(command.env("TENANTRY_TEST_CLOCK", "true").env("TENANTRY_PAYPROVIDER_URL", provider.url()))
}

impl World {
    /// The answer, unless the server went away.
    async fn post(&self, path: &str, tenant: Option<&str>, body: Value) -> Option<Value> {
        let mut request = self.server.client.post(self.server.url(path)).header("x-api-key", &self.key);
        if let Some(tenant) = tenant {
            request = request.header("x-tenant-id", tenant);
        }
        self.outcome(request.json(&body)).await
    }

    async fn outcome(&self, request: reqwest::RequestBuilder) -> Option<Value> {
        let answer = request.send().await.ok()?;
        let (status, text) = (answer.status().as_u16(), answer.text().await.ok()?);
        {
            let mut answers = self.answers.lock().expect("nobody panicked");
            *answers += 1;
            if *answers == ANSWERS {
                self.enough.notify_one();
            }
        }
        assert!(matches!(status, 200 | 201 | 409 | 502 | 503), "{status} {text}");
        (status < 300).then(|| serde_json::from_str(&text).unwrap_or_default())
    }

    async fn make_workspace(&self, name: &str) -> Option<String> {
        let owner = json!({ "email": format!("{name}@example.com"), "firstName": "A", "lastName": "B" });
        let body = json!({ "name": name, "owner": owner, "muteNotifications": true });
        Some(self.post("/account/tenant", None, body).await?["id"].as_str()?.to_owned())
    }

    async fn tell(&self, event: &Value, tenant: &str) -> Option<()> {
        let (body, at) = (event.to_string(), kernel::Clock::system().now().as_seconds());
        let url = self.server.url(&format!("/account/payprovider/webhook/{}", self.app));
        let request = self.server.client.post(url).header("provider-signature", signature(&body, at));
        self.outcome(request.header("content-type", "application/json").body(body)).await?;
        let id = event["id"].as_str()?.to_owned();
        self.told.lock().expect("nobody panicked").events.insert((id, tenant.to_owned()));
        Some(())
    }

    /// One customer: buys, uses, and perhaps gives it up, until the server is gone.
    async fn customer(&self, name: String) -> Option<()> {
        let tenant = self.make_workspace(&name).await?;
        let checkout = format!("/account/tenant/{tenant}/checkoutId");
        let session = self.post(&checkout, None, json!({ "planKey": "pro" })).await;
        if let Some(session) = session.as_ref().and_then(|session| session["id"].as_str()) {
            self.provider.pay(session);
            for event in self.provider.take_events() {
                if event["data"]["object"]["id"] == session {
                    self.tell(&event, &tenant).await;
                }
            }
        }
        for number in 0..20 {
            let key = format!("{name}-{number}");
            let body = json!({ "metric": "calls", "idempotencyKey": key });
            self.post("/usage/ingest", Some(&tenant), body).await?;
            self.told.lock().expect("nobody panicked").usage.insert(format!("{tenant} {key}"));
            if number == 3 && name.ends_with('0') {
                self.post(&format!("/account/tenant/{tenant}/planDetails"), None, json!({ "planKey": "free" })).await?;
                self.told.lock().expect("nobody panicked").freed.insert(tenant.clone());
            }
        }
        Some(())
    }

    /// Why the workspace's subscription changed, newest first.
    async fn causes(&self, tenant: &str) -> Vec<String> {
        let path = format!("/account/tenant/{tenant}/subscription/history");
        let (_, history) = self.server.get(&path, ("x-api-key", &self.key)).await;
        let changes = history.as_array().expect("a list").clone();
        changes.iter().filter_map(|change| change["cause"].as_str().map(str::to_owned)).collect()
    }

    async fn pass(&self, operator: &str, seconds: u32) {
        let url = self.server.url("/admin/test-clock");
        let ask = || self.server.client.post(&url).header("authorization", operator).timeout(Duration::from_secs(90));
        while ask().json(&json!({ "advanceSeconds": seconds })).send().await.is_ok_and(|answer| answer.status() != 200)
        {
        }
    }
}

/// How many objects of the provider belong to each workspace.
fn per_workspace(objects: &[Value], place: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for object in objects {
        let tenant = object.pointer(place).and_then(Value::as_str).expect("a workspace").to_owned();
        *counts.entry(tenant).or_default() += 1;
    }
    counts
}

async fn nothing_is_lost_or_done_twice_however_often_the_server_is_killed(home: Home) {
    let provider = Arc::new(PaymentProvider::start().await);
    let first = serve(&home, &provider);
    let app = first.printed_value("App id").expect("a first app").to_owned();
    let (key, operator) = (home.first_key(), format!("Bearer {}", operator_key(&home.path("tenantry-data"))));
    let put = async |path: &str, body: Value| {
        let answer = first.client.put(first.url(path)).header("x-api-key", &key).json(&body).send().await;
        assert_eq!(answer.expect("an answer").status(), 200);
    };
    put("/account/app", json!({ "payproviderEnabled": true })).await;
    put(
        "/account/app/credentials",
        json!({ "payproviderSecretKey": SECRET_KEY, "payproviderWebhookSecret": WEBHOOK_SECRET }),
    )
    .await;
    first.stop();
    let told: Arc<Mutex<Acknowledged>> = Arc::default();
    let world = || World {
        server: serve(&home, &provider),
        app: app.clone(),
        key: key.clone(),
        provider: Arc::clone(&provider),
        told: Arc::clone(&told),
        answers: Mutex::new(0),
        enough: Notify::new(),
    };
    provider.trouble_sometimes(6, &[Trouble::Fails, Trouble::LosesTheAnswer, Trouble::Late(Duration::from_millis(40))]);
    for round in 0..KILLS {
        let world = world();
        let load = join_all((0..CUSTOMERS).map(|number| world.customer(format!("c{round}-{number}"))));
        let kill = async {
            world.enough.notified().await;
            world.server.kill();
        };
        tokio::join!(load, kill);
    }
    provider.no_trouble();
    let world = world();
    world.pass(&operator, 4 * 3_600).await;

    let told = std::mem::take(&mut *told.lock().expect("nobody panicked"));
    for entry in &told.usage {
        let (tenant, key) = entry.split_once(' ').expect("two parts");
        let body = json!({ "metric": "calls", "idempotencyKey": key });
        let again = world.post("/usage/ingest", Some(tenant), body).await.expect("an answer");
        assert_eq!(again["deduped"], true, "{key} was acknowledged and is lost");
    }
    for (_, tenant) in &told.events {
        let causes = world.causes(tenant).await;
        assert!(causes.iter().any(|cause| cause == "checkout_paid"), "{tenant} paid, was told so, and has nothing");
    }
    assert_eq!(provider.count("prod"), 1);
    assert_eq!(provider.count("price"), 1);
    for (tenant, customers) in per_workspace(&provider.all("cus"), "/metadata/tenantId") {
        assert_eq!(customers, 1, "{tenant} has {customers} customers");
    }
    for (tenant, sessions) in per_workspace(&provider.all("cs_test"), "/client_reference_id") {
        assert_eq!(sessions, 1, "a checkout of {tenant} was begun once, and is there {sessions} times");
    }
    for tenant in &told.freed {
        let causes = world.causes(tenant).await;
        let has_left =
            causes.first().is_some_and(|cause| cause == "assigned") && causes.contains(&"checkout_paid".to_owned());
        let of = |object: &&Value| object.pointer("/metadata/tenantId").and_then(Value::as_str) == Some(tenant);
        for subscription in provider.all("sub").iter().filter(of).filter(|_| has_left) {
            assert_eq!(subscription["status"], "canceled", "{tenant} left, and goes on paying");
        }
    }
    let (payments, left) = (told.events.len(), told.freed.len());
    assert!(payments >= KILLS && left >= KILLS / 2, "too light to prove anything: {payments} payments, {left} left");
    println!("{} usage, {payments} payments, {left} left over {KILLS} kills", told.usage.len());
    world.server.stop();
}
