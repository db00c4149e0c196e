//! A batch while it arrives: sealed rows that nobody sees, because digests and peppers are secrets. They are there only
//! until the batch is refused, cut off or carried out.

use ::store::Db;
use kernel::{AppId, Code, Error, Result};
use serde_json::{from_slice, to_vec};
use spine::emit;
use tenancy::apps;
use vault::{Keyring, Place};

use super::{Import, ImportId, ImportState, store};
use crate::{
    Imports,
    batch::{Bundle, Judged},
    facts::{ImportFinished, ImportStarted},
    tables::STAGED_FOR,
};

/// How long a reference answers.
const KEPT: std::time::Duration = std::time::Duration::from_hours(30 * 24);
/// How long a repetition is known.
pub(super) const REPEATED_WITHIN: std::time::Duration = std::time::Duration::from_hours(24);
/// Rows that one transaction writes or deletes.
const ROWS_AT_ONCE: usize = 100;

/// Goes away with all it has stored unless it is approved.
pub(crate) struct Staging {
    room: Imports,
    /// In the caller's name.
    db: Db,
    app: AppId,
    quiet: bool,
    id: Option<ImportId>,
}

impl Staging {
    /// `db` acts in the caller's name. Nothing is stored yet.
    pub(crate) fn new(room: &Imports, db: Db, app: AppId, quiet: bool) -> Self {
        Self { room: room.clone(), db, app, quiet, id: None }
    }

    async fn begin(&mut self) -> Result<ImportId> {
        if let Some(id) = self.id {
            return Ok(id);
        }
        let (app, quiet) = (self.app, self.quiet);
        let begun = self.db.write(move |tx| {
            let id = tx.new_id();
            store::insert(tx, app, id, quiet, tx.now().plus(STAGED_FOR))?;
            Ok(id)
        });
        let id = begun.await?;
        self.id = Some(id);
        Ok(id)
    }

    pub(crate) async fn add(&mut self, bundles: Vec<Bundle>) -> Result<()> {
        if bundles.is_empty() {
            return Ok(());
        }
        let (app, import) = (self.app, self.begin().await?);
        let sealed: Vec<_> = bundles
            .iter()
            .map(|bundle| seal(&self.room.tenancy.keyring, app, import, bundle))
            .collect::<Result<_>>()?;
        for rows in sealed.chunks(ROWS_AT_ONCE) {
            let rows = rows.to_vec();
            self.db.write(move |tx| store::stage(tx, app, import, &rows)).await?;
        }
        Ok(())
    }

    /// Makes an import of what was staged; the earlier one when the caller repeats themselves.
    pub(crate) async fn approve(mut self, judged: Judged, repeat: Option<String>) -> Result<Import> {
        let (app, id) = (self.app, self.begin().await?);
        let approved = self.db.write(move |tx| {
            apps::hold(tx, app)?;
            if let Some(digest) = &repeat
                && let Some(first) = store::repeated(tx, app, digest, tx.now().minus(REPEATED_WITHIN))?
            {
                return Ok(first);
            }
            let empty = judged.tenants == 0;
            let state = if empty { ImportState::Completed } else { ImportState::Scheduled };
            if !store::approve(tx, app, id, &judged, repeat.as_deref(), (state, tx.now().plus(KEPT)))? {
                return Err(Error::new(Code::TimedOut, "The batch took too long to arrive. Send it again."));
            }
            let import = store::find(tx, app, id)?.ok_or_else(|| Error::internal("an approved import is gone"))?;
            let (tenants, users) = (import.tenants, import.users);
            emit(tx, app, &ImportStarted { reference: id, tenants, users })?;
            if empty {
                emit(tx, app, &ImportFinished { reference: id, status: state, tenants, users, left_out: 0 })?;
            }
            Ok(import)
        });
        let import = approved.await?;
        if import.id == id {
            self.id = None;
            self.room.due.wake();
        }
        Ok(import)
    }

    /// Leaves nothing behind.
    pub(crate) async fn discard(mut self) -> Result<()> {
        match self.id.take() {
            Some(id) => discard(&self.room.tenancy.db, self.app, id).await,
            None => Ok(()),
        }
    }
}

async fn discard(db: &Db, app: AppId, id: ImportId) -> Result<()> {
    let most = i64::try_from(ROWS_AT_ONCE).unwrap_or(i64::MAX);
    while db.write(move |tx| store::discard(tx, app, id, most)).await? {}
    Ok(())
}

/// The caller has gone, or something failed. What this cannot delete any more, the sweep does.
impl Drop for Staging {
    fn drop(&mut self) {
        if let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) {
            let (db, app) = (self.room.tenancy.db.clone(), self.app);
            runtime.spawn(async move {
                if let Err(error) = discard(&db, app, id).await {
                    tracing::debug!(%id, ?error, "a batch that was cut off is left to the sweep");
                }
            });
        }
    }
}

/// A row's id has the order of the batch.
fn seal(keyring: &Keyring, app: AppId, import: ImportId, bundle: &Bundle) -> Result<(String, i64, String)> {
    let id = format!("{import}/{:05}/{:05}", bundle.item, bundle.position);
    let people = i64::try_from(bundle.people()).map_err(Error::internal)?;
    let sealed = keyring.seal(&place(app, &id), &to_vec(bundle).map_err(Error::internal)?);
    Ok((id, people, sealed))
}

pub(super) fn open(keyring: &Keyring, app: AppId, id: &str, sealed: &str) -> Result<Bundle> {
    let opened = keyring.open(&place(app, id), sealed)?;
    let bundle: Bundle = from_slice(opened.expose()).map_err(Error::internal)?;
    let mut numbers = id.rsplit('/').map(|number| number.parse().map_err(Error::internal));
    let position = numbers.next().unwrap_or(Ok(0))?;
    Ok(Bundle { position, item: numbers.next().unwrap_or(Ok(0))?, ..bundle })
}

fn place(app: AppId, id: &str) -> Place<'_> {
    Place { table: "import_rows", column: "sealed", row: id, app: Some(app) }
}
