//! Somebody on a page of the hosted login: who they are to the app's pages, and what the app asked for.

use std::ops::Deref;

use kernel::{Error, Result};
use web::pages::{HostedPage, PostForm};

use super::{Guest, paths};
use crate::{
    Identity,
    authorize::{LoginRequest, redirects},
    browser::Request,
};

pub(crate) struct Visit {
    guest: Guest,
    pub(crate) request: LoginRequest,
}

impl Deref for Visit {
    type Target = Guest;

    fn deref(&self) -> &Guest {
        &self.guest
    }
}

impl Visit {
    /// A page that was asked for. `sealed` is the login request in its address.
    pub(crate) async fn open(identity: &Identity, from: &Request, sealed: &str) -> Result<Self> {
        let request = LoginRequest::open(&identity.tenancy, sealed)?;
        Self::for_request(identity, from, request).await
    }

    pub(crate) async fn for_request(identity: &Identity, from: &Request, request: LoginRequest) -> Result<Self> {
        let app = identity.app(from, request.app)?;
        // What was registered when the login began may have been taken back since.
        if redirects::registered(&app.profile, Some(&request.redirect_uri)).is_none() {
            return Err(Error::invalid(
                "redirect_uri",
                "is no longer registered. Go back to the app and sign in again",
            ));
        }
        // A trial has none: it leads nowhere but to its connection.
        let way_back = match request.trial {
            true => None,
            false => Some(request.path(&identity.tenancy, paths::IDENTIFIER)?),
        };
        Ok(Self::of(Guest::of(identity, from, app, way_back).await?, request))
    }

    /// `request` leads to an address of the guest's app.
    pub(super) fn of(guest: Guest, request: LoginRequest) -> Self {
        Self { guest, request }
    }

    /// A form that was sent from one of these pages, by this browser: 403 otherwise.
    pub(crate) async fn submitted(identity: &Identity, from: &Request, sealed: &str, csrf: &str) -> Result<Self> {
        let visit = Self::open(identity, from, sealed).await?;
        visit.check_form(csrf)?;
        Ok(visit)
    }

    /// A page of this login in the app's looks.
    pub(crate) fn page(&self, title: &str) -> HostedPage {
        self.guest.page(title).form_target(&self.request.redirect_uri)
    }

    /// A form that belongs to this login and this browser.
    pub(crate) fn form(&self, action: &str) -> Result<PostForm> {
        let sealed = self.request.seal(&self.identity.tenancy)?;
        Ok(PostForm::new(action).hidden("r", &sealed).hidden("csrf", &self.csrf()))
    }

    /// The address of another page of this login.
    pub(crate) fn path(&self, path: &str) -> Result<String> {
        self.request.path(&self.identity.tenancy, path)
    }
}
