//! The SQL of imports.

use std::time::Duration;

use ::store::{FromRow, Json, Row, Tx, args, sql};
use kernel::{Actor, AppId, Author, Error, Result, TenantId, Timestamp};
use spine::lease;

use super::{Import, ImportId, ImportState};
use crate::{batch::Judged, tables::STAGED_FOR};

const COLUMNS: &str = "id, app_id, state, tenants, users, passwords, errors, warnings, done_tenants, done_users, left_out, \
                       item, workspace, quiet, actor, address, request_id, created_at";

impl FromRow for Import {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (actor, address): (String, Option<String>) = (row.get("actor")?, row.get("address")?);
        Ok(Self {
            id: row.get("id")?,
            app: row.get("app_id")?,
            state: row.get("state")?,
            tenants: row.get("tenants")?,
            users: row.get("users")?,
            passwords: row.get("passwords")?,
            errors: row.get::<Json<_>>("errors")?.0,
            warnings: row.get::<Json<_>>("warnings")?.0,
            done_tenants: row.get("done_tenants")?,
            done_users: row.get("done_users")?,
            left_out: row.get("left_out")?,
            item: row.get("item")?,
            workspace: row.get("workspace")?,
            quiet: row.get("quiet")?,
            author: Author {
                actor: serde_json::from_str::<Actor>(&actor).map_err(Error::internal)?,
                address: address.map(|address| address.parse()).transpose().map_err(Error::internal)?,
                request: row.get("request_id")?,
            },
            created_at: row.get("created_at")?,
        })
    }
}

/// A batch that is beginning to arrive.
pub(super) fn insert(tx: &mut Tx<'_>, app: AppId, id: ImportId, quiet: bool, until: Timestamp) -> Result<()> {
    let author = tx.author();
    let actor = serde_json::to_string(&author.actor).map_err(Error::internal)?;
    let (address, request) = (author.address.map(|address| address.to_string()), author.request.clone());
    tx.run(
        "INSERT INTO imports (id, app_id, state, tenants, users, passwords, errors, warnings, done_tenants, done_users, \
         left_out, quiet, actor, address, request_id, created_at, turn_at, expires_at) VALUES ($1, $2, $3, 0, 0, FALSE, \
         '{\"shown\":[],\"count\":0}', '{\"shown\":[],\"count\":0}', 0, 0, 0, $4, $5, $6, $7, $8, $8, $9)",
        &args![id, app, ImportState::Reading, quiet, actor, address, request, tx.now(), until],
    )
}

pub(super) fn stage(tx: &mut Tx<'_>, app: AppId, import: ImportId, rows: &[(String, i64, String)]) -> Result<()> {
    let (now, until) = (tx.now(), tx.now().plus(STAGED_FOR));
    let rows: Vec<_> = rows
        .iter()
        .map(|(id, people, sealed)| (id.clone(), app, import, *people, sealed.clone(), now, until))
        .collect();
    tx.insert_all(
        "INSERT INTO import_rows (id, app_id, import_id, people, sealed, created_at, expires_at) \
         SELECT id, app_id, import_id, people, sealed, created_at, expires_at FROM {rows} WHERE true",
        ["id", "app_id", "import_id", "people", "sealed", "created_at", "expires_at"],
        &rows,
    )
}

/// The import that a repetition repeats. Hold the app's lock.
pub(super) fn repeated(tx: &mut Tx<'_>, app: AppId, digest: &str, since: Timestamp) -> Result<Option<Import>> {
    tx.opt(
        sql!(
            "SELECT ",
            COLUMNS,
            " FROM imports WHERE app_id = $1 AND repeat_digest = $2 AND created_at > $3 ORDER BY id DESC LIMIT 1"
        ),
        &args![app, digest, since],
    )
}

/// False when the staged batch is gone.
pub(super) fn approve(
    tx: &mut Tx<'_>,
    app: AppId,
    id: ImportId,
    judged: &Judged,
    repeat: Option<&str>,
    (state, until): (ImportState, Timestamp),
) -> Result<bool> {
    tx.changes_one(
        "UPDATE imports SET state = $3, tenants = $4, users = $5, passwords = $6, warnings = $7, repeat_digest = $8, \
         expires_at = $9, created_at = $10, turn_at = $10 WHERE app_id = $1 AND id = $2 AND state = 'READING'",
        &args![
            app,
            id,
            state,
            i64::try_from(judged.tenants).unwrap_or(i64::MAX),
            i64::try_from(judged.users).unwrap_or(i64::MAX),
            judged.passwords,
            Json(&judged.warnings),
            repeat,
            until,
            tx.now()
        ],
    )
}

/// Deletes some of a batch that is not wanted; false when nothing is left of it.
pub(super) fn discard(tx: &mut Tx<'_>, app: AppId, id: ImportId, most: i64) -> Result<bool> {
    let deleted = tx.exec(
        "DELETE FROM import_rows WHERE id IN (SELECT id FROM import_rows WHERE app_id = $1 AND import_id = $2 LIMIT $3)",
        &args![app, id, most],
    )?;
    if deleted > 0 {
        return Ok(true);
    }
    tx.run("DELETE FROM imports WHERE app_id = $1 AND id = $2 AND state = 'READING'", &args![app, id])?;
    Ok(false)
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, id: ImportId) -> Result<Option<Import>> {
    tx.opt(
        sql!(
            "SELECT ",
            COLUMNS,
            " FROM imports WHERE app_id = $1 AND id = $2 AND state <> 'READING' AND expires_at > $3"
        ),
        &args![app, id, tx.now()],
    )
}

