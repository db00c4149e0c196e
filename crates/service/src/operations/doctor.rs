//! `GET /admin/doctor`: looks at the installation as an experienced operator would, and says what to fix and how.

use std::time::Duration;

use eventlog::{DamagedBlock, FailingSink};
use files::Census;
use kernel::{AppId, Page, Result, Ticker, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use signals::{deliveries::Proof, endpoints::GivenUp};
use spine::{Backlog, outbox};
use store::Tx;
use tenancy::{
    callers::Operator,
    federation::{self, EndingCertificate},
};
use vault::{Keyring, SigningKeys};
use web::{Json, Routes, State};

use crate::{Core, MIGRATIONS, installation};

pub fn routes() -> Routes<Core> {
    Routes::new("Operations").get("/admin/doctor", examine, "Check this installation for problems and how to fix them")
}

#[derive(Serialize, JsonSchema)]
struct Report {
    findings: Vec<Finding>,
}

#[derive(Serialize, JsonSchema)]
struct Finding {
    check: &'static str,
    level: Level,
    message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Problem,
}

impl Finding {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, message: message.into(), remedy: None }
    }

    fn warning(check: &'static str, message: impl Into<String>, remedy: &'static str) -> Self {
        Self { check, level: Level::Warning, message: message.into(), remedy: Some(remedy) }
    }

    fn problem(check: &'static str, message: impl Into<String>, remedy: &'static str) -> Self {
        Self { check, level: Level::Problem, message: message.into(), remedy: Some(remedy) }
    }
}

async fn examine(_: Operator, State(core): State<Core>) -> Result<Json<Report>> {
    let mut findings = vec![storage(&core).await, files(&core), space(&core), open_files(&core)];
    findings.extend([address(&core), proxies(&core), test_clock(&core), mail(&core), sms(&core)]);
    let keyring = core.keyring.clone();
    let vitals = core.db.read(move |tx| vitals(tx, &keyring)).await?;
    findings.push(master_key(&vitals));
    findings.push(signing_keys(&vitals, core.db.clock().now()));
    findings.push(parked(&vitals));
    findings.push(undelivered(&vitals));
    findings.push(webhooks(&vitals));
    findings.push(webhook_secrets(&vitals));
    findings.push(deliveries(&core.db.scan(signals::deliveries::prove).await?));
    findings.push(last_backup(&vitals, core.db.clock().now()));
    findings.push(certificates(&vitals));
    findings.push(event_sinks(&vitals));
    let begun = Ticker.now();
    let enough = move || Ticker.since(begun) > EVENTS_EXAMINED;
    let (damaged, examined) = core.db.scan(move |tx| eventlog::damaged_blocks(tx, &enough)).await?;
    findings.push(event_blocks(&damaged, examined));
    findings.push(stored_files(&core).await?);
    Ok(Json(Report { findings }))
}

/// What the database says about the health of the background work.
struct Vitals {
    parked: usize,
    backlog: Backlog,
    given_up: Vec<GivenUp>,
    /// Apps that have a webhook and no operator workspace.
    open_webhooks: Vec<AppId>,
    master_key_settled: bool,
    signing_since: Option<Timestamp>,
    last_backup: Option<Timestamp>,
    failing_sinks: Vec<FailingSink>,
    /// Of identity providers.
    ending_certificates: Vec<EndingCertificate>,
}

/// How long before their end certificates are warned about.
const CERTIFICATES_WARNED: Duration = Duration::from_secs(30 * 24 * 3600);

fn vitals(tx: &mut Tx<'_>, keyring: &Keyring) -> Result<Vitals> {
    let now = tx.now();
    let keys = SigningKeys::list(tx)?;
    Ok(Vitals {
        parked: outbox::parked(tx, 1_000)?.len(),
        backlog: spine::backlog(tx)?,
        given_up: signals::given_up(tx)?,
        open_webhooks: open_webhooks(tx)?,
        master_key_settled: installation::is_settled(tx, keyring)?,
        last_backup: installation::last_backup(tx)?,
        failing_sinks: eventlog::failing_sinks(tx)?,
        ending_certificates: federation::ending_certificates(tx, now.plus(CERTIFICATES_WARNED))?,
        signing_since: keys.iter().map(|key| key.active_from).filter(|from| *from <= now).max(),
    })
}

