//! `POST /admin/apps/{app_id}/export` and `POST /admin/apps/import`.

use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use axum::extract::FromRequestParts;
use kernel::{AppId, Code, Error, Result, Secret, text_types};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{apps, callers::Operator};
use tokio::io::AsyncWriteExt as _;
use vault::ArchiveKey;
use web::{
    BodyStream, Describe, Failure, Json, Operation, Params, Path, Routes, State, Valid, Validate, optional_header,
};

use super::{export, folder::WorkFolder, import, unreadable};
use crate::{Core, operations::download};

/// As long as it takes: an app may have millions of rows, and archives have no limit.
const LONGEST: Duration = Duration::from_hours(6);
const PASSPHRASE: &str = "x-archive-passphrase";
const KEY: &str = "x-archive-key";

text_types! {
    /// A passphrase that a header can carry.
    ArchivePassphrase {
        "minLength": 8,
        "maxLength": 512,
        "pattern": "^([!-~]([ -~]*[!-~])?)?$",
        "x-message": "must have 8 to 512 ASCII characters, without spaces around them",
    }
    /// The content of a key file.
    ArchiveKeyText {
        "minLength": 43,
        "maxLength": 64,
        "x-message": "must be 32 bytes as 64 hexadecimal digits or as base64",
    }
}

pub(crate) fn routes() -> Routes<Core> {
    Routes::new("Apps")
        .post("/admin/apps/{app_id}/export", export, "Export an app with everything in it")
        .timeout(LONGEST)
        .description(
            "An encrypted archive of the app as it is at this moment: workspaces, people, settings, secrets, events and \
             files. The service keeps accepting writes meanwhile. Give a `passphrase`, or the `key` of a key file.",
        )
        .answers(409, "Files of the app were deleted while it was exported")
        .post("/admin/apps/import", import, "Import an app from an archive")
        .body_limit(usize::MAX)
        .timeout(LONGEST)
        .streamed()
        .description(
            "The archive is checked whole before anything is stored, and the app appears at the end with all of its ids. \
             Its API keys and API tokens keep working; its people sign in again. With `dryRun` nothing is stored.",
        )
        .answers(409, "The app or its domain exists already, or the app is being imported or removed")
}

/// What the archive is encrypted with: exactly one of both.
#[derive(Clone, Deserialize, JsonSchema)]
struct NewArchive {
    passphrase: Option<ArchivePassphrase>,
    /// 32 bytes in base64 or hex.
    key: Option<ArchiveKeyText>,
}

impl Validate for NewArchive {}

impl NewArchive {
    fn key(self) -> Result<ArchiveKey> {
        let passphrase = self.passphrase.as_ref().map(|text| text.as_str());
        archive_key(passphrase, self.key.as_ref().map(|text| text.as_str()), "passphrase", "key")
    }
}

fn archive_key(passphrase: Option<&str>, key: Option<&str>, one: &str, other: &str) -> Result<ArchiveKey> {
    match (passphrase, key) {
        (Some(passphrase), None) => Ok(ArchiveKey::Passphrase(Secret::new(passphrase.to_owned()))),
        (None, Some(key)) => match key.parse() {
            Ok(key) => Ok(ArchiveKey::Key(key)),
            Err(_) => Err(Error::invalid(other, "must be 32 bytes as 64 hexadecimal digits or as base64")),
        },
        (None, None) => Err(Error::invalid(one, format!("is missing; give it, or {other}"))),
        (Some(_), Some(_)) => Err(Error::invalid(other, format!("cannot be given together with {one}"))),
    }
}

struct ArchiveFile(axum::response::Response);

impl axum::response::IntoResponse for ArchiveFile {
    fn into_response(self) -> axum::response::Response {
        self.0
    }
}

impl Describe for ArchiveFile {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "application/octet-stream");
    }
}

