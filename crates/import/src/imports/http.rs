//! `/account/import`.

use std::{sync::Arc, time::Duration};

use ::store::Db;
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::request::Parts;
use kernel::{AppId, Error, Result, WebUrl};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{
    App, Authority,
    callers::{AppCaller, TenantRead, TenantWrite},
};
use vault::sha256_hex;
use web::{
    BodyStream, Describe, Failure, Json, Operation, Page, Params, Path, Routes, State, Valid, Validate, optional_header,
};

use super::{Import, ImportId, ImportState, Source, Staging, fetch, staging::REPEATED_WITHIN, store};
use crate::{
    Imports,
    batch::{Findings, ImportBatch, Judged, Survey},
};

pub(super) const MAX_BYTES: usize = 64 * 1024 * 1024;
/// A slow line needs minutes for the largest batch.
pub(super) const LONGEST: Duration = Duration::from_mins(15);
/// Of a list that names no limit.
const LISTED: i64 = 100;

pub(crate) fn routes() -> Routes<Imports> {
    Routes::new("Import")
        .post("/account/import/tenants", import, "Import workspaces and users")
        .description(
            "Everything is judged before anything is stored: a batch with errors is answered with all of them, the status \
             `ERROR` and no `reference`. An approved one is imported in the background. No mail is sent. The body may also be \
             `text/csv` with one row per user.",
        )
        .body_limit(MAX_BYTES)
        .timeout(LONGEST)
        .streamed()
        .post("/account/import/validateTenants", validate, "Check a batch without importing it")
        .body_limit(MAX_BYTES)
        .timeout(LONGEST)
        .streamed()
        .post("/account/import/tenantsFromFile", import_file, "Import workspaces and users from a file")
        .description("The file is JSON as for `/account/import/tenants`, or `text/csv` with one row per user.")
        .answers(502, NOT_FETCHED)
        .timeout(LONGEST)
        .post("/account/import/validateTenantsFromFile", validate_file, "Check a file without importing it")
        .answers(502, NOT_FETCHED)
        .timeout(LONGEST)
        .get("/account/import/status/{reference}", status, "Get how far an import has come")
        .get("/account/import", list, "List imports, newest first")
        .description("The last 100, unless `limit` says otherwise.")
}

const NOT_FETCHED: &str = "The file could not be fetched";

/// Where the batch is.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BatchFile {
    /// A public http or https address.
    file_url: WebUrl,
}

impl Validate for BatchFile {}

/// How an import is asked for.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) struct ImportQuery {
    /// Whether webhook events are sent for what is made; they are without it.
    webhooks: Option<bool>,
}

/// What makes a repeated call answer with the first one's `reference`, for 24 hours.
pub(super) struct IdempotencyKey(Option<String>);

const HEADER: &str = "idempotency-key";

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let sent = optional_header(&parts.headers, HEADER)?;
        if sent.is_some_and(|key| key.len() > 256) {
            return Err(Error::invalid("Idempotency-Key", "must be at most 256 characters").into());
        }
        Ok(Self(sent.map(|key| sha256_hex(key.as_bytes()))))
    }
}

impl Describe for IdempotencyKey {
    fn describe(operation: &mut Operation) {
        operation.header(HEADER, false, "Makes a repeated call answer with the first one's `reference`, for 24 hours");
    }
}

/// A batch that is arriving, as JSON or as a table.
pub(super) struct Batch {
    body: BodyStream,
    is_csv: bool,
}

impl<S: Sync> FromRequest<S> for Batch {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let body = BodyStream::from_request(request, state).await?;
        let is_csv = fetch::is_csv(body.content_type().unwrap_or_default(), "");
        if !is_csv {
            body.require_json()?;
        }
        Ok(Self { body, is_csv })
    }
}

impl Describe for Batch {
    fn describe(operation: &mut Operation) {
        operation.body::<ImportBatch>();
    }
}

/// What was found about a batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ImportReport {
    /// Workspaces in the batch.
    tenants: i64,
    /// People in the batch, owners included.
    users: i64,
    /// Whether anybody brings a password.
    passwords: bool,
    /// What keeps the batch from being imported, or what could not be stored; each begins with its place. At most 1,000.
    errors: Vec<String>,
    /// What is imported otherwise than the batch says. At most 1,000.
    warnings: Vec<String>,
    /// Whether the batch is, or would be, imported.
    approved: bool,
}

