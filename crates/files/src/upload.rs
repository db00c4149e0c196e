//! The form that a file is posted with. Whoever has it may post one file, once; the bytes stream through into a temporary
//! object, are counted and hashed on the way, and are the file's once the row says so.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use kernel::{Code, Error, Result};
use vault::Sha256;
use web::{Anyone, BodyStream, Describe, Operation, Routes, State};

use crate::{
    File, FileId, Files, UNKEPT,
    content::{self, FIRST},
    multipart::malformed,
    storage::{NewObject, PIECE, Storage},
    store,
    takeover::{check_room, too_large},
    tickets::{Ticket as _, UploadTicket, refused},
    upload_form::{Arrived, UploadForm},
};

pub(crate) const FORM: &str = "/cloud-views/files";
/// Of the whole form; a file's own limit is a setting.
const LARGEST_FORM: usize = 4 * 1024 * 1024 * 1024;
const LONGEST: Duration = Duration::from_mins(15);

pub(crate) fn routes() -> Routes<Files> {
    Routes::new("Files")
        .post(FORM, upload, "Post a file with the form that was handed out for it")
        .description("The fields of `prepare`, and then one `file`. Answers 204.")
        .answers(400, "The form is malformed, or holds no file or several")
        .answers(403, "The form is not valid, or is older than 15 minutes")
        .answers(409, "The file was posted before")
        .answers(413, "The file, or all of the workspace's together, are too large")
        .answers(415, "The body is not a form with a file")
        .body_limit(LARGEST_FORM)
        .timeout(LONGEST)
        .any_origin()
        .streamed()
}

/// 204.
struct Posted;

impl IntoResponse for Posted {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl Describe for Posted {
    fn describe(operation: &mut Operation) {
        operation.empty_answer(StatusCode::NO_CONTENT);
    }
}

async fn upload(caller: Anyone, State(files): State<Files>, mut body: BodyStream) -> Result<Posted> {
    let posted = post(&files, &caller, &mut body).await;
    if posted.is_err() {
        // The rest is not wanted, but whoever sends it should hear why.
        let _ = tokio::time::timeout(Duration::from_secs(5), body.drain()).await;
    }
    posted.map(|()| Posted)
}

async fn post(files: &Files, caller: &Anyone, body: &mut BodyStream) -> Result<()> {
    let mut form = UploadForm::of(body.content_type())?;
    let mut arriving: Option<Arriving> = None;
    loop {
        match (form.step()?, &mut arriving) {
            (Arrived::More, _) => match body.next().await? {
                Some(bytes) => form.push(&bytes),
                None => return Err(malformed("it ends too early")),
            },
            (Arrived::File, _) => arriving = Some(Arriving::begin(files, &form).await?),
            (Arrived::Bytes(bytes), Some(arriving)) => arriving.take(&bytes).await?,
            (Arrived::Bytes(_), None) => {}
            (Arrived::End, _) => break,
        }
    }
    let arriving = arriving.ok_or_else(|| malformed("it holds no file"))?;
    arriving.keep(files, caller).await
}

/// A file whose form was checked.
struct Arriving {
    ticket: UploadTicket,
    file: File,
    object: NewObject,
    pending: Vec<u8>,
    first: Vec<u8>,
    hash: Sha256,
    size: u64,
    most: u64,
}

impl Arriving {
    async fn begin(files: &Files, form: &UploadForm) -> Result<Self> {
        // With a storage elsewhere, forms are posted there.
        let Storage::Folder(folder) = &files.storage else { return Err(refused()) };
        let key = form.field("key").ok_or_else(|| malformed("the field key has to come before the file"))?;
        let policy = form.field("policy").ok_or_else(|| malformed("the field policy has to come before the file"))?;
        let id: FileId = key.parse().map_err(|_| refused())?;
        let ticket = UploadTicket::open(&files.tenancy.keyring, id, policy)?;
        if form.field("Content-Type").is_some_and(|given| given != ticket.content_type) {
            return Err(refused());
        }
        let app = ticket.app;
        let found = files.tenancy.db.read(move |tx| Ok((store::find_in_app(tx, app, id)?, tx.now()))).await?;
        let (Some(file), now) = found else { return Err(refused()) };
        if now >= ticket.until {
            return Err(refused());
        }
        if file.is_uploaded() {
            return Err(posted_before());
        }
        // Of two that are posted at once each has an object of its own; one of them stays.
        let object = files.tenancy.db.entropy().base62(32);
        let new = folder.create(&object).await?;
        Ok(Self {
            ticket,
            file: File { object, ..file },
            object: new,
            pending: Vec::with_capacity(PIECE),
            first: Vec::with_capacity(FIRST),
            hash: Sha256::new(),
            size: 0,
            most: files.max_bytes,
        })
    }

    async fn take(&mut self, bytes: &[u8]) -> Result<()> {
        self.size += bytes.len() as u64;
        if self.size > self.most {
            return Err(too_large(self.most));
        }
        let missing = FIRST - self.first.len();
        self.first.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        self.hash.update(bytes);
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PIECE {
            self.object.write(&self.pending).await?;
            self.pending.clear();
        }
        Ok(())
    }

    async fn keep(mut self, files: &Files, caller: &Anyone) -> Result<()> {
        self.object.write(&self.pending).await?;
        self.object.keep().await?;
        let (app, room) = (self.ticket.app, files.clone());
        let file = File {
            size: i64::try_from(self.size).map_err(Error::internal)?,
            sha256: self.hash.finish_hex(),
            fits_type: content::fits(&self.file.content_type, &self.first),
            ..self.file
        };
        let (object, db) = (file.object.clone(), files.tenancy.db.by(caller));
        let stored = db.write(move |tx| {
            tenancy::workspaces::lock(tx, file.tenant)?;
            tenancy::workspaces::get(tx, app, file.tenant)?;
            check_room(tx, &room, app, &file)?;
            let file = File { expires_at: Some(tx.now().plus(UNKEPT)), ..file.clone() };
            if store::uploaded(tx, app, &file)? { Ok(()) } else { Err(posted_before()) }
        });
        let stored = stored.await;
        if stored.is_err() {
            files.storage.delete(&object).await?;
        }
        stored
    }
}

fn posted_before() -> Error {
    Error::new(Code::Conflict, "A file was posted with this form already. Prepare another upload.")
}
