//! Where an installation lives: its database and its folders, which outlast the services that are started on it.

use std::{path::Path, pin::Pin, sync::Arc};

use kernel::{Clock, Entropy, Result, Secret};
use service::{
    LoginLimits, MIGRATIONS, Options, Providers, Service,
    installation::{GivenKeys, Opening},
};
use spine::outbound::{Outbound, Targets};
use store::{
    DatabaseUrl, Db, EngineName,
    testing::{Template, TemplateContent, TestStore},
};
use tempfile::TempDir;
use vault::{Keyring, MasterKey, SigningKeys};
use web::RateLimits;

pub const OPERATOR_KEY: &str = "op_for_tests_only_0123456789abcdefghijklmnop";
/// The signing key in the template is sealed under it.
pub const MASTER_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Making an RSA key takes longer than most tests, so it is part of the template.
const WITH_SIGNING_KEY: Template = Template {
    migrations: MIGRATIONS,
    content: Some(TemplateContent { name: "signing key 1", fill: make_signing_key }),
};

fn make_signing_key(db: Db) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let master: MasterKey = MASTER_KEY.parse().expect("the tests' master key is one");
        let keys = SigningKeys::new(Keyring::new(&master, None, db.entropy().clone()), db.clock().clone());
        keys.ensure_first(&db).await.expect("a signing key can be made");
    })
}

/// An installation's place. Cheap to clone; gone when the last clone is.
#[derive(Clone)]
pub struct Site(Arc<Inner>);

struct Inner {
    store: TestStore,
    folder: TempDir,
    entropy: Entropy,
}

impl Site {
    /// With the current schema and a signing key.
    pub fn migrated(engine: EngineName) -> Self {
        Self::new(engine, WITH_SIGNING_KEY)
    }

    /// With nothing at all.
    pub fn empty(engine: EngineName) -> Self {
        Self::new(engine, Template { migrations: &[], content: None })
    }

    fn new(engine: EngineName, template: Template) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let store = TestStore::create(engine, template);
        Self(Arc::new(Inner { store, folder, entropy: Entropy::seeded_for_tests(1) }))
    }

    /// The data folder.
    pub fn folder(&self) -> &Path {
        self.0.folder.path()
    }

    pub fn engine(&self) -> EngineName {
        match self.0.store.url {
            DatabaseUrl::Sqlite(_) => EngineName::Sqlite,
            DatabaseUrl::Postgres(_) => EngineName::Postgres,
        }
    }

    /// Where the database is.
    pub fn database(&self) -> &DatabaseUrl {
        &self.0.store.url
    }

    /// A node's options: the test clock on, the tests' keys, mail and SMS into folders. Each node has a clock of its own;
    /// randomness is one seeded stream for all, so that no two nodes draw the same.
    pub fn options(&self) -> Options {
        let clock = Clock::system();
        let into = |name: &str| Secret::new(format!("file:{}", self.folder().join(name).display()));
        Options {
            database: self.0.store.url.clone(),
            store_limits: store::Limits { connections: 4, ..store::Limits::default() },
            rate_limits: RateLimits::new(clock.clone()),
            login_limits: LoginLimits::default(),
            clock,
            entropy: self.0.entropy.clone(),
            base_url: "http://tenantry.test".into(),
            keys: GivenKeys {
                operator: Some(Secret::new(OPERATOR_KEY.into())),
                master: Some(Secret::new(MASTER_KEY.into())),
                master_previous: None,
                folder: self.folder().to_owned(),
            },
            opening: Opening::Serve,
            after_move: false,
            mail_url: into("mail"),
            mail_from: "Tenantry <no-reply@tenantry.test>".parse().expect("an address"),
            sms_url: into("sms"),
            translate_url: Secret::new(String::new()),
            files: files::Settings {
                place: files::Place::Folder(self.folder().join("files")),
                max_bytes: 1024 * 1024,
                workspace_bytes: 2 * 1024 * 1024,
            },
            // Nobody listens there.
            payprovider_url: "http://127.0.0.1:1".into(),
            // Receivers of the tests run on this machine.
            outbound: Outbound::new(Targets::PublicAndLoopback),
            providers: Providers::default(),
            webhooks: signals::Settings::default(),
            test_clock: true,
            metrics_public: false,
            web: web::Settings::default(),
        }
    }

    /// Opens a service here, with some options changed. Its background work does not run by itself.
    pub async fn open(&self, change: impl FnOnce(&mut Options)) -> Result<Service> {
        let mut options = self.options();
        change(&mut options);
        Service::open(options).await
    }
}
