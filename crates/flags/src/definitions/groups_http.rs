//! `/admin/apps/{app_id}/flag-groups` for the operator.

use kernel::{AppId, Code, Error, Result};
use tenancy::callers::Operator;
use web::{Created, Json, Page, Params, Path, Routes, State, Success, Valid, WithHeaders};

use super::{
    Action, AppDefinitions, Author, GroupRecord,
    bodies::{GroupUpdate, NewGroup, Rollback, checked_group, unused_group},
    change::Change,
    headers::{Actor, IfMatch, tagged},
    store::{version, versions},
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
        .post(
            "/admin/apps/{app_id}/flag-groups/{group_id}/rollback",
            rollback,
            "Go back to an earlier version of a group",
        )
}

type Tagged<T> = WithHeaders<Json<T>>;

fn find(app: &AppDefinitions, id: GroupId) -> Result<&GroupRecord> {
    app.groups.iter().find(|group| group.id == id).ok_or_else(|| Error::not_found("flag group"))
}

async fn list(
    _: Operator,
    State(flags): State<Flags>,
    Path(app): Path<AppId>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<GroupView>>> {
    let seen = flags.changes.look(app).await?;
    let skipped = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let taken = usize::try_from(page.limit_or_all()).unwrap_or(usize::MAX);
    let view = |group: &GroupRecord| GroupView::new(group.clone(), &seen);
    Ok(Json(seen.groups.iter().skip(skipped).take(taken).map(view).collect()))
}

async fn create(
    _: Operator,
    State(flags): State<Flags>,
    Path(app): Path<AppId>,
    Actor(name): Actor,
    Valid(new): Valid<NewGroup>,
) -> Result<WithHeaders<Created<GroupView>>> {
    let author = Author { name, action: Action::Created };
    let db = flags.tenancy.db.clone();
    let made = flags.changes.make(app, |seen| {
        let definition = checked_group(new.definition(), seen)?;
        if seen.groups.iter().any(|group| group.definition.key == definition.key) {
            let message = format!("Another group already has the key {}.", definition.key);
            return Err(Error::new(Code::FlagKeyTaken, message));
        }
        let now = db.clock().now();
        let record = GroupRecord { id: db.ids().next(), definition, version: 1, created_at: now, updated_at: now };
        let view = GroupView::new(record.clone(), seen);
        Ok((Change::put_group(None, record, &author)?, view))
    });
    let view = made.await?;
    Ok(tagged(view.version, Created(view)))
}

async fn get(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, GroupId)>,
) -> Result<Tagged<GroupView>> {
    let seen = flags.changes.look(app).await?;
    let view = GroupView::new(find(&seen, id)?.clone(), &seen);
    Ok(tagged(view.version, Json(view)))
}

async fn update(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, GroupId)>,
    Actor(name): Actor,
    precondition: IfMatch,
    Valid(update): Valid<GroupUpdate>,
) -> Result<Tagged<GroupView>> {
    let author = Author { name, action: Action::Updated };
    flags.redefine_group(app, id, &precondition, &author, |before| update.apply(before)).await
}

async fn delete(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, GroupId)>,
    precondition: IfMatch,
) -> Result<Success> {
    flags
        .changes
        .make(app, |seen| {
            let record = find(seen, id)?;
            precondition.check(record.version)?;
            unused_group(&record.definition, seen)?;
            Ok((Change::DeleteGroup(record.clone()), ()))
        })
        .await?;
    Ok(Success)
}

async fn history(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, GroupId)>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<VersionView>>> {
    find(&flags.changes.look(app).await?, id)?;
    let subject = id.to_string();
    let rows = flags.tenancy.db.read(move |tx| versions(tx, app, &subject, page.limit_or_all(), page.offset())).await?;
    Ok(Json(rows.into_iter().map(VersionView::from).collect()))
}

async fn rollback(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, GroupId)>,
    Actor(name): Actor,
    precondition: IfMatch,
    Valid(Rollback { version: wanted }): Valid<Rollback>,
) -> Result<Tagged<GroupView>> {
    find(&flags.changes.look(app).await?, id)?;
    let subject = id.to_string();
    let found = flags.tenancy.db.read(move |tx| version(tx, app, &subject, wanted)).await?;
    let row = found.ok_or_else(|| Error::invalid("version", "names no version of this group"))?;
    let definition: GroupDefinition = serde_json::from_value(row.definition).map_err(Error::internal)?;
    let author = Author { name, action: Action::RolledBack };
    flags.redefine_group(app, id, &precondition, &author, |_| Ok(definition.clone())).await
}

impl Flags {
    async fn redefine_group(
        &self,
        app: AppId,
        id: GroupId,
        precondition: &IfMatch,
        author: &Author,
        define: impl Fn(&GroupDefinition) -> Result<GroupDefinition> + Send + Sync,
    ) -> Result<Tagged<GroupView>> {
        let made = self.changes.make(app, |seen| {
            let before = find(seen, id)?;
            precondition.check(before.version)?;
            let definition = checked_group(define(&before.definition)?, seen)?;
            if definition == before.definition {
                return Ok((Change::Nothing, GroupView::new(before.clone(), seen)));
            }
            let updated_at = self.tenancy.db.clock().now();
            let after = GroupRecord { definition, version: before.version + 1, updated_at, ..before.clone() };
            let view = GroupView::new(after.clone(), seen);
            Ok((Change::put_group(Some(before), after, author)?, view))
        });
        let view = made.await?;
        Ok(tagged(view.version, Json(view)))
    }
}
