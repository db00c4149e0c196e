//! What `/metrics` shows: counters as they stand, and gauges that are read when somebody asks. What the storage cannot tell
//! is left out; the rest is shown all the same.

use std::{sync::Once, time::Duration};

use kernel::{Result, Timestamp};
use metrics::{describe_counter, describe_gauge, describe_histogram, gauge};
use spine::{Waiting, outbox};
use store::Tx;
use web::process;

use crate::{Core, VERSION};

const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) async fn render(core: &Core) -> String {
    describe();
    of_the_process(core);
    // Whoever watches needs the rest most when the storage does not answer.
    let _ = tokio::time::timeout(PATIENCE, of_the_storage(core)).await;
    core.metrics.render()
}

fn of_the_process(core: &Core) {
    gauge!("tenantry_build_info", "version" => VERSION, "engine" => core.db.engine().to_string()).set(1);
    gauge!("process_start_time_seconds").set(core.started_at.as_seconds() as f64);
    if let Some(bytes) = process::resident_memory() {
        gauge!("process_resident_memory_bytes").set(bytes as f64);
    }
    if let Some(count) = process::open_files() {
        gauge!("process_open_fds").set(count as f64);
    }
    if let Some(disk) = process::disk(&core.data_folder) {
        gauge!("tenantry_disk_free_bytes").set(disk.free as f64);
        gauge!("tenantry_disk_bytes").set(disk.total as f64);
    }
}

async fn of_the_storage(core: &Core) {
    gauge!("tenantry_store_pool_size").set(core.db.pool_size() as f64);
    gauge!("tenantry_store_pool_in_use").set(core.db.pool_in_use() as f64);
    for (lane, count) in core.db.queued() {
        gauge!("tenantry_store_queue", "lane" => lane).set(count as f64);
    }
    let writable = core.db.check_writable().await.is_ok();
    gauge!("tenantry_storage_writable").set(u8::from(writable));
    if let Ok(sizes) = core.db.sizes().await {
        gauge!("tenantry_database_bytes").set(sizes.database as f64);
        gauge!("tenantry_database_log_bytes").set(sizes.log.unwrap_or_default() as f64);
    }
    let Ok(backlog) = core.db.read(backlog).await else { return };
    gauge!("tenantry_outbox_waiting").set(backlog.facts as f64);
    gauge!("tenantry_outbox_oldest_seconds").set(age(backlog.oldest_fact, backlog.now));
    gauge!("tenantry_webhooks_waiting").set(backlog.webhooks.waiting as f64);
    gauge!("tenantry_webhooks_oldest_seconds").set(age(backlog.webhooks.oldest_due, backlog.now));
    if let Ok(oldest) = eventlog::oldest_unsent(&core.db).await {
        gauge!("tenantry_event_sinks_oldest_seconds").set(age(oldest, backlog.now));
    }
    for Waiting { channel, count, oldest } in backlog.messages {
        gauge!("tenantry_messages_waiting", "channel" => channel).set(count as f64);
        gauge!("tenantry_messages_oldest_seconds", "channel" => channel).set(age(oldest, backlog.now));
    }
}

struct Backlog {
    now: Timestamp,
    facts: i64,
    oldest_fact: Option<Timestamp>,
    messages: [Waiting; 2],
    webhooks: signals::deliveries::Backlog,
}

fn backlog(tx: &mut Tx<'_>) -> Result<Backlog> {
    let (facts, oldest_fact) = outbox::backlog(tx)?;
    let webhooks = signals::deliveries::backlog(tx)?;
    Ok(Backlog { now: tx.now(), facts, oldest_fact, messages: spine::waiting(tx)?, webhooks })
}

fn age(since: Option<Timestamp>, now: Timestamp) -> f64 {
    since.map_or(0.0, |since| now.since(since).as_secs_f64())
}

/// Every family has a text, whichever room counts it.
fn describe() {
    static DESCRIBED: Once = Once::new();
    DESCRIBED.call_once(|| {
        for (name, text) in GAUGES {
            describe_gauge!(*name, *text);
        }
        for (name, text) in COUNTERS {
            describe_counter!(*name, *text);
        }
        describe_histogram!("tenantry_webhook_attempt_seconds", "How long an attempt at a webhook delivery takes");
        describe_histogram!("tenantry_job_run_seconds", "How long a run of background work takes, by job");
    });
}

const GAUGES: &[(&str, &str)] = &[
    ("process_open_fds", "Open file descriptors"),
    ("process_resident_memory_bytes", "Resident memory"),
    ("process_start_time_seconds", "When the process started, in seconds since 1970"),
    ("tenantry_build_info", "1, with the version and the storage engine as labels"),
    ("tenantry_database_bytes", "Size of the database"),
    ("tenantry_database_log_bytes", "Size of SQLite's write-ahead log"),
    ("tenantry_disk_bytes", "Size of the disk that the data folder is on"),
    ("tenantry_disk_free_bytes", "Free space on the disk that the data folder is on"),
    ("tenantry_event_sinks_oldest_seconds", "How long the oldest event waits that a sink has not taken yet"),
    ("tenantry_messages_oldest_seconds", "Age of the oldest message that waits to be sent, by channel"),
    ("tenantry_messages_waiting", "Messages that wait to be sent, by channel"),
    ("tenantry_outbox_oldest_seconds", "Age of the oldest fact that some consumer has not seen"),
    ("tenantry_outbox_waiting", "Facts that some consumer has not seen"),
    ("tenantry_requests_in_flight", "Requests being served"),
    ("tenantry_storage_writable", "1 while the storage can be written, 0 when it is full, read-only or away"),
    ("tenantry_store_pool_in_use", "Threads or connections that run a transaction"),
    ("tenantry_store_pool_size", "Threads or connections that transactions run on"),
    ("tenantry_streams", "Open streams of the realtime channel"),
    ("tenantry_store_queue", "Transactions that wait for a thread or a connection, by lane"),
    ("tenantry_webhooks_oldest_seconds", "How long the oldest webhook delivery that waits has been due"),
    ("tenantry_webhooks_waiting", "Webhook deliveries that wait for an attempt, retries included"),
];

const COUNTERS: &[(&str, &str)] = &[
    (
        "tenantry_flag_reports_dropped_total",
        "Reports about the use of flags for which there was no room, or that could not be stored",
    ),
    ("tenantry_job_failures_total", "Runs of background work that failed, by job"),
    ("tenantry_job_runs_total", "Runs of background work, by job"),
    ("tenantry_lockouts_total", "Times that further attempts had to wait after failures, by kind"),
    ("tenantry_login_failures_total", "Refused passwords and codes, by kind"),
    ("tenantry_logins_total", "Logins that began"),
    ("tenantry_messages_total", "Messages by channel and outcome"),
    ("tenantry_outbox_failures_total", "Facts on which a consumer failed, by consumer"),
    ("tenantry_outbox_gaps_total", "Times that a follower missed facts and loaded everything again"),
    ("tenantry_outbox_parked_total", "Facts that were set aside after ten failures, by consumer"),
    ("tenantry_rate_limited_total", "Requests that were refused by a rate limit, by class"),
    ("tenantry_streams_dropped_total", "Streams that were ended because they were 64 signals behind"),
    ("tenantry_webhook_attempts_total", "Attempts at webhook deliveries, by outcome"),
];
