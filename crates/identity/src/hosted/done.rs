//! The page at the end of a way that leads to no app: somebody has signed out, has declined an invitation, or has set
//! something up with a mailed link of an app that has nowhere to return to.

use kernel::{AppId, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Params, Routes};

use super::{
    Guest, Reply,
    flash::{self, Flash},
    paths,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
};

const WHAT: &str = "done";
pub(super) const PASSWORD: &str = "password";
pub(super) const PASSKEY: &str = "passkey";
pub(super) const JOINED: &str = "joined";
pub(super) const DECLINED: &str = "declined";
pub(super) const ADDRESS: &str = "address";

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login").get(paths::SIGNED_OUT, show, "Say that somebody is done")
}

/// Leads to the page that says what was done.
pub(super) fn lead(guest: &Guest, what: &str) -> Result<Reply> {
    flash::back(guest, format!("{}?app={}", paths::SIGNED_OUT, guest.app.id), Flash::new().typed(WHAT, what))
}

/// Which app it is about.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
struct AppQuery {
    app: AppId,
}

async fn show(
    request: Request,
    ForRequest(identity): ForRequest,
    Params(AppQuery { app }): Params<AppQuery>,
) -> Result<Reply> {
    let app = identity.app(&request, app)?;
    let guest = Guest::of(&identity, &request, app, None).await?;
    let left = flash::left_for(&guest, paths::SIGNED_OUT);
    let page = match left.typed_in(WHAT) {
        Some(PASSWORD) => guest
            .page("Your password has been set")
            .notice(&guest.say("Use it the next time you sign in to {appName}. You can close this page.")),
        Some(JOINED) => guest.page("You have joined the workspace").paragraph(&guest.say("You can now sign in to it.")),
        Some(DECLINED) => guest.page("Invitation declined").paragraph(&guest.say("You have not joined the workspace.")),
        Some(ADDRESS) => guest
            .page("Your email address has been changed")
            .paragraph(&guest.say("Use it the next time you sign in to {appName}. You can close this page.")),
        Some(PASSKEY) => guest.page("Your passkey is ready").paragraph(&guest.say("You can now use it to sign in.")),
        _ => {
            let text = guest.say("You have been signed out of {appName}. You can close this page.");
            guest.page("Signed out").paragraph(&text)
        }
    };
    Ok(guest.show(guest.with_way_to_app(page)))
}
