//! The form that asks for somebody's address, which several pages have.

use http::StatusCode;
use kernel::{Result, is_email};
use schemars::JsonSchema;
use serde::Deserialize;
use web::pages::{Field, FieldKind, HostedPage};

use super::{
    Reply, Visit,
    flash::{self, Flash},
};
use crate::{Identity, browser::Request};

/// What the form sends.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct AddressForm {
    r: String,
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    username: String,
}

/// A page with the form: what was typed, and what is wrong with it.
pub(super) type Page = fn(&Visit, &str, Option<&str>) -> Result<HostedPage>;

pub(super) fn field(visit: &Visit, typed: &str, problem: Option<&str>) -> Field {
    let field = Field::new(FieldKind::Username, "username", &visit.say("Email address"));
    field.value(typed).error(problem).focused()
}

/// The page with the address that is known, if one is; after a mistake with what was typed, and what is wrong with it.
pub(super) fn show(visit: &Visit, path: &str, page: Page) -> Result<Reply> {
    let left = flash::left_for(visit, path);
    let known = visit.request.username.as_deref().unwrap_or_default();
    let shown = page(visit, left.typed_in("username").unwrap_or(known), left.problem_of("username"))?;
    let status = match (left.problem_of("username"), left.is_problem()) {
        (Some(_), _) => StatusCode::BAD_REQUEST,
        (None, true) => StatusCode::UNAUTHORIZED,
        (None, false) => StatusCode::OK,
    };
    Ok(visit.show_once(shown.status(status)))
}

/// What came of the form.
pub(super) enum AddressStep {
    /// The login continues with this address.
    Address(Box<Visit>, String),
    /// It was none: back to the page.
    Again(Reply),
}

pub(super) async fn take(
    identity: &Identity,
    request: &Request,
    form: &AddressForm,
    path: &str,
) -> Result<AddressStep> {
    let mut visit = Visit::submitted(identity, request, &form.r, &form.csrf).await?;
    let username = form.username.trim();
    if !is_email(username) {
        let problem = visit.say("Enter a valid email address, such as ada@example.com.");
        let left = Flash::new().typed("username", username).problem("username", problem);
        return flash::back(&visit, visit.path(path)?, left).map(AddressStep::Again);
    }
    visit.request.username = Some(username.to_owned());
    Ok(AddressStep::Address(Box::new(visit), username.to_owned()))
}