/// Nothing is lost while a sink is down, as long as events are kept.
fn event_sinks(vitals: &Vitals) -> Finding {
    let failing = vitals.failing_sinks.iter().take(10);
    let failing: Vec<String> =
        failing.map(|sink| format!("{} ({} attempts: {})", sink.app, sink.failures, sink.error)).collect();
    if failing.is_empty() {
        return Finding::ok("event sinks", "every event sink takes what it is sent");
    }
    Finding::warning(
        "event sinks",
        format!("events do not arrive at the sinks of {}", failing.join(", ")),
        "See to the receiver, or set the sink again with other credentials; what waits is sent by itself then.",
    )
}

/// Dates are not enforced, so nobody is locked out; but their owners will replace them.
/// How long blocks of events are looked at for damage.
const EVENTS_EXAMINED: Duration = Duration::from_secs(5);

fn event_blocks(damaged: &[DamagedBlock], examined: usize) -> Finding {
    if damaged.is_empty() {
        return Finding::ok("events", format!("{examined} blocks of events were read, and all are intact"));
    }
    let named: Vec<String> = damaged.iter().take(10).map(|block| format!("{} of {}", block.id, block.app)).collect();
    Finding::problem(
        "events",
        format!("{} of {examined} blocks of events are damaged: {}", damaged.len(), named.join(", ")),
        "Questions about these events fail. Restore the database from a backup, and look at the disk.",
    )
}

fn certificates(vitals: &Vitals) -> Finding {
    let names = vitals.ending_certificates.iter().take(10);
    let names: Vec<String> =
        names.map(|one| format!("{} of {} on {}", one.connection, one.app, one.valid_until)).collect();
    if names.is_empty() {
        return Finding::ok("certificates", "no identity provider's certificate ends within 30 days");
    }
    Finding::warning(
        "certificates",
        format!("certificates of identity providers end or have ended: {}", names.join(", ")),
        "Ask the customer for the next certificate and add it to the connection beside the present one.",
    )
}

async fn storage(core: &Core) -> Finding {
    if let Err(error) = core.db.check_writable().await {
        let remedy = "Make room on the disk, or see to it that it can be written; the service then recovers by itself.";
        return Finding::problem("storage", error.public().to_owned(), remedy);
    }
    match core.db.is_migrated(MIGRATIONS).await {
        Ok(true) => Finding::ok("storage", format!("{} answers and its schema is current", core.db.engine())),
        Ok(false) => Finding::problem(
            "storage",
            "the schema is behind this program",
            "Restart the service: it migrates at start.",
        ),
        Err(error) => Finding::problem("storage", error.public().to_owned(), "See the log for the cause."),
    }
}

fn files(core: &Core) -> Finding {
    let open = installation::open_to_others(&core.data_folder);
    if open.is_empty() {
        return Finding::ok("files", "only their owner can read the data folder and what is in it");
    }
    let names: Vec<String> = open.iter().map(|path| path.display().to_string()).collect();
    Finding::problem(
        "files",
        format!("other users of this machine can get at {}", names.join(", ")),
        "Restart the service, which closes them, or run chmod -R go-rwx on the data folder.",
    )
}

/// Files of workspaces: their storage, and rows and bytes.
async fn stored_files(core: &Core) -> Result<Finding> {
    const CHECK: &str = "stored files";
    if let Err(fault) = core.files.storage().check().await {
        let remedy = "Correct files_url, or see to the storage. Until then files can neither be uploaded nor read.";
        return Ok(Finding::problem(CHECK, format!("the storage of files cannot be used: {fault}"), remedy));
    }
    Ok(counted_files(core, CHECK, &core.files.census().await?))
}

