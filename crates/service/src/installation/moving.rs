//! From the embedded store to PostgreSQL. The old store stays as it is, but is marked, so that nobody writes to it by
//! mistake; the copy carries a mark of its own until it is known to work, so that a run that was cut off can start over.

use std::{path::PathBuf, sync::Arc};

use ::store::{DatabaseUrl, Db, FolderLocked, MoveEstimate, MoveOrder, MoveProgress, Moved};
use axum::body::Body;
use http::{Request, StatusCode};
use kernel::{Code, Error, Result};
use tower::ServiceExt as _;
use web::AtHand;

use super::{
    keys::{self, Opening},
    store,
};
use crate::{MIGRATIONS, Options, Service};

/// In the old store: where it was moved to.
const MOVED_TO: &str = "moved_to";
/// In the new one, until the move is over or somebody serves it.
const UNFINISHED: &str = "move_unfinished";

/// The record of migrations, which is there before the first of them.
const RECORD: &str = "schema_migrations";

/// Refuses a store that was moved elsewhere, unless it is to be served all the same. From then on it is an ordinary one, as
/// is a copy that is served.
pub(crate) async fn settle_move(db: &Db, opening: Opening, after_move: bool) -> Result<()> {
    let (moved_to, unfinished) =
        db.read(|tx| Ok((store::find(tx, MOVED_TO)?, store::find(tx, UNFINISHED)?.is_some()))).await?;
    let serves = opening == Opening::Serve;
    if let Some(place) = moved_to.as_deref().filter(|_| !(serves && after_move)) {
        return Err(Error::new(
            Code::StorageUnavailable,
            format!(
                "This store was moved to {place}: set database_url to that. What has been written there since is not \
                 here. To return to this store all the same: tenantry serve --after-move."
            ),
        ));
    }
    if serves && (moved_to.is_some() || unfinished) {
        let settled = db.write(|tx| {
            store::remove(tx, MOVED_TO)?;
            store::remove(tx, UNFINISHED)
        });
        settled.await?;
    }
    Ok(())
}

/// Copies the embedded store into an empty database of PostgreSQL, compares both, and starts a service on the copy. Only
/// then is the old store marked, which is all that changes there.
pub async fn migrate_to(
    options: Options,
    target: DatabaseUrl,
    watcher: Arc<dyn Fn(&MoveProgress) + Send + Sync>,
) -> Result<Moved> {
    let ends = Ends::open(&options, target.clone()).await?;
    let moved = async {
        let order = MoveOrder {
            source: ends.path.clone(),
            migrations: MIGRATIONS,
            clear: ends.unfinished,
            watcher,
            finish: |tx| {
                store::remove(tx, MOVED_TO)?;
                store::put(tx, UNFINISHED, "")
            },
        };
        let moved = ends.target.move_in(order).await?;
        let place = target.to_string();
        try_start(options, target).await?;
        ends.source.write(move |tx| store::put(tx, MOVED_TO, &place)).await?;
        ends.target.write(|tx| store::remove(tx, UNFINISHED)).await?;
        Ok(moved)
    }
    .await;
    ends.close().await;
    moved
}

/// Finds out whether the store could be moved and how long it would take, and changes nothing on either side.
pub async fn estimate_move(options: Options, target: DatabaseUrl) -> Result<MoveEstimate> {
    let ends = Ends::open(&options, target).await?;
    let estimate = ends.target.try_move_in(&ends.path, MIGRATIONS, ends.unfinished).await;
    ends.close().await;
    estimate
}

/// Both sides of a move, as far as they are fit for it.
struct Ends {
    source: Db,
    path: PathBuf,
    target: Db,
    /// The target holds what an earlier run left there.
    unfinished: bool,
}

