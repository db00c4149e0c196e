//! `/account/tenant/upload` and `/account/tenant/file`: what an app does with a workspace's files.

use std::{collections::BTreeMap, time::Duration};

use kernel::{Code, Error, Label, Problems, Result, Timestamp, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::emit;
use tenancy::{
    callers::{TenantCaller, TenantRead, TenantWrite},
    workspaces,
};
use web::{Json, Page, Params, Routes, State, Success, Valid, Validate};

use crate::{
    File, FileId, FileState, Files, UNKEPT, download,
    facts::{FileDeleted, FilePrepared, FileStored},
    names,
    storage::{Storage, without_prefix},
    store,
    takeover::{check_room, take_over},
    tickets::{Ticket as _, UploadTicket},
    upload::FORM,
};

/// How long a form works.
const FORM_LASTS: Duration = Duration::from_mins(15);

pub(crate) fn routes() -> Routes<Files> {
    Routes::new("Files")
        .post("/account/tenant/upload/prepare", prepare, "Prepare the upload of a file")
        .description("The answer is a form: post its `fields`, and then one `file`, to its `url` within 15 minutes.")
        .post("/account/tenant/upload/finish", finish, "Take over a file that was uploaded")
        .description(
            "Answers with the file's address: for an hour, or until the file is deleted if it is public. Without \
             `persist` the file goes after 24 hours.",
        )
        .answers(404, "There is no such file in this workspace")
        .answers(409, "The file was not uploaded yet")
        .post("/account/tenant/file/signedUrl", signed_urls, "Get addresses of files")
        .answers(404, "There is no such file in this workspace")
        .post("/account/tenant/file/delete", delete, "Delete a file")
        .answers(404, "There is no such file in this workspace")
        .get("/account/tenant/file", list, "List the workspace's files, newest first")
}

/// The body of `POST /account/tenant/upload/prepare`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NewUpload {
    /// What the file is called when somebody saves it.
    file_name: Words,
    /// A media type such as `image/png`, with or without parameters.
    content_type: Label,
}

impl Validate for NewUpload {
    fn validate(&self, problems: &mut Problems) {
        let fits = is_media_type(&self.content_type);
        problems.check("contentType", fits, "must be a media type such as image/png");
    }
}

/// `type/subtype` of tokens, with or without parameters in plain ASCII (RFC 9110 §8.3.1).
fn is_media_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let is_token = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&byte))
    };
    let known = essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    known && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// A form for one file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct UploadForm {
    /// Where to post it.
    url: String,
    /// To be sent before the `file`; `key` names the file from here on.
    fields: BTreeMap<&'static str, String>,
}

/// The body of `POST /account/tenant/upload/finish`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FinishUpload {
    key: Words,
    /// Whether it stays; otherwise it goes after 24 hours.
    persist: Option<bool>,
    /// Whether its address works until it is deleted; otherwise for an hour.
    public_file: Option<bool>,
    /// Whether what JPEG, PNG and WebP carry beside the picture goes.
    remove_meta_data: Option<bool>,
}

impl Validate for FinishUpload {}

/// The body of `POST /account/tenant/file/signedUrl`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct FileKeys {
    keys: Vec<Words>,
}

impl Validate for FileKeys {}

/// The body of `POST /account/tenant/file/delete`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct FileKey {
    key: Words,
}

impl Validate for FileKey {}

/// A file of the workspace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListedFile {
    key: FileId,
    file_name: String,
    content_type: String,
    /// In bytes.
    size: i64,
    persisted: bool,
    public_file: bool,
    created_at: Timestamp,
}

impl From<File> for ListedFile {
    fn from(file: File) -> Self {
        let File { id, file_name, content_type, size, persisted, public_file, created_at, .. } = file;
        Self { key: id, file_name, content_type, size, persisted, public_file, created_at }
    }
}

/// What cannot be a key is as unknown as one of nothing. Also as the form of a storage elsewhere has it.
fn key(text: &str) -> Result<FileId> {
    without_prefix(text).parse().map_err(|_| no_file())
}

fn no_file() -> Error {
    Error::not_found("file")
}

async fn prepare(
    caller: TenantCaller<TenantWrite>,
    State(files): State<Files>,
    Valid(new): Valid<NewUpload>,
) -> Result<Json<UploadForm>> {
    let (app, tenant, db) = (caller.app_id(), caller.tenant(), files.tenancy.db.by(&caller));
    let (object, content_type) = (files.tenancy.db.entropy().base62(32), new.content_type.to_string());
    let is_remote = files.storage.is_remote();
    let made = db.write(move |tx| {
        workspaces::get(tx, app, tenant)?;
        let id: FileId = tx.new_id();
        let file = File {
            id,
            tenant,
            // Elsewhere it is posted under its key, and the sweep has to know that.
            object: if is_remote { id.to_string() } else { object.clone() },
            file_name: names::cleaned(&new.file_name),
            content_type: new.content_type.to_string(),
            state: FileState::Prepared,
            size: 0,
            sha256: String::new(),
            fits_type: false,
            persisted: false,
            public_file: false,
            expires_at: Some(tx.now().plus(UNKEPT)),
            created_at: tx.now(),
        };
        store::insert(tx, app, &file)?;
        let told = FilePrepared { key: file.id, file_name: file.file_name, content_type: file.content_type };
        emit(tx, (app, tenant), &told)?;
        Ok((file.id, tx.now()))
    });
    let (id, now) = made.await?;
    if let Storage::S3(remote) = &files.storage {
        let (url, fields) = remote.form(&id.to_string(), &content_type, files.max_bytes, FORM_LASTS)?;
        return Ok(Json(UploadForm { url, fields }));
    }
    let ticket = UploadTicket { app, content_type: content_type.clone(), until: now.plus(FORM_LASTS) };
    let policy = ticket.seal(&files.tenancy.keyring, id)?;
    let fields = BTreeMap::from([("key", id.to_string()), ("policy", policy), ("Content-Type", content_type)]);
    Ok(Json(UploadForm { url: format!("{}{FORM}", files.tenancy.base_url), fields }))
}

