//! The server that is measured: the real service with people who can sign in, and beside it a port on which the same
//! process makes nothing but signatures.

use bench::{
    Result,
    subject::{listen, make_workspaces, open, sign_everybody_in},
};
use serde_json::{Value, json};
use vault::SigningKeys;
use web::{Conventions, Json, RateLimits, Routes, State, logging::Logging};

/// Signatures that one request for them makes, in threes.
pub const THREES: usize = 10;
/// So many that no row of a person is what is waited for.
const PEOPLE: usize = 64;
/// Login sessions of each, which are exchanged a few times and then used up.
const SESSIONS: usize = 64;

/// Three signatures each time, of next to nothing.
async fn sign(State(keys): State<SigningKeys>) -> web::Result<Json<Value>> {
    for _ in 0..THREES * 3 {
        keys.sign("bench", &json!({}))?;
    }
    Ok(Json(json!({})))
}

pub async fn serve(database: Option<&str>) -> Result<()> {
    let _log = web::logging::init(&Logging::default())?;
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let service = open(folder.path(), database, |_| ()).await?;
    let first = service.first_run().await?.ok_or("the store is not new")?;
    let app = first.app.id;
    make_workspaces(&service, &first.api_key, PEOPLE).await?;
    let people = sign_everybody_in(service.core(), app, SESSIONS).await?;
    service.start();

    let core = service.core();
    let router = Routes::new("Signatures").post("/", sign, "Signatures").into_router(core.signing_keys.clone());
    let limits = RateLimits::new(core.db.clock().clone()).into();
    let apps = std::sync::Arc::new(core.tenancy.apps.clone());
    let signatures = Conventions::new(web::Settings::default(), core.db.ids().clone(), limits, apps).wrap(router);
    let (listener, signing) = (listen().await?, listen().await?);
    let told = json!({
        "address": listener.local_addr()?, "signing": signing.local_addr()?, "app": app, "key": first.api_key,
        "people": people,
    });
    println!("{told}");
    let forever = std::future::pending::<()>;
    let limits = web::server::Limits::default();
    tokio::join!(
        web::server::serve(listener, service.app(), limits, forever()),
        web::server::serve(signing, signatures, limits, forever())
    );
    Ok(())
}
