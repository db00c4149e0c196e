//! Composition: the rooms put together into one service, its migrations, and what spans several rooms.

pub mod archive;
pub mod facts;
pub mod installation;
mod migrations;
mod operations;
mod portal;
mod routes;
mod tables;
pub mod workflows;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use billing::{Billing, providers::stripe::StripeApi};
use eventlog::EventLog;
use files::Files;
use flags::Flags;
pub use identity::abuse::LoginLimits;
pub use identity::federation::{ProviderSettings, Providers, ResponseMode};
use identity::{Identity, federation::Federation};
use import::Imports;
use installation::{FirstRun, GivenKeys, Opening, OperatorKeyFile, Resealer};
use kernel::{Clock, Code, Entropy, Error, Result, Secret, Timestamp};
pub use migrations::MIGRATIONS;
pub use routes::{Documents, documents, route_table};
use scim::Scim;
use signals::Signals;
use spine::{
    Mailer, Measuring, Outbox, Purger, Runner, Sender, Sweeper, TestClock, Texter, mail::MailTransport,
    outbound::Outbound, sms::SmsTransport, translator::Translator,
};
use store::{DatabaseUrl, Db};
pub use tables::TABLES;
use tenancy::{OperatorKey, Tenancy};
use vault::{Keyring, SigningKeys};
use web::{App, Conventions, RateLimits};
use workflows::{Departure, LeavingBilling};

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that decides how a service runs.
pub struct Options {
    pub database: DatabaseUrl,
    pub store_limits: store::Limits,
    pub clock: Clock,
    pub entropy: Entropy,
    /// The public address, without a trailing slash.
    pub base_url: String,
    pub keys: GivenKeys,
    pub opening: Opening,
    /// Whether a store that was moved elsewhere is served all the same.
    pub after_move: bool,
    pub mail_url: Secret<String>,
    pub mail_from: Sender,
    pub sms_url: Secret<String>,
    /// The translator; empty for none.
    pub translate_url: Secret<String>,
    pub files: files::Settings,
    /// The Stripe-compatible API, without `/v1`.
    pub payprovider_url: String,
    /// How servers that customers name are called.
    pub outbound: Outbound,
    /// The social and directory providers.
    pub providers: Providers,
    pub webhooks: signals::Settings,
    pub test_clock: bool,
    pub metrics_public: bool,
    pub web: web::Settings,
    pub rate_limits: RateLimits,
    pub login_limits: LoginLimits,
}

/// What routes across rooms work with. Cheap to clone.
#[derive(Clone)]
pub struct Core {
    pub db: Db,
    pub base_url: Arc<str>,
    pub tenancy: Tenancy,
    pub flags: Flags,
    pub billing: Billing,
    pub identity: Identity,
    pub signals: Signals,
    pub event_log: EventLog,
    pub imports: Imports,
    pub files: Files,
    pub scim: Scim,
    pub translator: Option<Arc<Translator>>,
    pub keyring: Keyring,
    pub signing_keys: SigningKeys,
    pub test_clock: Option<Arc<TestClock>>,
    pub outbound: Outbound,
    /// Billing's part in the deletion of a workspace.
    pub departure: Arc<dyn Departure>,
    /// Where a backup is made before it is sent.
    pub(crate) backup_folder: Arc<Path>,
    pub(crate) data_folder: Arc<Path>,
    pub(crate) mail_is_logged: bool,
    pub(crate) sms_is_logged: bool,
    pub(crate) trusted_proxies: web::TrustedProxies,
    pub(crate) operator_key_file: OperatorKeyFile,
    pub(crate) started_at: Timestamp,
    pub(crate) stopping: Arc<AtomicBool>,
    pub(crate) metrics: web::metrics::Handle,
}

impl AsRef<Tenancy> for Core {
    fn as_ref(&self) -> &Tenancy {
        &self.tenancy
    }
}

impl AsRef<OperatorKey> for Core {
    fn as_ref(&self) -> &OperatorKey {
        &self.tenancy.operator
    }
}

fn misconfigured(setting: &str, problem: &str) -> Error {
    Error::new(Code::ValidationFailed, format!("{setting} {problem}."))
}

