//! `/admin/apps/{app_id}/flag-groups` for the operator.

use kernel::{AppId, Result};
use tenancy::callers::Operator;
use web::{Created, Json, Page, Params, Path, Routes, State, Success, Valid, WithHeaders};

use super::{
    AppDefinitions, GroupRecord,
    bodies::{GroupUpdate, NewGroup, Rollback},
    headers::{Actor, IfMatch, tagged},
    versioned::find,
    views::{GroupView, VersionView},
};
use crate::{
    Flags,
    model::{GroupDefinition, GroupId},
};

pub fn routes() -> Routes<Flags> {
    Routes::new("Feature flags")
        .get("/admin/apps/{app_id}/flag-groups", list, "List saved groups, newest first")
        .post("/admin/apps/{app_id}/flag-groups", create, "Create a saved group of branches")
        .answers(409, "Another group already has this key")
        .get("/admin/apps/{app_id}/flag-groups/{group_id}", get, "Get a saved group")
        .put("/admin/apps/{app_id}/flag-groups/{group_id}", update, "Change a saved group and every flag that uses it")
        .delete("/admin/apps/{app_id}/flag-groups/{group_id}", delete, "Delete a saved group that no flag uses")
        .answers(409, "Flags still use this group")
        .get("/admin/apps/{app_id}/flag-groups/{group_id}/versions", history, "List a group's changes, newest first")
        .post("/admin/apps/{app_id}/flag-groups/{group_id}/rollback", rollback, "Restore an earlier version of a group")
}

type Tagged<T> = WithHeaders<Json<T>>;

async fn list(
    _: Operator,
    State(flags): State<Flags>,
    Path(app): Path<AppId>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<GroupView>>> {
    let seen = flags.changes.look(app).await?;
    let view = |group: &GroupRecord| GroupView::new(group.clone(), &seen);
    Ok(Json(page.of(seen.groups.iter().map(view))))
}

async fn create(
    caller: Operator,
    State(flags): State<Flags>,
    Path(app): Path<AppId>,
    actor: Actor,
    Valid(new): Valid<NewGroup>,
) -> Result<WithHeaders<Created<GroupView>>> {
    let (record, seen) = flags.changes.by(&caller).create(app, new.definition(), &actor).await?;
    Ok(tagged(record.version, Created(GroupView::new(record, &seen))))
}

async fn get(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, GroupId)>,
) -> Result<Tagged<GroupView>> {
    let seen = flags.changes.look(app).await?;
    Ok(view(find::<GroupDefinition>(&seen, id)?.clone(), &seen))
}

async fn update(
    caller: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, GroupId)>,
    actor: Actor,
    based_on: IfMatch,
    Valid(update): Valid<GroupUpdate>,
) -> Result<Tagged<GroupView>> {
    let (record, seen) =
        flags.changes.by(&caller).update(app, id, &based_on, &actor, |before| update.apply(before)).await?;
    Ok(view(record, &seen))
}

async fn delete(
    caller: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, GroupId)>,
    based_on: IfMatch,
) -> Result<Success> {
    flags.changes.by(&caller).delete::<GroupDefinition>(app, id, &based_on).await?;
    Ok(Success)
}

async fn history(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, GroupId)>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<VersionView>>> {
    flags.changes.history::<GroupDefinition>(app, id, page).await.map(Json)
}

async fn rollback(
    caller: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, GroupId)>,
    actor: Actor,
    based_on: IfMatch,
    Valid(Rollback { version }): Valid<Rollback>,
) -> Result<Tagged<GroupView>> {
    let (record, seen) = flags.changes.by(&caller).roll_back(app, id, version, &based_on, &actor).await?;
    Ok(view(record, &seen))
}

fn view(record: GroupRecord, app: &AppDefinitions) -> Tagged<GroupView> {
    tagged(record.version, Json(GroupView::new(record, app)))
}
