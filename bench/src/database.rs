//! A PostgreSQL database that lives as long as one run.

use tokio_postgres::{Client, NoTls};
use url::Url;

use crate::Result;

pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Made empty on the server at `server`, whose role must be allowed to create databases.
    pub async fn create(server: &str) -> Result<Self> {
        Self::create_another(server, "own").await
    }

    /// Beside others of the same run.
    pub async fn create_another(server: &str, what: &str) -> Result<Self> {
        let database =
            Self { server: server.to_owned(), name: format!("tenantry_bench_{}_{what}", std::process::id()) };
        database.drop_if_exists().await?;
        connect(server).await?.batch_execute(&format!("CREATE DATABASE {} TEMPLATE template0", database.name)).await?;
        Ok(database)
    }

    pub fn url(&self) -> Result<String> {
        let mut url = Url::parse(&self.server)?;
        url.set_path(&self.name);
        Ok(url.into())
    }

    pub async fn client(&self) -> Result<Client> {
        connect(&self.url()?).await
    }

    pub async fn remove(self) -> Result<()> {
        self.drop_if_exists().await
    }

    /// What the server promises at COMMIT: with `fsync` off, commits cost much less than in real life.
    pub async fn fsync(&self) -> Result<String> {
        Ok(connect(&self.server).await?.query_one("SHOW fsync", &[]).await?.get(0))
    }

    /// The server's main process, where it runs on this machine.
    pub async fn main_process(&self) -> Result<u32> {
        let folder: String = connect(&self.server).await?.query_one("SHOW data_directory", &[]).await?.get(0);
        let file = std::fs::read_to_string(std::path::Path::new(&folder).join("postmaster.pid"))?;
        Ok(file.lines().next().ok_or("an empty postmaster.pid")?.trim().parse()?)
    }

    async fn drop_if_exists(&self) -> Result<()> {
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        Ok(connect(&self.server).await?.batch_execute(&sql).await?)
    }
}

async fn connect(server: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(server, NoTls)
        .await
        .map_err(|error| format!("cannot reach the PostgreSQL server: {error}"))?;
    tokio::spawn(connection);
    Ok(client)
}