impl Ends {
    async fn open(options: &Options, target: DatabaseUrl) -> Result<Self> {
        let refuse = |message: &'static str| Err(Error::new(Code::Conflict, message));
        let DatabaseUrl::Sqlite(path) = &options.database else {
            return refuse("This installation is on PostgreSQL already.");
        };
        if matches!(target, DatabaseUrl::Sqlite(_)) {
            return refuse("A store is moved to postgres://user:password@host:port/database, and nowhere else.");
        }
        if !path.exists() {
            return Err(super::no_store(&options.database));
        }
        let source = open(options, options.database.clone()).await.map_err(|error| in_use(error, &options.database))?;
        let opened = Self::fit(options, path.clone(), source.clone(), target).await;
        if opened.is_err() {
            source.close().await;
        }
        opened
    }

    async fn fit(options: &Options, path: PathBuf, source: Db, target: DatabaseUrl) -> Result<Self> {
        check_source(&source, options).await?;
        let target = open(options, target).await?;
        match check_target(&source, &target).await {
            Ok(unfinished) => Ok(Self { source, path, target, unfinished }),
            Err(error) => {
                target.close().await;
                Err(error)
            }
        }
    }

    async fn close(&self) {
        self.target.close().await;
        self.source.close().await;
    }
}

async fn open(options: &Options, url: DatabaseUrl) -> Result<Db> {
    let (clock, entropy, limits) = (options.clock.clone(), options.entropy.clone(), options.store_limits.clone());
    Db::open(::store::Options { url, clock, entropy, limits }).await
}

fn in_use(error: Error, database: &DatabaseUrl) -> Error {
    if FolderLocked::is_cause_of(&error) {
        let message = format!("A server uses {database}. Stop it first: what it writes during a move would be lost.");
        return Error::new(Code::Conflict, message);
    }
    error
}

async fn check_source(source: &Db, options: &Options) -> Result<()> {
    if source.is_empty().await? {
        return Err(super::no_store(&options.database));
    }
    if !source.is_migrated(MIGRATIONS).await? {
        return Err(Error::new(
            Code::Conflict,
            "The store has the schema of an older release. Start and stop tenantry serve of this release once, which \
             brings it up to date.",
        ));
    }
    keys::check_master_key(source, &options.keys).await
}

/// Whether an earlier run was cut off there; an error when it is anything but that and empty.
async fn check_target(source: &Db, target: &Db) -> Result<bool> {
    let names = target.table_names().await?;
    let is_store = ["installation", RECORD].iter().all(|name| names.iter().any(|table| table == name));
    let unfinished = is_store && target.read(|tx| Ok(store::find(tx, UNFINISHED)?.is_some())).await?;
    let only_a_record = names.iter().all(|name| name == RECORD);
    if !(unfinished || only_a_record && target.is_empty().await?) {
        return Err(Error::new(
            Code::Conflict,
            "The target database is not empty. Make a new one: nothing is ever overwritten.",
        ));
    }
    // A run that was cut off at its very end has marked the store already.
    if let Some(place) = source.read(|tx| store::find(tx, MOVED_TO)).await?.filter(|_| !unfinished) {
        return Err(Error::new(
            Code::Conflict,
            format!("This store was moved to {place} already. To return to it first: tenantry serve --after-move."),
        ));
    }
    target.check_rights().await?;
    Ok(unfinished)
}

/// A service on the new store must answer. None of its background work runs.
async fn try_start(mut options: Options, target: DatabaseUrl) -> Result<()> {
    (options.database, options.opening) = (target, Opening::Command);
    let service = Box::pin(Service::open(options)).await?;
    let mut outcome = Ok(());
    for path in ["/readyz", "/admin/apps"] {
        let request = Request::get(path).extension(AtHand).body(Body::empty()).map_err(Error::internal)?;
        let answer = service.app().oneshot(request).await.unwrap_or_else(|never| match never {});
        if answer.status() != StatusCode::OK {
            let message = format!("A service on the new store answers {path} with {}.", answer.status().as_u16());
            outcome = Err(Error::new(Code::StorageUnavailable, message));
        }
    }
    service.close().await;
    outcome
}
