//! `/admin/signing-keys`: the keys that sign tokens, their rotation and revocation, and what keeps every node's copy true.

use std::time::Duration;

use kernel::{Page, Result};
use spine::{Installation, Job, Outbox, Runner, Signal, Worked, emit};
use store::{Db, Tx};
use tenancy::callers::Operator;
use tokio::sync::watch;
use vault::{Revocation, Rotation, SigningKey, SigningKeyId, SigningKeys};
use web::{Json, Params, Path, Routes, State};

use crate::{
    Core,
    facts::{SIGNING_KEYS, SigningKeyRevoked, SigningKeyRotated},
};

/// The longest `refreshTokenTTL` that an app may set: until then a token signed by the old key may still be valid.
const LONGEST_TOKEN_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);

pub fn routes() -> Routes<Core> {
    Routes::new("Operations")
        .get("/admin/signing-keys", list, "List the keys that sign tokens")
        .post("/admin/signing-keys/rotate", rotate, "Publish a new signing key, which takes over after a grace period")
        .post("/admin/signing-keys/{kid}/revoke", revoke, "Revoke a signing key and everything it signed, immediately")
        .description(
            "For a compromised key. Everybody with tokens signed by it has to sign in again; backends that verify tokens \
             locally refuse them once they have fetched the key set again, within five minutes.",
        )
        .answers(404, "There is no such signing key")
}

async fn list(_: Operator, State(core): State<Core>, Params(page): Params<Page>) -> Result<Json<Vec<SigningKey>>> {
    Ok(Json(page.of(core.db.read(SigningKeys::list).await?)))
}

async fn rotate(caller: Operator, State(core): State<Core>) -> Result<Json<Rotation>> {
    let announce = |tx: &mut Tx<'_>, key: &SigningKey| emit(tx, Installation, &SigningKeyRotated { kid: key.kid });
    Ok(Json(core.signing_keys.rotate(&core.db.by(&caller), LONGEST_TOKEN_LIFETIME, announce).await?))
}

async fn revoke(caller: Operator, State(core): State<Core>, Path(kid): Path<SigningKeyId>) -> Result<Json<Revocation>> {
    let announce = move |tx: &mut Tx<'_>| emit(tx, Installation, &SigningKeyRevoked { kid });
    Ok(Json(core.signing_keys.revoke(&core.db.by(&caller), kid, announce).await?))
}

/// Every node loads what another one published, and forgets what it revoked.
pub fn register(core: &Core, outbox: &mut Outbox, runner: &Runner) {
    let stale = Signal::new();
    runner.add(Keeper { db: core.db.clone(), keys: core.signing_keys.clone(), stale: stale.clone() });
    outbox.follow(SIGNING_KEYS, move |_| stale.wake());
}

/// Loads published keys and deletes retired ones.
struct Keeper {
    db: Db,
    keys: SigningKeys,
    stale: Signal,
}

impl Job for Keeper {
    fn name(&self) -> &'static str {
        "signing-keys"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(3600)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.stale.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        self.keys.reload(&self.db).await?;
        let pruned = self.keys.prune(&self.db).await?;
        Ok(Worked::some_if(pruned > 0))
    }
}
