//! The page behind links that set a password: of an invitation, a reset, or a sign-up. The form is taken by the
//! service, because a sign-up makes a workspace; this is what it shows before and after.

use http::StatusCode;
use kernel::{Code, Error, FieldProblem, Result, UserId};
use tenancy::{apps::OnboardingFlow, links::LinkPurpose};
use web::{
    Params, Routes, State,
    pages::{Field, FieldKind, HostedPage},
};

use super::{
    Reply, done,
    flash::{self, Flash},
    go_on, invitation,
    mailed::{FollowedLink, LinkPlace, LinkQuery, OpenedLink, to_link},
    paths,
};
use crate::{
    Identity,
    browser::Request,
    login::{self, SignUpRequest, credentials},
    proof::Method,
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login").get(paths::SET_PASSWORD, show, "Ask for a new password")
}

async fn show(
    request: Request,
    State(identity): State<Identity>,
    Params(LinkQuery { token }): Params<LinkQuery>,
) -> Result<Reply> {
    match SetPasswordPage::open(&identity, &request, &token).await? {
        Ok(page) if page.invites_somebody_known(&identity).await? => match page.mailed.link.user {
            Some(_) => page.welcome(),
            None => Ok(Reply::found(invitation::path(&token))),
        },
        Ok(page) => page.ask(),
        Err(over) => Ok(over),
    }
}

/// Somebody who follows a link that sets a password.
pub struct SetPasswordPage {
    mailed: Box<FollowedLink>,
    sign_up: Option<SignUpRequest>,
}

impl SetPasswordPage {
    /// Looks at the link; the page that says why not when it is not valid.
    async fn open(identity: &Identity, from: &Request, token: &str) -> Result<Result<Self, Reply>> {
        match FollowedLink::open(identity, from, &login::PASSWORD_LINKS, token).await? {
            OpenedLink::Over(page) => Ok(Err(page)),
            OpenedLink::Valid(mailed) => {
                let sign_up = (mailed.purpose == LinkPurpose::SignUp)
                    .then(|| serde_json::from_value(mailed.link.payload.clone()).map_err(Error::internal))
                    .transpose()?;
                Ok(Ok(Self { mailed, sign_up }))
            }
        }
    }

    /// The same for a form that was sent from this page, by this browser: 403 otherwise.
    pub async fn submitted(
        identity: &Identity,
        from: &Request,
        token: &str,
        csrf: &str,
    ) -> Result<Result<Self, Reply>> {
        let opened = Self::open(identity, from, token).await?;
        if let Ok(page) = &opened {
            page.mailed.place.check_form(csrf)?;
        }
        Ok(opened)
    }

    /// Whether the form asks for the name of the workspace that is about to be made.
    pub fn asks_for_name(&self) -> bool {
        self.sign_up.is_some() && self.mailed.place.app.profile.onboarding_flow == OnboardingFlow::B2B
    }

    /// An invitation to one more workspace: whoever has a password needs no other.
    async fn invites_somebody_known(&self, identity: &Identity) -> Result<bool> {
        if self.mailed.purpose != LinkPurpose::Invitation {
            return Ok(false);
        }
        let (app, email) = (self.mailed.link.app, self.mailed.email.clone());
        let account = identity.tenancy.db.read(move |tx| credentials::find(tx, app, &email)).await?;
        Ok(account.is_some_and(|account| account.has_password()))
    }

    fn welcome(&self) -> Result<Reply> {
        let place = &self.mailed.place;
        let mut page = place
            .page("You already have an account")
            .paragraph(&place.say("Sign in to join the workspace. Your email address is:"))
            .highlight(&self.mailed.email);
        if let LinkPlace::Login(visit) = place {
            page = page.link("", &visit.say("Sign in"), &visit.path(paths::IDENTIFIER)?).link(
                "",
                &visit.say("Forgot your password?"),
                &visit.path(paths::FORGOT)?,
            );
        } else {
            page = place.with_way_to_app(page);
        }
        Ok(place.show(page))
    }