/// A storage that refuses us is told at the start; one that is away is not, since logins do not need it.
async fn check_files(files: &Files) -> Result<()> {
    match files.storage().check().await {
        Ok(()) => Ok(()),
        Err(fault @ files::Fault::Away(_)) => {
            tracing::warn!(%fault, "the storage of files does not answer; files cannot be uploaded or read until it does");
            Ok(())
        }
        Err(fault) => Err(misconfigured("files_url", &format!("names a storage that cannot be used: {fault}"))),
    }
}

/// Longer than an attempt at a delivery takes: one that was cut off would be made again.
const LONGEST_JOB: Duration = Duration::from_secs(12);

/// A service that is ready to answer. Its background work runs once it is started.
pub struct Service {
    core: Core,
    app: App,
    runner: Runner,
    operator_file: Option<PathBuf>,
}

impl Service {
    /// Opens the store, brings its schema up to date, settles the keys and reads what is kept in memory.
    pub async fn open(options: Options) -> Result<Self> {
        if options.opening == Opening::Command
            && let DatabaseUrl::Sqlite(path) = &options.database
            && !path.exists()
        {
            return Err(installation::no_store(&options.database));
        }
        if options.opening == Opening::Serve {
            installation::protect(&options.keys.folder)?;
        }
        let db = Db::open(store::Options {
            url: options.database.clone(),
            clock: options.clock.clone(),
            entropy: options.entropy.clone(),
            limits: options.store_limits.clone(),
        })
        .await?;
        let opened = Box::pin(Self::compose(db.clone(), options)).await;
        if opened.is_err() {
            // A start that was refused leaves the store to the next one.
            db.close().await;
        }
        opened
    }

    async fn compose(db: Db, options: Options) -> Result<Self> {
        if options.opening == Opening::Command && db.is_empty().await? {
            return Err(installation::no_store(&options.database));
        }
        db.migrate(MIGRATIONS).await?;
        installation::settle_move(&db, options.opening, options.after_move).await?;
        if options.opening == Opening::Serve {
            archive::clear(&options.keys.folder);
        }
        spine::lease::free_after_restart(&db, spine::lease::CLAIMS).await?;
        spine::lease::free_after_restart(&db, signals::CLAIMS).await?;
        spine::lease::free_after_restart(&db, import::CLAIMS).await?;
        let runner = Runner::new();
        let test_clock = match options.test_clock {
            true => Some(Arc::new(TestClock::open(db.clone(), runner.clone()).await?)),
            false => None,
        };
        let data_folder: Arc<Path> = options.keys.folder.as_path().into();
        let backup_folder: Arc<Path> = data_folder.join("backups").into();
        let resealing = options.keys.master_previous.is_some();
        let operator_key_file = OperatorKeyFile::in_folder(&options.keys.folder);
        let keys = installation::settle_keys(&db, &options.database, options.keys, options.opening).await?;
        let signing_keys = SigningKeys::new(keys.keyring.clone(), db.clock().clone());
        signing_keys.ensure_first(&db).await?;
        let tenancy = Tenancy::new(db.clone(), keys.keyring.clone(), signing_keys.clone(), &options.base_url);
        let mail = MailTransport::from_url(&options.mail_url).map_err(|problem| misconfigured("mail_url", &problem))?;
        let sms = SmsTransport::from_url(&options.sms_url).map_err(|problem| misconfigured("sms_url", &problem))?;
        let translator =
            Translator::from_url(&options.translate_url).map_err(|problem| misconfigured("translate_url", &problem))?;
        let stripe =
            StripeApi::new(&options.payprovider_url).map_err(|problem| misconfigured("payprovider_url", &problem))?;
        let billing = Billing::new(tenancy.clone(), stripe);
        let files = Files::new(tenancy.clone(), options.files);
        if options.opening == Opening::Serve {
            check_files(&files).await?;
        }
        let core = Core {
            db: db.clone(),
            base_url: options.base_url.into(),
            flags: Flags::new(tenancy.clone()),
            billing: billing.clone(),
            identity: Identity::new(
                tenancy.clone(),
                options.login_limits,
                Federation::new(&tenancy, options.outbound.clone(), options.providers),
            )?,
            signals: Signals::new(tenancy.clone(), options.outbound.clone(), options.webhooks),
            event_log: EventLog::new(tenancy.clone(), options.outbound.clone()),
            imports: Imports::new(tenancy.clone(), options.outbound.clone(), files.clone()),
            files,
            scim: Scim::new(tenancy.clone()),
            translator: translator.map(Arc::new),
            tenancy,
            keyring: keys.keyring.clone(),
            signing_keys: signing_keys.clone(),
            test_clock,
            outbound: options.outbound,
            departure: Arc::new(LeavingBilling { billing }),
            backup_folder,
            data_folder,
            mail_is_logged: matches!(mail, MailTransport::Log),
            sms_is_logged: matches!(sms, SmsTransport::Log),
            trusted_proxies: options.web.trusted_proxies.clone(),
            operator_key_file,
            // Real time: the business clock may be ahead of the machine's.
            started_at: Clock::system().now(),
            stopping: Arc::default(),
            metrics: web::metrics::install()?,
        };

        let mut outbox = Outbox::new(db.clone());
        core.tenancy.register(&mut outbox, &runner);
        core.flags.register(&mut outbox, &runner);
        core.billing.register(&mut outbox, &runner);
        core.signals.register(&mut outbox, &runner);
        core.signals.listen_to_usage(&core.billing.usage_signals);
        core.event_log.register(&mut outbox, &runner);
        core.imports.register(&runner);
        core.files.register(&runner);
        core.scim.register(&mut outbox);
        let purger = Purger::new(db.clone(), tables::all().collect());
        outbox.follow(facts::PURGE, purger.ears());
        runner.add(purger);
        runner.add(Sweeper { db: db.clone(), tables: tables::all().collect() });
        if !db.is_single_node() {
            runner.add(Measuring { db: db.clone() });
        }
        operations::signing_keys::register(&core, &mut outbox, &runner);
        Mailer::new(db.clone(), keys.keyring.clone(), mail, options.mail_from).add_to(&runner);
        Texter::new(db.clone(), keys.keyring.clone(), sms).add_to(&runner);
        if resealing {
            runner.add(Resealer { db: db.clone(), keyring: keys.keyring, signing_keys });
        }
        facts::check_readers(&outbox)?;
        outbox.open(&runner).await?;
        core.tenancy.load().await?;
        core.flags.load().await?;
        core.signals.load().await?;

        let conventions = Conventions::new(
            options.web,
            db.ids().clone(),
            Arc::new(options.rate_limits),
            Arc::new(core.tenancy.apps.clone()),
        );
        let app = conventions.wrap(routes::router(&core, options.metrics_public));
        Ok(Self { core, app, runner, operator_file: keys.operator_file })
    }

