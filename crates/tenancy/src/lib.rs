//! Who is who: apps, their keys, and the callers that routes ask for.
//!
//! Owns the apps and their API keys, and the extractors whose type is a permission. Knows nothing of credentials of
//! people or of money.

pub mod api_tokens;
pub mod apps;
pub mod branding;
pub mod callers;
pub mod credentials;
pub mod federation;
pub mod keys;
pub mod links;
pub mod logins;
pub mod mails;
pub mod members;
pub mod people;
pub mod purge;
pub mod roles;
pub mod sealed;
pub mod standing;
pub mod workspaces;

use std::sync::Arc;

use kernel::Result;
use spine::{Mirror as _, Outbox, Refresher, Runner};
use store::Db;
use vault::{Keyring, SigningKeys, hash_token, same};

pub use api_tokens::ApiTokens;
pub use apps::{App, AppDirectory};
pub use keys::Keys;
use purge::Purge;

/// What the routes and extractors of this room work with. Cheap to clone.
#[derive(Clone)]
pub struct Tenancy {
    pub db: Db,
    pub apps: AppDirectory,
    pub keys: Keys,
    pub api_tokens: ApiTokens,
    pub keyring: Keyring,
    pub signing_keys: SigningKeys,
    /// The public address, without a trailing slash.
    pub base_url: Arc<str>,
    /// `{base_url}/auth`: the `iss` of access tokens.
    pub issuer: Arc<str>,
    pub operator: OperatorKey,
}

impl Tenancy {
    pub fn new(db: Db, keyring: Keyring, signing_keys: SigningKeys, base_url: &str, operator: OperatorKey) -> Self {
        let apps = AppDirectory::new(db.clone());
        Self {
            keys: Keys::new(db.clone()),
            api_tokens: ApiTokens::new(db.clone(), apps.clone(), keyring.clone()),
            base_url: base_url.into(),
            issuer: format!("{base_url}/auth").into(),
            apps,
            db,
            keyring,
            signing_keys,
            operator,
        }
    }

    /// Registers what keeps the memory of this node true to what other nodes commit. Call it before [`Tenancy::load`].
    pub fn register(&self, outbox: &mut Outbox, runner: &Runner) {
        let (apps, keys, api_tokens) = (self.apps.clone(), self.keys.clone(), self.api_tokens.clone());
        runner.add(Refresher(self.apps.clone()));
        runner.add(links::Sweeper(self.db.clone()));
        self.api_tokens.register(runner);
        PURGES.iter().for_each(|purge| purge.register(outbox));
        outbox.follow("tenancy", move |news| {
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

/// Keys are deleted together with their app, which they refer to.
const PURGES: &[Purge] = &[
    Purge {
        name: "purge-app-access",
        after: &[apps::DELETED, purge::CONTINUED],
        statements: &[
            "DELETE FROM api_tokens WHERE id IN (SELECT id FROM api_tokens WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM app_secrets WHERE id IN (SELECT id FROM app_secrets WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM one_time_links WHERE id IN (SELECT id FROM one_time_links WHERE app_id = $1 LIMIT 500)",
        ],
    },
    Purge {
        name: "purge-app-people",
        after: &[apps::DELETED, purge::CONTINUED],
        statements: &[
            "DELETE FROM members WHERE id IN (SELECT id FROM members WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM tenants WHERE id IN (SELECT id FROM tenants WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM users WHERE id IN (SELECT id FROM users WHERE app_id = $1 LIMIT 500)",
        ],
    },
    Purge {
        name: "purge-app-roles",
        after: &[apps::DELETED, purge::CONTINUED],
        statements: &[
            "DELETE FROM role_privileges WHERE (role_id, privilege_id) IN \
             (SELECT role_id, privilege_id FROM role_privileges WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM roles WHERE id IN (SELECT id FROM roles WHERE app_id = $1 LIMIT 500)",
            "DELETE FROM privileges WHERE id IN (SELECT id FROM privileges WHERE app_id = $1 LIMIT 500)",
        ],
    },
    Purge {
        name: "purge-app-federation",
        after: &[apps::DELETED, purge::CONTINUED],
        statements: &["DELETE FROM federation_connections WHERE id IN \
                       (SELECT id FROM federation_connections WHERE app_id = $1 LIMIT 500)"],
    },
    Purge {
        name: "purge-tokens-of-retired-secrets",
        after: &[api_tokens::RETIRED, purge::CONTINUED],
        statements: &["DELETE FROM api_tokens WHERE id IN (SELECT api_tokens.id FROM api_tokens \
                       JOIN app_secrets ON app_secrets.id = api_tokens.secret_id \
                       WHERE api_tokens.app_id = $1 AND app_secrets.retired_at IS NOT NULL LIMIT 500)"],
    },
];

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

/// The operator key's digest, which is all that is kept in memory.
#[derive(Clone)]
pub struct OperatorKey(Arc<str>);

impl OperatorKey {
    pub fn new(key: &str) -> Self {
        Self(hash_token(key).into())
    }

    pub fn from_digest(digest: &str) -> Self {
        Self(digest.into())
    }

    pub fn digest(&self) -> &str {
        &self.0
    }

    /// Compares digests, so that the time taken tells nothing of the key.
    pub fn matches(&self, presented: &str) -> bool {
        same(hash_token(presented).as_bytes(), self.0.as_bytes())
    }
}
