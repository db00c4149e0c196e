//! Mailed links that lead to a page. Looking at one changes nothing, because mail scanners follow links: only the
//! page's button uses it up.

use std::{ops::Deref, sync::Arc};

use http::StatusCode;
use kernel::{Code, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{
    App,
    links::{self, LinkPurpose, MailedLink},
};
use web::pages::{Brand, HostedPage, PostForm};

use super::{Guest, Reply, Visit, paths};
use crate::{
    Identity,
    authorize::{LoginRequest, redirects},
    browser::Request,
    login, passkeys,
};

/// The query of a mailed link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct LinkQuery {
    #[serde(default)]
    pub(super) token: String,
}

/// The form of a page that only has a button, which uses the link up.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct LinkForm {
    #[serde(default)]
    pub(super) token: String,
    #[serde(default)]
    pub(super) csrf: String,
}

/// Where somebody with a link is.
pub(super) enum LinkPlace {
    /// In a login: what comes after the link is the app's.
    Login(Box<Visit>),
    /// The app has no address to return to.
    DeadEnd(Box<Guest>),
}

impl Deref for LinkPlace {
    type Target = Guest;

    fn deref(&self) -> &Guest {
        match self {
            Self::Login(visit) => visit,
            Self::DeadEnd(guest) => guest,
        }
    }
}

impl LinkPlace {
    /// In the login that the link was mailed for, else in one of the app's own. What the app registered may have
    /// changed since.
    async fn of(identity: &Identity, from: &Request, app: Arc<App>, link: &MailedLink) -> Result<Self> {
        from.scope.set_app(app.id);
        let sealed = link.payload["request"].as_str();
        let asked = sealed.and_then(|sealed| LoginRequest::open(&identity.tenancy, sealed).ok());
        let is_good = |request: &LoginRequest| {
            request.app == app.id && redirects::registered(&app.profile, Some(&request.redirect_uri)).is_some()
        };
        let request = asked.filter(is_good).or_else(|| LoginRequest::to_default(&app));
        let way_back =
            request.as_ref().map(|request| request.path(&identity.tenancy, paths::IDENTIFIER)).transpose()?;
        let guest = Guest::of(identity, from, app, way_back).await?;
        Ok(match request {
            Some(request) => Self::Login(Box::new(Visit::of(guest, request))),
            None => Self::DeadEnd(Box::new(guest)),
        })
    }

    /// A page that may lead back to the app.
    pub(super) fn page(&self, title: &str) -> HostedPage {
        match self {
            Self::Login(visit) => visit.page(title),
            Self::DeadEnd(guest) => guest.page(title),
        }
    }
}

/// A link in somebody's hands.
pub(super) struct FollowedLink {
    pub(super) purpose: LinkPurpose,
    pub(super) link: MailedLink,
    /// The address that it was mailed to.
    pub(super) email: String,
    pub(super) token: String,
    pub(super) place: LinkPlace,
}

/// A valid link, or the page that says that it is none.
pub(super) enum OpenedLink {
    Valid(Box<FollowedLink>),
    Over(Reply),
}

impl FollowedLink {
    /// Looks at a link as one of these purposes.
    pub(super) async fn open(
        identity: &Identity,
        from: &Request,
        purposes: &'static [LinkPurpose],
        token: &str,
    ) -> Result<OpenedLink> {
        let shown = token.to_owned();
        let found = identity.tenancy.db.read(move |tx| match login::peek(tx, purposes, &shown) {
            Ok((purpose, link, email)) => Ok(Some((purpose, link, Some(email)))),
            Err(error) if error.code() == Code::InvalidCredential => {
                for purpose in purposes {
                    if let Some(link) = links::trace(tx, *purpose, &shown)? {
                        return Ok(Some((*purpose, link, None)));
                    }
                }
                Ok(None)
            }
            Err(error) => Err(error),
        });
        // Not counted against the address: nobody guesses 256 bits, but any page can make a browser look at links.
        let Some((purpose, link, email)) = found.await? else { return Ok(OpenedLink::Over(unknown())) };
        let app = identity.tenancy.apps.find(link.app).await?.ok_or_else(|| Error::not_found("app"))?;
        let place = LinkPlace::of(identity, from, app, &link).await?;
        match email {
            Some(email) => {
                let token = token.to_owned();
                Ok(OpenedLink::Valid(Box::new(Self { purpose, link, email, token, place })))
            }
            None => Ok(OpenedLink::Over(over(&place, purpose)?)),
        }
    }

    /// The form that uses the link up, in this browser.
    pub(super) fn form(&self, action: &str) -> PostForm {
        PostForm::new(action).hidden("token", &self.token).hidden("csrf", &self.place.csrf())
    }
}

/// Leads from a form to the page of its link, which says what has become of it.
pub(super) fn to_link(path: &str, token: &str) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("token", token).finish();
    format!("{path}?{query}")
}

/// Says that a link no longer works, and where to get another.
pub(super) fn over(place: &LinkPlace, purpose: LinkPurpose) -> Result<Reply> {
    let mut page = place
        .page("This link no longer works")
        .status(StatusCode::NOT_FOUND)
        .paragraph(&place.say("It has expired, has already been used, or has been replaced by a newer link."));
    if let LinkPlace::Login(visit) = place {
        if matches!(purpose, LinkPurpose::PasswordReset | LinkPurpose::Invitation) {
            page = page.link("", &visit.say("Request a new link"), &visit.path(paths::FORGOT)?);
        }
        if purpose == LinkPurpose::PasskeySetup && passkeys::are_possible(&visit.identity, &visit.app) {
            page = page.link("", &visit.say("Request a new link"), &visit.path(paths::PASSKEY_LINK)?);
        }
        if purpose == LinkPurpose::SignUp {
            page = page.link("", &visit.say("Create an account"), &visit.path(paths::SIGN_UP)?);
        }
        page = page.link("", &visit.say("Sign in"), &visit.path(paths::IDENTIFIER)?);
    } else {
        page = place.with_way_to_app(page);
    }
    Ok(place.show(page))
}

/// Whose link it was is not known, so the page has no app's looks.
fn unknown() -> Reply {
    let page = HostedPage::new(&Brand::of_the_service(), "This link no longer works");
    Reply::page(
        page.status(StatusCode::NOT_FOUND)
            .paragraph("It has expired, has already been used, or is incomplete.")
            .paragraph("Go back to the app and request a new link."),
    )
}