impl From<&Judged> for ImportReport {
    fn from(judged: &Judged) -> Self {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        Self {
            tenants: count(judged.tenants),
            users: count(judged.users),
            passwords: judged.passwords,
            errors: judged.errors.texts(),
            warnings: judged.warnings.texts(),
            approved: judged.errors.is_empty(),
        }
    }
}

impl From<&Import> for ImportReport {
    fn from(import: &Import) -> Self {
        let texts = Findings::texts;
        Self {
            tenants: import.tenants,
            users: import.users,
            passwords: import.passwords,
            errors: texts(&import.errors),
            warnings: texts(&import.warnings),
            approved: true,
        }
    }
}

/// The answer to a batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ImportAnswer {
    status: ImportState,
    /// Missing when the batch was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<ImportId>,
    import: ImportReport,
}

/// How far an import has come.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ImportStatus {
    status: ImportState,
    reference: ImportId,
    import: ImportReport,
    progress: ImportProgress,
}

/// What has been stored.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct ImportProgress {
    tenants: i64,
    users: i64,
}

impl From<&Import> for ImportStatus {
    fn from(import: &Import) -> Self {
        Self {
            status: import.state,
            reference: import.id,
            import: import.into(),
            progress: ImportProgress { tenants: import.done_tenants, users: import.done_users },
        }
    }
}

impl From<&Import> for ImportAnswer {
    fn from(import: &Import) -> Self {
        Self { status: import.state, reference: Some(import.id), import: import.into() }
    }
}

/// Who sends a batch: into which app, and what they may give.
pub(super) struct Sender {
    pub(super) app: Arc<App>,
    pub(super) authority: Authority,
    /// Writes in the sender's name.
    pub(super) db: Db,
}

impl Sender {
    fn of_key(room: &Imports, caller: &AppCaller<TenantWrite>) -> Self {
        let (app, authority) = (Arc::clone(&caller.app), Authority::of_key(caller));
        Self { app, authority, db: room.tenancy.db.by(caller) }
    }

    fn survey(&self, stages: bool) -> Survey {
        Survey::new(Arc::clone(&self.app), self.authority.clone(), stages)
    }
}

async fn import(
    caller: AppCaller<TenantWrite>,
    State(room): State<Imports>,
    Params(query): Params<ImportQuery>,
    repeat: IdempotencyKey,
    batch: Batch,
) -> Result<Json<ImportAnswer>> {
    import_batch(&room, &Sender::of_key(&room, &caller), query, repeat, batch).await
}

/// Imports what arrives as a body.
pub(super) async fn import_batch(
    room: &Imports,
    sender: &Sender,
    ImportQuery { webhooks }: ImportQuery,
    IdempotencyKey(repeat): IdempotencyKey,
    Batch { mut body, is_csv }: Batch,
) -> Result<Json<ImportAnswer>> {
    if let Some(first) = repeated(room, sender.app.id, repeat.clone()).await? {
        body.drain().await;
        return Ok(Json((&first).into()));
    }
    let staging = Staging::new(room, sender.db.clone(), sender.app.id, webhooks == Some(false));
    let answered = take_in(room, sender, Source::Body { body: &mut body, is_csv }, staging, repeat).await;
    if answered.is_err() {
        body.drain().await;
    }
    answered
}

async fn import_file(
    caller: AppCaller<TenantWrite>,
    State(room): State<Imports>,
    Params(ImportQuery { webhooks }): Params<ImportQuery>,
    IdempotencyKey(repeat): IdempotencyKey,
    Valid(file): Valid<BatchFile>,
) -> Result<Json<ImportAnswer>> {
    let sender = Sender::of_key(&room, &caller);
    if let Some(first) = repeated(&room, sender.app.id, repeat.clone()).await? {
        return Ok(Json((&first).into()));
    }
    let source = Source::File(Box::new(fetch::open(&room, &file.file_url).await?));
    let staging = Staging::new(&room, sender.db.clone(), sender.app.id, webhooks == Some(false));
    take_in(&room, &sender, source, staging, repeat).await
}