    /// The form, with what was wrong beside its fields.
    fn ask(&self) -> Result<Reply> {
        let place = &self.mailed.place;
        let left = flash::left_for(place, paths::SET_PASSWORD);
        let problem =
            |field: &str, label: &str| left.problem_of(field).map(|problem| format!("{label} {}", place.say(problem)));
        let (password, name) = (place.say("Password"), place.say("Workspace name"));
        let mut form = self
            .mailed
            .form(paths::SET_PASSWORD)
            .field(
                Field::new(FieldKind::Username, "username", &place.say("Email address"))
                    .value(&self.mailed.email)
                    .fixed(),
            )
            .field(
                Field::new(FieldKind::NewPassword, "password", &password)
                    .hint(
                        &place
                            .say("Use at least 8 characters that are hard to guess. A few unrelated words work well."),
                    )
                    .error(problem("password", &password).as_deref())
                    .focused(),
            );
        if let Some(sign_up) = self.sign_up.as_ref().filter(|_| self.asks_for_name()) {
            let default = sign_up.workspace_name();
            form = form.field(
                Field::new(FieldKind::Organization, "workspace", &name)
                    .value(left.typed_in("workspace").unwrap_or(&default))
                    .hint(&place.say("For example, the name of your company or team."))
                    .error(problem("workspace", &name).as_deref()),
            );
        }
        let mut page = self.page().form(&form.button(&place.say("Set password")));
        if self.mailed.purpose == LinkPurpose::Invitation && self.mailed.link.user.is_none() {
            page = page.link("", &place.say("Decline"), &invitation::path(&self.mailed.token));
        }
        Ok(place.show_once(if left.is_problem() { page.status(StatusCode::BAD_REQUEST) } else { page }))
    }

    fn page(&self) -> HostedPage {
        let place = &self.mailed.place;
        match self.mailed.purpose {
            LinkPurpose::SignUp => {
                place.page("Welcome to {appName}").paragraph(&place.say("Choose a password to finish signing up."))
            }
            LinkPurpose::Invitation => place
                .page("Welcome to {appName}")
                .paragraph(&place.say("You have been invited to {appName}. Choose a password for your account.")),
            _ => place.page("Choose a new password").paragraph(
                &place
                    .say("This is the password of your {appName} account. Changing it signs you out everywhere else."),
            ),
        }
    }

    /// Leads back to the form.
    pub fn refused(&self, workspace: &str, error: &Error) -> Result<Reply> {
        let wrong = |left: Flash, problem: &FieldProblem| left.problem(&problem.field, problem.message.clone());
        let left = error.details().iter().fold(Flash::new().typed("workspace", workspace), wrong);
        flash::back(&self.mailed.place, to_link(paths::SET_PASSWORD, &self.mailed.token), left)
    }

    /// Leads to the page that says that a link no longer works.
    pub fn over(token: &str) -> Reply {
        Reply::see(to_link(paths::SET_PASSWORD, token))
    }

    /// Signs in whoever has just set their password, and continues as after any login.
    pub async fn signed_in(&self, user: UserId) -> Result<Reply> {
        let LinkPlace::Login(visit) = &self.mailed.place else { return done::lead(&self.mailed.place, done::PASSWORD) };
        let (identity, app) = (visit.identity.clone(), visit.app.clone());
        // Setting the password ended all sessions up to then: this one begins later, in a transaction of its own.
        let begun =
            visit.identity.tenancy.db.write(move |tx| login::begin(tx, &identity, &app, user, Method::Password, false));
        match begun.await {
            Ok(begun) => go_on(visit, begun.sign(&visit.identity.tenancy)?).await,
            // Whoever may sign in nowhere has a new password all the same.
            Err(error) if error.code() == Code::InvalidCredential => done::lead(&self.mailed.place, done::PASSWORD),
            Err(error) => Err(error),
        }
    }
}
