//! `/account/import`.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::request::Parts;
use kernel::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{
    Authority,
    callers::{AppCaller, TenantRead, TenantWrite},
};
use vault::sha256_hex;
use web::{BodyStream, Describe, Failure, Json, Operation, Page, Params, Path, Routes, State, optional_header};

use super::{Import, ImportId, ImportState, Staging, staging::REPEATED_WITHIN, store};
use crate::{
    Imports,
    batch::{Findings, ImportBatch, Judged, Splitter, Survey},
};

const MAX_BYTES: usize = 64 * 1024 * 1024;
/// A slow line needs minutes for the largest batch.
const LONGEST: Duration = Duration::from_mins(15);
/// Of a list that names no limit.
const LISTED: i64 = 100;

pub(crate) fn routes() -> Routes<Imports> {
    Routes::new("Import")
        .post("/account/import/tenants", import, "Import workspaces and users")
        .description(
            "Everything is judged before anything is stored: a batch with errors is answered with all of them, the status \
             `ERROR` and no `reference`. An approved one is imported in the background. No mail is sent.",
        )
        .body_limit(MAX_BYTES)
        .timeout(LONGEST)
        .streamed()
        .post("/account/import/validateTenants", validate, "Check a batch without importing it")
        .body_limit(MAX_BYTES)
        .timeout(LONGEST)
        .streamed()
        .get("/account/import/status/{reference}", status, "Get how far an import has come")
        .get("/account/import", list, "List imports, newest first")
        .description("The last 100, unless `limit` says otherwise.")
}

/// How an import is asked for.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
struct ImportQuery {
    /// Whether webhook events are sent for what is made; they are without it.
    webhooks: Option<bool>,
}

/// What makes a repeated call answer with the first one's `reference`, for 24 hours.
struct IdempotencyKey(Option<String>);

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

/// A batch that is arriving.
struct Batch(BodyStream);

impl<S: Sync> FromRequest<S> for Batch {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let body = BodyStream::from_request(request, state).await?;
        body.require_json()?;
        Ok(Self(body))
    }
}

impl Describe for Batch {
    fn describe(operation: &mut Operation) {
        operation.body::<ImportBatch>();
    }
}

/// What was found about a batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ImportReport {
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
struct ImportAnswer {
    status: ImportState,
    /// Missing when the batch was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<ImportId>,
    import: ImportReport,
}

/// How far an import has come.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ImportStatus {
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

async fn import(
    caller: AppCaller<TenantWrite>,
    State(room): State<Imports>,
    Params(ImportQuery { webhooks }): Params<ImportQuery>,
    IdempotencyKey(repeat): IdempotencyKey,
    Batch(mut body): Batch,
) -> Result<Json<ImportAnswer>> {
    let (app, db) = (caller.app_id(), room.tenancy.db.by(&caller));
    if let Some(first) = repeated(&room, app, repeat.clone()).await? {
        body.drain().await;
        return Ok(Json((&first).into()));
    }
    let mut staging = Staging::new(&room, db, app, webhooks == Some(false));
    let survey = Survey::new(app, Authority::of_key(&caller));
    let judged = match read(&room, survey, &mut body, Some(&mut staging)).await {
        Ok(judged) => judged,
        Err(error) => {
            staging.discard().await?;
            body.drain().await;
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
    Batch(mut body): Batch,
) -> Result<Json<ImportReport>> {
    let survey = Survey::new(caller.app_id(), Authority::of_key(&caller));
    match read(&room, survey, &mut body, None).await {
        Ok(judged) => Ok(Json((&judged).into())),
        Err(error) => {
            body.drain().await;
            Err(error)
        }
    }
}

/// Reads a batch to its end, and stages what is right as long as everything is.
async fn read(
    room: &Imports,
    mut survey: Survey,
    body: &mut BodyStream,
    mut staging: Option<&mut Staging>,
) -> Result<Judged> {
    let (mut splitter, mut pieces) = (Splitter::new(), Vec::new());
    while let Some(bytes) = body.next().await? {
        splitter.push(&bytes, &mut pieces)?;
        for piece in pieces.drain(..) {
            survey.judge(piece)?;
            if survey.is_full() {
                settle(room, &mut survey, staging.as_deref_mut()).await?;
            }
        }
    }
    splitter.finish()?;
    settle(room, &mut survey, staging).await?;
    Ok(survey.finish())
}

async fn settle(room: &Imports, survey: &mut Survey, staging: Option<&mut Staging>) -> Result<()> {
    survey.ask(&room.tenancy.db).await?;
    let bundles = survey.take_bundles();
    match staging {
        Some(staging) => staging.add(bundles).await,
        None => Ok(()),
    }
}

async fn repeated(room: &Imports, app: kernel::AppId, repeat: Option<String>) -> Result<Option<Import>> {
    let Some(digest) = repeat else { return Ok(None) };
    let db = &room.tenancy.db;
    db.read(move |tx| store::repeated(tx, app, &digest, tx.now().minus(REPEATED_WITHIN))).await
}

async fn status(
    caller: AppCaller<TenantRead>,
    State(room): State<Imports>,
    Path(reference): Path<ImportId>,
) -> Result<Json<ImportStatus>> {
    let app = caller.app_id();
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