fn counted_files(core: &Core, check: &'static str, census: &Census) -> Finding {
    let Census { whole, without_bytes, missing, without_row } = census;
    if *without_bytes > 0 {
        let keys: Vec<String> = missing.iter().map(ToString::to_string).collect();
        return Finding::problem(
            check,
            format!("the bytes of {without_bytes} files are missing: {}", keys.join(", ")),
            "Bring the folder or bucket of files back from its backup, or see that files_url names the right one; nodes must share it.",
        );
    }
    if *without_row > 0 {
        return Finding::warning(
            check,
            format!("{without_row} objects in the storage of files belong to no file"),
            "A running server removes them within two hours. If they stay, the storage may be another installation's too.",
        );
    }
    let shares = core.db.is_single_node() || core.files.storage().is_remote();
    let shared = if shares { "" } else { "; several nodes need S3, or a folder that they share" };
    Finding::ok(check, format!("the bytes of all {whole} files are there{shared}"))
}

fn address(core: &Core) -> Finding {
    let base = &core.base_url;
    let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|prefix| base.starts_with(prefix));
    if base.starts_with("https://") || local {
        return Finding::ok("address", format!("the base URL is {base}"));
    }
    Finding::warning(
        "address",
        format!("the base URL {base} is not encrypted"),
        "Put a proxy with TLS in front and set base_url to its https address.",
    )
}

fn test_clock(core: &Core) -> Finding {
    match core.test_clock {
        None => Finding::ok("clock", "the service runs on real time"),
        Some(_) => Finding::warning(
            "clock",
            format!("the test clock is on; it is {} there", core.db.clock().now()),
            "Never in production: unset TENANTRY_TEST_CLOCK.",
        ),
    }
}

fn mail(core: &Core) -> Finding {
    if core.mail_is_logged {
        return Finding::warning("mail", "mail is written to the log, not sent", "Set mail_url to an SMTP server.");
    }
    Finding::ok("mail", "mail is sent as configured")
}

fn sms(core: &Core) -> Finding {
    if core.sms_is_logged {
        let remedy = "Set sms_url to a gateway; until then nobody who chooses codes by SMS can sign in.";
        return Finding::warning("SMS", "text messages are written to the log, codes included, and not sent", remedy);
    }
    Finding::ok("SMS", "text messages are sent as configured")
}

fn proxies(core: &Core) -> Finding {
    if core.trusted_proxies.was_unheeded() {
        return Finding::warning(
            "proxies",
            "requests came through a proxy that is not trusted: all clients count as one address for every limit",
            "Set trusted_proxies to the proxy's address, or have it leave X-Forwarded-For out.",
        );
    }
    Finding::ok("proxies", "no request came through a proxy that is not trusted")
}

const MEBIBYTE: u64 = 1 << 20;

/// The disk of the data folder, which is the database's too when that is embedded.
fn space(core: &Core) -> Finding {
    let remedy = "Make room before writes fail; tenantry_disk_free_bytes is the metric to watch.";
    match web::process::disk(&core.data_folder) {
        None => Finding::warning("disk", "the free space cannot be told", "See whether the data folder is there."),
        Some(disk) => {
            let message = format!("{} MiB are free where the data folder is", disk.free / MEBIBYTE);
            match disk.free / MEBIBYTE {
                ..100 => Finding::problem("disk", message, remedy),
                100..1024 => Finding::warning("disk", message, remedy),
                _ => Finding::ok("disk", message),
            }
        }
    }
}

/// Each connection is a file, each stream a connection, and each delivery under way one more.
fn open_files(core: &Core) -> Finding {
    let wanted = core.signals.files_wanted();
    match web::process::open_files_limit() {
        Some(limit) if limit < wanted => Finding::warning(
            "open files",
            format!("{limit} files may be open, and all connections and streams together may need {wanted}"),
            "Raise the limit (LimitNOFILE of the systemd unit, ulimit -n), or connections will wait.",
        ),
        Some(limit) => Finding::ok("open files", format!("{limit} files may be open")),
        None => Finding::ok("open files", "the limit of open files cannot be told"),
    }
}

fn last_backup(vitals: &Vitals, now: Timestamp) -> Finding {
    const DAY: u64 = 24 * 3600;
    const REMEDY: &str = "Run tenantry backup every day, and keep the file and the master key apart, elsewhere.";
    match vitals.last_backup.map(|at| now.since(at).as_secs() / DAY) {
        None => Finding::warning("backup", "no backup was made by this program yet", REMEDY),
        Some(days @ 8..) => Finding::warning("backup", format!("the last backup is {days} days old"), REMEDY),
        Some(days) => Finding::ok("backup", format!("the last backup is {days} days old")),
    }
}

