//! `/admin/signing-keys`: the keys that sign tokens, and their rotation.

use std::time::Duration;

use kernel::Result;
use spine::Fact;
use tenancy::callers::Operator;
use vault::{Rotation, SigningKey, SigningKeys};
use web::{Json, Routes, State};

use crate::Core;

/// Emitted when a signing key was published: every node loads it.
pub const ROTATED: &str = "signing_key.rotated";

/// The longest `refreshTokenTTL` that an app may set: until then a token signed by the old key may still be valid.
const LONGEST_TOKEN_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);

pub fn routes() -> Routes<Core> {
    Routes::new("Operations")
        .get("/admin/signing-keys", list, "List the keys that sign tokens")
        .post("/admin/signing-keys/rotate", rotate, "Publish a new signing key, which takes over once it is known")
}

async fn list(_: Operator, State(core): State<Core>) -> Result<Json<Vec<SigningKey>>> {
    Ok(Json(core.db.read(SigningKeys::list).await?))
}

async fn rotate(_: Operator, State(core): State<Core>) -> Result<Json<Rotation>> {
    let outbox = core.outbox.clone();
    let announce = move |tx: &mut store::Tx<'_>, _: &Rotation| outbox.emit(tx, &Fact::new(ROTATED, serde_json::json!({})));
    Ok(Json(core.signing_keys.rotate(&core.db, LONGEST_TOKEN_LIFETIME, announce).await?))
}
