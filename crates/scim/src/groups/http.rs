//! `/scim/v2/Groups`.

use kernel::Result;
use tenancy::callers::ScimCaller;
use web::{Params, Path, Routes, State};

use super::ScimGroupId;
use crate::{
    Scim,
    directory::Directory,
    groups,
    http::{LARGEST, MadeResource, NoContent, ScimBody, ScimDocument, ShownResource, Versions},
    listing::{Question, Shape},
    patch,
    schema::GROUP,
};

pub(crate) fn routes() -> Routes<Scim> {
    Routes::scim("SCIM")
        .get("/scim/v2/Groups", list, "List groups")
        .post("/scim/v2/Groups", create, "Create a group")
        .body_limit(LARGEST)
        .answers(409, "Another group has this name")
        .post("/scim/v2/Groups/.search", search, "Search groups")
        .body_limit(LARGEST)
        .get("/scim/v2/Groups/{group_id}", show, "Show a group")
        .put("/scim/v2/Groups/{group_id}", replace, "Replace a group")
        .body_limit(LARGEST)
        .answers(409, "Another group has this name")
        .patch("/scim/v2/Groups/{group_id}", patch, "Change a group")
        .body_limit(LARGEST)
        .answers(409, "Another group has this name")
        .delete("/scim/v2/Groups/{group_id}", delete, "Delete a group")
}

async fn listed(caller: &ScimCaller, scim: &Scim, question: &Question) -> Result<ScimDocument> {
    let (directory, query) = (Directory::of(&scim.tenancy, caller), question.bind(&GROUP)?);
    let page = scim.tenancy.db.scan(move |tx| Ok(groups::list(tx, &directory, &query)?.told(&query)));
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
    Path(id): Path<ScimGroupId>,
    versions: Versions,
    Params(shape): Params<Shape>,
) -> Result<ShownResource> {
    let (directory, selection) = (Directory::of(&scim.tenancy, &caller), shape.selection()?);
    let members = selection.has(&GROUP, "members");
    let shown = scim.tenancy.db.scan(move |tx| {
        let group = groups::get(tx, &directory, id)?;
        groups::show(tx, &directory, &group, members)
    });
    Ok(ShownResource::new(shown.await?, &versions, |body| selection.apply(&GROUP, body)))
}

async fn create(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Params(shape): Params<Shape>,
    ScimBody(body): ScimBody,
) -> Result<MadeResource> {
    let (directory, selection) = (Directory::of(&scim.tenancy, &caller), shape.selection()?);
    let (db, body, members) = (directory.tenancy.db.clone(), GROUP.read(&body)?, selection.has(&GROUP, "members"));
    let made = db.write(move |tx| {
        let group = groups::create(tx, &directory, &body)?;
        groups::show(tx, &directory, &group, members)
    });
    let written = made.await?;
    Ok(MadeResource { body: selection.apply(&GROUP, written.body.clone()), written })
}

async fn replace(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Path(id): Path<ScimGroupId>,
    versions: Versions,
    Params(shape): Params<Shape>,
    ScimBody(body): ScimBody,
) -> Result<ShownResource> {
    let (directory, selection) = (Directory::of(&scim.tenancy, &caller), shape.selection()?);
    let (db, body, members) = (directory.tenancy.db.clone(), GROUP.read(&body)?, selection.has(&GROUP, "members"));
    let changed = db.write(move |tx| {
        let group = groups::replace(tx, &directory, id, &versions, &body)?;
        groups::show(tx, &directory, &group, members)
    });
    Ok(ShownResource::changed(changed.await?, |body| selection.apply(&GROUP, body)))
}

/// Without a body: a group may have very many members, and a directory changes a few of them at a time.
async fn patch(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Path(id): Path<ScimGroupId>,
    versions: Versions,
    ScimBody(body): ScimBody,
) -> Result<NoContent> {
    let (directory, operations) = (Directory::of(&scim.tenancy, &caller), patch::read(&body)?);
    let db = directory.tenancy.db.clone();
    let changed = db.write(move |tx| {
        let group = groups::patch(tx, &directory, id, &versions, &operations)?;
        groups::show(tx, &directory, &group, false)
    });
    Ok(NoContent(Some(changed.await?.version)))
}

async fn delete(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Path(id): Path<ScimGroupId>,
    versions: Versions,
) -> Result<NoContent> {
    let directory = Directory::of(&scim.tenancy, &caller);
    directory.tenancy.db.clone().write(move |tx| groups::remove(tx, &directory, id, &versions)).await?;
    Ok(NoContent(None))
}
