//! The server that is measured: the real service, and beside it a port on which the same process does nothing but verify
//! signatures or write.

use std::sync::Arc;

use aws_lc_rs::{
    digest::{SHA256, digest},
    rsa::KeySize,
    signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey},
};
use bench::{
    Result,
    subject::{listen, open},
};
use kernel::{AppId, Error};
use serde_json::{Value, json};
use store::{Db, args};
use web::{Conventions, Json, RateLimits, Routes, State, logging::Logging};

/// Verifications that one request for them makes.
pub const VERIFICATIONS: usize = 50;
const MESSAGE: &[u8] = b"what was signed";

/// What the port beside the service works with.
#[derive(Clone)]
struct Beside {
    db: Db,
    app: AppId,
    public_key: Arc<Vec<u8>>,
    signature: Arc<Vec<u8>>,
}

impl Beside {
    fn new(db: Db, app: AppId) -> Result<Self> {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048)?;
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign_digest(&RSA_PKCS1_SHA256, &digest(&SHA256, MESSAGE), &mut signature)?;
        let public_key = pair.public_key().as_ref().to_vec();
        Ok(Self { db, app, public_key: Arc::new(public_key), signature: Arc::new(signature) })
    }
}

/// As a response's signature is verified: with a key that is read each time.
async fn verify(State(beside): State<Beside>) -> web::Result<Json<Value>> {
    for _ in 0..VERIFICATIONS {
        let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, beside.public_key.as_slice());
        key.verify(MESSAGE, &beside.signature).map_err(|_| Error::internal("a good signature is refused"))?;
    }
    Ok(Json(json!({})))
}

/// One row of the kind that an answer changes.
async fn write(State(beside): State<Beside>) -> web::Result<Json<Value>> {
    let app = beside.app;
    let written = beside.db.write(move |tx| {
        let (id, now) = (tx.entropy().base62(43), tx.now());
        tx.exec(
            "INSERT INTO pending_federations (id, app_id, connection_id, browser, request, expires_at, created_at) \
             VALUES ($1, $2, '', '', '', $3, $3)",
            &args![id, app, now],
        )
    });
    written.await?;
    Ok(Json(json!({})))
}

pub async fn serve(database: Option<&str>) -> Result<()> {
    let _log = web::logging::init(&Logging::default())?;
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let service = open(folder.path(), database, |_| ()).await?;
    let first = service.first_run().await?.ok_or("the store is not new")?;
    service.start();

    let core = service.core();
    let routes = Routes::new("Beside").post("/verify", verify, "Verify").post("/write", write, "Write");
    let router = routes.into_router(Beside::new(core.db.clone(), first.app.id)?);
    let limits = RateLimits::new(core.db.clock().clone()).into();
    let apps = Arc::new(core.tenancy.apps.clone());
    let beside = Conventions::new(web::Settings::default(), core.db.ids().clone(), limits, apps).wrap(router);
    let (listener, second) = (listen().await?, listen().await?);
    println!("{}", json!({ "address": listener.local_addr()?, "beside": second.local_addr()?, "key": first.api_key }));
    let (forever, limits) = (std::future::pending::<()>, web::server::Limits::default());
    tokio::join!(
        web::server::serve(listener, service.app(), limits, forever()),
        web::server::serve(second, beside, limits, forever())
    );
    Ok(())
}
