//! Sends an app's events on, to an engine that is made for very many of them. At least once: a batch has an id by which
//! a receiver knows it again, and a batch that may have arrived is sent again with the same events under the same id.
//!
//! New events are sent in the order in which the fold wrote them: folds of an app have revisions, and each becomes visible
//! as a whole before the next. What was there before the sink is sent by the backfill, in the order of an export.

mod batches;
mod ddl;
mod http;
mod job;
mod rules;
mod send;
mod store;

use ::store::{Db, Json, Tx, text_enum};
use kernel::{AppId, Result, Secret, Timestamp};
use serde::{Deserialize, Serialize};
use vault::{Keyring, Place};

pub use ddl::ddl;
pub(crate) use http::routes;
pub(crate) use job::SinkJob;
pub(crate) use store::{exists, sent_until};

text_enum! {
    /// Who takes the events.
    #[schemars(rename = "EventSinkKind")]
    wire pub enum SinkKind {
        /// By its HTTP interface.
        ClickHouse = "clickhouse",
        /// Whoever takes JSON lines by POST.
        Http = "http",
    }
}

/// A sink with how far it is.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    app: AppId,
    kind: SinkKind,
    sealed: String,
    shown_url: String,
    table_name: Option<String>,
    events: Vec<String>,
    since: Timestamp,
    made_at: i64,
    fresh: Lane,
    /// None once all of it has arrived.
    backfill: Option<Lane>,
    failures: i64,
    last_error: Option<String>,
    last_sent_at: Option<Timestamp>,
    created_at: Timestamp,
}

/// What only the receiver may know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Credentials {
    url: String,
    headers: Vec<(String, String)>,
}

/// Which of its two ways to the sink an event goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Written since the sink was set up.
    New,
    /// There before.
    Backfill,
}

/// How far one of the ways is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Lane {
    /// Everything until here has arrived.
    after: Position,
    /// What is being sent, fixed before the first attempt.
    batch: Option<Batch>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Batch {
    id: String,
    until: Position,
}

/// After a certain event, in the order of a way.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Position {
    /// The revision of the fold that wrote it; in the backfill, its name.
    group: i64,
    /// When it happened, in the backfill; before the first event of the group there is none.
    at: Option<i64>,
    id: String,
}

fn place(app: &str) -> Place<'_> {
    Place { table: "event_sinks", column: "sealed", row: app, app: None }
}

impl Sink {
    fn lane(&self, way: Way) -> Option<&Lane> {
        match way {
            Way::New => Some(&self.fresh),
            Way::Backfill => self.backfill.as_ref(),
        }
    }

    fn set_lane(&mut self, way: Way, lane: Lane) {
        match way {
            Way::New => self.fresh = lane,
            Way::Backfill => self.backfill = Some(lane),
        }
    }

    fn credentials(&self, keyring: &Keyring) -> Result<Credentials> {
        let app = self.app.to_string();
        let opened: Secret<Vec<u8>> = keyring.open(&Place { app: Some(self.app), ..place(&app) }, &self.sealed)?;
        serde_json::from_slice(opened.expose()).map_err(kernel::Error::internal)
    }

    /// Whether events of this name are sent; a `*` at the end of a name stands for any ending.
    fn takes(&self, name: &str) -> bool {
        let fits = |wanted: &String| match wanted.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == wanted,
        };
        self.events.is_empty() || self.events.iter().any(fits)
    }
}

/// A sink that does not take what it is sent.
#[derive(Clone, Debug)]
pub struct FailingSink {
    pub app: AppId,
    pub failures: i64,
    pub error: String,
}

/// Those whose last attempt failed, at most 100.
pub fn failing(tx: &mut Tx<'_>) -> Result<Vec<FailingSink>> {
    store::failing(tx)
}

/// When the oldest event came that a sink has not taken yet.
pub async fn oldest_unsent(db: &Db) -> Result<Option<Timestamp>> {
    db.scan(store::oldest_unsent).await
}

/// As it stands in its column.
fn json<T: Serialize + Clone>(value: &T) -> Json<T> {
    Json(value.clone())
}
