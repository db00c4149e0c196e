//! Who is who: apps, their keys, and the callers that routes ask for.
//!
//! Owns the apps and their API keys, and the extractors whose type is a permission. Knows nothing of credentials of
//! people or of money.

pub mod alerts;
pub mod api_tokens;
pub mod app_lifecycle;
pub mod apps;
pub mod authority;
pub mod branding;
pub mod callers;
pub mod credentials;
pub mod facts;
pub mod federation;
pub mod keys;
pub mod links;
pub mod locks;
pub mod logins;
pub mod mails;
pub mod members;
pub mod operator_key;
pub mod paths;
pub mod people;
pub mod roles;
pub mod scim_tokens;
pub mod standing;
mod tables;
pub mod workspaces;

use std::sync::Arc;

use kernel::{Authored, Result};
use spine::{Mirror as _, Outbox, Refresher, Runner};
use store::Db;
use vault::{Keyring, SigningKeys};

pub use api_tokens::ApiTokens;
pub use apps::{App, AppDirectory};
pub use authority::Authority;
use callers::AccessTokens;
pub use keys::Keys;
pub use operator_key::OperatorKey;
pub use tables::TABLES;

/// What the routes and extractors of this room work with. Cheap to clone.
#[derive(Clone)]
pub struct Tenancy {
    pub db: Db,
    pub apps: AppDirectory,
    pub keys: Keys,
    pub api_tokens: ApiTokens,
    pub keyring: Keyring,
    pub signing_keys: SigningKeys,
    pub access_tokens: AccessTokens,
    /// The public address, without a trailing slash.
    pub base_url: Arc<str>,
    /// `{base_url}/auth`: the `iss` of access tokens.
    pub issuer: Arc<str>,
    pub operator: OperatorKey,
}

impl Tenancy {
    pub fn new(db: Db, keyring: Keyring, signing_keys: SigningKeys, base_url: &str) -> Self {
        let apps = AppDirectory::new(db.clone());
        let issuer: Arc<str> = format!("{base_url}/auth").into();
        Self {
            keys: Keys::new(db.clone()),
            api_tokens: ApiTokens::new(db.clone(), apps.clone(), keyring.clone()),
            base_url: base_url.into(),
            access_tokens: AccessTokens::new(signing_keys.clone(), Arc::clone(&issuer), db.clock().clone()),
            issuer,
            operator: OperatorKey::new(db.clone()),
            apps,
            db,
            keyring,
            signing_keys,
        }
    }

    /// The same, for changes in somebody's name.
    #[must_use]
    pub fn by(&self, who: &impl Authored) -> Self {
        Self { db: self.db.by(who), ..self.clone() }
    }

    /// Registers what keeps the memory of this node true to what other nodes commit. Call it before [`Tenancy::load`].
    pub fn register(&self, outbox: &mut Outbox, runner: &Runner) {
        let (apps, keys, api_tokens) = (self.apps.clone(), self.keys.clone(), self.api_tokens.clone());
        runner.add(Refresher(self.apps.clone()));
        self.api_tokens.register(runner);
        outbox.follow(facts::FOLLOWER, move |news| {
            apps.hear(news);
            keys.hear(news);
            api_tokens.hear(news);
        });
    }

    /// Reads what is answered from memory.
    pub async fn load(&self) -> Result<()> {
        self.apps.reload().await
    }
}

/// Callers are known by this part of a room's state: a room above implements it to ask for them too.
impl AsRef<Tenancy> for Tenancy {
    fn as_ref(&self) -> &Tenancy {
        self
    }
}

impl AsRef<OperatorKey> for Tenancy {
    fn as_ref(&self) -> &OperatorKey {
        &self.operator
    }
}