    /// On an empty installation, makes the first app; `None` when that has been done before.
    pub async fn first_run(&self) -> Result<Option<FirstRun>> {
        installation::first_run(&self.core.db, &self.core.tenancy).await
    }

    /// Begins the background work.
    pub fn start(&self) {
        self.runner.start();
    }

    /// Does all background work that is due, and returns when there is none left.
    pub async fn drain(&self) -> Result<()> {
        self.runner.drain().await
    }

    /// The jobs of which a run has failed on this node.
    pub fn failed_jobs(&self) -> Vec<&'static str> {
        self.runner.failed()
    }

    /// The earliest instant at which background work is due on the business clock, also when it has passed.
    pub async fn next_due(&self) -> Result<Option<Timestamp>> {
        self.runner.next_due().await
    }

    /// From now on `/readyz` says no, so that load balancers look elsewhere. Everything is still answered.
    pub fn announce_stop(&self) {
        self.core.stopping.store(true, Ordering::Relaxed);
    }

    /// Ends what would keep a stopping server waiting. Call it when no more requests are accepted.
    pub fn end_streams(&self) {
        self.core.signals.end_streams();
        self.core.event_log.end_streams();
    }

    /// Ends the background work, finishes what the store has accepted, and closes it.
    pub async fn close(&self) {
        self.runner.stop(LONGEST_JOB).await;
        self.core.db.close().await;
    }

    pub fn app(&self) -> App {
        self.app.clone()
    }

    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The file that holds the operator key, unless configuration gave it.
    pub fn operator_file(&self) -> Option<&PathBuf> {
        self.operator_file.as_ref()
    }
}
