//! `/admin/apps/{app_id}/flags` for the operator.

use kernel::{AppId, Result};
use tenancy::callers::Operator;
use web::{Created, Json, Page, Params, Path, Routes, State, Success, Valid, WithHeaders};

use super::{
    FlagRecord,
    apply::{AppliedStep, FlagFile},
    bodies::{FlagUpdate, NewFlag, Rollback},
    headers::{Actor, IfMatch, tagged},
    versioned::find,
    views::{FlagListEntry, FlagView, VersionView},
};
use crate::{
    Flags,
    evaluation::ContextBody,
    model::{Definition, FlagId},
    rules::{Explanation, explain},
    usage::FlagUsage,
};

pub fn routes() -> Routes<Flags> {
    Routes::new("Feature flags")
        .get("/admin/apps/{app_id}/flags", list, "List flags and discovered keys, newest first")
        .post("/admin/apps/{app_id}/flags", create, "Create a flag")
        .answers(409, "Another flag already has this key")
        .post("/admin/apps/{app_id}/flags/apply", apply, "Create and change flags and groups as a file says")
        .body_limit(8 * 1024 * 1024)
        .description(
            "All of it is done in one step. When anything is wrong, nothing is done, and every problem is named.",
        )
        .get("/admin/apps/{app_id}/flags/{flag_id}", get, "Get a flag and its usage")
        .put("/admin/apps/{app_id}/flags/{flag_id}", update, "Change a flag")
        .delete("/admin/apps/{app_id}/flags/{flag_id}", delete, "Delete a flag")
        .get("/admin/apps/{app_id}/flags/{flag_id}/versions", history, "List a flag's changes, newest first")
        .post("/admin/apps/{app_id}/flags/{flag_id}/rollback", rollback, "Restore an earlier version of a flag")
        .post(
            "/admin/apps/{app_id}/flags/{flag_id}/explain",
            explain_flag,
            "Explain how a flag evaluates for a context",
        )
}

/// The operator's answers name the flag's version.
type Tagged<T> = WithHeaders<Json<T>>;

async fn list(
    _: Operator,
    State(flags): State<Flags>,
    Path(app): Path<AppId>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<FlagListEntry>>> {
    let definitions = flags.changes.look(app).await?;
    let (mut usage, discovered) = flags.usage.of_app(app).await?;
    let now = flags.tenancy.db.clock().now();
    let known: std::collections::HashSet<String> =
        definitions.flags.iter().map(|flag| flag.definition.key.clone()).collect();
    let flag = |record: FlagRecord| {
        let used = usage.remove(&record.definition.key).unwrap_or_default();
        let used = FlagUsage::new(used, record.created_at, now);
        (record.created_at, FlagListEntry::Flag(Box::new(FlagView::new(record, used))))
    };
    let mut entries: Vec<_> = definitions.flags.into_iter().map(flag).collect();
    let unknown = discovered.into_iter().filter(|discovery| !known.contains(&discovery.key));
    entries.extend(unknown.map(|discovery| (discovery.first_seen_at, FlagListEntry::Discovered(discovery))));
    entries.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    Ok(Json(page.of(entries.into_iter().map(|(_, entry)| entry))))
}

async fn create(
    caller: Operator,
    State(flags): State<Flags>,
    Path(app): Path<AppId>,
    actor: Actor,
    Valid(new): Valid<NewFlag>,
) -> Result<WithHeaders<Created<FlagView>>> {
    let (record, _) = flags.changes.by(&caller).create(app, new.definition(), &actor).await?;
    Ok(tagged(record.version, Created(flags.view(app, record).await?)))
}

async fn apply(
    caller: Operator,
    State(flags): State<Flags>,
    Path(app): Path<AppId>,
    actor: Actor,
    Valid(file): Valid<FlagFile>,
) -> Result<Json<Vec<AppliedStep>>> {
    flags.changes.by(&caller).apply(app, &file, &actor).await.map(Json)
}

async fn get(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, FlagId)>,
) -> Result<Tagged<FlagView>> {
    let definitions = flags.changes.look(app).await?;
    flags.tagged(app, find::<Definition>(&definitions, id)?.clone()).await
}

async fn update(
    caller: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, FlagId)>,
    actor: Actor,
    based_on: IfMatch,
    Valid(update): Valid<FlagUpdate>,
) -> Result<Tagged<FlagView>> {
    let (record, _) =
        flags.changes.by(&caller).update(app, id, &based_on, &actor, |before| update.apply(before)).await?;
    flags.tagged(app, record).await
}

async fn delete(
    caller: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, FlagId)>,
    based_on: IfMatch,
) -> Result<Success> {
    flags.changes.by(&caller).delete::<Definition>(app, id, &based_on).await?;
    Ok(Success)
}

async fn history(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, FlagId)>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<VersionView>>> {
    flags.changes.history::<Definition>(app, id, page).await.map(Json)
}

async fn rollback(
    caller: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, FlagId)>,
    actor: Actor,
    based_on: IfMatch,
    Valid(Rollback { version }): Valid<Rollback>,
) -> Result<Tagged<FlagView>> {
    let (record, _) = flags.changes.by(&caller).roll_back::<Definition>(app, id, version, &based_on, &actor).await?;
    flags.tagged(app, record).await
}

/// Explains by the definition in the store, which this node evaluates by too.
async fn explain_flag(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, FlagId)>,
    body: ContextBody,
) -> Result<Json<Explanation>> {
    let definitions = flags.changes.look(app).await?;
    let record = find::<Definition>(&definitions, id)?;
    let (context, token_ignored) = flags.context(app, body.read()?).await?;
    let mut explanation = explain(record.id, &record.definition, &definitions.groups_by_key(), &context);
    explanation.error_code = token_ignored.then(|| "INVALID_TOKEN".to_owned());
    Ok(Json(explanation))
}

impl Flags {
    async fn view(&self, app: AppId, record: FlagRecord) -> Result<FlagView> {
        let used = self.usage.of_flag(app, &record.definition.key).await?;
        let usage = FlagUsage::new(used, record.created_at, self.tenancy.db.clock().now());
        Ok(FlagView::new(record, usage))
    }

    async fn tagged(&self, app: AppId, record: FlagRecord) -> Result<Tagged<FlagView>> {
        Ok(tagged(record.version, Json(self.view(app, record).await?)))
    }
}
