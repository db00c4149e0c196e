//! The form that asks for somebody's address, which several pages have.

use http::StatusCode;
use kernel::{Result, is_email};
use schemars::JsonSchema;
use serde::Deserialize;
use web::pages::{Field, FieldKind, HostedPage};

use super::{Reply, Visit};
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

/// The page as it is first shown: with the address that is known, if one is.
pub(super) fn first(visit: &Visit, page: Page) -> Result<Reply> {
    let known = visit.request.username.as_deref().unwrap_or_default();
    Ok(visit.show(page(visit, known, None)?))
}

/// What came of the form.
pub(super) enum AddressStep {
    /// The login continues with this address.
    Address(Box<Visit>, String),
    /// It was none: the page again.
    Again(Reply),
}

pub(super) async fn take(
    identity: &Identity,
    request: &Request,
    form: &AddressForm,
    page: Page,
) -> Result<AddressStep> {
    let mut visit = Visit::submitted(identity, request, &form.r, &form.csrf).await?;
    let username = form.username.trim();
    if !is_email(username) {
        let problem = visit.say("Enter a valid email address, such as ada@example.com.");
        let page = page(&visit, username, Some(&problem))?.status(StatusCode::BAD_REQUEST);
        return Ok(AddressStep::Again(visit.show(page)));
    }
    visit.request.username = Some(username.to_owned());
    Ok(AddressStep::Address(Box::new(visit), username.to_owned()))
}
