//! `POST /scim/v2/.search`: users and groups at once.

use kernel::Result;
use tenancy::callers::ScimCaller;
use web::{Routes, State};

use super::{Question, told};
use crate::{
    Scim,
    directory::Directory,
    groups,
    http::{LARGEST, ScimBody, ScimDocument},
    schema::{GROUP, USER},
    users,
};

pub(crate) fn routes() -> Routes<Scim> {
    Routes::scim("SCIM").post("/scim/v2/.search", search, "Search users and groups").body_limit(LARGEST)
}

/// Users come first. A question that fits one kind alone is about that one.
async fn search(caller: ScimCaller, State(scim): State<Scim>, ScimBody(body): ScimBody) -> Result<ScimDocument> {
    let (directory, question) = (Directory::of(&scim.tenancy, &caller), Question::of_search(&body)?);
    let (users, groups) = (question.bind(&USER), question.bind(&GROUP));
    let (users, groups) = match (users, groups) {
        (Err(error), Err(_)) => return Err(error),
        (users, groups) => (users.ok(), groups.ok()),
    };
    let found = scim.tenancy.db.scan(move |tx| {
        let (mut total, mut found, mut start) = (0, Vec::new(), 1);
        if let Some(query) = &users {
            let page = users::list(tx, &directory, query)?;
            (total, start) = (page.total, query.start);
            found.extend(page.resources.into_iter().map(|one| query.selection.apply(query.schema, one.body)));
        }
        if let Some(query) = &groups {
            start = query.start;
            // What is left of the page after the users.
            let left = query.count - i64::try_from(found.len()).unwrap_or(i64::MAX);
            let rest =
                crate::listing::Query { start: (query.start - total).max(1), count: left.max(0), ..query.clone() };
            let page = groups::list(tx, &directory, &rest)?;
            total += page.total;
            found.extend(page.resources.into_iter().map(|one| query.selection.apply(query.schema, one.body)));
        }
        Ok(told(total, start, &found))
    });
    Ok(ScimDocument(found.await?))
}
