//! Signing in with a mailed link: asking for it, the page that says to check the inbox, and the page behind the
//! link. What is said is the same whether there is an account or not.

use kernel::{Code, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::links::LinkPurpose;
use web::{LimitClass, Params, Routes, State, pages::PostForm};

use super::{
    ButtonForm, Reply, Sent, Visit, go_on,
    mailed::{FollowedLink, LinkForm, LinkPlace, LinkQuery, OpenedLink, to_link},
    paths,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
    login::{self, Landing},
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login")
        .post(paths::SEND_LINK, send, "Email a sign-in link")
        .limited(LimitClass::Message)
        .get(paths::LINK_SENT, sent, "Say that a mail is on its way")
        .get(paths::MAGIC_LINK, show, "Ask whether to sign in with a mailed link")
        .post(paths::MAGIC_LINK, follow, "Sign in with a mailed link")
}

async fn send(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<ButtonForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let visit = Visit::submitted(&identity, &request, &form.r, &form.csrf).await?;
        let username = visit.request.username.as_deref().ok_or_else(|| Error::invalid("username", "is required"))?;
        let landing = Landing::Hosted(Some(Box::new(visit.request.clone())));
        login::magic_link(&identity, &visit.app, username, landing).await?;
        MailedWhat::Link.lead(&visit)
    })
    .await
}

/// What was mailed, so that the page can offer to send it again.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum MailedWhat {
    #[default]
    Link,
    Reset,
    Passkey,
}

impl MailedWhat {
    /// Leads to the page that says that a mail is on its way.
    pub(super) fn lead(self, visit: &Visit) -> Result<Reply> {
        let what = match self {
            Self::Link => "",
            Self::Reset => "&what=reset",
            Self::Passkey => "&what=passkey",
        };
        Ok(Reply::see(format!("{}{what}", visit.path(paths::LINK_SENT)?)))
    }

    /// The button that sends it again.
    fn again(self, visit: &Visit, email: &str) -> Result<PostForm> {
        let form = match self {
            Self::Link => visit.form(paths::SEND_LINK)?,
            Self::Reset => visit.form(paths::FORGOT)?.hidden("username", email),
            Self::Passkey => visit.form(paths::PASSKEY_LINK)?.hidden("username", email),
        };
        Ok(form.button(&visit.say("Send again")).quiet())
    }
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SentQuery {
    r: String,
    #[serde(default)]
    what: MailedWhat,
}

async fn sent(
    request: Request,
    State(identity): State<Identity>,
    Params(SentQuery { r, what }): Params<SentQuery>,
) -> Result<Reply> {
    let visit = Visit::open(&identity, &request, &r).await?;
    let Some(email) = &visit.request.username else {
        return Ok(Reply::found(visit.path(paths::IDENTIFIER)?));
    };
    let page = visit
        .page("Check your inbox")
        .notice(&visit.say_of("If an account exists for {email}, we have sent a link to that address.", email))
        .aside(&visit.say("The email can take a minute to arrive. If you do not see it, check your spam folder."))
        .form(&what.again(&visit, email)?)
        .link("", &visit.say("Sign in another way"), &visit.path(paths::PASSWORD)?)
        .link("", &visit.say("Use a different email address"), &visit.path(paths::IDENTIFIER)?);
    Ok(visit.show(page))
}

async fn show(
    request: Request,
    State(identity): State<Identity>,
    Params(LinkQuery { token }): Params<LinkQuery>,
) -> Result<Reply> {
    let mailed = match FollowedLink::open(&identity, &request, &[LinkPurpose::MagicLink], &token).await? {
        OpenedLink::Valid(mailed) => mailed,
        OpenedLink::Over(page) => return Ok(page),
    };
    let place = &mailed.place;
    login::check_magic_links(&place.app)?;
    if matches!(place, LinkPlace::DeadEnd(_)) {
        let page = place.page("You cannot sign in here");
        let why = place.say("This link cannot sign you in to {appName} from here. Sign in on its own website instead.");
        return Ok(place.show(place.with_way_to_app(page.paragraph(&why))));
    }
    let form = mailed.form(paths::MAGIC_LINK).button(&place.say("Sign in"));
    let page = place
        .page("Sign in to {appName}")
        .paragraph(&place.say("Continue to sign in as:"))
        .highlight(&mailed.email)
        .form(&form);
    Ok(place.show(page))
}

async fn follow(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<LinkForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        let mailed = match FollowedLink::open(&identity, &request, &[LinkPurpose::MagicLink], &form.token).await? {
            OpenedLink::Valid(mailed) => mailed,
            OpenedLink::Over(_) => return Ok(Reply::see(to_link(paths::MAGIC_LINK, &form.token))),
        };
        mailed.place.check_form(&form.csrf)?;
        let LinkPlace::Login(visit) = &mailed.place else {
            let why = "This link cannot sign you in from here. Sign in on the app’s own website instead.";
            return Err(Error::new(Code::LoginMethodOff, why));
        };
        match login::follow_magic_link(&identity, visit.client, &form.token).await {
            Ok(session) => go_on(visit, session).await,
            Err(error) if error.code() == Code::InvalidCredential => {
                Ok(Reply::see(to_link(paths::MAGIC_LINK, &form.token)))
            }
            Err(error) => Err(error),
        }
    })
    .await
}
