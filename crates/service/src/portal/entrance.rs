//! The entrances: a code becomes a session of this browser, and a page is shown.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode};
use identity::hosted::{
    self, Reply,
    cookies::{Cookie, Jar},
};
use kernel::{AppId, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Describe, Operation, Params, Routes, State};

use super::{Door, cookies, enter, entered_before, members_page, profile_page, visit::Visit};
use crate::Core;

const MEMBERS: &str = "/cloud-views/user-management-portal/users";

pub(super) fn routes() -> Routes<Core> {
    Routes::new("Hosted pages")
        .get(MEMBERS, members, "Lead whoever has a handover code to the workspace's members")
        .page()
        .description("Whoever may not see the members is led to their own profile.")
        .answers(401, "The code is not valid, is a key's, or has been used elsewhere")
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CodeQuery {
    /// A handover code; for the plan page also one of a key's.
    pub(super) code: String,
}

/// Somebody who has come in.
pub(super) struct Arrival {
    pub(super) app: AppId,
    /// What tells this browser from others from now on.
    pub(super) cookie: String,
    /// Its cookie, unless the browser has it already.
    pub(super) kept: Option<HeaderValue>,
}

impl Arrival {
    /// Takes a code: 401 unless it is a good one, or the one that this browser's session came from.
    pub(super) async fn by_code(core: &Core, request: &hosted::Request, code: String, door: Door) -> Result<Self> {
        let (known, cookies) = (code.clone(), cookies(&core.tenancy, request.headers()));
        let before = core.db.read(move |tx| entered_before(tx, &known, &cookies)).await?;
        if let Some((app, cookie)) = before {
            return Ok(Self { app, cookie, kept: None });
        }
        let (app, cookie, lifetime) = core.db.by(request).write(move |tx| enter(tx, &code, door)).await?;
        let kept = Jar::new(app, &core.base_url).set(Cookie::Portal, &cookie, lifetime);
        Ok(Self { app, cookie, kept: Some(kept) })
    }
}

/// The way to a page, described as that.
struct Way(Reply);

impl IntoResponse for Way {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl Describe for Way {
    fn describe(operation: &mut Operation) {
        operation.empty_answer(StatusCode::SEE_OTHER);
    }
}

async fn members(
    request: hosted::Request,
    State(core): State<Core>,
    Params(CodeQuery { code }): Params<CodeQuery>,
) -> Result<Way> {
    let Arrival { app, cookie, kept } = Arrival::by_code(&core, &request, code, Door::Members).await?;
    let (visit, ()) = Visit::of(&core, &request, app, &cookie, |_, _| Ok(())).await?;
    visit.visitor.person()?;
    let path = if visit.visitor.holds("USER_READ") { members_page::path(app) } else { profile_page::path(app) };
    Ok(Way(Reply::see(path).with_cookies(kept)))
}
