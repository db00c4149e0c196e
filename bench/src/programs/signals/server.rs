//! The real service with people whose streams are opened, and how the benchmark talks to it.

use std::net::SocketAddr;

use bench::{
    Result,
    child::Child,
    client::{Connection, Request},
    process,
    subject::{OPERATOR, listen, make_workspaces, open, sign_everybody_in},
};
use serde_json::{Value, json};
use spine::outbound::{Outbound, Targets};
use web::logging::Logging;

/// A login may have twenty streams open, so this is enough for 10,240.
const PEOPLE: usize = 512;
const CONNECTIONS: usize = 32_768;

pub async fn serve(database: Option<&str>) -> Result<()> {
    let _log = web::logging::init(&Logging::default())?;
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let adjusted = |options: &mut service::Options| {
        options.outbound = Outbound::new(Targets::Any);
        options.webhooks.most_streams = CONNECTIONS;
        options.web.max_in_flight_per_address = 0;
    };
    let service = open(folder.path(), database, adjusted).await?;
    let first = service.first_run().await?.ok_or("the store is not new")?;
    make_workspaces(&service, &first.api_key, PEOPLE).await?;
    let people = sign_everybody_in(service.core(), first.app.id, 1).await?;
    service.start();
    let listener = listen().await?;
    println!(
        "{}",
        json!({ "address": listener.local_addr()?, "app": first.app.id, "key": first.api_key, "people": people })
    );
    let limits =
        web::server::Limits { max_connections: CONNECTIONS, max_connections_per_address: 0, ..Default::default() };
    web::server::serve(listener, service.app(), limits, std::future::pending()).await;
    Ok(())
}

/// The service as a child process.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    pub app: String,
    /// The header line of the first app's key.
    key: String,
}

/// A workspace whose name can be changed, which is an event each time.
#[derive(Clone)]
pub struct Workspace {
    path: String,
    key: String,
}

impl Workspace {
    pub fn rename(&self, name: &str) -> Request {
        Request::put(&self.path, &self.key, &json!({ "name": name }).to_string())
    }
}

impl Server {
    pub fn start(database: Option<&str>) -> Result<Self> {
        let mut arguments = vec!["--act-as", "server"];
        arguments.extend(database.into_iter().flat_map(|url| ["--database", url]));
        let child = Child::start(&arguments)?;
        let key = format!("x-api-key: {}", child.text("key"));
        Ok(Self { address: child.text("address").parse()?, app: child.text("app"), key, child })
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn cpu(&self) -> Result<std::time::Duration> {
        process::cpu_time(self.process())
    }

    pub fn megabytes(&self) -> Result<f64> {
        process::resident_megabytes(self.process())
    }

    pub async fn ask(&self, request: Request) -> Result<Value> {
        Ok(serde_json::from_slice(Connection::open(self.address, request).await?.ask().await?)?)
    }

    /// A workspace of the first app.
    pub async fn workspace(&self) -> Result<Workspace> {
        self.workspace_of(&self.key).await
    }

    async fn workspace_of(&self, key: &str) -> Result<Workspace> {
        let owner = json!({ "email": "events@bench.example", "firstName": "Ada", "lastName": "Lovelace" });
        let body = json!({ "owner": owner, "name": "Events" }).to_string();
        let made = self.ask(Request::post("/account/tenant", key, &body).expecting(200)).await?;
        let id = made["id"].as_str().ok_or_else(|| format!("a workspace without an id: {made}"))?;
        Ok(Workspace { path: format!("/account/tenant/{id}"), key: key.to_owned() })
    }

    /// Another app with a workspace.
    pub async fn other_app(&self) -> Result<(String, Workspace)> {
        let body = json!({ "name": "Other", "domain": "other.example", "uiUrl": "https://other.example" }).to_string();
        let made = self.ask(Request::post("/admin/apps", &operator(), &body)).await?;
        let text = |pointer: &str| made.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let workspace = self.workspace_of(&format!("x-api-key: {}", text("/apiKey"))).await?;
        Ok((text("/app/id"), workspace))
    }

    /// Points an app's webhook at a receiver.
    pub async fn point(&self, app: &str, receiver: SocketAddr, event: &str) -> Result<()> {
        let body = json!({ "url": format!("http://{receiver}/hooks"), "enabled": true, "events": [event] }).to_string();
        self.ask(Request::put(&format!("/admin/apps/{app}/webhook"), &operator(), &body)).await.map(|_| ())
    }

    /// Creates a flag, which is told to every stream of the app.
    pub fn new_flag(&self, key: &str) -> Request {
        let body = json!({ "key": key, "state": "off", "valueType": "boolean", "offValue": false, "onValue": true });
        Request::post(&format!("/admin/apps/{}/flags", self.app), &operator(), &body.to_string())
    }

    /// A token for streams, for everybody.
    pub async fn stream_tokens(&self) -> Result<Vec<String>> {
        let mut tokens = Vec::new();
        for person in self.child.told["people"].as_array().into_iter().flatten() {
            let body = json!({ "session": person["sessions"][0], "appId": self.app, "mode": "sdk" }).to_string();
            let told = self.ask(Request::post("/auth/token/direct", "", &body).expecting(200)).await?;
            let bearer = told["access_token"].as_str().ok_or("no access token")?;
            let header = format!("authorization: Bearer {bearer}\r\nx-app-id: {}", self.app);
            let told = self.ask(Request::post("/realtime/authorize", &header, "{}").expecting(200)).await?;
            tokens.push(told["token"].as_str().ok_or("no stream token")?.to_owned());
        }
        Ok(tokens)
    }
}

fn operator() -> String {
    format!("authorization: Bearer {OPERATOR}")
}