async fn finish(
    caller: TenantCaller<TenantWrite>,
    State(files): State<Files>,
    Valid(asked): Valid<FinishUpload>,
) -> Result<Json<String>> {
    let (app, tenant, db) = (caller.app_id(), caller.tenant(), files.tenancy.db.by(&caller));
    let id = key(&asked.key)?;
    let file = files.tenancy.db.read(move |tx| store::find(tx, app, tenant, id)).await?.ok_or_else(no_file)?;
    if file.state == FileState::Finished {
        return Ok(Json(address(&files, &file)?));
    }
    let (before, is_counted) = (file.object.clone(), file.is_uploaded());
    let file = File {
        persisted: asked.persist.unwrap_or(false),
        public_file: asked.public_file.unwrap_or(false),
        expires_at: None,
        ..file
    };
    let file = take_over(&files, file, asked.remove_meta_data.unwrap_or(false)).await?;
    let (object, room) = (file.object.clone(), files.clone());
    let finished = db.write(move |tx| {
        if !is_counted {
            workspaces::lock(tx, tenant)?;
            workspaces::get(tx, app, tenant)?;
            check_room(tx, &room, app, &file)?;
        }
        let until = (!file.persisted).then(|| tx.now().plus(UNKEPT));
        let file = File { expires_at: until, ..file.clone() };
        if store::finish(tx, app, &file)? {
            let (name, size) = (file.file_name.clone(), file.size);
            let told =
                FileStored { key: id, file_name: name, size, persisted: file.persisted, public: file.public_file };
            emit(tx, (app, tenant), &told)?;
        }
        // As it is now, if somebody else was quicker.
        store::find(tx, app, tenant, id)?.ok_or_else(no_file)
    });
    let finished = finished.await;
    if before != object {
        let is_kept = matches!(&finished, Ok(file) if file.object == object);
        // What there is no room for is not kept at all.
        let is_too_large = matches!(&finished, Err(error) if error.code() == Code::BodyTooLarge);
        for (name, goes) in [(&before, is_kept || is_too_large), (&object, !is_kept)] {
            if goes {
                files.storage.discard(name).await;
            }
        }
    }
    Ok(Json(address(&files, &finished?)?))
}

/// Where the file can be read by whoever has the address.
fn address(files: &Files, file: &File) -> Result<String> {
    let token = download::token(files, file)?;
    Ok(format!("{}{FORM}/{}?token={token}", files.tenancy.base_url, file.id))
}

async fn signed_urls(
    caller: TenantCaller<TenantWrite>,
    State(files): State<Files>,
    Valid(FileKeys { keys }): Valid<FileKeys>,
) -> Result<Json<Vec<String>>> {
    let (app, tenant) = (caller.app_id(), caller.tenant());
    let ids = keys.iter().map(|text| key(text)).collect::<Result<Vec<FileId>>>()?;
    let found = files.tenancy.db.read(move |tx| {
        let one = |id: &FileId| {
            let file = store::find(tx, app, tenant, *id)?.filter(|file| file.state == FileState::Finished);
            file.ok_or_else(no_file)
        };
        ids.iter().map(one).collect::<Result<Vec<File>>>()
    });
    let found = found.await?;
    Ok(Json(found.iter().map(|file| address(&files, file)).collect::<Result<_>>()?))
}

async fn delete(
    caller: TenantCaller<TenantWrite>,
    State(files): State<Files>,
    Valid(asked): Valid<FileKey>,
) -> Result<Success> {
    let (app, tenant, db) = (caller.app_id(), caller.tenant(), files.tenancy.db.by(&caller));
    let id = key(&asked.key)?;
    let deleted = db.write(move |tx| {
        let file = store::find(tx, app, tenant, id)?.ok_or_else(no_file)?;
        store::delete(tx, app, id)?;
        emit(tx, (app, tenant), &FileDeleted { key: id, file_name: file.file_name })?;
        Ok(file.object)
    });
    files.storage.discard(&deleted.await?).await;
    Ok(Success)
}

async fn list(
    caller: TenantCaller<TenantRead>,
    State(files): State<Files>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<ListedFile>>> {
    let (app, tenant) = (caller.app_id(), caller.tenant());
    let found = files.tenancy.db.scan(move |tx| store::list(tx, app, tenant, page)).await?;
    Ok(Json(found.into_iter().map(ListedFile::from).collect()))
}