fn master_key(vitals: &Vitals) -> Finding {
    if vitals.master_key_settled {
        return Finding::ok("master key", "all secrets are encrypted with the current master key");
    }
    Finding::warning(
        "master key",
        "some secrets are still encrypted with the previous master key",
        "Keep TENANTRY_MASTER_KEY_PREVIOUS set until this warning is gone: a background job is re-encrypting them.",
    )
}

fn signing_keys(vitals: &Vitals, now: Timestamp) -> Finding {
    const DAY: u64 = 24 * 3600;
    match vitals.signing_since {
        None => Finding::problem("signing keys", "no key can sign tokens", "Run tenantry signing-key rotate."),
        Some(since) => {
            let days = now.since(since).as_secs() / DAY;
            let message = format!("the signing key has been in use for {days} days");
            if days > 365 {
                return Finding::warning("signing keys", message, "Run tenantry signing-key rotate once a year.");
            }
            Finding::ok("signing keys", message)
        }
    }
}

fn parked(vitals: &Vitals) -> Finding {
    if vitals.parked == 0 {
        return Finding::ok("outbox", "every event was processed");
    }
    Finding::problem(
        "outbox",
        format!("{} events failed ten times and were set aside", vitals.parked),
        "See the log for the causes (target spine).",
    )
}

fn undelivered(vitals: &Vitals) -> Finding {
    let Backlog { failed, retrying } = vitals.backlog;
    if failed + retrying == 0 {
        return Finding::ok("messages", "no mail or SMS is stuck");
    }
    Finding::warning(
        "messages",
        format!("{failed} messages could not be delivered, {retrying} are being retried"),
        "Check mail_url and sms_url; see the log for each failure.",
    )
}

fn webhooks(vitals: &Vitals) -> Finding {
    if vitals.given_up.is_empty() {
        return Finding::ok("webhooks", "no webhook was disabled because its receiver failed");
    }
    let name = |one: &GivenUp| match one.endpoint {
        Some(endpoint) => format!("{endpoint} of {}", one.app),
        None => one.app.to_string(),
    };
    let names: Vec<String> = vitals.given_up.iter().map(name).collect();
    Finding::problem(
        "webhooks",
        format!("disabled after 50 deliveries in a row failed: {}", names.join(", ")),
        "Repair the receiver, enable the webhook again, and send what was missed with tenantry webhook recover.",
    )
}

fn deliveries(proof: &Proof) -> Finding {
    let Proof { expected, missing } = proof;
    if missing.is_empty() {
        return Finding::ok(
            "deliveries",
            format!("each of the {expected} events of the last minutes has its delivery"),
        );
    }
    let names = missing.iter().take(10).map(|one| format!("fact {} of {}", one.position, one.app));
    let names: Vec<String> = names.collect();
    Finding::problem(
        "deliveries",
        format!("{} of {expected} events have no delivery: {}", missing.len(), names.join(", ")),
        "Look for a parked fact of the consumer webhooks and for rows deleted by hand; receivers have to ask for the current state.",
    )
}

fn open_webhooks(tx: &mut Tx<'_>) -> Result<Vec<AppId>> {
    let apps = tenancy::apps::list(tx, Page::ALL)?.into_iter();
    let open = apps.filter(|app| app.profile.webhook_url.is_some() && app.profile.operator_tenant_id.is_none());
    Ok(open.map(|app| app.id).collect())
}

fn webhook_secrets(vitals: &Vitals) -> Finding {
    if vitals.open_webhooks.is_empty() {
        return Finding::ok("webhook secrets", "those in use can be rotated by operators only");
    }
    let names: Vec<String> = vitals.open_webhooks.iter().take(10).map(ToString::to_string).collect();
    Finding::warning(
        "webhook secrets",
        format!("every OWNER and ADMIN of any workspace may rotate the signing secret of {}", names.join(", ")),
        "Set operatorTenantId of the app to your own workspace.",
    )
}
