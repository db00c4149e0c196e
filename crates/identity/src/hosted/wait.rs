//! The page of somebody who has to wait before the next attempt. A form leads here instead of answering with a page of its
//! own, so that going back never sends it again.

use std::time::Duration;

use kernel::{Code, Error, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use url::form_urlencoded;
use web::{Params, Routes};

use super::{Reply, Visit, paths};
use crate::{
    Identity,
    browser::{ForRequest, Request},
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login").get(paths::WAIT, show, "Say how long to wait before the next attempt")
}

/// The login request that a form carries.
pub(super) fn login_in(form: &str) -> Option<String> {
    form_urlencoded::parse(form.as_bytes()).find(|(name, _)| name == "r").map(|(_, sealed)| sealed.into_owned())
}

/// Where a form of a login leads that came too soon; any other error stays one.
pub(super) fn lead(login: Option<&str>, now: Timestamp, error: Error) -> Result<Reply> {
    let (Some(r), Code::RateLimited) = (login, error.code()) else { return Err(error) };
    let until = now.plus(error.retry_after().unwrap_or(Duration::from_secs(1)));
    let until = until.as_micros().div_euclid(1_000_000).saturating_add(1).to_string();
    let query =
        form_urlencoded::Serializer::new(String::new()).append_pair("r", r).append_pair("until", &until).finish();
    Ok(Reply::see(format!("{}?{query}", paths::WAIT)))
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct WaitQuery {
    r: String,
    /// In seconds since 1970.
    until: u32,
}

/// Says so until it is over; afterwards leads back to the beginning.
async fn show(
    request: Request,
    ForRequest(identity): ForRequest,
    Params(WaitQuery { r, until }): Params<WaitQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    let now = identity.tenancy.db.clock().now().as_micros().div_euclid(1_000_000);
    match u64::try_from(i64::from(until) - now) {
        Ok(left @ 1..) => Err(Error::new(Code::RateLimited, "Too many attempts. Try again later.")
            .with_retry_after(Duration::from_secs(left))),
        _ => Ok(Reply::found(visit.path(paths::IDENTIFIER)?)),
    }
}