/// Newest first.
pub(super) fn list(tx: &mut Tx<'_>, app: AppId, most: i64, offset: i64) -> Result<Vec<Import>> {
    tx.all(
        sql!(
            "SELECT ",
            COLUMNS,
            " FROM imports WHERE app_id = $1 AND state <> 'READING' AND expires_at > $2 ORDER BY id DESC LIMIT $3 OFFSET $4"
        ),
        &args![app, tx.now(), most, offset],
    )
}

/// Takes the import whose turn it is, for this node. Those of a deleted app have none: they are purged.
pub(super) fn claim(tx: &mut Tx<'_>, owner: &str, length: Duration) -> Result<Option<Import>> {
    let next: Option<(ImportId,)> = tx.opt(
        sql!(
            "SELECT id FROM imports WHERE state IN ('SCHEDULED', 'RUNNING') AND ",
            tenancy::app_exists!("imports.app_id"),
            " AND (lease_until IS NULL OR lease_until < {db_now} OR lease_owner = $1) ORDER BY turn_at, id LIMIT 1 {claim}"
        ),
        &args![owner],
    )?;
    let Some((id,)) = next else { return Ok(None) };
    tx.opt(
        sql!(
            "UPDATE imports SET lease_owner = $2, lease_until = {db_now} + $3, state = 'RUNNING', turn_at = $4 \
             WHERE id = $1 RETURNING ",
            COLUMNS
        ),
        &args![id, owner, lease::micros(length), tx.now()],
    )
}

pub(super) fn free(tx: &mut Tx<'_>, owner: &str) -> Result<()> {
    tx.run("UPDATE imports SET lease_owner = NULL, lease_until = NULL WHERE lease_owner = $1", &args![owner])
}

/// When the oldest import that is not finished was due.
pub(super) fn oldest(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    let (oldest,): (Option<Timestamp>,) = tx.one(
        sql!(
            "SELECT min(created_at) FROM imports WHERE state IN ('SCHEDULED', 'RUNNING') AND ",
            tenancy::app_exists!("imports.app_id")
        ),
        &[],
    )?;
    Ok(oldest)
}

/// A staged row.
pub(super) struct StagedRow {
    pub(super) id: String,
    pub(super) sealed: String,
}

::store::row! { StagedRow = "import_rows" { id, sealed } }

/// The next rows, in the order of the batch: as many as have at most so many people, and at least one.
pub(super) fn next_rows(tx: &mut Tx<'_>, app: AppId, import: ImportId, most: i64) -> Result<Vec<StagedRow>> {
    let waiting: Vec<(String, i64)> = tx.all(
        "SELECT id, people FROM import_rows WHERE app_id = $1 AND import_id = $2 ORDER BY id LIMIT $3",
        &args![app, import, most],
    )?;
    let mut people = 0;
    let fits = |(_, more): &(String, i64)| {
        people += more;
        people <= most || people == *more
    };
    let ids: Vec<String> = waiting.into_iter().take_while(fits).map(|(id, _)| id).collect();
    tx.all(
        sql!("SELECT ", StagedRow::COLUMNS, " FROM import_rows WHERE app_id = $1 AND id = ANY($2) ORDER BY id"),
        &args![app, ids],
    )
}

/// The import, which no other node works on until the transaction ends.
pub(super) fn hold(tx: &mut Tx<'_>, app: AppId, id: ImportId) -> Result<Option<Import>> {
    tx.opt(
        sql!(
            "UPDATE imports SET turn_at = turn_at WHERE app_id = $1 AND id = $2 AND state = 'RUNNING' RETURNING ",
            COLUMNS
        ),
        &args![app, id],
    )
}

/// Uses rows up; how many of them were there.
pub(super) fn use_up(tx: &mut Tx<'_>, app: AppId, rows: &[String]) -> Result<u64> {
    tx.exec("DELETE FROM import_rows WHERE app_id = $1 AND id = ANY($2)", &args![app, rows])
}

pub(super) fn progress(tx: &mut Tx<'_>, import: &Import) -> Result<()> {
    tx.run(
        "UPDATE imports SET errors = $3, done_tenants = $4, done_users = $5, left_out = $6, item = $7, workspace = $8 \
         WHERE app_id = $1 AND id = $2",
        &args![
            import.app,
            import.id,
            Json(&import.errors),
            import.done_tenants,
            import.done_users,
            import.left_out,
            import.item,
            import.workspace
        ],
    )
}

pub(super) fn finish(tx: &mut Tx<'_>, import: &Import, state: ImportState) -> Result<()> {
    tx.run(
        "UPDATE imports SET state = $3, lease_owner = NULL, lease_until = NULL WHERE app_id = $1 AND id = $2",
        &args![import.app, import.id, state],
    )
}

impl Import {
    pub(super) fn workspace_id(&self) -> Option<TenantId> {
        self.workspace.as_deref().and_then(|id| id.parse().ok())
    }
}
