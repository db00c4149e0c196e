//! `/scim/v2/Users`.

use kernel::{MemberId, Result};
use tenancy::callers::ScimCaller;
use web::{Params, Path, Routes, State};

use crate::{
    Scim,
    directory::Directory,
    http::{LARGEST, MadeResource, NoContent, ScimBody, ScimDocument, ShownResource, Versions},
    listing::{Question, Shape},
    patch,
    schema::USER,
    users,
};

pub(crate) fn routes() -> Routes<Scim> {
    Routes::scim("SCIM")
        .get("/scim/v2/Users", list, "List users")
        .post("/scim/v2/Users", create, "Provision a user")
        .body_limit(LARGEST)
        .answers(409, "The address is a user of this workspace already")
        .post("/scim/v2/Users/.search", search, "Search users")
        .body_limit(LARGEST)
        .get("/scim/v2/Users/{user_id}", show, "Show a user")
        .put("/scim/v2/Users/{user_id}", replace, "Replace a user")
        .body_limit(LARGEST)
        .answers(409, "The address is another user's, or this is the last enabled OWNER")
        .patch("/scim/v2/Users/{user_id}", patch, "Change a user")
        .body_limit(LARGEST)
        .answers(409, "The address is another user's, or this is the last enabled OWNER")
        .delete("/scim/v2/Users/{user_id}", delete, "Deprovision a user")
        .answers(409, "This is the last enabled OWNER")
}

async fn listed(caller: &ScimCaller, scim: &Scim, question: &Question) -> Result<ScimDocument> {
    let (directory, query) = (Directory::of(&scim.tenancy, caller), question.bind(&USER)?);
    let page = scim.tenancy.db.scan(move |tx| Ok(users::list(tx, &directory, &query)?.told(&query)));
    Ok(ScimDocument(page.await?))
}

async fn list(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Params(question): Params<Question>,
) -> Result<ScimDocument> {
    listed(&caller, &scim, &question).await
}

async fn search(caller: ScimCaller, State(scim): State<Scim>, ScimBody(body): ScimBody) -> Result<ScimDocument> {
    listed(&caller, &scim, &Question::of_search(&body)?).await
}

async fn show(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Path(id): Path<MemberId>,
    versions: Versions,
    Params(shape): Params<Shape>,
) -> Result<ShownResource> {
    let (directory, selection) = (Directory::of(&scim.tenancy, &caller), shape.selection()?);
    let base = directory.base();
    let user = scim.tenancy.db.read(move |tx| users::get(tx, &directory, id)).await?;
    Ok(ShownResource::new(user.written(&base), &versions, |body| selection.apply(&USER, body)))
}

async fn create(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Params(shape): Params<Shape>,
    ScimBody(body): ScimBody,
) -> Result<MadeResource> {
    let (directory, selection) = (Directory::of(&scim.tenancy, &caller), shape.selection()?);
    let (base, body) = (directory.base(), USER.read(&body)?);
    let made = directory.tenancy.db.clone().write(move |tx| users::create(tx, &directory, &body)).await?;
    let written = made.written(&base);
    Ok(MadeResource { body: selection.apply(&USER, written.body.clone()), written })
}

async fn replace(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Path(id): Path<MemberId>,
    versions: Versions,
    Params(shape): Params<Shape>,
    ScimBody(body): ScimBody,
) -> Result<ShownResource> {
    let (directory, selection) = (Directory::of(&scim.tenancy, &caller), shape.selection()?);
    let (db, base, body) = (directory.tenancy.db.clone(), directory.base(), USER.read(&body)?);
    let user = db.write(move |tx| users::replace(tx, &directory, id, &versions, &body)).await?;
    Ok(ShownResource::changed(user.written(&base), |body| selection.apply(&USER, body)))
}

async fn patch(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Path(id): Path<MemberId>,
    versions: Versions,
    Params(shape): Params<Shape>,
    ScimBody(body): ScimBody,
) -> Result<ShownResource> {
    let (directory, selection) = (Directory::of(&scim.tenancy, &caller), shape.selection()?);
    let (db, base, operations) = (directory.tenancy.db.clone(), directory.base(), patch::read(&body)?);
    let user = db.write(move |tx| users::patch(tx, &directory, id, &versions, &operations)).await?;
    Ok(ShownResource::changed(user.written(&base), |body| selection.apply(&USER, body)))
}

async fn delete(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Path(id): Path<MemberId>,
    versions: Versions,
) -> Result<NoContent> {
    let directory = Directory::of(&scim.tenancy, &caller);
    directory.tenancy.db.clone().write(move |tx| users::remove(tx, &directory, id, &versions)).await?;
    Ok(NoContent(None))
}
