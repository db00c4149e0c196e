//! The page of an invitation: whoever has an account joins as who they are, signed in in this browser; anybody with the
//! link may decline. Who has no password yet accepts by choosing one, on the page for that.

use kernel::{Code, Result, UserId, email_key};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{
    links::{self, LinkPurpose},
    members::invitations,
    people,
};
use web::{Params, Routes};

use super::{
    Guest, Reply, Sent,
    cookies::Cookie,
    done,
    mailed::{FollowedLink, LinkPlace, LinkQuery, OpenedLink, over, to_link},
    paths,
};
use crate::{
    Identity,
    browser::{ForRequest, Request},
    browser_sessions,
    login::credentials,
    sessions,
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login").get(paths::INVITATION, show, "Ask whether somebody joins a workspace").post(
        paths::INVITATION,
        submit,
        "Join a workspace, or decline",
    )
}

/// The address of the page.
pub(super) fn path(token: &str) -> String {
    to_link(paths::INVITATION, token)
}

async fn show(
    request: Request,
    ForRequest(identity): ForRequest,
    Params(LinkQuery { token }): Params<LinkQuery>,
) -> Result<Reply> {
    match InvitationPage::open(&identity, &request, &token).await? {
        Ok(page) => page.ask(),
        Err(over) => Ok(over),
    }
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct AnswerForm {
    #[serde(default)]
    token: String,
    #[serde(default)]
    csrf: String,
    answer: Answer,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Join,
    Decline,
}

async fn submit(
    request: Request,
    ForRequest(identity): ForRequest,
    Sent { form, once }: Sent<AnswerForm>,
) -> Result<Reply> {
    once.run(identity.tenancy.clone(), async move {
        // Whoever signs in first may join with the same form.
        let back = || Ok(Reply::see(path(&form.token)).passing());
        let Ok(page) = InvitationPage::open(&identity, &request, &form.token).await? else { return back() };
        page.mailed.place.check_form(&form.csrf)?;
        let answered = match (form.answer, page.invited_here) {
            (Answer::Join, Some(user)) => page.join(user).await,
            (Answer::Join, None) => return back(),
            (Answer::Decline, _) => page.decline().await,
        };
        match answered {
            // Another tab was faster, or the workspace took it back: the page says so.
            Err(error) if error.code() == Code::InvalidCredential => back(),
            answered => answered,
        }
    })
    .await
}

/// Somebody with an invitation's link.
struct InvitationPage {
    mailed: Box<FollowedLink>,
    workspace: String,
    has_password: bool,
    /// The person whose address was invited, when they are signed in in this browser.
    invited_here: Option<UserId>,
}

impl InvitationPage {
    /// Looks at the link; the page that says why not when it is not valid.
    async fn open(identity: &Identity, from: &Request, token: &str) -> Result<Result<Self, Reply>> {
        let mailed = match FollowedLink::open(identity, from, &[LinkPurpose::Invitation], token).await? {
            OpenedLink::Over(page) => return Ok(Err(page)),
            OpenedLink::Valid(mailed) => mailed,
        };
        let (link, app, email) = (mailed.link.clone(), mailed.link.app, mailed.email.clone());
        let present = present(&mailed.place).await?;
        let read = identity.tenancy.db.read(move |tx| {
            let Some(offer) = invitations::offered(tx, &link)? else { return Ok(None) };
            let account = credentials::find(tx, app, &email)?;
            let person = match present {
                Some(user) => people::find(tx, app, user)?,
                None => None,
            };
            let invited = person.filter(|person| email_key(&person.email) == email_key(&email)).map(|person| person.id);
            Ok(Some((offer.workspace, account.is_some_and(|account| account.has_password()), invited)))
        });
        Ok(match read.await? {
            Some((workspace, has_password, invited_here)) => Ok(Self { mailed, workspace, has_password, invited_here }),
            // The app has made them a member already.
            None => Err(over(&mailed.place, mailed.purpose)?),
        })
    }

    fn ask(&self) -> Result<Reply> {
        let place = &self.mailed.place;
        let form = self.mailed.form(paths::INVITATION);
        let page = place
            .page("Join a workspace")
            .paragraph(&place.say("You have been invited to join this workspace on {appName}:"))
            .highlight(&self.workspace);
        if self.invited_here.is_some() {
            let form =
                form.choice("answer", "join", &place.say("Join")).choice("answer", "decline", &place.say("Decline"));
            let text = place.say_of("You are signed in as {email}.", &self.mailed.email);
            return Ok(place.show(page.paragraph(&text).form(&form)));
        }
        let page = match (place, self.has_password) {
            (_, false) => {
                let accept = format!("{}?token={}", paths::SET_PASSWORD, self.mailed.token);
                page.link("", &place.say("Accept invitation"), &accept)
            }
            (LinkPlace::Login(visit), true) => {
                let mut request = visit.request.clone();
                request.username = Some(self.mailed.email.clone());
                request.invitation = Some(self.mailed.token.clone());
                let sign_in = request.path(&visit.identity.tenancy, paths::IDENTIFIER)?;
                page.link("", &place.say("Sign in to join"), &sign_in)
            }
            (LinkPlace::DeadEnd(_), true) => {
                let text = place.say("Sign in to {appName} with the address {email} first, then open this link again.");
                place.with_way_to_app(page.paragraph(&text.replace("{email}", &self.mailed.email)))
            }
        };
        Ok(place.show(page.form(&form.choice("answer", "decline", &place.say("Decline")))))
    }

    /// Makes them a member, and leads on to the choice of a workspace.
    async fn join(&self, user: UserId) -> Result<Reply> {
        let place = &self.mailed.place;
        let token = self.mailed.token.clone();
        let joined = place.identity.tenancy.db.write(move |tx| {
            let link = links::consume(tx, LinkPurpose::Invitation, &token)?;
            invitations::accept(tx, &link, Some(user))
        });
        joined.await?;
        match place {
            LinkPlace::Login(visit) => Ok(Reply::see(visit.path(paths::WORKSPACE)?)),
            LinkPlace::DeadEnd(guest) => done::lead(guest, done::JOINED),
        }
    }

    async fn decline(&self) -> Result<Reply> {
        let place = &self.mailed.place;
        let token = self.mailed.token.clone();
        let declined = place.identity.tenancy.db.write(move |tx| {
            let link = links::consume(tx, LinkPurpose::Invitation, &token)?;
            invitations::decline(tx, &link)
        });
        declined.await?;
        done::lead(place, done::DECLINED)
    }
}

/// Whoever is signed in in this browser: in a login under way that has shown all it has to, else by its cookie.
async fn present(guest: &Guest) -> Result<Option<UserId>> {
    // An identity provider's word does not accept what was mailed to the address.
    let login = guest.login().ok().filter(|claims| claims.mfa.is_met() && claims.reach.is_everything());
    let (app, cookie) = (guest.app.id, guest.cookie(Cookie::SignedIn).map(str::to_owned));
    let found = guest.identity.tenancy.db.read(move |tx| {
        if let Some(claims) = &login
            && sessions::check_live(tx, claims).is_ok()
        {
            return Ok(Some(claims.sub));
        }
        let Some(cookie) = &cookie else { return Ok(None) };
        let session = browser_sessions::live(tx, app, cookie)?.filter(|session| session.reach().is_everything());
        Ok(session.map(|session| session.user))
    });
    found.await
}
