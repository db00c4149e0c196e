//! `/admin/apps/{app_id}/flags` for the operator.

use kernel::{AppId, Code, Error, Result};
use tenancy::callers::Operator;
use web::{Created, Json, Page, Params, Path, Routes, State, Success, Valid, WithHeaders};

use super::{
    Action, AppDefinitions, Author, FlagRecord,
    bodies::{FlagUpdate, NewFlag, Rollback, checked},
    change::Change,
    headers::{Actor, IfMatch, tagged},
    store::{version, versions},
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
        .get("/admin/apps/{app_id}/flags/{flag_id}", get, "Get a flag and what is known of its use")
        .put("/admin/apps/{app_id}/flags/{flag_id}", update, "Change a flag")
        .delete("/admin/apps/{app_id}/flags/{flag_id}", delete, "Delete a flag")
        .get("/admin/apps/{app_id}/flags/{flag_id}/versions", history, "List a flag's changes, newest first")
        .post("/admin/apps/{app_id}/flags/{flag_id}/rollback", rollback, "Go back to an earlier version of a flag")
        .post("/admin/apps/{app_id}/flags/{flag_id}/explain", explain_flag, "Explain what a flag is worth to a context")
}

/// The operator's answers name the flag's version.
type Tagged<T> = WithHeaders<Json<T>>;

fn find(app: &AppDefinitions, id: FlagId) -> Result<&FlagRecord> {
    app.flags.iter().find(|flag| flag.id == id).ok_or_else(|| Error::not_found("flag"))
}

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
    let skipped = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let taken = usize::try_from(page.limit_or_all()).unwrap_or(usize::MAX);
    Ok(Json(entries.into_iter().map(|(_, entry)| entry).skip(skipped).take(taken).collect()))
}

async fn create(
    _: Operator,
    State(flags): State<Flags>,
    Path(app): Path<AppId>,
    Actor(name): Actor,
    Valid(new): Valid<NewFlag>,
) -> Result<WithHeaders<Created<FlagView>>> {
    let author = Author { name, action: Action::Created };
    let db = flags.tenancy.db.clone();
    let record = flags.changes.make(app, |seen| {
        let definition = checked(new.definition(), seen)?;
        if seen.flags.iter().any(|flag| flag.definition.key == definition.key) {
            let message = format!("Another flag already has the key {}.", definition.key);
            return Err(Error::new(Code::FlagKeyTaken, message));
        }
        let now = db.clock().now();
        let record = FlagRecord { id: db.ids().next(), definition, version: 1, created_at: now, updated_at: now };
        Ok((Change::put_flag(None, record.clone(), &author)?, record))
    });
    let record = record.await?;
    Ok(tagged(record.version, Created(flags.view(app, record).await?)))
}

async fn get(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, FlagId)>,
) -> Result<Tagged<FlagView>> {
    let definitions = flags.changes.look(app).await?;
    let record = find(&definitions, id)?.clone();
    Ok(tagged(record.version, Json(flags.view(app, record).await?)))
}

async fn update(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, FlagId)>,
    Actor(name): Actor,
    precondition: IfMatch,
    Valid(update): Valid<FlagUpdate>,
) -> Result<Tagged<FlagView>> {
    let author = Author { name, action: Action::Updated };
    flags.redefine(app, id, &precondition, &author, |before| update.apply(before)).await
}

async fn delete(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, FlagId)>,
    precondition: IfMatch,
) -> Result<Success> {
    flags
        .changes
        .make(app, |seen| {
            let record = find(seen, id)?;
            precondition.check(record.version)?;
            Ok((Change::DeleteFlag(record.clone()), ()))
        })
        .await?;
    Ok(Success)
}

async fn history(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, FlagId)>,
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
    Path((app, id)): Path<(AppId, FlagId)>,
    Actor(name): Actor,
    precondition: IfMatch,
    Valid(Rollback { version: wanted }): Valid<Rollback>,
) -> Result<Tagged<FlagView>> {
    find(&flags.changes.look(app).await?, id)?;
    let subject = id.to_string();
    let found = flags.tenancy.db.read(move |tx| version(tx, app, &subject, wanted)).await?;
    let row = found.ok_or_else(|| Error::invalid("version", "names no version of this flag"))?;
    let definition: Definition = serde_json::from_value(row.definition).map_err(Error::internal)?;
    let author = Author { name, action: Action::RolledBack };
    flags.redefine(app, id, &precondition, &author, |_| Ok(definition.clone())).await
}

/// Explains by the definition in the store, which this node evaluates by too.
async fn explain_flag(
    _: Operator,
    State(flags): State<Flags>,
    Path((app, id)): Path<(AppId, FlagId)>,
    body: ContextBody,
) -> Result<Json<Explanation>> {
    let definitions = flags.changes.look(app).await?;
    let record = find(&definitions, id)?;
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

    async fn redefine(
        &self,
        app: AppId,
        id: FlagId,
        precondition: &IfMatch,
        author: &Author,
        define: impl Fn(&Definition) -> Result<Definition> + Send + Sync,
    ) -> Result<Tagged<FlagView>> {
        let record = self.changes.make(app, |seen| {
            let before = find(seen, id)?;
            precondition.check(before.version)?;
            let definition = checked(define(&before.definition)?, seen)?;
            if definition == before.definition {
                return Ok((Change::Nothing, before.clone()));
            }
            let updated_at = self.tenancy.db.clock().now();
            let after = FlagRecord { definition, version: before.version + 1, updated_at, ..before.clone() };
            Ok((Change::put_flag(Some(before), after.clone(), author)?, after))
        });
        let record = record.await?;
        Ok(tagged(record.version, Json(self.view(app, record).await?)))
    }
}
