//! A change of the master key: while the previous one is configured, a job seals everything again with the current one.

use std::time::Duration;

use ::store::Db;
use kernel::Result;
use spine::{Job, Worked};
use vault::{Keyring, SigningKeys};

use super::keys::adopt_master_key;

/// Seals again what the previous master key had sealed, then makes the current one the only one that counts.
pub(crate) struct Resealer {
    pub(crate) db: Db,
    pub(crate) keyring: Keyring,
    pub(crate) signing_keys: SigningKeys,
}

impl Job for Resealer {
    fn name(&self) -> &'static str {
        "reseal"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn run(&self) -> Result<Worked> {
        let keys = self.signing_keys.reseal(&self.db).await?;
        let secrets = vault::reseal(&self.db, &self.keyring, crate::tables::all()).await?;
        adopt_master_key(&self.db, &self.keyring).await?;
        if keys + secrets > 0 {
            tracing::info!(keys, secrets, "sealed again under the current master key");
        }
        Ok(Worked::Nothing)
    }
}
