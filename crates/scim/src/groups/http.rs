//! `/scim/v2/Groups`.

use kernel::Result;
use serde_json::Value;
use store::Tx;
use tenancy::callers::ScimCaller;
use web::{Params, Path, Routes, State};

use super::{Group, ScimGroupId, plan};
use crate::{
    Scim,
    directory::Directory,
    groups,
    http::{LARGEST, MadeResource, NoContent, ScimBody, ScimDocument, ShownResource, Versions},
    listing::{Question, Shape},
    patch,
    resource::{Selection, Written},
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

/// The group as a change left it.
async fn changed(directory: Directory, group: Group, selection: Selection) -> Result<(Written, Value)> {
    let members = selection.has(&GROUP, "members");
    let db = directory.tenancy.db.clone();
    let written = db.scan(move |tx| groups::show(tx, &directory, &group, members)).await?;
    let body = selection.apply(&GROUP, written.body.clone());
    Ok((written, body))
}

async fn create(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Params(shape): Params<Shape>,
    ScimBody(body): ScimBody,
) -> Result<MadeResource> {
    let (directory, selection) = (Directory::of(&scim.tenancy, &caller), shape.selection()?);
    let (own, body) = (directory.clone(), GROUP.read(&body)?);
    let new = directory.tenancy.db.scan(move |tx| plan::creation(tx, &own, &body)).await?;
    let group = groups::create(&directory, new).await?;
    let (written, body) = changed(directory, group, selection).await?;
    Ok(MadeResource { written, body })
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
    let (own, body) = (directory.clone(), GROUP.read(&body)?);
    let plan = move |tx: &mut Tx<'_>| plan::replacement(tx, &own, id, &versions, &body);
    let group = groups::change(&directory, plan).await?;
    let (written, body) = changed(directory, group, selection).await?;
    Ok(ShownResource::changed(written, |_| body))
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
    let own = directory.clone();
    let plan = move |tx: &mut Tx<'_>| plan::patched(tx, &own, id, &versions, &operations);
    let group = groups::change(&directory, plan).await?;
    Ok(NoContent(Some(group.written(&directory.base()).version)))
}

async fn delete(
    caller: ScimCaller,
    State(scim): State<Scim>,
    Path(id): Path<ScimGroupId>,
    versions: Versions,
) -> Result<NoContent> {
    let directory = Directory::of(&scim.tenancy, &caller);
    let own = directory.clone();
    groups::change(&directory, move |tx: &mut Tx<'_>| plan::removal(tx, &own, id, &versions)).await?;
    Ok(NoContent(None))
}