/// Reads a batch, and imports it if it can be.
async fn take_in(
    room: &Imports,
    sender: &Sender,
    source: Source<'_>,
    mut staging: Staging,
    repeat: Option<String>,
) -> Result<Json<ImportAnswer>> {
    let judged = match read(room, sender, source, Some(&mut staging)).await {
        Ok(judged) => judged,
        Err(error) => {
            staging.discard().await?;
            return Err(error);
        }
    };
    if judged.errors.is_empty() {
        return Ok(Json((&staging.approve(judged, repeat).await?).into()));
    }
    staging.discard().await?;
    Ok(Json(ImportAnswer { status: ImportState::Error, reference: None, import: (&judged).into() }))
}

async fn validate(
    caller: AppCaller<TenantWrite>,
    State(room): State<Imports>,
    batch: Batch,
) -> Result<Json<ImportReport>> {
    validate_batch(&room, &Sender::of_key(&room, &caller), batch).await
}

/// Only judges what arrives as a body.
pub(super) async fn validate_batch(
    room: &Imports,
    sender: &Sender,
    Batch { mut body, is_csv }: Batch,
) -> Result<Json<ImportReport>> {
    match read(room, sender, Source::Body { body: &mut body, is_csv }, None).await {
        Ok(judged) => Ok(Json((&judged).into())),
        Err(error) => {
            body.drain().await;
            Err(error)
        }
    }
}

async fn validate_file(
    caller: AppCaller<TenantWrite>,
    State(room): State<Imports>,
    Valid(file): Valid<BatchFile>,
) -> Result<Json<ImportReport>> {
    let source = Source::File(Box::new(fetch::open(&room, &file.file_url).await?));
    Ok(Json((&read(&room, &Sender::of_key(&room, &caller), source, None).await?).into()))
}

/// Reads a batch to its end, and stages what is right as long as everything is.
async fn read(
    room: &Imports,
    sender: &Sender,
    mut source: Source<'_>,
    mut staging: Option<&mut Staging>,
) -> Result<Judged> {
    let mut survey = sender.survey(staging.is_some());
    let (mut cutter, mut pieces) = (source.cutter(), Vec::new());
    loop {
        let bytes = source.next().await?;
        let is_last = bytes.is_none();
        let cut = match &bytes {
            Some(bytes) => cutter.push(bytes, &mut survey, &mut pieces),
            None => cutter.finish(&mut survey, &mut pieces),
        };
        cut.map_err(|error| source.blame(error))?;
        for piece in pieces.drain(..) {
            survey.judge(piece).map_err(|error| source.blame(error))?;
            if survey.is_full() {
                settle(room, &mut survey, staging.as_deref_mut()).await?;
            }
        }
        if is_last {
            settle(room, &mut survey, staging).await?;
            return Ok(survey.finish());
        }
    }
}

async fn settle(room: &Imports, survey: &mut Survey, staging: Option<&mut Staging>) -> Result<()> {
    survey.ask(&room.tenancy.db).await?;
    let bundles = survey.take_bundles();
    match staging {
        Some(staging) => staging.add(bundles).await,
        None => Ok(()),
    }
}

async fn repeated(room: &Imports, app: AppId, repeat: Option<String>) -> Result<Option<Import>> {
    let Some(digest) = repeat else { return Ok(None) };
    let db = &room.tenancy.db;
    db.read(move |tx| store::repeated(tx, app, &digest, tx.now().minus(REPEATED_WITHIN))).await
}

async fn status(
    caller: AppCaller<TenantRead>,
    State(room): State<Imports>,
    Path(reference): Path<ImportId>,
) -> Result<Json<ImportStatus>> {
    status_of(&room, caller.app_id(), reference).await
}

pub(super) async fn status_of(room: &Imports, app: AppId, reference: ImportId) -> Result<Json<ImportStatus>> {
    let found = room.tenancy.db.read(move |tx| store::find(tx, app, reference)).await?;
    Ok(Json((&found.ok_or_else(|| Error::not_found("import"))?).into()))
}

async fn list(
    caller: AppCaller<TenantRead>,
    State(room): State<Imports>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<ImportStatus>>> {
    let app = caller.app_id();
    let listed =
        room.tenancy.db.scan(move |tx| store::list(tx, app, page.limit.map_or(LISTED, i64::from), page.offset()));
    Ok(Json(listed.await?.iter().map(ImportStatus::from).collect()))
}
