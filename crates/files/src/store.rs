//! The SQL of files.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Page, Result, TenantId};

use super::{File, FileId, FileState};

row! {
    File = "files" {
        id,
        tenant: "tenant_id",
        object,
        file_name,
        content_type,
        state,
        size,
        sha256,
        fits_type,
        persisted,
        public_file,
        expires_at,
        created_at,
    }
}

pub(crate) fn insert(tx: &mut Tx<'_>, app: AppId, file: &File) -> Result<()> {
    tx.run(
        "INSERT INTO files (id, app_id, tenant_id, object, file_name, content_type, state, size, sha256, fits_type, \
         persisted, public_file, expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, '', FALSE, FALSE, FALSE, $8, $9)",
        &args![
            file.id,
            app,
            file.tenant,
            file.object,
            file.file_name,
            file.content_type,
            file.state,
            file.expires_at,
            file.created_at
        ],
    )
}

/// Of this app, whatever its workspace.
pub(crate) fn find_in_app(tx: &mut Tx<'_>, app: AppId, id: FileId) -> Result<Option<File>> {
    tx.opt(
        sql!(
            "SELECT ",
            File::COLUMNS,
            " FROM files WHERE app_id = $1 AND id = $2 AND (expires_at IS NULL OR expires_at > $3)"
        ),
        &args![app, id, tx.now()],
    )
}

/// Whatever its app: for whoever has the file's address.
pub(crate) fn find_anywhere(tx: &mut Tx<'_>, id: FileId) -> Result<Option<File>> {
    tx.opt(
        sql!("SELECT ", File::COLUMNS, " FROM files WHERE id = $1 AND (expires_at IS NULL OR expires_at > $2)"),
        &args![id, tx.now()],
    )
}

pub(crate) fn find(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: FileId) -> Result<Option<File>> {
    Ok(find_in_app(tx, app, id)?.filter(|file| file.tenant == tenant))
}

/// What a workspace uses. Hold its lock.
pub(crate) fn used(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<i64> {
    let (used,): (Option<i64>,) = tx.one(
        "SELECT CAST(sum(size) AS BIGINT) FROM files WHERE app_id = $1 AND tenant_id = $2 \
         AND (expires_at IS NULL OR expires_at > $3)",
        &args![app, tenant, tx.now()],
    )?;
    Ok(used.unwrap_or(0))
}

/// The bytes are here; false when they were before.
pub(crate) fn uploaded(tx: &mut Tx<'_>, app: AppId, file: &File) -> Result<bool> {
    tx.changes_one(
        "UPDATE files SET state = 'uploaded', size = $3, sha256 = $4, fits_type = $5, expires_at = $6, object = $7 \
         WHERE app_id = $1 AND id = $2 AND state = 'prepared'",
        &args![app, file.id, file.size, file.sha256, file.fits_type, file.expires_at, file.object],
    )
}

/// With the bytes that it was given last. False when it was finished before.
pub(crate) fn finish(tx: &mut Tx<'_>, app: AppId, file: &File) -> Result<bool> {
    tx.changes_one(
        "UPDATE files SET state = 'finished', object = $3, size = $4, sha256 = $5, fits_type = $6, \
         persisted = $7, public_file = $8, expires_at = $9 WHERE app_id = $1 AND id = $2 AND state <> 'finished'",
        &args![
            app,
            file.id,
            file.object,
            file.size,
            file.sha256,
            file.fits_type,
            file.persisted,
            file.public_file,
            file.expires_at
        ],
    )
}

/// Finished ones, newest first.
pub(crate) fn list(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, page: Page) -> Result<Vec<File>> {
    tx.all(
        sql!(
            "SELECT ",
            File::COLUMNS,
            " FROM files WHERE app_id = $1 AND tenant_id = $2 AND state = 'finished' \
             AND (expires_at IS NULL OR expires_at > $3) ORDER BY id DESC LIMIT $4 OFFSET $5"
        ),
        &args![app, tenant, tx.now(), page.limit_or_all(), page.offset()],
    )
}

pub(crate) fn delete(tx: &mut Tx<'_>, app: AppId, id: FileId) -> Result<()> {
    tx.run("DELETE FROM files WHERE app_id = $1 AND id = $2", &args![app, id])
}

/// Files of all apps that have bytes, in the order of their ids.
pub(crate) fn with_bytes(tx: &mut Tx<'_>, after: &str, most: usize) -> Result<Vec<(FileId, String)>> {
    tx.all(
        "SELECT id, object FROM files WHERE id > $1 AND state <> 'prepared' AND (expires_at IS NULL OR expires_at > $2) \
         ORDER BY id LIMIT $3",
        &args![after, tx.now(), i64::try_from(most).unwrap_or(i64::MAX)],
    )
}

/// Those of these objects that some file has.
pub(crate) fn known_objects(tx: &mut Tx<'_>, objects: &[String]) -> Result<Vec<String>> {
    let known: Vec<(String,)> = tx.all("SELECT object FROM files WHERE object = ANY($1)", &args![objects])?;
    Ok(known.into_iter().map(|(object,)| object).collect())
}

impl File {
    pub(crate) fn is_uploaded(&self) -> bool {
        self.state != FileState::Prepared
    }
}
