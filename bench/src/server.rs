//! A server with an empty app, as a child process.

use std::{net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use web::logging::Logging;

use crate::{
    Result,
    child::Child,
    client::{Connection, Request},
    database::Database,
    process,
    subject::{listen, open},
};

pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// The line of the app's key.
    pub key: String,
    /// PostgreSQL's main process, whose processor time counts too.
    database: Option<u32>,
}

impl Server {
    /// On SQLite unless a database is given. The program that runs must call [`serve`] when it is started with `--serve`.
    pub async fn start(database: Option<&Database>) -> Result<Self> {
        let url = database.map(Database::url).transpose()?;
        let mut arguments = vec!["--serve"];
        arguments.extend(url.iter().flat_map(|url| ["--database", url.as_str()]));
        let child = Child::start(&arguments)?;
        let database = match database {
            Some(database) => Some(database.main_process().await?),
            None => None,
        };
        let (address, key) = (child.text("address").parse()?, format!("x-api-key: {}", child.text("key")));
        Ok(Self { child, address, key, database })
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn app(&self) -> String {
        self.child.text("app")
    }

    /// The database file on SQLite.
    pub fn file(&self) -> String {
        self.child.text("file")
    }

    /// Seconds of processor time that it has used, and its database.
    pub fn cpu(&self) -> Result<f64> {
        let own = process::cpu_time(self.process())?;
        Ok((own + self.database.map_or(Ok(Duration::ZERO), process::cpu_time_of_family)?).as_secs_f64())
    }

    pub async fn ask(&self, request: Request) -> Result<Value> {
        Ok(serde_json::from_slice(Connection::open(self.address, request).await?.ask().await?)?)
    }
}

/// What the child does.
pub async fn serve(database: Option<&str>) -> Result<()> {
    let _log = web::logging::init(&Logging::default())?;
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let service = open(folder.path(), database, |_| ()).await?;
    let first = service.first_run().await?.ok_or("the store is not new")?;
    service.start();
    let listener = listen().await?;
    let told = json!({
        "address": listener.local_addr()?, "app": first.app.id, "key": *first.api_key, "file": folder.path().join("bench.db"),
    });
    println!("{told}");
    web::server::serve(listener, service.app(), web::server::Limits::default(), std::future::pending::<()>()).await;
    Ok(())
}
