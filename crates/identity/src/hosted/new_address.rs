//! The page behind the link that confirms somebody's new address.

use kernel::{Code, Result};
use tenancy::links::LinkPurpose;
use web::{Params, Routes};

use super::{
    Reply, Sent, done,
    mailed::{FollowedLink, LinkForm, LinkQuery, OpenedLink, to_link},
    paths,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
    login::new_address,
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login").get(paths::NEW_ADDRESS, show, "Ask whether to use a new address").post(
        paths::NEW_ADDRESS,
        submit,
        "Use a new address",
    )
}

async fn show(
    request: Request,
    ForRequest(identity): ForRequest,
    Params(LinkQuery { token }): Params<LinkQuery>,
) -> Result<Reply> {
    let mailed = match FollowedLink::open(&identity, &request, &[LinkPurpose::AddressChange], &token).await? {
        OpenedLink::Valid(mailed) => mailed,
        OpenedLink::Over(page) => return Ok(page),
    };
    let place = &mailed.place;
    let page = place
        .page("Confirm your new email address")
        .paragraph(&place.say("Your {appName} account will use this address from now on:"))
        .highlight(new_address::of_link(&mailed.link))
        .form(&mailed.form(paths::NEW_ADDRESS).button(&place.say("Confirm email address")));
    Ok(place.show(page))
}

async fn submit(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<LinkForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let back = || Ok(Reply::see(to_link(paths::NEW_ADDRESS, &form.token)));
        let mailed = match FollowedLink::open(&identity, &request, &[LinkPurpose::AddressChange], &form.token).await? {
            OpenedLink::Valid(mailed) => mailed,
            OpenedLink::Over(_) => return back(),
        };
        let place = &mailed.place;
        place.check_form(&form.csrf)?;
        let (app, token, tenancy) = (place.app.clone(), form.token.clone(), identity.tenancy.clone());
        match identity.tenancy.db.write(move |tx| new_address::confirm(tx, &tenancy, &app, &token)).await {
            Ok(()) => done::lead(place, done::ADDRESS),
            // Another tab was faster: the page says so.
            Err(error) if error.code() == Code::InvalidCredential => back(),
            Err(error) => Err(error),
        }
    })
    .await
}
