//! The server that is measured, with an empty app.

use bench::{
    Result,
    subject::{listen, open},
};
use serde_json::json;
use web::logging::Logging;

pub const DATABASE: &str = "bench.db";

pub async fn serve(database: Option<&str>) -> Result<()> {
    let _log = web::logging::init(&Logging::default())?;
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let service = open(folder.path(), database, |_| ()).await?;
    let first = service.first_run().await?.ok_or("the store is not new")?;
    service.start();
    let listener = listen().await?;
    let told = json!({
        "address": listener.local_addr()?, "app": first.app.id, "key": *first.api_key, "file": folder.path().join(DATABASE),
    });
    println!("{told}");
    web::server::serve(listener, service.app(), web::server::Limits::default(), std::future::pending::<()>()).await;
    Ok(())
}