async fn export(
    caller: Operator,
    State(core): State<Core>,
    Path(app): Path<AppId>,
    Valid(new): Valid<NewArchive>,
) -> Result<ArchiveFile> {
    let key = new.key()?;
    core.db.read(move |tx| apps::get(tx, app)).await?;
    let folder = WorkFolder::create(&core.data_folder, core.db.entropy())?;
    let file = folder.join("archive");
    let manifest = export::export(&core, app, &key, &file).await?;
    let load = apps::moving::Load { rows: manifest.rows(), files: manifest.files.len() as u64 };
    core.db.by(&caller).write(move |tx| apps::moving::tell_exported(tx, app, load)).await?;
    let mut response = download::stream(&file, "application/octet-stream").await?;
    // The open file stays readable, and nothing is left behind however the download ends.
    drop(folder);
    let named = format!("attachment; filename=\"{}.tenantry\"", manifest.domain);
    if let Ok(named) = HeaderValue::try_from(named) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, named);
    }
    Ok(ArchiveFile(response))
}

/// What opens the archive that is sent.
struct SentKey(ArchiveKey);

impl SentKey {
    fn of(headers: &HeaderMap) -> Result<Self> {
        let (passphrase, key) = (optional_header(headers, PASSPHRASE)?, optional_header(headers, KEY)?);
        archive_key(passphrase, key, PASSPHRASE, KEY).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for SentKey {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Ok(Self::of(&parts.headers)?)
    }
}

impl Describe for SentKey {
    fn describe(operation: &mut Operation) {
        operation.header(PASSPHRASE, false, "The passphrase that the archive was made with");
        operation.header(KEY, false, "The content of the key file that it was made with: 32 bytes in base64 or hex");
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ImportQuery {
    /// Try everything and store nothing.
    dry_run: Option<bool>,
}

/// What an archive brought, or would bring.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ImportedApp {
    /// False after a dry run.
    imported: bool,
    app_id: AppId,
    name: String,
    domain: String,
    /// The release that made the archive.
    release: String,
    rows: u64,
    files: u64,
    /// Files whose bytes were missing where the archive was made.
    missing_files: u64,
    /// Rows by table.
    tables: Vec<ImportedTable>,
}

#[derive(Serialize, JsonSchema)]
struct ImportedTable {
    name: String,
    rows: u64,
}

async fn import(
    caller: Operator,
    State(core): State<Core>,
    Params(query): Params<ImportQuery>,
    SentKey(key): SentKey,
    mut body: BodyStream,
) -> Result<Json<ImportedApp>> {
    let dry_run = query.dry_run.unwrap_or(false);
    let folder = WorkFolder::create(&core.data_folder, core.db.entropy())?;
    let file = folder.join("archive");
    save(&mut body, &file).await?;
    let db = core.db.by(&caller);
    let import::Imported { app, archive } = import::import(&core, &db, &folder, file, key, dry_run).await?;
    let manifest = &archive.manifest;
    Ok(Json(ImportedApp {
        imported: !dry_run,
        app_id: app.id,
        name: app.profile.name,
        domain: app.profile.domain,
        release: manifest.release.clone(),
        rows: manifest.rows(),
        files: manifest.files.len() as u64,
        missing_files: manifest.missing_files,
        tables: manifest
            .tables
            .iter()
            .map(|table| ImportedTable { name: table.name.clone(), rows: table.rows })
            .collect(),
    }))
}

/// Piece by piece: an archive may be larger than memory.
async fn save(body: &mut BodyStream, file: &std::path::Path) -> Result<()> {
    let opened = store::private::create_file(file).map_err(unreadable)?;
    let mut out = tokio::io::BufWriter::new(tokio::fs::File::from_std(opened));
    while let Some(piece) = body.next().await? {
        if let Err(error) = out.write_all(&piece).await {
            body.drain().await;
            return Err(full(error));
        }
    }
    out.flush().await.map_err(full)
}

fn full(error: std::io::Error) -> Error {
    Error::new(Code::StorageUnavailable, "The archive cannot be stored here at the moment: is the disk full?")
        .with_source(error)
}
